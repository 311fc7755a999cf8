"""What would stop the ingest of a recorded command, told before the command runs."""

from ...schema.errors import UnpreparedError, UsageError, WarehouseBusyError
from ...schema.stores.duckdb_file import connect, database_path

_IS_THERE = "SELECT 1 FROM runs WHERE run_id = $1"


def check_warehouse(db: str, run_id: str | None, *, replaces: bool) -> None:
    """Look whether the warehouse can be opened, and whether it has the run.

    One that is absent, or that another process uses, says nothing yet. The warehouse is closed
    again. Raises WarehouseError and UsageError.
    """
    path = database_path(db)
    if path is None or not path.exists():
        return
    try:
        connection, _ = connect(db, read_only=True)
    except (WarehouseBusyError, UnpreparedError):
        return
    with connection:
        is_there = bool(connection.sql(_IS_THERE, params=[run_id]).fetchall())
    if is_there and not replaces:
        raise UsageError(
            f"run {run_id!r} is there already: name another run, or replace it with --replace",
            "run",
        )
