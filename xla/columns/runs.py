"""Array functions on runs of numbers and on pointers."""

import numpy as np
import numpy.typing as npt

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
