"""How Alembic runs the revisions: on the connection it was given."""

from typing import Any

from alembic import context
from alembic.ddl.impl import DefaultImpl

VERSION_TABLE = "schema_version"


class DuckDBImpl(DefaultImpl):
    """Alembic's plain SQL serves DuckDB, whose DDL is transactional."""

    __dialect__ = "duckdb"
    transactional_ddl = True


connection: Any = context.config.attributes["connection"]
context.configure(connection=connection, version_table=VERSION_TABLE)
with context.begin_transaction():
    context.run_migrations()
