"""Options that several commands take."""

from enum import StrEnum
from typing import Annotated

import typer


class Format(StrEnum):
    """How rows are printed."""

    table = "table"
    csv = "csv"
    json = "json"
    markdown = "markdown"


Db = Annotated[
    str,
    typer.Option(
        "--db",
        metavar="URL",
        envvar="MEMHOUSE_DB",
        help="The warehouse: a file's path or a duckdb:/// URL.",
    ),
]
AsFormat = Annotated[
    Format, typer.Option("--format", "-f", help="How to print the rows.", show_choices=True)
]
DEFAULT_DB = "memhouse.duckdb"
