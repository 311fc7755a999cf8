"""`memhouse runs`: the runs of the warehouse."""

from dataclasses import replace
from typing import Annotated

import pyarrow as pa
import typer

from ...queries.result import Rows, listed
from ..formats import FOR_SCRIPTS
from ..opening import open_warehouse
from ..parameters import DEFAULT_DB, DEFAULT_WAIT, AsFormat, Db, Wait
from ..render.text import print_rows

EXAMPLE = "memhouse runs"


def runs(
    db: Db = DEFAULT_DB,
    label: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY=VALUE",
            help="Only runs with this label, or any value of KEY; all labels must match.",
        ),
    ] = None,
    output: AsFormat = "table",
    wait: Wait = DEFAULT_WAIT,
) -> None:
    """List the runs, the oldest first.

    Runs of `memhouse fit` have the label fit: `--label fit=train:build`.
    """
    with open_warehouse(db, wait) as warehouse:
        rows = warehouse.runs(label=label or ())
    print_rows(rows if output in FOR_SCRIPTS else _abbreviate(rows), output)


def _abbreviate(rows: Rows) -> Rows:
    """Omit empty columns, and abbreviate lists of host names."""
    table = rows.table
    short = [hosts and listed(hosts.split(", ")) for hosts in table["hosts"].to_pylist()]
    index = table.column_names.index("hosts")
    table = table.set_column(index, "hosts", pa.array(short, pa.string()))
    empty = [name for name in ("branch", "hosts") if table[name].null_count == len(table)]
    return replace(rows, table=table.drop_columns(empty))
