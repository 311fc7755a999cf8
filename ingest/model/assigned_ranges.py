"""The live ranges that the HLO text gives to the values of a dump."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

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
