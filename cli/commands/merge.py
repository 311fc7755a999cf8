"""`memhouse merge`: the runs of other warehouse files in one."""

from pathlib import Path
from typing import Annotated

import typer

from ...schema.merge import Merged
from ...schema.merge import merge as merge_files
from ..opening import ingesting
from ..parameters import DEFAULT_WAIT, Wait
from ..render.text import print_note

EXAMPLE = "memhouse merge nights.duckdb host0.duckdb host1.duckdb"


def merge(
    main: Annotated[
        str,
        typer.Argument(
            metavar="MAIN", help="The warehouse that gets the rows.", show_default=False
        ),
    ],
    parts: Annotated[
        list[Path],
        typer.Argument(metavar="PART…", help="The files with the rows.", show_default=False),
    ],
    wait: Wait = DEFAULT_WAIT,
) -> None:
    """Add the runs of other warehouse files to a warehouse.

    All is added in one transaction, or nothing. What MAIN has already is not added again, and the
    order of the files makes no difference. Parts of one run that hosts ingested with --host become
    one run. MAIN is made if it is missing; the other files stay as they are.
    """
    lines: list[str] = []
    with ingesting(main, wait=wait) as store:
        merged = merge_files(
            store, parts, lambda file, part: lines.append(f"{file}: {_counted(part)}")
        )
    for line in lines:
        print_note(line)
    print_note(f"{main}: {_counted(merged)} from {len(parts)} file{'s' * (len(parts) != 1)}")


def _counted(merged: Merged) -> str:
    """For example `1 run, 3 dumps, 2 modules added`."""
    counts = {"run": merged.runs, "dump": merged.dumps, "module": merged.modules}
    added = [f"{count} {noun}{'s' * (count != 1)}" for noun, count in counts.items() if count]
    return f"{', '.join(added)} added" if added else "nothing to add"
