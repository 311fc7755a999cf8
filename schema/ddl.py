"""The statements that create the tables of a new warehouse, from `tables.py`."""

from collections.abc import Iterator
from functools import cache
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql.base import PGDDLCompiler
from sqlalchemy.schema import CreateTable, ExecutableDDLElement, SetColumnComment, SetTableComment

from .tables import INTERNAL, metadata

# The tables with a primary key in a file. DuckDB would index every row of the others, where the
# writer inserts each module only once, and both sides of every foreign key.
INDEXED = {"runs", "run_labels", "dumps", "modules"}


class _Compiler(PGDDLCompiler):
    """The DDL of DuckDB. Of SQLAlchemy's own dialects PostgreSQL's is the nearest."""

    def visit_computed_column(self, generated: sa.Computed, **_: Any) -> str:
        """A generated column: DuckDB has VIRTUAL ones alone, computed when read."""
        return f"GENERATED ALWAYS AS ({self.sql_compiler.process(generated.sqltext)}) VIRTUAL"

    def create_table_constraints(self, table: sa.Table, *_: Any, **__: Any) -> str:
        """The primary key of a table in INDEXED; empty for the others."""
        return self.process(table.primary_key) if table.name in INDEXED else ""


def _statements() -> Iterator[ExecutableDDLElement]:
    for table in metadata.tables.values():
        yield CreateTable(table)
        yield SetTableComment(table)
        yield from (SetColumnComment(column) for column in table.c if column.comment)


@cache
def create_tables() -> str:
    """The script that creates every table, with comments."""
    dialect = sa.make_url("postgresql://").get_dialect()()
    dialect.ddl_compiler = _Compiler
    parts = [str(statement.compile(dialect=dialect)).strip() for statement in _statements()]
    # SQLAlchemy doubles each percent sign for drivers that use it as a placeholder.
    script = "".join(f"{part};\n" for part in parts).replace("%%", "%")
    return f"CREATE SCHEMA {INTERNAL};\n{script}"
