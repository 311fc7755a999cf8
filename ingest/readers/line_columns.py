"""A dump's text as lines, and errors that name the line.

All readers work on whole columns of lines, without a Python loop: numpy classifies lines by
their first bytes, and one regular expression in Arrow's RE2 parses all lines of a kind.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import NoReturn, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ...xla.columns.parts import NotUnderstood, NotUnderstoods
from ...xla.errors import LARGEST_ID, LARGEST_LINES, DumpError
from ...xla.runs import joined, starts_of
from .lines import Lines as PlainLines

_PIECE = 1 << 18
# A file with more damaged lines is no text at all.
_MOST_DAMAGED = 100
_WORD = 8
_INTEGER_DIGITS = 18

Bytes: TypeAlias = npt.NDArray[np.uint8]
Positions: TypeAlias = npt.NDArray[np.int64]
Mask: TypeAlias = npt.NDArray[np.bool_]
Words: TypeAlias = npt.NDArray[np.uint64]

Name = TypeVar("Name")


@dataclass(frozen=True)
class Lines:
    """Some lines of a file: their positions in the file's bytes and their numbers from 1.

    Readers classify most lines by the first bytes and never parse them. Therefore text is
    created only on request, and selecting lines does not copy their bytes.
    """

    content: Bytes
    starts: Positions
    ends: Positions  # of the text, without the line end
    numbers: Positions

    def __len__(self) -> int:
        return len(self.numbers)

    @cached_property
    def text(self) -> pa.LargeStringArray:
        """The lines' text without line ends."""
        return slices(self.content, self.starts, self.ends)

    def where(self, chosen: Mask | Positions) -> "Lines":
        """The lines for which a mask is true, or the lines with these indices."""
        if chosen.dtype == bool:
            (chosen,) = chosen.nonzero()
        return Lines(self.content, self.starts[chosen], self.ends[chosen], self.numbers[chosen])

    def without(self, numbers: Sequence[int]) -> "Lines":
        """The lines that have none of these numbers."""
        return self.where(~np.isin(self.numbers, numbers))

    def between(self, start: int, stop: int) -> "Lines":
        """The lines with indices from `start` to `stop`, without `stop`."""
        part = slice(start, stop)
        lines = Lines(self.content, self.starts[part], self.ends[part], self.numbers[part])
        # A look at every line of a large file is slow, so what was looked up is kept.
        for known in ("_first_words", "_last_bytes"):
            if known in vars(self):
                vars(lines)[known] = vars(self)[known][part]
        return lines

    def runs(self, starts: Positions, stops: Positions) -> "Lines":
        """The lines of several such stretches, which follow each other."""
        if len(starts) == 1:
            return self.between(int(starts[0]), int(stops[0]))
        return self.where(joined(starts, np.maximum(stops - starts, 0)))

    def bounds(self, starts: Positions) -> Positions:
        """The index of the first line of each text that starts at these positions, and the end."""
        return np.append(np.searchsorted(self.starts, starts), len(self))

    def starting(self, prefix: str) -> Mask:
        """Which lines start with `prefix`."""
        # A line end follows each line and is not in `prefix`, so a match never spans two lines.
        return standing(self.content, self.starts, prefix.encode(), self._first_words)

    def ending(self, character: str) -> Mask:
        """Which lines end with an ASCII character."""
        ends: Mask = self._last_bytes == ord(character)
        return ends & (self._lengths > 0)

    def equal(self, text: str) -> Mask:
        """Which lines are `text`."""
        same_length: Mask = self._lengths == len(text.encode())
        return same_length & self.starting(text) if text else same_length

    @cached_property
    def _lengths(self) -> Positions:
        return self.ends - self.starts

    @cached_property
    def _first_words(self) -> Words:
        """The first eight bytes of each line; those of a shorter line reach beyond the line."""
        return words(self.content, self.starts)

    @cached_property
    def _last_bytes(self) -> Bytes:
        """The last byte of each line; of an empty line, the byte before the line."""
        return self.content[self.ends - 1]

    def first(self) -> str:
        """The first line's text; empty if there are no lines."""
        return str(self.between(0, 1).text[0]) if len(self) else ""

    def extract(
        self, pattern: str, what: str, parts: pa.LargeStringArray | None = None
    ) -> dict[str, pa.LargeStringArray]:
        """The named groups of `pattern` in every line, or in `parts`, one a line.

        A group that did not match is the empty string. Raises DumpError at the first line that
        does not match; `what` names the expected content.
        """
        matches = pc.extract_regex(self.text if parts is None else parts, pattern=pattern)
        if matches.null_count:
            self.refuse(as_numpy(pc.is_null(matches)), f"expected {what}")
        return {field.name: matches.field(i) for i, field in enumerate(matches.type)}

    def integers(self, texts: pa.LargeStringArray, *, most: int = LARGEST_ID) -> pa.Array:
        """Decimal texts, one a line, as int32, or int64 for a larger `most`.

        An empty text is null. Raises DumpError at the first number over `most`.
        """
        type_ = pa.int64() if most > LARGEST_ID else pa.int32()
        lengths = pc.fill_null(pc.binary_length(texts), 0).to_numpy()
        shortest, longest = (int(lengths.min()), int(lengths.max())) if len(lengths) else (0, 0)
        if not longest:
            return pa.nulls(len(texts), type_)
        digits = texts
        if not shortest:
            digits = pc.if_else(pc.equal(texts, ""), pa.scalar(None, texts.type), texts)
        if longest < len(str(most)):
            return pc.cast(digits, type_)
        # 18 digits fit 64 bits; longer ones could overflow in the cast itself.
        wrong = lengths > _INTEGER_DIGITS
        if not wrong.any():
            numbers = pc.cast(digits, pa.int64())
            wrong = as_numpy(pc.fill_null(pc.greater(numbers, most), False))
            if not wrong.any():
                return numbers.cast(type_)
        self.refuse(wrong, f"a number is over {most}")

    def refuse(self, mask: Mask, why: str) -> NoReturn:
        """Raise DumpError at the first line for which `mask` is true."""
        index = int(np.argmax(mask))
        found = excerpt(self.between(index, index + 1).first())
        wrong = self.numbers[np.flatnonzero(mask)].tolist()
        raise DumpError(f"{why}, found {found}", wrong[0], wrong)


