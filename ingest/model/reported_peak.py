"""XLA's own account of the peak, worked out where the source does not print it.

`HloLiveRange` in XLA adds up logical sizes over the schedule, in all memory spaces at once.
Each value counts as the whole result of the instruction that defines it, and a tuple as its table
of pointers, so the figure is not the peak of any memory.
"""

import numpy as np
import pyarrow as pa

from ...schema.array_shapes.shape_sizes import logical_bytes
from ...schema.array_shapes.shapes import Shape, TupleShape
from .derived import Derived
from .numbered_program import NONE, Ints

_POINTER_BYTES = 8  # on all platforms


def reported_peak(derived: Derived) -> tuple[int | None, pa.Table]:
    """The peak's time, and a row for each value live then, the largest first.

    Columns as in `LiveRange.peak`. Without a time if a shape has no size.
    """
    dataflow, liveness = derived.dataflow, derived.liveness
    slots, row = dataflow.slots, dataflow.instruction
    live = np.flatnonzero(liveness.start != NONE)
    start, end = liveness.start[live], liveness.end[live]
    shapes = slots.trees.shapes
    try:
        counted = _sizes(shapes, slots.root[row[live]])
        shown = _sizes(shapes, slots.node[dataflow.defined_at[live]])
    except ValueError:
        return None, NO_PEAK
    if not len(live):
        return None, NO_PEAK
    change = np.zeros(int(end.max()) + 3, np.int64)
    np.add.at(change, start, counted)
    # XLA takes a value away one step after its end, and only after adding what begins then.
    np.subtract.at(change, end + 2, counted)
    time = int(np.argmax(np.cumsum(change)))
    at = np.flatnonzero((start <= time) & (time <= end))
    values = live[at]
    index = slots.index.dictionary.take(
        slots.index.indices.take(pa.array(dataflow.defined_at[values]))
    )
    peak = pa.table(
        {
            "instruction": derived.program.names.take(pa.array(row[values])),
            "shape_index": index,
            "size_bytes": pa.array(shown[at]),
        }
    ).sort_by([("size_bytes", "descending"), ("instruction", "ascending")])
    return time, peak.add_column(0, "rank", pa.array(np.arange(len(at))))


def _sizes(shapes: list[Shape], nodes: Ints) -> Ints:
    """The bytes of each of these shapes. Raises ValueError for one that is unbounded."""
    distinct, code = np.unique(nodes, return_inverse=True)
    sizes = [_size(shapes[node]) for node in distinct.tolist()]
    found: Ints = np.array(sizes, np.int64)[code]
    return found


def _size(shape: Shape) -> int:
    if isinstance(shape, TupleShape):
        return _POINTER_BYTES * len(shape.elements)
    return logical_bytes(shape)


NO_PEAK = pa.schema(
    [
        ("rank", pa.int64()),
        ("instruction", pa.large_string()),
        ("shape_index", pa.large_string()),
        ("size_bytes", pa.int64()),
    ]
).empty_table()
