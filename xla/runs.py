"""Set-based helpers: runs of numbers, pointers, and rows by value_id."""

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

# Set-based helpers on runs of numbers and on pointers.

Ints = npt.NDArray[np.int64]


def joined(starts: Ints, counts: Ints) -> Ints:
    """The numbers of several runs, one run after the other."""
    ends = np.cumsum(counts)
    total = int(ends[-1]) if len(ends) else 0
    numbers: Ints = np.repeat(starts - (ends - counts), counts) + np.arange(total)
    return numbers


def starts_of(counts: Ints) -> Ints:
    """Where runs of these lengths start when they follow each other, and the end of the last."""
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)


def followed(pointers: Ints) -> Ints:
    """Where each pointer leads in the end: each step follows all pointers at once.

    Of pointers that lead in circles the answer is one of the circle.
    """
    for _ in range(len(pointers).bit_length()):
        further = pointers[pointers]
        if np.array_equal(further, pointers):
            break
        pointers = further
    return pointers


def components(count: int, left: Ints, right: Ints) -> Ints:
    """The smallest number that each of `count` numbers is connected to by these pairs."""
    smallest = np.arange(count)
    while len(left):
        a, b = smallest[left], smallest[right]
        apart = a != b
        left, right, a, b = left[apart], right[apart], a[apart], b[apart]
        low, high = np.minimum(a, b), np.maximum(a, b)
        # Hang each set's smallest number below another set's smaller one, then follow.
        np.minimum.at(smallest, high, low)
        smallest = followed(smallest)
    return smallest


# Finds rows by value_id: ids are small and dense, so that a table of places is the quickest.

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
