"""`memhouse sql`: the user's own queries."""

import sys
from typing import Annotated

import typer

from ..options import DEFAULT_DB, DEFAULT_WAIT, AsFormat, Db, Format, Wait

EXAMPLE = 'memhouse sql "SELECT workload, peak_bytes FROM peaks" --format csv'
_TO_WRITE = "use `memhouse sql --write` to change the warehouse"


def sql(
    query: Annotated[
        str,
        typer.Argument(help="The query; - reads it from standard input.", show_default=False),
    ],
    db: Db = DEFAULT_DB,
    output: AsFormat = Format.table,
    write: Annotated[
        bool, typer.Option("--write", help="Let it change the warehouse: all of it or nothing.")
    ] = False,
    wait: Wait = DEFAULT_WAIT,
) -> None:
    """Run a SQL query on the warehouse, which it can only read unless you say --write."""
    from ...queries.result import Rows
    from ...queries.sql import sql as find
    from ...schema.errors import QueryError
    from ..opening import reading, writing
    from ..render.rows import print_rows
    from ..render.text import print_error

    text = sys.stdin.read() if query == "-" else query
    try:
        if write:
            with writing(db, wait=wait) as store:
                rows = Rows(store.change(text), empty="done")
        else:
            with reading(db, wait=wait) as store:
                rows = find(store, text)
    except QueryError as error:
        said = str(error)
        print_error(f"{said.rstrip('!')}: {_TO_WRITE}" if "read-only mode" in said else said)
        raise typer.Exit(2) from None
    print_rows(rows, output)
