"""The statements that create the tables of a new warehouse, from `tables.py`."""

from functools import cache
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Computed
from sqlalchemy.ext.compiler import compiles

from .tables import metadata


@compiles(Computed)
def _generated_column(element: Computed, compiler: Any, **options: Any) -> str:
    """The DDL of a generated column: DuckDB has VIRTUAL ones alone, computed when read."""
    return f"GENERATED ALWAYS AS ({compiler.sql_compiler.process(element.sqltext)}) VIRTUAL"


@cache
def create_tables() -> str:
    """The script that creates every table, with comments."""
    statements: list[str] = []
    # Of SQLAlchemy's own dialects PostgreSQL's SQL is the nearest to DuckDB's.
    dialect = sa.make_url("postgresql://").get_dialect()()

    def collect(statement: sa.schema.ExecutableDDLElement, *_: object) -> None:
        statements.append(str(statement.compile(dialect=dialect)).strip())

    metadata.create_all(sa.create_mock_engine("postgresql://", collect), checkfirst=False)
    # SQLAlchemy doubles each percent sign for drivers that use it as a placeholder.
    return "".join(f"{statement};\n" for statement in statements).replace("%%", "%")
