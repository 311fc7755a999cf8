"""Options that several commands take."""

from enum import StrEnum
from typing import Annotated

import typer

from .known import known_branches, known_modules, known_runs, known_workloads


class Format(StrEnum):
    """How rows are printed."""

    table = "table"
    csv = "csv"
    json = "json"
    markdown = "markdown"


# Formats of plain values: nothing is folded, rounded or cut in them.
FOR_SCRIPTS = (Format.csv, Format.json)
Db = Annotated[
    str,
    typer.Option(
        "--db",
        metavar="URL",
        envvar="MEMHOUSE_DB",
        help="The warehouse: a file's path, or a lake's folder or URL such as s3://bucket/memhouse.",
    ),
]
Lake = Annotated[
    str,
    typer.Option(
        "--db",
        metavar="LAKE",
        envvar="MEMHOUSE_DB",
        help="The lake: its folder, or a URL such as s3://bucket/memhouse.",
        show_default=False,
    ),
]
AsFormat = Annotated[
    Format, typer.Option("--format", "-f", help="How to print the rows.", show_choices=True)
]
Wait = Annotated[
    float,
    typer.Option(
        metavar="SECONDS",
        min=0,
        help="Wait at most SECONDS while another process uses the warehouse.",
    ),
]
Run = Annotated[str | None, typer.Option(help="Only this run.", autocompletion=known_runs)]
Workload = Annotated[
    str | None, typer.Option(help="Only this workload.", autocompletion=known_workloads)
]
Since = Annotated[
    str | None, typer.Option(metavar="TIME", help="Only runs since this date or time, in UTC.")
]
Branch = Annotated[
    str | None,
    typer.Option(
        help="The runs of this branch; else main, master or those without a branch.",
        autocompletion=known_branches,
    ),
]
All = Annotated[
    bool, typer.Option("--all", help="Show the same program of several workloads one by one.")
]
Module = Annotated[
    str,
    typer.Argument(
        metavar="MODULE",
        help="A workload, module name, WORKLOAD/NAME, unique part of one, or module id.",
        show_default=False,
        autocompletion=known_modules,
    ),
]
RunOfModule = Annotated[
    str | None,
    typer.Option(help="The module as of this run; else its latest.", autocompletion=known_runs),
]
Space = Annotated[int, typer.Option(help="The memory space's number; 0 is HBM.")]
Limit = Annotated[int, typer.Option("--limit", "-n", min=1, help="At most so many rows.")]
At = Annotated[
    int | None,
    typer.Option(metavar="TIME", help="At this time of the schedule; else at the peak."),
]
Callers = Annotated[
    int,
    typer.Option(metavar="N", min=0, help="Show N callers of each line, from the Python stack."),
]
Wide = Annotated[
    bool, typer.Option("--wide", "-v", help="Show all columns, and no text cut short.")
]
Figure = Annotated[
    str, typer.Option(help="Which figure: peak, total, temp, argument, output, padding and so on.")
]
Tolerance = Annotated[
    str | None,
    typer.Option(
        metavar="0.5%|1MiB",
        help="How far a figure may lie from its level; 0.2 % and at least 64 KiB unless given.",
    ),
]
DEFAULT_DB = "memhouse.duckdb"
# A night's ingest is over by then; a prompt that someone left open may not be.
DEFAULT_WAIT = 600


def parse_labels(labels: list[str]) -> dict[str, str]:
    """The labels given as KEY=VALUE; an empty value removes one."""
    pairs = [label.partition("=") for label in labels]
    for key, equals, _ in pairs:
        if not key or not equals:
            raise typer.BadParameter("a label is KEY=VALUE", param_hint="--label")
    return {key: value for key, _, value in pairs}
