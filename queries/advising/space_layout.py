"""Where and when the values of a memory space stand: what a replay starts from."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...schema.stores.base import Store
from ...xla.occupancy import Ints
from ..catalogue import statement


@dataclass(frozen=True)
class Layout:
    """The allocations of a memory space, and the values that temps hold or that share others.

    Allocations that are not temps are occupied throughout. All arrays of values have one row a
    value with a live range: `offset` and `size` in bytes, `start` and `end` inclusive times.

    allocation_index, allocation_bytes, is_temp: a row an allocation that is not thread-local.
    is_followed: whether the values could be followed through the program, if there are any; what
    could not be is alone in its alias_set.
    """

    memory_space: int
    schedule_length: int
    peak_bytes: int
    peak_time: int
    allocation_index: Ints
    allocation_bytes: Ints
    is_temp: np.ndarray[tuple[int], np.dtype[np.bool_]]
    value_id: Ints
    allocation: Ints
    offset: Ints
    size: Ints
    start: Ints
    end: Ints
    alias_set: Ints
    is_followed: bool

    def rows_of(self, values: Ints) -> Ints:
        """The rows of these values; values without a live range have none."""
        return np.flatnonzero(np.isin(self.value_id, values))


def read_layout(store: Store, module_id: int, memory_space: int = 0) -> Layout | None:
    """The layout of a module's memory space; None without live ranges."""
    (memory,) = store.rows(statement("advise_memory"), [module_id, memory_space]).to_pylist() or [
        None
    ]
    if memory is None or None in (memory["peak_bytes"], memory["schedule_length"]):
        return None
    allocations = store.rows(statement("advise_allocations"), [module_id, memory_space])
    values = store.rows(statement("advise_values"), [module_id, memory_space])
    alone = pa.array(-1 - np.arange(len(values)))
    return Layout(
        memory_space,
        memory["schedule_length"],
        memory["peak_bytes"],
        memory["peak_time"],
        _ints(allocations["allocation_index"]),
        _ints(allocations["size_bytes"]),
        allocations["is_temp"].to_numpy(),
        _ints(values["value_id"]),
        _ints(values["allocation_index"]),
        _ints(values["offset_bytes"]),
        _ints(values["size_bytes"]),
        _ints(values["start_time"]),
        _ints(values["end_time"]),
        _ints(pc.coalesce(values["alias_set"], alone)),
        not len(values) or values["alias_set"].null_count < len(values),
    )


def _ints(column: pa.ChunkedArray) -> Ints:
    found: Ints = column.cast(pa.int64()).to_numpy()
    return found