def split_lines(text: bytes) -> Lines:
    """Split a file's bytes into lines; a final line end does not start another line.

    Raises DumpError for an empty file, for too many lines and for bytes that are not UTF-8.
    """
    if not text or text.isspace():
        raise DumpError("the file is empty: dump the program again")
    # A line takes more memory than a byte: what is mostly line ends would take gigabytes.
    if len(text) > LARGEST_LINES and text.count(b"\n") > LARGEST_LINES:
        raise DumpError(
            f"the file has more than {LARGEST_LINES:,} lines: no dump's text has so many"
        )
    if b"\r" in text:
        text = text.replace(b"\r\n", b"\n")
    text = _whole_characters(text)
    if not text.endswith(b"\n"):
        text += b"\n"
    content = np.frombuffer(text, np.uint8)
    ends = positions_of("\n", content)
    starts = np.concatenate([[0], ends[:-1] + 1])
    return Lines(content, starts, ends, np.arange(1, len(ends) + 1))


def column_lines(lines: "Lines | PlainLines") -> Lines:
    """Plain lines as columns."""
    if isinstance(lines, Lines):
        return lines
    text = pa.array(lines.text, pa.large_string())
    return lines_of(text, np.arange(len(text)) + lines.first_number)


def whole_lines(text: bytes) -> Lines:
    """As `split_lines`, but also raises DumpError if the file is cut short."""
    lines = split_lines(text)
    check_end(text)
    return lines


def lines_of_all(texts: Sequence[bytes]) -> tuple[Lines, Positions]:
    """The lines of several files, and where the files start in their content.

    Raises DumpError if one of them must be looked at alone: it is cut short, damaged or unusual.
    """
    for text in texts:
        if not text.endswith(b"\n") or text.isspace() or b"\r" in text:
            raise DumpError("a file is not whole")
        if len(_whole_characters(text)) != len(text):
            raise DumpError("a file is not whole")
    content = np.frombuffer(b"".join(texts), np.uint8)
    if len(content) > LARGEST_LINES:
        raise DumpError("the files are large")
    starts = starts_of(np.array([len(text) for text in texts]))[:-1]
    ends = positions_of("\n", content)
    lines = Lines(content, np.concatenate([[0], ends[:-1] + 1]), ends, np.arange(len(ends)))
    bounds = lines.bounds(starts)
    lines.numbers[:] += 1 - np.repeat(bounds[:-1], np.diff(bounds))
    return lines, starts


