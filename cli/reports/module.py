"""Shows one module: its buffers, who owns them, its timeline."""

import sys

from ...queries.catalogue import command_query
from ...schema.stores.duckdb import fetch
from ..options import Format
from ..render.output import print_rows
from ..warehouse import reading
from .find import find_module


def show_module(
    db: str,
    query: str,
    module: str,
    run: str | None,
    parameters: list[object],
    output: Format,
    *,
    empty: str,
) -> None:
    """Show the rows of a query of `queries/statements/` whose first parameter is the module."""
    with reading(db) as connection:
        module_id = find_module(connection, module, run)
        rows = fetch(connection, command_query(query), [module_id, *parameters])
    if query == "timeline" and output is Format.table and sys.stdout.isatty() and len(rows):
        from .chart import print_timeline

        print_timeline(rows)
        return
    print_rows(rows, output, empty=empty)
