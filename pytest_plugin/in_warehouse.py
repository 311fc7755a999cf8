"""What a warehouse says of a program: its newest figures on the default branch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .before import Before, Change, WhatChanged
from .measured import Measured

if TYPE_CHECKING:
    from ..queries.read_module import ReadModule
    from ..schema.stores.base import Store

# A single binary does not say its platform.
_NEWEST = "SELECT * FROM latest WHERE module_name = $1 AND platform = COALESCE($2, platform)"
_PEAK = """SELECT peak_bytes, origin FROM module_memory INNER JOIN modules USING (module_id)
    WHERE module_id = $1 AND memory_space = $2"""


def open_warehouse(db: str) -> Store:
    """The warehouse, for reading alone. Raises WarehouseError."""
    from ..queries.catalogue import use_views
    from ..schema.stores.by_name import open_store

    store = open_store(db, read_only=True)
    try:
        use_views(store, read_only=True)
    except BaseException:
        store.close()
        raise
    return store


def before_in_warehouse(
    warehouse: Store, module: ReadModule, measured: Measured, workload: str | None
) -> Before | None:
    """The newest figures of the program with this name and platform; None if there are none.

    `workload` is needed where programs of several workloads have the name. Raises ValueError
    if it is missing or names none of them, and WarehouseError.
    """
    found = warehouse.rows(_NEWEST, [module.name, module.platform]).to_pylist()
    fitting = [row for row in found if workload in (None, *row["workloads"].split(", "))]
    if len(fitting) > 1 or (found and not fitting):
        names = ", ".join(sorted(row["workloads"] for row in found))
        raise ValueError(f"{warehouse.name} has {module.name} of {names}: give one as workload=")
    if not fitting:
        return None
    row = fitting[0]
    peaks = warehouse.rows(_PEAK, [row["module_id"], measured.space_number]).to_pylist()
    if not peaks or peaks[0]["peak_bytes"] is None:
        return None
    return Before(
        f"run {row['run_id']} of {warehouse.name}",
        peaks[0]["peak_bytes"],
        peaks[0]["origin"] == "estimated",
        "ingest a run with it into the warehouse",
        lambda: _what_changed(warehouse, row["dump_id"], module, measured.space_number),
    )


def _what_changed(warehouse: Store, dump_id: int, module: ReadModule, space: int) -> WhatChanged:
    """The buffers that changed by the library's own comparison, and the cause it tells."""
    found = module.changes_since(warehouse, dump_id)
    rows = [row for row in found.rows.arrow().to_pylist() if row["memory_space"] == space]
    named = [(row["change_bytes"], row["source"], row["op_name"] or row["what"]) for row in rows]
    owners = [Change(size, "  ".join(filter(None, (at, name)))) for size, at, name in named]
    return WhatChanged(tuple(owners), found.cause)
