"""A dump's text as a column of lines, and errors that name the line.

All readers work on whole columns of lines: one regular expression takes all lines of a
kind apart at once, in Arrow's RE2, with no Python per line.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import NoReturn

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

# Ids and times are 32-bit integers in the warehouse. Sizes are bytes; the bound leaves room
# to add up some thousand of them in 64 bits.
LARGEST_ID = 2**31 - 1
LARGEST_SIZE = 2**50


class DumpError(ValueError):
    """Text that is not what it should be. `line` counts from 1; None if no line is to blame."""

    def __init__(self, message: str, line: int | None = None) -> None:
        super().__init__(message)
        self.line = line


@dataclass(frozen=True)
class Lines:
    """Some lines of a file and their numbers from 1.

    `raw` holds each with its line end: it is the file's own bytes, not copied, and most
    lines of a dump are never looked into.
    """

    raw: pa.LargeBinaryArray
    numbers: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.raw)

    @cached_property
    def text(self) -> pa.LargeStringArray:
        """The lines without their ends."""
        return pc.binary_slice(self.raw, 0, -1).cast(pa.large_string())

    def where(self, mask: npt.NDArray[np.bool_]) -> "Lines":
        """The lines for which `mask` holds."""
        return Lines(self.raw.filter(pa.array(mask)), self.numbers[mask])

    def between(self, start: int, stop: int) -> "Lines":
        """The lines from the start-th up to, not including, the stop-th."""
        return Lines(self.raw[start:stop], self.numbers[start:stop])

    def starting(self, prefix: str) -> npt.NDArray[np.bool_]:
        """Which lines start with `prefix`."""
        return as_numpy(pc.starts_with(self.raw, pattern=prefix.encode()))

    def ending(self, suffix: str) -> npt.NDArray[np.bool_]:
        """Which lines end with `suffix`."""
        return as_numpy(pc.ends_with(self.raw, pattern=f"{suffix}\n".encode()))

    def equal(self, text: str) -> npt.NDArray[np.bool_]:
        """Which lines are `text`."""
        return as_numpy(pc.equal(self.raw, pa.scalar(f"{text}\n".encode(), self.raw.type)))

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

    def refuse(self, mask: npt.NDArray[np.bool_], why: str) -> NoReturn:
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
    if not text.strip():
        raise DumpError("the file is empty: dump the program again")
    if b"\r\n" in text:
        text = text.replace(b"\r\n", b"\n")
    text = _whole_characters(text)
    if not text.endswith(b"\n"):
        text += b"\n"
    ends = np.flatnonzero(np.frombuffer(text, np.uint8) == ord("\n")) + 1
    offsets = np.concatenate([[0], ends]).astype(np.int64)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(text)]
    raw = pa.LargeBinaryArray.from_buffers(pa.large_binary(), len(ends), buffers)
    return Lines(raw, np.arange(1, len(ends) + 1))


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


def lines_of(text: pa.LargeStringArray, numbers: npt.NDArray[np.int64]) -> Lines:
    """Lines made of texts without line ends."""
    end = pa.scalar("\n", text.type)
    ended = pc.binary_join_element_wise(text, end, pa.scalar("", text.type))
    return Lines(ended.cast(pa.large_binary()), numbers)


def as_numpy(array: pa.Array) -> npt.NDArray[np.bool_]:
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
