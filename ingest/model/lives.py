"""The lives of values in temp allocations."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .numbered_program import NONE, Ints, Mask
from .value_ids import rows_of


@dataclass(frozen=True)
class Lives:
    """Of each value of a module: its live range, and the peak time of its memory space.

    `counts` marks the values that lie in a temp allocation and have a live range.
    """

    start: Ints
    end: Ints
    peak: Ints
    counts: Mask


def lives_of(values: pa.Table, ranges: pa.Table, allocations: pa.Table, figures: pa.Table) -> Lives:
    """The lives of a module's values.

    `ranges` has value_id, start_time and end_time; `allocations` allocation_index and is_temp;
    `figures` memory_space and peak_time.
    """
    at = rows_of(ranges["value_id"], values["value_id"])
    start, end = (_or_none(ranges[name].take(at)) for name in ("start_time", "end_time"))
    temps = allocations["allocation_index"].filter(allocations["is_temp"]).combine_chunks()
    is_temp = pc.is_in(values["allocation_index"], value_set=temps)
    place = pc.index_in(values["memory_space"], value_set=figures["memory_space"].combine_chunks())
    peak = _or_none(figures["peak_time"].take(place))
    counts = (start != NONE) & is_temp.to_numpy()
    return Lives(start, end, peak, counts)


def _or_none(column: pa.ChunkedArray) -> Ints:
    found: Ints = pc.fill_null(column, NONE).to_numpy().astype(np.int64)
    return found
