"""A dump's text as lines, and errors that name the line.

All readers work on whole columns of lines, with no Python per line: numpy tells them apart
by their first bytes, and one regular expression takes all of a kind apart, in Arrow's RE2.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import NoReturn, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ..errors import DumpError

# Ids and times are 32-bit integers in the warehouse. Sizes are bytes; the bound leaves room
# to add up some thousand of them in 64 bits.
LARGEST_ID = 2**31 - 1
LARGEST_SIZE = 2**50

_PIECE = 1 << 18

Bytes: TypeAlias = npt.NDArray[np.uint8]
Positions: TypeAlias = npt.NDArray[np.int64]
Mask: TypeAlias = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Lines:
    """Some lines of a file: where each stands in the file's bytes, and its number from 1.

    Most lines of a dump are told apart by their first bytes and never looked into: no text
    is made of them, and choosing some copies none of their bytes.
    """

    content: Bytes
    starts: Positions
    ends: Positions  # of the text: the line's end is not part of it
    numbers: Positions

    def __len__(self) -> int:
        return len(self.numbers)

    @cached_property
    def text(self) -> pa.LargeStringArray:
        """The lines without their ends."""
        return slices(self.content, self.starts, self.ends)

    def where(self, chosen: Mask | Positions) -> "Lines":
        """The lines for which a mask holds, or those of these indices."""
        return Lines(self.content, self.starts[chosen], self.ends[chosen], self.numbers[chosen])

    def between(self, start: int, stop: int) -> "Lines":
        """The lines from the start-th up to, not including, the stop-th."""
        part = slice(start, stop)
        return Lines(self.content, self.starts[part], self.ends[part], self.numbers[part])

    def starting(self, prefix: str) -> Mask:
        """Which lines start with `prefix`."""
        wanted = prefix.encode()
        found = np.flatnonzero(self._first_bytes == wanted[0])
        found = found[self._lengths[found] >= len(wanted)]
        for offset, byte in enumerate(wanted[1:], start=1):
            found = found[self.content[self.starts[found] + offset] == byte]
        mask = np.zeros(len(self), bool)
        mask[found] = True
        return mask

    def ending(self, character: str) -> Mask:
        """Which lines end with an ASCII character."""
        ends: Mask = self.content[self.ends - 1] == ord(character)
        return ends & (self._lengths > 0)

    def equal(self, text: str) -> Mask:
        """Which lines are `text`."""
        same_length: Mask = self._lengths == len(text.encode())
        return same_length & self.starting(text) if text else same_length

    @cached_property
    def _lengths(self) -> Positions:
        return self.ends - self.starts

    @cached_property
    def _first_bytes(self) -> Bytes:
        """The first byte of each line; of an empty one that of its end."""
        return self.content[np.minimum(self.starts, len(self.content) - 1)]

    def first(self) -> str:
        """The first line's text; empty if there is none."""
        return str(self.between(0, 1).text[0]) if len(self) else ""

    def extract(self, pattern: str, what: str) -> dict[str, pa.LargeStringArray]:
        """The named groups of `pattern` in every line.

        A group that took no part is the empty string. Raises DumpError at the first line
        that does not match, with `what` was expected there.
        """
        matches = pc.extract_regex(self.text, pattern=pattern)
        if matches.null_count:
            self.refuse(as_numpy(pc.is_null(matches)), f"expected {what}")
        return {field.name: matches.field(i) for i, field in enumerate(matches.type)}

    def integers(self, texts: pa.LargeStringArray, *, most: int = LARGEST_ID) -> pa.Array:
        """Decimal texts, one a line, as int32, or int64 for a larger `most`.

        An empty text is null. Raises DumpError at the first number over `most`.
        """
        digits = pc.if_else(pc.equal(texts, ""), pa.scalar(None, texts.type), texts)
        # 18 digits fit 64 bits; longer ones could overflow in the cast itself.
        wrong = pc.fill_null(pc.greater(pc.binary_length(digits), 18), False)
        if not pc.any(wrong).as_py():
            numbers = pc.cast(digits, pa.int64())
            wrong = pc.fill_null(pc.greater(numbers, most), False)
            if not pc.any(wrong).as_py():
                return numbers if most > LARGEST_ID else numbers.cast(pa.int32())
        self.refuse(as_numpy(wrong), f"a number is over {most}")

    def refuse(self, mask: Mask, why: str) -> NoReturn:
        """Raise DumpError at the first line for which `mask` holds."""
        index = int(np.argmax(mask))
        found = excerpt(self.between(index, index + 1).first())
        raise DumpError(f"{why}, found {found}", int(self.numbers[index]))


