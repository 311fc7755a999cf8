"""What would stop the ingest of a recorded command, told before the command runs."""

from ...schema.errors import UnpreparedError, UsageError, WarehouseBusyError
from ...schema.lake.storage import is_lake
from ...schema.stores.by_name import open_store
from ...schema.stores.duckdb_file import database_path

_IS_THERE = "SELECT 1 FROM runs WHERE run_id = $1"


def check_warehouse(db: str, run_id: str | None, *, replaces: bool) -> None:
    """Look whether the warehouse can be opened, and whether it has the run.

    A file that is absent, or that another process uses, says nothing yet. The warehouse is closed
    again. Raises WarehouseError and UsageError.
    """
    if not is_lake(db):
        path = database_path(db)
        if path is None or not path.exists():
            return
    try:
        store = open_store(db, read_only=True)
    except (WarehouseBusyError, UnpreparedError):
        return
    try:
        is_there = store.rows(_IS_THERE, [run_id]).num_rows > 0
    finally:
        store.close()
    if is_there and not replaces:
        raise UsageError(
            f"run {run_id!r} is there already: name another run, or replace it with --replace",
            "run",
        )
