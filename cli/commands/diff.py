"""`memhouse diff`: what grew or shrank, and why."""

from typing import Annotated

import typer

from ..options import DEFAULT_DB, AsFormat, Db, Format, Space, Workload

_RUN_OR_MODULE = "A run, or a module as RUN/WORKLOAD/NAME or a unique part of it."


def diff(
    a: Annotated[str, typer.Argument(help=_RUN_OR_MODULE, show_default=False)],
    b: Annotated[str, typer.Argument(help=_RUN_OR_MODULE, show_default=False)],
    db: Db = DEFAULT_DB,
    workload: Workload = None,
    space: Space = 0,
    limit: Annotated[
        int, typer.Option("--limit", "-n", min=1, help="At most so many buffers a module.")
    ] = 12,
    output: AsFormat = Format.table,
) -> None:
    """Show what grew or shrank from A to B, buffer by buffer, and what else changed.

    The buffers' changes add up to the change of the peak. csv and json have all of them, of
    all memory spaces.
    """
    from ...queries.diff import diff as find
    from ..opening import reading
    from ..render.differences import print_diff

    with reading(db) as store:
        found = find(store, a, b, workload)
    print_diff(found, space, limit, output)
