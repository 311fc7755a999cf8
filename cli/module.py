"""Commands about one module: its buffers, who owns them, its timeline."""

from typing import Annotated

import typer

from .options import DEFAULT_DB, AsFormat, Db, Format

Module = Annotated[
    str,
    typer.Argument(
        metavar="MODULE",
        help="A workload, module name, WORKLOAD/NAME, unique part of one, or module id.",
        show_default=False,
    ),
]
Run = Annotated[str | None, typer.Option(help="The module as of this run; else its latest.")]
Space = Annotated[int, typer.Option(help="The memory space's number; 0 is HBM.")]
Limit = Annotated[int, typer.Option("--limit", "-n", min=1, help="At most so many rows.")]


def buffers(
    module: Module,
    db: Db = DEFAULT_DB,
    run: Run = None,
    space: Space = 0,
    at: Annotated[
        int | None, typer.Option(metavar="TIME", help="At this time of the schedule.")
    ] = None,
    limit: Limit = 20,
    output: AsFormat = Format.table,
) -> None:
    """Show the buffers that fill a module's memory at its peak, or at any time."""
    from .reports.module import show_module

    empty = f"nothing is live in memory space {space} then"
    show_module(db, "buffers", module, run, [space, at, limit], output, empty=empty)


def owners(
    module: Module,
    db: Db = DEFAULT_DB,
    run: Run = None,
    space: Space = 0,
    limit: Limit = 20,
    output: AsFormat = Format.table,
) -> None:
    """Show which lines of Python own a module's peak."""
    from .reports.module import show_module

    empty = f"memory space {space} has no known peak"
    show_module(db, "owners", module, run, [space, limit], output, empty=empty)


def timeline(
    module: Module,
    db: Db = DEFAULT_DB,
    run: Run = None,
    space: Space = 0,
    output: AsFormat = Format.table,
) -> None:
    """Show how full a module's memory is over its schedule, as a chart on a terminal."""
    from .reports.module import show_module

    empty = f"memory space {space} has no known occupancy"
    show_module(db, "timeline", module, run, [space], output, empty=empty)
