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


# Finds rows by their ids: these are small and dense, so that a table of places is the quickest.

# A table of places has at most this many entries for each id.
_SPARSE = 8


def places_of(ids: Ints, wanted: Ints) -> Ints:
    """The first place of each wanted number among `ids`, which are not negative; -1 where none.

    >>> places_of(np.array([7, 3, 3]), np.array([3, 4, -1, 7])).tolist()
    [1, -1, -1, 0]
    """
    last = int(ids.max(initial=0))
    if last > _SPARSE * (len(ids) + len(wanted)):
        order = np.argsort(ids, kind="stable")
        at = order[np.minimum(np.searchsorted(ids, wanted, sorter=order), len(ids) - 1)]
        return np.where(ids[at] == wanted, at, -1)
    # One place more, which stays empty, for all ids beyond the last, and for -1.
    place: Ints = np.full(last + 2, -1)
    place[ids[::-1]] = np.arange(len(ids))[::-1]
    return place[np.minimum(wanted, last + 1)]


def rows_of(ids: pa.ChunkedArray, wanted: pa.ChunkedArray) -> pa.Int64Array:
    """The first row of each wanted id among `ids`; null where it is not among them.

    Neither column has nulls; ids are not negative.
    """
    at = places_of(ids.to_numpy(), wanted.to_numpy())
    return pa.array(at, mask=at < 0)


def masked(column: pa.ChunkedArray) -> npt.NDArray[np.bool_]:
    """A column of yes and no; no for null."""
    filled = pc.fill_null(column, False) if column.null_count else column
    mask: npt.NDArray[np.bool_] = filled.to_numpy()
    return mask


def ints(column: pa.Array | pa.ChunkedArray) -> Ints:
    """A column of whole numbers in 64 bits; -1 for null."""
    filled = pc.fill_null(column, -1) if column.null_count else column
    numbers: Ints = filled.to_numpy().astype(np.int64)
    return numbers
