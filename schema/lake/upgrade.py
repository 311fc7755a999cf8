"""Brings a lake of an older layout to the tables of today.

Each step can be done again: after an interruption the next process that writes goes on. While the
version is the new one and the layout is not, older memhouses refuse the lake and this one goes on.
"""

import pyarrow as pa
import pyarrow.compute as pc

from .. import arrow
from ..errors import WarehouseError
from ..journal import entries, entry, numbered
from ..versions import layout
from .commits import Actions, commit
from .data_files import DataFile, read_files, write_file
from .lake_errors import lake_errors
from .layout import LAKE_VERSION, LAYOUT_PROPERTY, VERSION_PROPERTY, union_schema
from .snapshot import Lake, Snapshot

# Those whose rows get columns; files of other relations stay as they are.
_CHANGED = ("runs", "dumps", "modules")


def upgrade(lake: Lake) -> None:
    """Upgrade the lake. Raises WarehouseError."""
    from deltalake.schema import Field, Schema

    wanted = Schema.from_arrow(union_schema()).fields
    with lake_errors(lake.place):
        stored = {column.name for column in lake.table.schema().fields}
        new = [Field(f.name, f.type, nullable=True) for f in wanted if f.name not in stored]
        if new:
            lake.table.alter.add_columns(new)
        lake.table.alter.set_table_properties(
            {VERSION_PROPERTY: str(LAKE_VERSION)}, raise_if_not_exists=False
        )
    lake.refresh()
    if commit(lake, lambda snapshot: _rewritten(lake.place, snapshot)) is None:
        raise WarehouseError(f"cannot upgrade {lake.place}: others write to it: try again")
    with lake_errors(lake.place):
        lake.table.alter.set_table_properties(
            {LAYOUT_PROPERTY: layout()}, raise_if_not_exists=False
        )
    lake.refresh()


def _rewritten(place: str, snapshot: Snapshot) -> Actions:
    """The files of the changed relations with all columns, and the parts and entries of runs."""
    tables = {name: read_files(place, snapshot.of(name), name) for name in _CHANGED}
    runs = tables["runs"]
    tables["runs"] = _filled(runs, "compiled_at", runs["run_at"])
    modules = tables["modules"]
    tables["modules"] = _filled(modules, "reader_version", pa.scalar(0, pa.int32()))
    removes = [file for name in _CHANGED for file in snapshot.of(name)]
    if not snapshot.of("journal"):
        rows = runs.sort_by("run_seq").to_pylist()
        tables["run_parts"] = arrow.rows(
            "run_parts",
            [
                {
                    "run_id": row["run_id"],
                    "host": "",
                    "source": row["source"],
                    "entered_at": row["ingested_at"],
                }
                for row in rows
            ],
        )
        told = [
            {
                **entry("ingest", "before the journal was kept", row["run_id"]),
                "entered_at": row["ingested_at"],
                "tool_version": row["tool_version"],
                "reader_version": 0,
                "by_whom": "",
            }
            for row in rows
        ]
        told.append(entry("upgrade", f"lake version 1 to {LAKE_VERSION}"))
        tables["journal"] = numbered(entries(*told)["journal"], 0)
    adds: list[DataFile] = [
        write_file(place, name, rows) for name, rows in tables.items() if len(rows)
    ]
    return Actions(adds, removes, changed_runs=runs["run_id"].to_pylist())


def _filled(rows: pa.Table, column: str, values: pa.ChunkedArray | pa.Scalar) -> pa.Table:
    place = rows.schema.get_field_index(column)
    return rows.set_column(place, column, pc.coalesce(rows[column], values))
