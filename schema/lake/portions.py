"""Portions of many rows: what fits into memory at once, and becomes one data file."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple, TypeVar

from .. import arrow
from .data_files import DataFile

# A file of more than this is slow to write anew when a few of its rows go.
MOST_BYTES = 64 << 20
# A few hundred MB in memory: a column of a row takes 8 bytes or more.
_MOST_CELLS = 40 << 20

_T = TypeVar("_T")


class Sized(NamedTuple):
    """How much something is: bytes in a file, 0 if not known, and rows times columns."""

    size_bytes: int
    cells: int


def file_size(file: DataFile) -> Sized:
    """How much the rows of a data file are."""
    return Sized(file.size_bytes, file.rows * len(arrow.schema(file.relation)))


def portions(items: Iterable[tuple[_T, Sized]]) -> Iterator[list[_T]]:
    """The items, one after another, in lists that are not too much; one alone may be."""
    portion: list[_T] = []
    size_bytes = cells = 0
    for item, size in items:
        size_bytes += size.size_bytes
        cells += size.cells
        if portion and (size_bytes > MOST_BYTES or cells > _MOST_CELLS):
            yield portion
            portion, size_bytes, cells = [], size.size_bytes, size.cells
        portion.append(item)
    if portion:
        yield portion