def use_quick_memory() -> None:
    """Let Arrow allocate through jemalloc where it is built in.

    Readers take and give back tens of megabytes; with Arrow's own choice, mimalloc, a fifth
    of the time to read `large` went into page faults.
    """
    if "jemalloc" in pa.supported_memory_backends():
        pa.set_memory_pool(pa.jemalloc_memory_pool())


def split_lines(text: bytes) -> Lines:
    """Take a file's bytes apart into lines; a last line end makes no further line.

    Raises DumpError for an empty file and for bytes that are not UTF-8.
    """
    if not text or text.isspace():
        raise DumpError("the file is empty: dump the program again")
    if b"\r" in text:
        text = text.replace(b"\r\n", b"\n")
    text = _whole_characters(text)
    if not text.endswith(b"\n"):
        text += b"\n"
    content = np.frombuffer(text, np.uint8)
    ends = positions_of("\n", content)
    starts = np.concatenate([[0], ends[:-1] + 1])
    return Lines(content, starts, ends, np.arange(1, len(ends) + 1))


def whole_lines(text: bytes) -> Lines:
    """As `split_lines`, and raises DumpError too if the file is cut short."""
    lines = split_lines(text)
    check_end(text)
    return lines


def check_end(text: bytes) -> None:
    """Raise DumpError if the last line has no end: XLA ends every line of every dump seen."""
    if not text.endswith(b"\n"):
        why = "the last line has no end: the file is cut short, dump the program again"
        raise DumpError(why, text.count(b"\n") + 1)


def lines_of(text: pa.LargeStringArray, numbers: Positions) -> Lines:
    """Lines made of texts without line ends."""
    if not len(text):
        return Lines(np.zeros(1, np.uint8), numbers[:0], numbers[:0], numbers[:0])
    end, nothing = pa.scalar("\n", text.type), pa.scalar("", text.type)
    # With their ends: what looks ahead in one line must not come into the next.
    ended = pc.binary_join_element_wise(text, end, nothing)
    _, offsets, content = ended.buffers()
    bounds = np.frombuffer(offsets, np.int64)[: len(text) + 1]
    return Lines(np.frombuffer(content, np.uint8), bounds[:-1], bounds[1:] - 1, numbers)


def positions_of(character: str, content: Bytes) -> Positions:
    """Where an ASCII character stands in a file."""
    # In pieces that stay in the processor's cache: a mask of 30 MB at once is mostly page faults.
    return np.concatenate(
        [
            np.flatnonzero(content[start : start + _PIECE] == ord(character)) + start
            for start in range(0, max(1, len(content)), _PIECE)
        ]
    )


def slices(content: Bytes, starts: Positions, ends: Positions) -> pa.LargeStringArray:
    """Pieces of a file as texts; none ends before it starts, or starts before the last ended."""
    if not len(starts):
        return pa.array([], pa.large_string())
    # Every other piece between these cuts is wanted: Arrow copies them in one go.
    cuts = np.stack([starts, ends], axis=1).ravel()
    assert (cuts[1:] >= cuts[:-1]).all(), "Arrow would read what is not ours"
    pieces = pa.LargeStringArray.from_buffers(
        len(cuts) - 1, pa.py_buffer(cuts), pa.py_buffer(content)
    )
    return pieces.take(pa.array(np.arange(0, len(cuts), 2)))


def as_numpy(array: pa.Array) -> Mask:
    """A boolean Arrow array as numpy's; nulls are not expected."""
    return np.asarray(array.to_numpy(zero_copy_only=False), dtype=bool)


def excerpt(text: str, length: int = 60) -> str:
    """The beginning of `text`, quoted, for a message."""
    return repr(text if len(text) <= length else text[: length - 1] + "…")


def _whole_characters(text: bytes) -> bytes:
    """The text without a character that is cut off at its end; what is no UTF-8 is refused."""
    if text.isascii():
        return text
    try:
        text.decode()
    except UnicodeDecodeError as error:
        if error.reason == "unexpected end of data":
            return text[: error.start]
        line = text.count(b"\n", 0, error.start) + 1
        raise DumpError("the file is binary or damaged, not the text of a dump", line) from None
    return text
