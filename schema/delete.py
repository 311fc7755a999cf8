"""Deleting a module's content, which ingest does to replace it and prune to drop it."""

from collections.abc import Sequence

import sqlalchemy as sa

from .tables import dumps, metadata


def delete_modules(connection: sa.Connection, module_ids: Sequence[int]) -> None:
    """Delete every row of these modules; the dumps that point to them stay."""
    if not module_ids:
        return
    for table in metadata.tables.values():
        if "module_id" in table.c and table is not dumps:
            connection.execute(table.delete().where(table.c.module_id.in_(module_ids)))
