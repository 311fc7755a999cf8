"""`memhouse diff`: what grew or shrank, and why."""

from enum import StrEnum
from typing import Annotated

import typer

from ..known import known_runs
from ..options import DEFAULT_DB, DEFAULT_WAIT, AsFormat, Db, Format, Space, Wait, Workload

EXAMPLE = "memhouse diff 2026-10-07 2026-10-08 --workload llama-v5e"
_RUN_OR_MODULE = "A run, or a module as RUN/WORKLOAD/NAME or a unique part of it."


class By(StrEnum):
    """What the change is summed by."""

    buffer = "buffer"
    source = "source"
    scope = "scope"
    op = "op"
    dtype = "dtype"
    pass_ = "pass"
    category = "category"
    role = "role"


def diff(
    a: Annotated[
        str, typer.Argument(help=_RUN_OR_MODULE, show_default=False, autocompletion=known_runs)
    ],
    b: Annotated[
        str, typer.Argument(help=_RUN_OR_MODULE, show_default=False, autocompletion=known_runs)
    ],
    db: Db = DEFAULT_DB,
    workload: Workload = None,
    by: Annotated[By, typer.Option(help="Sum the change by this.")] = By.buffer,
    space: Space = 0,
    limit: Annotated[
        int, typer.Option("--limit", "-n", min=1, help="At most so many changes a module.")
    ] = 12,
    wide: Annotated[
        bool, typer.Option("--wide", "-v", help="Show all changes with all columns, none cut.")
    ] = False,
    output: AsFormat = Format.table,
    wait: Wait = DEFAULT_WAIT,
) -> None:
    """Show what grew or shrank from A to B, buffer by buffer, and what else changed.

    The changes add up to the change of the peak; those below 0.1 % of all are one row. csv and
    json have all of them, of all memory spaces.
    """
    from ...queries.diff import diff as find
    from ..opening import reading
    from ..render.differences import print_diff

    with reading(db, wait=wait) as store:
        found = find(store, a, b, workload, by.value)
    print_diff(found, space, limit, output, wide=wide)
