"""Generates files from `tables.py`, so that commands need not import SQLAlchemy.

`make schema` runs this module. It writes `tables.sql`, which creates the tables of a new
warehouse, `columns.json` and `keys.json`, from which `arrow.py` takes types and keys, and
`metrics.json`, which is `metrics.py`'s. A test compares the files with `tables.py`.
"""

import json
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Computed
from sqlalchemy.ext.compiler import compiles

from .readable import quoted
from .tables import INTERNAL, KEYS, instruction_rows, instructions, metadata

_HERE = Path(__file__).parent


@compiles(Computed, "duckdb")
def _generated(element: Computed, compiler: Any, **options: Any) -> str:
    """A generated column's DDL: DuckDB supports only VIRTUAL ones, computed when read."""
    return f"GENERATED ALWAYS AS ({compiler.sql_compiler.process(element.sqltext)}) VIRTUAL"


def ddl() -> str:
    """The statements that create every table, with comments."""
    statements: list[str] = []
    dialect = sa.make_url("duckdb://").get_dialect()()

    def collect(statement: sa.schema.ExecutableDDLElement, *_: object) -> None:
        statements.append(str(statement.compile(dialect=dialect)).strip())

    stored = [table for table in metadata.tables.values() if table is not instructions]
    engine = sa.create_mock_engine("duckdb://", collect)
    metadata.create_all(engine, tables=stored, checkfirst=False)
    statements += _view_of_kinds()
    # SQLAlchemy doubles each percent sign for drivers that use it as a placeholder.
    script = "\n".join(f"{statement};" for statement in statements).replace("%%", "%")
    lines = "\n".join(line.expandtabs(4).rstrip() for line in script.splitlines())
    return f"-- A new warehouse. Generated from schema/tables.py by `make schema`.\n{lines}\n"


def _view_of_kinds() -> list[str]:
    """The statements that make the view `instructions`, with comments."""
    name = "concat(kind.before, own.number, kind.after) AS instruction"
    own = set(instruction_rows.columns.keys())
    chosen = [
        name if column == "instruction" else f"own.{column}" if column in own else f"kind.{column}"
        for column in instructions.columns.keys()  # noqa: SIM118 (these are columns, no dict)
    ]
    columns = ",\n    ".join(chosen)
    view = f"""CREATE VIEW instructions AS
SELECT
    {columns}
FROM _instructions AS own
INNER JOIN _instruction_kinds AS kind
    ON own.module_id = kind.module_id AND own.kind_id = kind.kind_id"""
    meanings = {f"COLUMN instructions.{c.name}": c.comment or "" for c in instructions.c}
    meanings = {"VIEW instructions": instructions.comment or "", **meanings}
    return [view, *(f"COMMENT ON {what} IS {quoted(text)}" for what, text in meanings.items())]


def columns() -> str:
    """Each table's columns with their SQL types, as JSON."""
    found = {
        table.name: {column.name: str(column.type) for column in table.c}
        for table in metadata.tables.values()
    }
    return json.dumps(found, indent=1) + "\n"


def keys() -> str:
    """The columns that identify a row of each table that users query, as JSON."""
    found = {
        table.name: [column.name for column in table.primary_key] or KEYS.get(table.name)
        for table in metadata.tables.values()
        if table.name not in INTERNAL
    }
    return json.dumps({name: key for name, key in found.items() if key}, indent=1) + "\n"


def metrics() -> str:
    """The metrics in the order in which they are shown, as JSON: a row each."""
    listed = [
        {"name": column.name, "meaning": column.comment, **column.info}
        for column in metadata.tables["module_memory"].c
        if column.info
    ]
    return json.dumps(sorted(listed, key=lambda row: row.pop("place")), indent=1) + "\n"


if __name__ == "__main__":
    (_HERE / "tables.sql").write_text(ddl())
    (_HERE / "columns.json").write_text(columns())
    (_HERE / "keys.json").write_text(keys())
    (_HERE / "metrics.json").write_text(metrics())
