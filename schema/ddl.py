"""The statements that create the tables of a new warehouse, from `tables.py`."""

from functools import cache
from typing import Any

from sqlalchemy import Computed, ForeignKeyConstraint, PrimaryKeyConstraint
from sqlalchemy.dialects.postgresql.base import PGDDLCompiler, PGDialect
from sqlalchemy.schema import CreateTable, SetColumnComment, SetTableComment

from .tables import INTERNAL, metadata

# DuckDB would index every row of the other tables, where the writer inserts each module only once.
INDEXED = {"runs", "run_labels", "dumps", "modules"}


class _Compiler(PGDDLCompiler):
    """The DDL of DuckDB. Of SQLAlchemy's own dialects PostgreSQL's is the nearest."""

    def visit_computed_column(self, generated: Computed, **_: Any) -> str:
        """A generated column: DuckDB has VIRTUAL ones alone, computed when read."""
        return f"GENERATED ALWAYS AS ({self.sql_compiler.process(generated.sqltext)}) VIRTUAL"

    def visit_primary_key_constraint(
        self, constraint: PrimaryKeyConstraint, **_: Any
    ) -> str | None:
        """The primary key of a small table; None for the others."""
        is_indexed = constraint.table.name in INDEXED
        return super().visit_primary_key_constraint(constraint) if is_indexed else None

    def visit_foreign_key_constraint(self, constraint: ForeignKeyConstraint, **_: Any) -> None:
        """None: DuckDB would index both sides."""


@cache
def create_tables() -> str:
    """The script that creates every table, with comments."""
    dialect = PGDialect()
    dialect.ddl_compiler = _Compiler
    statements = [
        statement
        for table in metadata.tables.values()
        for statement in (
            CreateTable(table),
            SetTableComment(table),
            *(SetColumnComment(column) for column in table.c if column.comment),
        )
    ]
    script = f"CREATE SCHEMA {INTERNAL};\n" + "".join(
        f"{str(each.compile(dialect=dialect)).strip()};\n" for each in statements
    )
    # SQLAlchemy doubles each percent sign for drivers that use it as a placeholder.
    return script.replace("%%", "%")
