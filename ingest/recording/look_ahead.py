"""What would stop the ingest of a recorded command, told before the command runs."""

from ...schema.errors import UnpreparedError, UsageError, WarehouseBusyError
from ...schema.lake.snapshot import is_made
from ...schema.lake.storage import is_lake, location
from ...schema.stores.by_name import open_store
from ...schema.stores.duckdb_file import database_path


def check_warehouse(db: str, run_id: str | None, *, replaces: bool) -> None:
    """Look whether the warehouse can be opened, and whether it has the run.

    A file that is absent, or that another process uses, says nothing yet. The warehouse is closed
    again. Raises WarehouseError and UsageError.
    """
    if is_lake(db):
        if not is_made(location(db)):
            return
    elif (path := database_path(db)) is None or not path.exists():
        return
    try:
        store = open_store(db, read_only=True)
    except (WarehouseBusyError, UnpreparedError):
        return
    try:
        is_there = run_id is not None and any(
            night["run_id"] == run_id for night in store.nights(run_id)
        )
    finally:
        store.close()
    if is_there and not replaces:
        raise UsageError(
            f"run {run_id!r} is there already: name another run, or replace it with --replace",
            "run",
        )
