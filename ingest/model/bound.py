"""Bounds from XLA's own offsets with the live ranges that the text gives.

With a buffer assignment, who shares memory with whom is known, so that these figures are
exact and not estimated.
"""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...schema.address_space.occupancy import Extents, occupied_changes
from .derived import Derived


def ranges_of(derived: Derived, values: pa.Table) -> pa.Table:
    """The live ranges of a dump's values, found by instruction and index.

    `values` has the columns value_id, instruction, shape_index; the result has value_id,
    start_time, end_time for each value that has a range.
    """
    indices = derived.dataflow.slots.trees.index_texts
    codes = pc.index_in(values["shape_index"], value_set=pa.array(indices, pa.large_string()))
    rows = pc.index_in(values["instruction"], value_set=derived.program.names)
    known = pc.and_(pc.is_valid(codes), pc.is_valid(rows))
    values, codes, rows = values.filter(known), codes.filter(known), rows.filter(known)
    slots, defined_at = derived.dataflow.slots, derived.dataflow.defined_at
    width = len(indices)
    ours = slots.instruction[defined_at] * width + slots.trees.index[slots.node[defined_at]]
    theirs = rows.to_numpy().astype(np.int64) * width + codes.to_numpy()
    at = pc.index_in(pa.array(theirs), value_set=pa.array(ours))
    table = derived.liveness.ranges_table()
    found = table.take(pc.index_in(at, value_set=table["value_id"].combine_chunks()))
    return pa.table(
        {
            "value_id": values["value_id"],
            "start_time": found["start_time"],
            "end_time": found["end_time"],
        }
    ).drop_null()


def live_bounds(
    allocations: pa.Table, values: pa.Table, ranges: pa.Table, schedule_length: int
) -> pa.Table:
    """The most bytes that live at once in each temp allocation: no packing needs fewer.

    `allocations` has allocation_index and is_temp; `values` value_id, allocation_index,
    offset_bytes and size_bytes; `ranges` value_id, start_time and end_time. Bytes that aliased
    values share count once. Columns: allocation_index, live_bound_bytes, live_bound_time, the
    first time at which that many live.
    """
    temp = allocations["allocation_index"].filter(allocations["is_temp"]).to_pylist()
    at = pc.index_in(values["value_id"], value_set=ranges["value_id"].combine_chunks())
    lives = values.filter(pc.is_valid(at))
    life = ranges.take(at.drop_null())
    low = lives["offset_bytes"].to_numpy().astype(np.int64)
    high = low + lives["size_bytes"].to_numpy()
    start = life["start_time"].to_numpy().astype(np.int64)
    end = life["end_time"].to_numpy().astype(np.int64)
    allocation = lives["allocation_index"].to_numpy()
    rows = []
    for index in temp:
        here = allocation == index
        extents = Extents(low[here], high[here], start[here], end[here])
        times, occupied = occupied_changes(extents)
        occupied = occupied[times < schedule_length]
        peak = int(np.argmax(occupied)) if len(occupied) else None
        rows.append(
            {
                "allocation_index": index,
                "live_bound_bytes": None if peak is None else int(occupied[peak]),
                "live_bound_time": None if peak is None else int(times[peak]),
            }
        )
    return pa.Table.from_pylist(rows, _BOUNDS)


_BOUNDS = pa.schema(
    {
        "allocation_index": pa.int32(),
        "live_bound_bytes": pa.int64(),
        "live_bound_time": pa.int32(),
    }
)
