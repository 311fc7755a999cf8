"""memhouse: a SQL warehouse for the memory dumps of the XLA compiler.

    import memhouse

    with memhouse.open("memhouse.duckdb") as warehouse:
        warehouse.ingest("dumps/2026-10-01")
        warehouse.peaks().df()
        warehouse.sql("SELECT workload, peak_bytes FROM peaks").df()

The `memhouse` command does the same from a shell. `Warehouse`, in `warehouse.py`, has a method per
question.
"""

from typing import TYPE_CHECKING

from .schema.errors import (
    FileError,
    MemhouseError,
    MissingPackageError,
    QueryError,
    UsageError,
    WarehouseBusyError,
    WarehouseError,
)
from .schema.versions import TOOL_VERSION

if TYPE_CHECKING:
    from .queries.result import Rows
    from .warehouse import Warehouse, doctor, fit, open, read, read_oom, record

__version__ = TOOL_VERSION

__all__ = [
    "FileError",
    "MemhouseError",
    "MissingPackageError",
    "QueryError",
    "Rows",
    "UsageError",
    "Warehouse",
    "WarehouseBusyError",
    "WarehouseError",
    "__version__",
    "doctor",
    "fit",
    "open",
    "read",
    "read_oom",
    "record",
]


def __getattr__(name: str) -> object:
    # Where memhouse is installed, every pytest imports this file for its plugin: pyarrow, DuckDB
    # and SQLAlchemy are imported when they are used.
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from . import warehouse

    return getattr(warehouse, name)
