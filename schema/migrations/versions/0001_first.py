"""The first schema. Warehouses are made at the newest version, so none comes this way."""

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Nothing was before."""