def spared_lines(text: bytes) -> tuple[Lines, list[int]]:
    """As `whole_lines` for HLO text, without the instructions that have bytes that are not UTF-8.

    The second are these lines. Raises DumpError if other lines are damaged, or many are.
    """
    try:
        return whole_lines(text), []
    except DumpError as error:
        lines = text.split(b"\n")
        damaged = [place for place, line in enumerate(lines) if not _is_text(line)]
        is_spared = all(lines[place].startswith(b"  ") for place in damaged)
        if not (0 < len(damaged) <= _MOST_DAMAGED and is_spared):
            raise error from None
    for place in damaged:
        lines[place] = b""
    return whole_lines(b"\n".join(lines)), [place + 1 for place in damaged]


def _is_text(line: bytes) -> bool:
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True


def check_end(text: bytes) -> None:
    """Raise DumpError if the last line has no line end; all known dumps have one."""
    if not text.endswith(b"\n"):
        why = "the last line has no end: the file is cut short, dump the program again"
        raise DumpError(why, text.count(b"\n") + 1)


def divided(table: pa.Table, bounds: Positions) -> list[pa.Table]:
    """The rows of each of several texts, of which all bounds are given."""
    return [table.slice(start, stop - start) for start, stop in pairwise(bounds.tolist())]


def counted(bounds: Positions) -> Positions:
    """The number of each row within its text, from 0."""
    found: Positions = np.arange(bounds[-1]) - np.repeat(bounds[:-1], np.diff(bounds))
    return found


def lines_of(text: pa.LargeStringArray, numbers: Positions) -> Lines:
    """Lines from texts without line ends."""
    if not len(text):
        return Lines(np.zeros(1, np.uint8), numbers[:0], numbers[:0], numbers[:0])
    end, nothing = pa.scalar("\n", text.type), pa.scalar("", text.type)
    # Line ends are added, so that a look-ahead in one line does not reach the next.
    ended = pc.binary_join_element_wise(text, end, nothing)
    _, offsets, content = ended.buffers()
    bounds = np.frombuffer(offsets, np.int64)[: len(text) + 1]
    return Lines(np.frombuffer(content, np.uint8), bounds[:-1], bounds[1:] - 1, numbers)


def with_inserted(lines: Lines, before: Positions, texts: list[str]) -> Lines:
    """The lines with one more before each of these, whose number it gets.

    `before` are indices that ascend; `texts` are without line ends, one for each.
    """
    cuts = lines.starts[before]
    pieces = [f"{text}\n".encode() for text in texts]
    lengths = np.array([len(piece) for piece in pieces], np.int64)
    shift = np.concatenate([[0], np.cumsum(lengths)])
    parts: list[bytes | memoryview] = []
    done = 0
    for cut, piece in zip(cuts.tolist(), pieces, strict=True):
        parts += [lines.content[done:cut].data, piece]
        done = cut
    content = np.frombuffer(b"".join([*parts, lines.content[done:].data]), np.uint8)
    moved = shift[np.searchsorted(before, np.arange(len(lines)), side="right")]
    starts = np.concatenate([cuts + shift[:-1], lines.starts + moved])
    ends = np.concatenate([cuts + shift[1:] - 1, lines.ends + moved])
    order = np.argsort(starts, kind="stable")
    numbers = np.concatenate([lines.numbers[before], lines.numbers])[order]
    return Lines(content, starts[order], ends[order], numbers)


def positions_of(character: str, content: Bytes) -> Positions:
    """The positions of an ASCII character in a file."""
    # In pieces that fit the processor's cache, because a mask of the whole file is slow.
    return np.concatenate(
        [
            (content[start : start + _PIECE] == ord(character)).nonzero()[0] + start
            for start in range(0, max(1, len(content)), _PIECE)
        ]
    )


def words(content: Bytes, at: Positions) -> Words:
    """The eight bytes from each position as one number, the first byte in the lowest bits.

    Bytes beyond the end of the file are 0.
    """
    at = np.minimum(at, len(content) - 1)
    last = len(content) - _WORD
    if last < 0:
        content, last = np.concatenate([content, np.zeros(_WORD, np.uint8)]), len(content)
    overlapping: Words = np.ndarray(last + 1, "<u8", content, strides=(1,))
    found = overlapping[np.minimum(at, last)]
    (beyond,) = (at > last).nonzero()
    if len(beyond):
        found[beyond] >>= (8 * (at[beyond] - last)).astype(np.uint64)
    return found


def standing(content: Bytes, at: Positions, text: bytes, first: Words | None = None) -> Mask:
    """At which positions `text` stands; `first` are the words at the positions, if known."""
    mask = _begin_with(words(content, at) if first is None else first, text[:_WORD])
    for offset in range(_WORD, len(text), _WORD):
        (found,) = mask.nonzero()
        if not len(found):
            break
        part = words(content, at[found] + offset)
        mask[found] = _begin_with(part, text[offset : offset + _WORD])
    return mask


