"""The script that makes the tables of `tables.py`, for a schema version that is not released.

`python -m memhouse.schema.ddl` prints it; `make schema` writes it to `upgrades/0001_first.sql`.
A test holds that the upgrades, run in order, make just the tables of `tables.py`.
"""

from typing import Any

import sqlalchemy as sa
from sqlalchemy import Computed
from sqlalchemy.ext.compiler import compiles

from .tables import metadata


@compiles(Computed, "duckdb")
def _generated(element: Computed, compiler: Any, **options: Any) -> str:
    """A generated column's DDL: DuckDB knows only those worked out when they are read."""
    return f"GENERATED ALWAYS AS ({compiler.sql_compiler.process(element.sqltext)}) VIRTUAL"


def ddl() -> str:
    """The statements that create every table, with comments."""
    statements: list[str] = []
    engine = sa.create_mock_engine(
        "duckdb:///:memory:",
        lambda statement, *_: statements.append(
            str(statement.compile(dialect=engine.dialect)).strip()
        ),
    )
    metadata.create_all(engine, checkfirst=False)
    lines = "\n".join(f"{statement};" for statement in statements).replace("\t", "    ")
    lines = "\n".join(line.rstrip() for line in lines.splitlines())
    return f"-- The first schema. Generated from schema/tables.py by `make schema`.\n{lines}\n"


if __name__ == "__main__":
    print(ddl(), end="")
