"""Finds XLA's out-of-memory messages in a log of any length, and reads them.

The bytes are searched for the few texts that every message holds; only what stands around a hit
is taken apart into lines. A log shipper may have put its own text before every line of a
message, or before the first one alone.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ..oom_report import OomReport
from .oom_heads import HEADLESS, OPENERS, headless, read_head
from .oom_list import OomList, is_left_out, opens_list
from .oom_records import texts_of_record

_WINDOW_BYTES = 1 << 20
# Of a longer line only this much is read, from before the message on.
_LONGEST_LINE_BYTES = 256 << 10
_BEFORE_HIT_BYTES = 1000
_OPENINGS = (*OPENERS, *HEADLESS)
_NEEDLES = tuple(text.encode() for text in _OPENINGS)
# After so many lines of others a message is over.
_PATIENCE = 200
# So many lines may hold a first line that was wrapped.
_WRAPPED = 4
_ANSI = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[()][A-Z0-9])")
_ESCAPED_BREAK = re.compile(r"(?<!\\)\\n")
# What differs between the prefixes of one writer's lines: times and counts.
_CLOCK = re.compile(
    r"\d{4}[-/]\d\d[-/]\d\d|\b[IWEF]\d{4}(?= )|\d\d:\d\d:\d\d(?:[.,]\d+)?|[+-]\d\d:?\d\d\b"
    r"|(?<=T)\d\d:\d\d:\d\d(?:[.,]\d+)?Z?|\b\d{6,}(?:\.\d+)?\b"
)


@dataclass
class _Open:
    """A message that is being read; `stream`: the field of JSON objects that it stands in."""

    stream: str
    prefix: str
    body: OomList
    head: str | None
    wrapped: int = 0
    others: int = 0
    continued: str | None = None
    is_fresh: bool = True


class OomReader:
    """Reads lines of a log; `reports` has each message that has ended."""

    def __init__(self, *, is_list: bool = False) -> None:
        self.reports: list[OomReport] = []
        self._is_list = is_list
        self._open: list[_Open] = []

    @property
    def is_reading(self) -> bool:
        """Whether a message may go on in the next line."""
        return bool(self._open)

    def line(self, raw: bytes, number: int, *, is_whole: bool = True) -> None:
        """Read a line of the log."""
        text = raw.decode(errors="replace")
        texts = texts_of_record(text)
        if texts is None:
            self._text(text, number, is_whole, "")
            return
        streams = {message.stream for message in self._open}
        read = [
            (_timeless(stream), text)
            for stream, text in texts
            if _timeless(stream) in streams or any(opener in text for opener in _OPENINGS)
        ]
        for stream, text in read:
            for line in text.removesuffix("\n").split("\n"):
                self._text(line, number, True, stream)
        if not read:
            self._text("", number, True, "")

    def _text(self, text: str, number: int, is_whole: bool, stream: str) -> None:
        text = _ANSI.sub("", text)
        for part in text.replace("\r\n", "\n").rstrip("\n").split("\r"):
            lines = [part]
            is_escaped = r"\n" in part or r"=\"" in part
            if is_escaped and any(opener in part for opener in OPENERS):
                # A message within JSON, or in Python's repr.
                lines = [
                    line.replace(r"\"", '"').replace(r"\t", "\t")
                    for line in _ESCAPED_BREAK.split(part)
                ]
            for place, line in enumerate(lines):
                whole = is_whole or place < len(lines) - 1
                self._line(line, number, whole, stream)

    def close(self) -> None:
        """No more lines come."""
        for message in self._open:
            self.reports.append(message.body.close())
        self._open = []
        self.reports.sort(key=lambda report: report.line)

    def _line(self, text: str, number: int, is_whole: bool, stream: str) -> None:
        if any(opener in text for opener in OPENERS) and (
            found := read_head(text, number, is_whole=is_whole)
        ):
            report, start = found
            self._begin(stream, text[:start], report, text[start:])
            return
        taken = [
            message
            for message in self._open
            if message.stream == stream and _goes_on(message, text, is_whole)
        ]
        if not taken and any(opener in text for opener in HEADLESS):
            opening = opens_list(text)
            assert opening is not None
            prefix = text[: opening.start()]
            self._begin(stream, prefix, headless(number, is_cut=not self._is_list), None)
            _goes_on(self._open[-1], text, is_whole)
            self._open[-1].body.report.message = text[opening.start() :].strip()
            taken = self._open[-1:]
        for message in list(self._open):
            message.others = 0 if message in taken else message.others + 1
            if message.others > _PATIENCE or message.body.is_ended:
                self._end(message)

    def _begin(self, stream: str, prefix: str, report: OomReport, head: str | None) -> None:
        key = _timeless(prefix)
        for message in list(self._open):
            if (message.stream, _timeless(message.prefix)) == (stream, key):
                self._end(message)
        waits = head is not None and report.is_cut
        begun = _Open(stream, prefix, OomList(report), head if waits else None)
        self._open.append(begun)
        if head is not None and not waits:
            _rest_of_line(begun.body, head)

    def _end(self, message: _Open) -> None:
        self._open.remove(message)
        self.reports.append(message.body.close())


def _goes_on(message: _Open, text: str, is_whole: bool) -> bool:
    """Give the line to the message; whether it is part of it."""
    content = _content(message, text)
    if content is None or not content.strip():
        return False
    if message.body.add(content, is_whole=is_whole):
        if message.continued is None:
            message.continued = text[: len(text) - len(content)]
        message.head = None
        return True
    if is_left_out(content):
        message.head = None
        if message.is_fresh and message.body.report.kind == "allocation":
            # The kernel's name stands at the end of the first line.
            message.body.report.instruction, message.body.report.is_cut = None, True
    message.is_fresh = False
    if message.head is not None:
        # A first line that a terminal or a person has wrapped.
        message.head = f"{message.head.rstrip()} {content.strip()}"
        message.wrapped += 1
        found = read_head(message.head, message.body.report.line)
        if found is not None and not found[0].is_cut:
            message.body.report = found[0]
            message.head = None
            return True
        if message.wrapped >= _WRAPPED:
            message.head = None
    return False


def _rest_of_line(body: OomList, head: str) -> None:
    """Read totals that stand in the first line, because line breaks were lost."""
    if opening := opens_list(head):
        rest = re.sub(r"(?= (?:reserved|program|arguments) )|(?<=:)", "\n", head[opening.start() :])
        for line in rest.split("\n"):
            if not body.add(line) and line.strip():
                body.report.is_cut = True


def _content(message: _Open, text: str) -> str | None:
    """The line without what stands before every line of the message; None if it lacks that."""
    if message.continued is not None:
        return _without(message.continued, text)
    # The first of the lines that go on tells whether they repeat the prefix.
    if (found := _without(message.prefix, text)) is not None:
        return found
    wanted = _timeless(message.prefix)
    for end in _PREFIX_ENDS.finditer(text):
        if wanted.startswith(_timeless(text[: end.end()])):
            rest = text[end.end() :]
            if OomList(headless(0)).add(rest) or _WORDS.match(rest):
                return rest
    return text


_PREFIX_ENDS = re.compile(r"[\]):>|] ?|[EF] {2,}|\s(?=\S)")
_WORDS = re.compile(r"(?:Used|Exceeded|Scoped|Ran) ")


def _without(prefix: str, text: str) -> str | None:
    """The text after a prefix that is the same but for times; None if it begins otherwise."""
    if not prefix:
        return text
    if text.startswith(prefix):
        return text[len(prefix) :]
    pattern = _CLOCK.sub("\0", prefix)
    if "\0" not in pattern:
        return None
    parts = map(re.escape, pattern.split("\0"))
    match = re.match(r"[\w.,:/+-]+?".join(parts), text)
    return None if match is None else text[match.end() :]


def _timeless(prefix: str) -> str:
    return _CLOCK.sub("\0", prefix)


def read_oom_messages(pieces: Iterable[bytes], *, is_list: bool = False) -> list[OomReport]:
    """The messages in the pieces of a text, in their order; a text may be of any length.

    With `is_list` the text is a list that XLA dumped: its first line is not missing.
    """
    reader = OomReader(is_list=is_list)
    number = 1
    for window in _windows(pieces):
        number = _read_window(reader, window, number)
    reader.close()
    return reader.reports


def _read_window(reader: OomReader, window: bytes, number: int) -> int:
    """Read some whole lines, of which the first has this number; the number after them."""
    at = 0
    while at < len(window):
        if not reader.is_reading:
            hit = _first_hit(window, at)
            if hit < 0:
                break
            start = max(at, window.rfind(b"\n", at, hit) + 1)
            number += window.count(b"\n", at, start)
            at = start
        end = window.find(b"\n", at) + 1 or len(window)
        line = window[at:end]
        if len(line) > _LONGEST_LINE_BYTES:
            start = max(_first_hit(line, 0) - _BEFORE_HIT_BYTES, 0)
            line = line[start : start + _LONGEST_LINE_BYTES]
        reader.line(line, number, is_whole=window[end - 1 : end] == b"\n")
        number += window[end - 1 : end] == b"\n"
        at = end
    return number + window.count(b"\n", at)


def _first_hit(window: bytes, at: int) -> int:
    hits = [hit for needle in _NEEDLES if (hit := window.find(needle, at)) >= 0]
    return min(hits, default=-1)


def _windows(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """The text in windows of whole lines; the last line may lack its end.

    A line that is longer than a window, of a file that is no text, is taken as several.
    """
    held = b""
    for piece in pieces:
        for start in range(0, len(piece), _WINDOW_BYTES):
            window = held + piece[start : start + _WINDOW_BYTES]
            end = window.rfind(b"\n") + 1
            if not end and len(window) > 2 * _WINDOW_BYTES:
                end = len(window)
            if end >= _WINDOW_BYTES // 2:
                yield window[:end]
                window = window[end:]
            held = window
    if held:
        yield held