def _begin_with(found: Words, text: bytes) -> Mask:
    """Which words begin with at most eight bytes."""
    unwanted = np.uint64(8 * (_WORD - len(text)))
    wanted = np.uint64(int.from_bytes(text, "little"))
    begins: Mask = (found << unwanted) == (wanted << unwanted)
    return begins


def slices(content: Bytes, starts: Positions, ends: Positions) -> pa.LargeStringArray:
    """Pieces of a file as texts; the pieces must be in order and must not overlap."""
    if not len(starts):
        return pa.array([], pa.large_string())
    # Every second piece between these cuts is wanted, and Arrow copies all in one call.
    cuts = np.stack([starts, ends], axis=1).ravel()
    assert (cuts[1:] >= cuts[:-1]).all(), "Arrow would read what is not ours"
    pieces = pa.LargeStringArray.from_buffers(
        len(cuts) - 1, pa.py_buffer(cuts), pa.py_buffer(content)
    )
    return pieces.take(pa.array(np.arange(0, len(cuts), 2)))


def as_numpy(array: pa.Array) -> Mask:
    """A boolean Arrow array without nulls as a numpy array."""
    return np.asarray(array.to_numpy(zero_copy_only=False), dtype=bool)


def excerpt(text: str, length: int = 60) -> str:
    """The beginning of `text` for a message, quoted."""
    return repr(text if len(text) <= length else text[: length - 1] + "…")


def _whole_characters(text: bytes) -> bytes:
    """The text without an incomplete last character. Raises DumpError if it is not UTF-8."""
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


def split_sections(lines: Lines, openings: Mapping[Name, str]) -> dict[Name, Lines]:
    """The sections in the lines, in order; `openings` has the first text of each section.

    Raises DumpError if a line that is not blank precedes the first section.
    """
    starts = sorted(
        (
            (int(index), name)
            for name, opening in openings.items()
            for index in lines.starting(opening).nonzero()[0][:1]
        ),
        key=lambda start: start[0],
    )
    if starts:
        before = lines.between(0, starts[0][0])
        if not before.equal("").all():
            before.refuse(~before.equal(""), f"expected {starts[0][1]}")
    stops = [*(start for start, _ in starts[1:]), len(lines)] if starts else []
    return {
        name: lines.between(start, stop) for (start, name), stop in zip(starts, stops, strict=True)
    }


_TABLE = re.compile(r"[A-Z][A-Za-z0-9]*(?: [A-Za-z0-9 ]+)?:?")


def without_newer_tables(
    body: Lines, is_open: Mask, is_close: Mask, is_table: Mask, other: Mask
) -> tuple[Lines, NotUnderstoods]:
    """HLO text without the tables outside of computations whose headings are not known.

    Such a table, like those of the stack frames (`is_table`), is a heading and the lines below
    it, up to a blank line, a computation or a known table. Behind the last computation it
    reaches to the end. `other` are the lines outside of computations whose form is not known.
    """
    closes = np.flatnonzero(is_close)
    last = closes[-1] if len(closes) else len(body)
    drop = np.zeros(len(body), bool)
    found = []
    stops = is_open | is_close | is_table
    stops[:last] |= body.equal("")[:last]
    ends = np.append(np.flatnonzero(stops), len(body))
    first = body.content[body.starts]
    for at in np.flatnonzero(other & (first >= ord("A")) & (first <= ord("Z"))):
        if drop[at]:
            continue
        text = body.between(int(at), int(at) + 1).first()
        if not _TABLE.fullmatch(text):
            continue
        drop[at : ends[np.searchsorted(ends, at)]] = True
        found.append(NotUnderstood(int(body.numbers[at]), f"section {excerpt(text)}"))
    return body.where(~drop), tuple(found)


def newer_words(lines: Lines, texts: pa.Array, what: str) -> NotUnderstoods:
    """Each distinct text once, by its first line; empty texts and nulls are nothing."""
    texts = texts.combine_chunks() if isinstance(texts, pa.ChunkedArray) else texts
    some = as_numpy(pc.fill_null(pc.not_equal(texts, ""), False))
    if not some.any():
        return ()
    rows = np.flatnonzero(some)
    distinct, first = np.unique(texts.filter(pa.array(some)).to_pylist(), return_index=True)
    return tuple(
        NotUnderstood(int(lines.numbers[rows[at]]), f"{what} {excerpt(str(text))}")
        for text, at in zip(distinct, first, strict=True)
    )
