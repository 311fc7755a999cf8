"""Where a log says that memory ran out: the text of each message, without what a log adds to it.

A log shipper may put its own text before every line of a message or before the first one alone,
write each line into a JSON object, wrap long lines, and lose the ESC of terminal escapes. What
stands before a line is told by what XLA prints at its beginning.
"""

import html
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice, takewhile
from typing import Any

# Stands where lines of a message are missing.
LEFT_OUT = "\0"

_WINDOW_BYTES = 1 << 20
# Of a longer line only this much is read, from before the message on.
_LONGEST_LINE_BYTES = 256 << 10
_LONGEST_MESSAGE = 1 << 20
_BEFORE_HIT_BYTES = 1000
# After so many lines of others a message is over; after so many lines that only go on with a
# wrapped one, XLA's own beginning of a line must come.
_PATIENCE = 200
_WRAPPED = 8
# A line of a message that was wrapped may be of one of so many that were read last.
_RECENT = 64

# The beginnings of messages. A line may end within one, after so many characters.
_BEGINNINGS = (
    "RESOURCE_EXHAUSTED",
    "Resource exhausted",
    "Ran out of memory in",
    "Ran out of memory on",
    "Out of memory while trying",
    "Out of memory allocating",
    "Failed to allocate request",
    "Shared memory size limit",
    "TensorCore Hbm usage",
    "TPU TensorCore Hbm",
    "Allocation (size=",
    "Attempting to allocate",
    "Attempting to reserve",
)
_LEAST = 10


def _or_cut(text: str) -> str:
    """A pattern of a text that the line may end in."""
    pattern = ""
    for sign in reversed(text[_LEAST:]):
        pattern = f"(?:$|{re.escape(sign)}{pattern})"
    return re.escape(text[:_LEAST]) + pattern


_HEAD = re.compile("|".join(map(_or_cut, _BEGINNINGS)))
# Every message holds one of these. They are searched for as bytes, so a long log costs little.
_HIT = re.compile(
    "|".join(dict.fromkeys(re.escape(text[:_LEAST]) for text in _BEGINNINGS)).encode()
    + rb"|llocations i|usage (?:>|&gt;|\\u003e)=|requirement \d|BufferAssignment |Peak buffers"
    rb"|XLA [lL]abel:|Unpadded size:|llocation type:|Subshape:|temp allocation:|\. Size: \d"
    rb"|live_out allocation:|Limit: |InUse: |Free memory/Total"
)
# What begins a message whose first line is missing.
_LIST = (
    r"Total [a-z]+ usage >=|Program [a-z]+ requirement \d|Largest program allocations in "
    r"|BufferAssignment (?:OOM|stats)|Peak buffers:|XLA [lL]abel: |Allocation type: "
    r"|Unpadded size: |Extra memory due to padding: |Entry Parameter Subshape: "
    r"|preallocated temp allocation: |maybe_live_out allocation: |\b\d{1,4}\. Size: "
)
_HEADLESS = re.compile(_LIST)
# What begins a line of a message after its first.
_LABEL = re.compile(
    rf"{_LIST}|Output size |Operator: |Shape: |Size: |={{10,}}|Buffer \d{{1,4}}:|"
    r"(?:parameter|constant|preallocated temp|total) (?:allocation|fragmentation): |"
    r"(?:reserved|program|arguments|global|scoped|HLO temp) +(?:\d|unknown)|"
    r"See https://openxla"
)
# What may stand between a log's own text and the beginning of a message.
_BEFORE = re.compile(
    r"(?:[\w.]*(?:Error|Exception|StatusOr access)\b[:(]? ?['\"]?)?"
    r"(?:INTERNAL: )?(?:E\d{4}: \w+:\s*)?(?:Compile[A-Z]\w+:\s*)?"
    r"(?:XLA:TPU compile permanent error\.\s*|Compilation failure:\s*)?$"
)
_LONGEST_BEFORE = 500
# What an allocator of a GPU says of its memory before the message.
_ALLOCATOR = re.compile(
    r"(?<![A-Za-z])(?:(?P<name>Limit|InUse): +(?P<size>\d{1,4}(?:\.\d{1,3})?[KMGT]iB|\d{1,18}B?)"
    r"|Free memory/Total memory: (?P<free>\d{1,18})/(?P<total>\d{1,18}))\s*$"
)
_ALLOCATOR_LINES = 300
_ALLOCATOR_APART = 5
_FIGURE = re.compile(r"(?<![\w.])\d[\d.]*\s?(?:[KMGTPE]i?B?|B|bytes)\b|(?:size=|requested )\d")
# What log shippers write in place of what they left out.
_LEFT_OUT = re.compile(r"\W*(?:\.{3}|…)|.{0,40}\btruncated\b", re.IGNORECASE)
_ANSI = re.compile(
    r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[()][A-Z0-9])"
    r"|(?:\\x1b|\\u001b|\\033)?\[\d{1,3}(?:;\d{1,3})*m"
)
_MARKDOWN = re.compile(r"\*\*|`|\\(?=[_*\[\]<>])")
_ENTITY = re.compile(r"&(?:lt|gt|amp|quot|apos|nbsp|#x?[0-9a-fA-F]{1,5});")
_ESCAPED_BREAK = re.compile(r"(?<!\\)\\n")
# What differs between the prefixes of one writer's lines: times and counts.
_CLOCK = re.compile(
    r"\d{4}[-/]\d\d[-/]\d\d|\b[IWEF]\d{4}(?= )|\d\d:\d\d:\d\d(?:[.,]\d+)?|[+-]\d\d:?\d\d\b"
    r"|(?<=T)\d\d:\d\d:\d\d(?:[.,]\d+)?Z?|\b\d{6,}(?:\.\d+)?\b|^\s*\d{1,6}(?=[(\[])"
)
_PREFIX_END = re.compile(r".*[\])>|:*-](?=\s|$)", re.DOTALL)
_OWN_LINE = re.compile(
    r"\s*(?:[IWEFD]\d{4} |\[?\d{4}[-/]\d\d[-/]\d\d|\d\d:\d\d:\d\d|(?:INFO|WARNING|ERROR|DEBUG)\b)"
)


