"""Upgrades of older warehouses, by Alembic: a revision for each schema version.

A new warehouse is made at the newest version at once. To change the schema: change
`tables.py`, raise SCHEMA_VERSION, and add `versions/NNNN_what.py` that takes a warehouse
of the version before there.
"""

from pathlib import Path

import sqlalchemy as sa
from alembic import command
from alembic.config import Config


def upgrade(connection: sa.Connection) -> None:
    """Bring the warehouse to the newest schema version, within the caller's transaction."""
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent))
    config.attributes["connection"] = connection
    command.upgrade(config, "head")
