"""`memhouse merge`: add the runs of other warehouse files to a warehouse."""

from pathlib import Path
from typing import Annotated

import typer

from ...queries.result import counted
from ...schema.merge import Merged
from ...schema.merge import merge as merge_files
from ..opening import ingesting
from ..parameters import DEFAULT_WAIT, Wait
from ..render.text import print_note

EXAMPLE = "memhouse merge nights.duckdb host0.duckdb host1.duckdb"


def merge(
    main: Annotated[
        str, typer.Argument(metavar="MAIN", help="The warehouse to add to.", show_default=False)
    ],
    parts: Annotated[
        list[Path], typer.Argument(metavar="PART…", help="The files to read.", show_default=False)
    ],
    wait: Wait = DEFAULT_WAIT,
) -> None:
    """Add the runs of other warehouse files to a warehouse.

    All rows are added in one transaction. Rows that MAIN already has are not added again, and the
    order of the files makes no difference. Parts of one run that hosts ingested with --host become
    one run. MAIN is created if it is missing; the other files are only read.
    """
    lines: list[str] = []
    with ingesting(main, wait=wait) as store:
        merged = merge_files(
            store, parts, lambda file, part: lines.append(f"{file}: {_describe(part)}")
        )
    for line in lines:
        print_note(line)
    print_note(f"{main}: {_describe(merged)} from {counted(len(parts), 'file')}")


def _describe(merged: Merged) -> str:
    """Added rows as text: `1 run, 3 dumps, 2 modules added`."""
    counts = {"run": merged.runs, "dump": merged.dumps, "module": merged.modules}
    added = [counted(count, noun) for noun, count in counts.items() if count]
    return f"{', '.join(added)} added" if added else "nothing to add"