@dataclass
class MessageText:
    """A message as it stands in a log.

    has_head: its first line is there; allocator: what the GPU's allocator said before it, of
    Limit, InUse, free and total.
    """

    line: int
    has_head: bool
    stream: str
    prefix: str
    allocator: dict[str, str] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)
    continued: re.Pattern[str] | None = None
    has_prefix: bool = False
    characters: int = 0
    wrapped: int = 0
    last: int = 0

    @property
    def text(self) -> str:
        """All lines; the last lacks its break if it may be cut there."""
        return "".join(self.lines)

    def is_wrapped_before(self, text: str) -> bool:
        """Whether a line that could begin a message goes on with this one, which has no figure."""
        is_again = text[:20] == self.lines[0].rstrip()[:20]
        may_go_on = self.has_head and len(self.lines) <= _WRAPPED and not is_again
        return may_go_on and not _FIGURE.search(self.text)

    def add(self, content: str, is_whole: bool) -> None:
        """Add a line without what the log puts before it."""
        if self.characters < _LONGEST_MESSAGE:
            self.characters += len(content)
            self.lines.append(f"{content}\n" if is_whole else content)

    def content(self, text: str, label: re.Match[str] | None, count: int) -> str | None:
        """The line without the log's own text; None if it is not of this message.

        `count` tells whether it is the next line: a terminal wraps a line without its prefix.
        """
        if self.continued is None:
            self._continue(text, label)
        rest: str | None = text
        if self.continued is not None and self.has_prefix:
            rest = _without(self.continued, text)
        elif self.continued is not None and label and text[: label.start()].strip():
            return None
        if rest is None and not label and count == self.last + 1:
            rest = text
        if rest is None or (rest == text and _is_another_writers(text, self.prefix)):
            return None
        self.wrapped = 0 if label else self.wrapped + bool(rest.strip())
        return None if self.wrapped > _WRAPPED else rest

    def _continue(self, text: str, label: re.Match[str] | None) -> None:
        """Whether the lines after the first repeat its prefix: the first of them tells."""
        wanted = _timeless(self.prefix).rstrip()
        before = _timeless(text[: label.start()]).rstrip() if label else None
        if before is None or not wanted.startswith(before):
            # Of a sentence that goes on only what a log puts before each line is common.
            pairs = zip(wanted, _timeless(text), strict=False)
            before = "".join(one for one, _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
            end = _PREFIX_END.match(before)
            before = before if before == wanted else end[0] if end else ""
            if not before:
                return
        self.continued, self.has_prefix = _pattern(before), bool(before)


@dataclass
class _Log:
    """Reads lines of a log; `ended` has the messages that no later line belongs to."""

    ended: list[MessageText] = field(default_factory=list)
    # The one read last is the last.
    _open: dict[tuple[str, str], MessageText] = field(default_factory=dict)
    _count: int = 0
    _allocator: dict[str, str] = field(default_factory=dict)
    _allocator_line: int = 0

    @property
    def is_reading(self) -> bool:
        """Whether a message may go on in the next line."""
        return bool(self._open)

    def line(self, raw: bytes, number: int, *, is_whole: bool) -> None:
        """Read a line, which may be a JSON object with texts in it."""
        text = raw.decode(errors="replace")
        texts = _texts_of_record(text)
        if texts is None:
            self._text(text, number, is_whole, "")
            return
        streams = {stream for stream, _ in self._open}
        for stream, printed in texts:
            key, said = _timeless(stream), _clean(printed)
            if key in streams or any(sign.search(said) for sign in (_HEAD, _HEADLESS, _ALLOCATOR)):
                for line in said.removesuffix("\n").split("\n"):
                    self._text(line, number, True, key)
        self._count += 1

    def close(self) -> None:
        """No more lines come."""
        self.ended += self._open.values()
        self._open = {}

    def _text(self, text: str, number: int, is_whole: bool, stream: str) -> None:
        for part in _clean(text).replace("\r\n", "\n").rstrip("\n").split("\r"):
            lines = [part]
            if (r"\n" in part or r"=\"" in part) and _HEAD.search(part):
                # A message within JSON, or in Python's repr.
                lines = [
                    line.replace(r"\"", '"').replace(r"\t", "\t")
                    for line in _ESCAPED_BREAK.split(part)
                ]
            for place, line in enumerate(lines):
                self._line(line, number, is_whole or place < len(lines) - 1, stream)

    def _line(self, text: str, number: int, is_whole: bool, stream: str) -> None:
        self._count += 1
        while self._open and self._count - next(iter(self._open.values())).last > _PATIENCE:
            self._end(next(iter(self._open)))
        if is_whole and (said := _ALLOCATOR.search(text)):
            self._note_allocator(said, number)
        elif head := _HEAD.search(text):
            start = max(0, head.start() - _LONGEST_BEFORE)
            before = _BEFORE.search(text, start, head.start())
            start = head.start() if before is None else before.start()
            self._begin(stream, text[:start], text[start:], number, is_whole, has_head=True)
        elif not self._goes_on(text, is_whole, stream) and (opening := _HEADLESS.search(text)):
            start = len(text[: opening.start()].rstrip())
            self._begin(stream, text[:start], text[start:], number, is_whole, has_head=False)

    def _begin(
        self, stream: str, prefix: str, text: str, number: int, is_whole: bool, *, has_head: bool
    ) -> None:
        key = (stream, _timeless(prefix))
        message = self._open.pop(key, None)
        if message is None or not message.is_wrapped_before(text):
            self.ended += [message] if message else []
            message = MessageText(number, has_head, stream, prefix)
            if number - self._allocator_line <= _ALLOCATOR_LINES:
                message.allocator = self._allocator
        message.add(text, is_whole)
        message.last = self._count
        self._open[key] = message

    def _note_allocator(self, said: re.Match[str], number: int) -> None:
        is_next = number - self._allocator_line <= _ALLOCATOR_APART
        of_line = {said["name"]: said["size"]} if said["name"] else said.groupdict()
        self._allocator = {**(self._allocator if is_next else {}), **of_line}
        self._allocator_line = number

    def _goes_on(self, text: str, is_whole: bool, stream: str) -> bool:
        """Give the line to the message that it goes on with; whether there is one."""
        if not self._open:
            return False
        label = _LABEL.search(text)
        for key in list(islice(reversed(self._open), _RECENT)):
            message = self._open[key]
            if stream != message.stream:
                continue
            content = message.content(text, label, self._count)
            if content is None and not _LEFT_OUT.match(text):
                continue
            if _LEFT_OUT.match(text if content is None else content):
                content = LEFT_OUT
            message.add(content or "", is_whole)
            if message.wrapped == 0:
                message.last = self._count
                self._open[key] = self._open.pop(key)
                if "See https://openxla.org/xla/errors/" in text:
                    self._end(key)
            return True
        return False

    def _end(self, key: tuple[str, str]) -> None:
        self.ended.append(self._open.pop(key))


def message_texts(pieces: Iterable[bytes]) -> Iterator[MessageText]:
    """The messages in the pieces of a log, in the order of their ends."""
    log = _Log()
    number = 1
    for window in _windows(pieces):
        number = _read_window(log, window, number)
        yield from log.ended
        log.ended = []
    log.close()
    yield from log.ended


def _clean(text: str) -> str:
    """A text without escapes of terminals, Markdown and HTML."""
    text = _ANSI.sub("", _MARKDOWN.sub("", text))
    return _ENTITY.sub(lambda entity: html.unescape(entity[0]), text) if "&" in text else text


def _is_another_writers(text: str, prefix: str) -> bool:
    """Whether a line begins as a log's own, or much as the first line does."""
    beginning = text[:4]
    is_alike = beginning.strip() and prefix.startswith(beginning)
    return bool(is_alike or _OWN_LINE.match(text))


def _pattern(prefix: str) -> re.Pattern[str]:
    """A prefix whose times and counts may be others."""
    parts = map(re.escape, _timeless(prefix).split("\0"))
    return re.compile(r"[\w.,:/+-]+?".join(parts))


def _without(prefix: re.Pattern[str], text: str) -> str | None:
    """The text after a prefix; None if it begins otherwise."""
    match = prefix.match(text)
    if match is None:
        return None
    rest = text[match.end() :]
    # `E` is no prefix of `Exceeded`.
    is_apart = not rest or rest[0].isspace() or not match[0][-1:].isalnum()
    return rest.removeprefix(" ") if is_apart else None


def _timeless(prefix: str) -> str:
    return _CLOCK.sub("\0", prefix)


# Lines that are JSON objects: containers and collectors of logs wrap each line that a program
# writes in an object of its own, so the lines of one message are spread over as many objects.

# What may stand before the object: no HLO, whose attributes may hold objects too.
_OBJECT = re.compile(r"(?P<before>[^{=]{0,500})(?P<object>\{\s*\".*\})\s*", re.DOTALL)
# The fields that tell one writer's lines from another's.
_WRITER = re.compile(r"pod|container|host|node|worker|rank|process|instance|stream", re.IGNORECASE)
_DEEPEST = 8


def _texts_of_record(line: str) -> list[tuple[str, str]] | None:
    """The texts in a line that is a JSON object, each with its stream; None if it is none.

    A stream is the field, with what stands before the object and what tells who wrote it: the
    lines of one message are of one stream.
    """
    match = _OBJECT.fullmatch(line)
    if match is None:
        return None
    try:
        # A large number must not cost time, and none is needed.
        record = json.loads(match["object"], parse_int=str, parse_float=str)
    except (ValueError, RecursionError):
        return None
    fields = list(_fields(record, "", _DEEPEST))
    writer = [field for field in fields if _WRITER.search(field[0].rpartition("/")[2])]
    texts = [
        ("\0".join([match["before"], name, *(f"{n}={t}" for n, t in writer if n != name)]), text)
        for name, text in fields
    ]
    return texts or None


def _fields(value: Any, name: str, deepest: int) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        # Half of a surrogate pair is no text that can be stored.
        yield name, value.encode(errors="replace").decode()
    elif isinstance(value, dict) and deepest:
        for key, inner in value.items():
            yield from _fields(inner, f"{name}/{key}", deepest - 1)


def _read_window(log: _Log, window: bytes, number: int) -> int:
    """Read some whole lines, of which the first has this number; the number after them."""
    at = 0
    while at < len(window):
        if not log.is_reading:
            hit = _HIT.search(window, at)
            if hit is None:
                break
            start = max(at, window.rfind(b"\n", at, hit.start()) + 1)
            number += window.count(b"\n", at, start)
            at = start
        end = window.find(b"\n", at) + 1 or len(window)
        line = window[at:end]
        if len(line) > _LONGEST_LINE_BYTES:
            hit = _HIT.search(line)
            start = max(hit.start() - _BEFORE_HIT_BYTES, 0) if hit else 0
            line = line[start : start + _LONGEST_LINE_BYTES]
        log.line(line, number, is_whole=window[end - 1 : end] == b"\n")
        number += window[end - 1 : end] == b"\n"
        at = end
    return number + window.count(b"\n", at)


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
