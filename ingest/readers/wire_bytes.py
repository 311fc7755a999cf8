"""A protocol buffer's bytes: numbers, lists of numbers and texts at many places at once."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ...xla.errors import DumpError
from ...xla.runs import joined
from .lines import Bytes, Positions, slices
from .wire_scalar import signed, varint

_WORD = 8  # bytes
# Of each byte of a word: the bit that says that a number goes on, and the seven others.
_MORE = np.uint64(0x8080808080808080)
_REST = np.uint64(0x7F7F7F7F7F7F7F7F)
# Moves the seven bits of each byte together: first of pairs, then of fours, then of all.
_FOLDS = tuple(
    (np.uint64(low), np.uint64(high), np.uint64(by))
    for low, high, by in (
        (0x007F007F007F007F, 0x7F007F007F007F00, 1),
        (0x00003FFF00003FFF, 0x3FFF00003FFF0000, 2),
        (0x000000000FFFFFFF, 0x0FFFFFFF00000000, 4),
    )
)


@dataclass(frozen=True)
class Wire:
    """A file's bytes.

    data: the bytes, and zeros behind them; content: the bytes alone; words[i]: the eight bytes
    from byte i.
    """

    data: bytes
    content: Bytes
    words: npt.NDArray[np.uint64]

    def numbers_at(self, at: Positions) -> tuple[npt.NDArray[np.uint64], Positions]:
        """The numbers at these bytes and their lengths; 0 where one is longer than a word."""
        word = self.words[at]
        ends = ~word & _MORE
        # Of the first byte that ends a number only the highest bit is left.
        last = ends & (~ends + np.uint64(1))
        value = word & (last - np.uint64(1)) & _REST
        for low, high, by in _FOLDS:
            value = (value & low) | ((value & high) >> by)
        exponent = (last.astype(np.float64).view(np.int64) >> 52) - 1023
        return value, np.where(last == 0, 0, (exponent >> 3) + 1)


def wire_of(data: bytes | memoryview) -> Wire:
    """Make the bytes of a file ready to be read in columns."""
    padded = bytes(data) + bytes(2 * _WORD)
    words: npt.NDArray[np.uint64] = np.ndarray(
        (len(data) + _WORD,), np.dtype("<u8"), padded, strides=(1,)
    )
    return Wire(padded, np.frombuffer(padded, np.uint8, len(data)), words)


def unpacked(wire: Wire, starts: Positions, ends: Positions) -> tuple[Positions, Positions]:
    """The numbers in packed lists: the place of each number's list, and the number.

    Raises DumpError for a list that ends within a number.
    """
    lengths = ends - starts
    at = joined(starts, lengths)
    is_last = wire.content[at] < 0x80
    closes = np.cumsum(lengths) - 1
    cut = (lengths > 0) & ~is_last[np.minimum(closes, len(is_last) - 1)] if len(at) else lengths > 0
    if cut.any():
        row = int(np.argmax(cut))
        raise DumpError(
            f"the list at byte {starts[row]} ends within a number: dump the program again"
        )
    begins = np.flatnonzero(np.append(True, is_last[:-1])) if len(at) else at
    values, sizes = wire.numbers_at(at[begins])
    numbers = values.view(np.int64)
    for row in np.flatnonzero(sizes == 0).tolist():
        place = int(at[begins[row]])
        numbers[row] = signed(varint(wire.data, place, len(wire.data))[0])
    owner = np.searchsorted(np.cumsum(lengths), begins, side="right")
    return owner, numbers


def distinct(wire: Wire, starts: Positions, ends: Positions) -> tuple[Positions, Positions]:
    """Equal pieces of the file told apart: a code for each piece, and each code's first piece."""
    codes = slices(wire.content, starts, ends).dictionary_encode().indices.to_numpy()
    _, first = np.unique(codes, return_index=True)
    return codes.astype(np.int64), first


def checked_texts(texts: pa.LargeStringArray, starts: Positions, what: str) -> pa.LargeStringArray:
    """The texts, if all are UTF-8. Raises DumpError, which names the byte of the first other."""
    try:
        texts.validate(full=True)
    except pa.ArrowInvalid:
        for row, text in enumerate(texts.cast(pa.large_binary()).to_pylist()):
            try:
                text.decode()
            except UnicodeDecodeError as error:
                at = int(starts[row]) + error.start
                raise DumpError(f"{what} is not UTF-8 at byte {at}: the file is damaged") from None
        raise
    return texts
