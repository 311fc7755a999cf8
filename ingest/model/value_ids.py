"""Finds rows by value_id: ids are small and dense, so that a table of places is the quickest."""

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

# A table of places has at most this many entries for each id.
_SPARSE = 8


def rows_of(ids: pa.ChunkedArray, wanted: pa.ChunkedArray) -> pa.Int64Array:
    """The first row of each wanted id among `ids`; null where it is not among them.

    Neither column has nulls; ids are not negative.
    """
    keys, sought = ids.to_numpy(), wanted.to_numpy()
    last = int(keys.max(initial=0))
    if last > _SPARSE * (len(keys) + len(sought)):
        found = pc.index_in(wanted, value_set=ids.combine_chunks())
        return found.combine_chunks().cast(pa.int64())
    # One place more, which stays empty, for all ids beyond the last.
    place: npt.NDArray[np.int64] = np.full(last + 2, -1)
    place[keys[::-1]] = np.arange(len(keys))[::-1]
    at = place[np.minimum(sought, last + 1)]
    return pa.array(at, mask=at < 0)
