"""The out-of-memory messages in a log, without the text that a log adds to them.

A log shipper may put a prefix before every line of a message or before its first line only, wrap
each line in a JSON object, break long lines, and drop the ESC of terminal escapes. The prefix is
recognised by the words that XLA prints after it.
"""

import html
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice

from .log_records import record_texts

# A line that replaces the lines that a log shipper omitted.
GAP = "\0"

_WINDOW_BYTES = 1 << 20
# A longer line is truncated to this size; it then starts shortly before the message.
_MAX_LINE_BYTES = 256 << 10
_BEFORE_HIT_BYTES = 1000
_MAX_MESSAGE_LENGTH = 1 << 20
# A message ends if none of this many lines continues it.
_MAX_FOREIGN_LINES = 200
# A message ends after this many wrapped lines: lines without a label of XLA.
_MAX_WRAPPED_LINES = 8
# A line is compared with this many open messages, starting with the one read last.
_MAX_COMPARED_MESSAGES = 64

# First words of messages. A line may be broken within them, but after _MIN_LENGTH characters.
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
_MIN_LENGTH = 10


def _or_broken(text: str) -> str:
    """A pattern for a text, of which the line may end after _MIN_LENGTH characters."""
    pattern = ""
    for character in reversed(text[_MIN_LENGTH:]):
        pattern = f"(?:$|{re.escape(character)}{pattern})"
    return re.escape(text[:_MIN_LENGTH]) + pattern


_HEAD = re.compile("|".join(map(_or_broken, _BEGINNINGS)))
# Every message contains a match. Searching bytes makes it cheap to skip the rest of a long log.
_HIT = re.compile(
    "|".join(dict.fromkeys(re.escape(text[:_MIN_LENGTH]) for text in _BEGINNINGS)).encode()
    + rb"|llocations i|usage (?:>|&gt;|\\u003e)=|requirement \d|BufferAssignment |Peak buffers"
    rb"|XLA [lL]abel:|Unpadded size:|llocation type:|Subshape:|temp allocation:|\. Size: \d"
    rb"|live_out allocation:|Limit: |InUse: |Free memory/Total"
)
# First words of a message that lacks its first line.
_LIST = (
    r"Total [a-z]+ usage >=|Program [a-z]+ requirement \d|Largest program allocations in "
    r"|BufferAssignment (?:OOM|stats)|Peak buffers:|XLA [lL]abel: |Allocation type: "
    r"|Unpadded size: |Extra memory due to padding: |Entry Parameter Subshape: "
    r"|preallocated temp allocation: |maybe_live_out allocation: |\b\d{1,4}\. Size: "
)
_HEADLESS = re.compile(_LIST)
# First words of the later lines of a message: the labels of XLA.
_LABEL = re.compile(
    rf"{_LIST}|Output size |Operator: |Shape: |Size: |={{10,}}|Buffer \d{{1,4}}:|"
    r"(?:parameter|constant|preallocated temp|total) (?:allocation|fragmentation): |"
    r"(?:reserved|program|arguments|global|scoped|HLO temp) +(?:\d|unknown)|"
    r"See https://openxla"
)
# The name of an exception or a status, which precedes a message and is part of it.
_STATUS = re.compile(
    r"(?:[\w.]*(?:Error|Exception|StatusOr access)\b[:(]? ?['\"]?)?"
    r"(?:INTERNAL: )?(?:E\d{4}: \w+:\s*)?(?:Compile[A-Z]\w+:\s*)?"
    r"(?:XLA:TPU compile permanent error\.\s*|Compilation failure:\s*)?$"
)
_MAX_STATUS_LENGTH = 500
# Lines of XLA's allocator for GPUs that precede a message: the state of its memory.
_ALLOCATOR = re.compile(
    r"(?<![A-Za-z])(?:(?P<name>Limit|InUse): +(?P<size>\d{1,4}(?:\.\d{1,3})?[KMGT]iB|\d{1,18}B?)"
    r"|Free memory/Total memory: (?P<free>\d{1,18})/(?P<total>\d{1,18}))\s*$"
)
# The largest distance in lines to the message, and between two lines of one state.
_MAX_ALLOCATOR_DISTANCE = 300
_MAX_ALLOCATOR_GAP = 5
_SIZE = re.compile(r"(?<![\w.])\d[\d.]*\s?(?:[KMGTPE]i?B?|B|bytes)\b|(?:size=|requested )\d")
# Marks of log shippers for omitted lines.
_OMITTED = re.compile(r"\W*(?:\.{3}|…)|.{0,40}\btruncated\b", re.IGNORECASE)
_ANSI = re.compile(
    r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[()][A-Z0-9])"
    r"|(?:\\x1b|\\u001b|\\033)?\[\d{1,3}(?:;\d{1,3})*m"
)
_MARKDOWN = re.compile(r"\*\*|`|\\(?=[_*\[\]<>])")
_ENTITY = re.compile(r"&(?:lt|gt|amp|quot|apos|nbsp|#x?[0-9a-fA-F]{1,5});")
_ESCAPED_BREAK = re.compile(r"(?<!\\)\\n")
# Times and counters, which differ between the prefixes of one writer's lines.
_CLOCK = re.compile(
    r"\d{4}[-/]\d\d[-/]\d\d|\b[IWEF]\d{4}(?= )|\d\d:\d\d:\d\d(?:[.,]\d+)?|[+-]\d\d:?\d\d\b"
    r"|(?<=T)\d\d:\d\d:\d\d(?:[.,]\d+)?Z?|\b\d{6,}(?:\.\d+)?\b|^\s*\d{1,6}(?=[(\[])"
)
_PREFIX_END = re.compile(r".*[\])>|:*-](?=\s|$)", re.DOTALL)
# The beginning of a log's own line, which belongs to no message of XLA.
_LOG_LINE = re.compile(
    r"\s*(?:[IWEFD]\d{4} |\[?\d{4}[-/]\d\d[-/]\d\d|\d\d:\d\d:\d\d|(?:INFO|WARNING|ERROR|DEBUG)\b)"
)


@dataclass
class MessageText:
    """A message in a log.

    Attributes:
        line: number of its first line in the log, from 1.
        has_head: whether its first line is present.
        stream: the field and the writer of its lines in a log of JSON objects, otherwise "".
        prefix: the log's prefix of the first line.
        allocator: the state of the GPU's allocator: sizes by Limit, InUse, free and total.
        lines: its lines without prefixes; the last one has no line break if it may be truncated.
        is_prefix_known: whether it is decided if the later lines repeat the prefix.
        later_prefix: a pattern for the prefix of the later lines; None if they have none.
        length: characters in `lines`.
        n_wrapped: number of lines without a label since the last line with one.
        last: index of its last line among all lines that were read.
    """

    line: int
    has_head: bool
    stream: str
    prefix: str
    allocator: dict[str, str] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)
    is_prefix_known: bool = False
    later_prefix: re.Pattern[str] | None = None
    length: int = 0
    n_wrapped: int = 0
    last: int = 0

    @property
    def text(self) -> str:
        """All lines, joined."""
        return "".join(self.lines)

    def is_continued_by_head(self, text: str) -> bool:
        """Whether a line with the first words of a message continues this message.

        It does if this message has its own first line, few lines and no size yet, and the line does
        not begin as this message does: some messages contain the first words of another.
        """
        begins_alike = text[:20] == self.lines[0].rstrip()[:20]
        is_open = self.has_head and len(self.lines) <= _MAX_WRAPPED_LINES
        return is_open and not begins_alike and not _SIZE.search(self.text)

    def add(self, content: str, *, has_end: bool) -> None:
        """Add a line without prefix; `has_end`: whether it has a line break."""
        if self.length < _MAX_MESSAGE_LENGTH:
            self.length += len(content)
            self.lines.append(f"{content}\n" if has_end else content)

    def content(self, text: str, label: re.Match[str] | None, index: int) -> str | None:
        """A later line without its prefix; None if it does not belong to this message.

        Args:
            label: the label of XLA in the line.
            index: of the line among all lines that were read.
        """
        if not self.is_prefix_known:
            self._decide_prefix(text, label)
        content: str | None = text
        if self.later_prefix is not None:
            content = _without_prefix(self.later_prefix, text)
        elif self.is_prefix_known and label and text[: label.start()].strip():
            return None
        # A terminal wraps a line without repeating its prefix.
        if content is None and not label and index == self.last + 1:
            content = text
        if content is None or (content == text and _is_log_line(text, self.prefix)):
            return None
        self.n_wrapped = 0 if label else self.n_wrapped + bool(content.strip())
        return None if self.n_wrapped > _MAX_WRAPPED_LINES else content

    def _decide_prefix(self, text: str, label: re.Match[str] | None) -> None:
        """Decide from the second line whether the later lines repeat the prefix of the first."""
        expected = _without_times(self.prefix).rstrip()
        prefix = _without_times(text[: label.start()]).rstrip() if label else None
        if prefix is None or not expected.startswith(prefix):
            prefix = _common_prefix(expected, _without_times(text))
            if prefix != expected:
                # The rest of the first line's prefix is the beginning of a sentence.
                end = _PREFIX_END.match(prefix)
                prefix = end[0] if end else ""
            if not prefix:
                return
        self.is_prefix_known = True
        self.later_prefix = _prefix_pattern(prefix) if prefix else None


@dataclass
class _LogReader:
    """Collects the messages of a log, line by line.

    Attributes:
        ended: messages that no later line can continue.
    """

    ended: list[MessageText] = field(default_factory=list)
    # By stream and prefix without times; the message that was read last is the last.
    _open: dict[tuple[str, str], MessageText] = field(default_factory=dict)
    _index: int = 0
    _allocator: dict[str, str] = field(default_factory=dict)
    _allocator_line: int = 0

    @property
    def has_open_message(self) -> bool:
        """Whether the next line may continue a message."""
        return bool(self._open)

    def add_line(self, raw: bytes, number: int, *, has_end: bool) -> None:
        """Read a line of the log, which may be a JSON object that contains texts."""
        line = raw.decode(errors="replace")
        texts = record_texts(line)
        if texts is None:
            self._add_text(line, number, "", has_end=has_end)
            return
        open_streams = {stream for stream, _ in self._open}
        for name, field_text in texts:
            stream, text = _without_times(name), _without_markup(field_text)
            is_relevant = any(pattern.search(text) for pattern in (_HEAD, _HEADLESS, _ALLOCATOR))
            if stream in open_streams or is_relevant:
                for part in text.removesuffix("\n").split("\n"):
                    self._add_text(part, number, stream, has_end=True)
        self._index += 1

    def close(self) -> None:
        """End the open messages: the log has no more lines."""
        self.ended += self._open.values()
        self._open = {}

    def _add_text(self, text: str, number: int, stream: str, *, has_end: bool) -> None:
        """Read a line that is no JSON object, which carriage returns may divide."""
        for part in _without_markup(text).replace("\r\n", "\n").rstrip("\n").split("\r"):
            if (r"\n" in part or r"=\"" in part) and _HEAD.search(part):
                # A whole message on one line: in a JSON text or Python's repr.
                *lines, last = _ESCAPED_BREAK.split(part.replace(r"\"", '"').replace(r"\t", "\t"))
                for line in lines:
                    self._add_content(line, number, stream, has_end=True)
                self._add_content(last, number, stream, has_end=has_end)
            else:
                self._add_content(part, number, stream, has_end=has_end)

    def _add_content(self, text: str, number: int, stream: str, *, has_end: bool) -> None:
        """Begin or continue a message with a line, if it belongs to one."""
        self._index += 1
        while self._open:
            key, oldest = next(iter(self._open.items()))
            if self._index - oldest.last <= _MAX_FOREIGN_LINES:
                break
            self._end(key)
        if has_end and (allocator := _ALLOCATOR.search(text)):
            self._add_allocator(allocator, number)
        elif head := _HEAD.search(text):
            status = _STATUS.search(text, max(0, head.start() - _MAX_STATUS_LENGTH), head.start())
            start = head.start() if status is None else status.start()
            message = MessageText(number, True, stream, text[:start])
            self._begin(message, text[start:], has_end=has_end)
        elif not self._continue(text, stream, has_end=has_end):
            opening = _HEADLESS.search(text)
            if opening:
                start = len(text[: opening.start()].rstrip())
                message = MessageText(number, False, stream, text[:start])
                self._begin(message, text[start:], has_end=has_end)

    def _begin(self, new: MessageText, text: str, *, has_end: bool) -> None:
        """Begin a message with its first line, or continue the open message with that prefix."""
        key = (new.stream, _without_times(new.prefix))
        message = self._open.pop(key, None)
        if message is None or not message.is_continued_by_head(text):
            if message is not None:
                self.ended.append(message)
            message = new
            if new.line - self._allocator_line <= _MAX_ALLOCATOR_DISTANCE:
                message.allocator = self._allocator
        message.add(text, has_end=has_end)
        message.last = self._index
        self._open[key] = message

    def _add_allocator(self, match: re.Match[str], number: int) -> None:
        """Remember a line of the GPU's allocator; lines close to each other are one state."""
        is_same_state = number - self._allocator_line <= _MAX_ALLOCATOR_GAP
        sizes = {match["name"]: match["size"]} if match["name"] else match.groupdict()
        self._allocator = self._allocator | sizes if is_same_state else sizes
        self._allocator_line = number

    def _continue(self, text: str, stream: str, *, has_end: bool) -> bool:
        """Add the line to the open message that it continues. Returns whether there is one."""
        if not self._open:
            return False
        label = _LABEL.search(text)
        for key in list(islice(reversed(self._open), _MAX_COMPARED_MESSAGES)):
            message = self._open[key]
            if stream != message.stream:
                continue
            content = message.content(text, label, self._index)
            is_gap = _OMITTED.match(text if content is None else content) is not None
            if content is None and not is_gap:
                continue
            message.add(GAP if is_gap else content or "", has_end=has_end)
            if message.n_wrapped == 0:
                message.last = self._index
                self._open[key] = self._open.pop(key)
                if "See https://openxla.org/xla/errors/" in text:
                    self._end(key)
            return True
        return False

    def _end(self, key: tuple[str, str]) -> None:
        self.ended.append(self._open.pop(key))


def message_texts(pieces: Iterable[bytes]) -> Iterator[MessageText]:
    """The messages in the pieces of a log, in the order of their ends."""
    log = _LogReader()
    number = 1
    for window in _windows(pieces):
        number = _read_window(log, window, number)
        yield from log.ended
        log.ended = []
    log.close()
    yield from log.ended


def _without_markup(text: str) -> str:
    """A text without terminal escapes, Markdown and HTML entities."""
    text = _ANSI.sub("", _MARKDOWN.sub("", text))
    return _ENTITY.sub(lambda entity: html.unescape(entity[0]), text) if "&" in text else text


def _is_log_line(text: str, prefix: str) -> bool:
    """Whether a line begins like the log's own lines, or like `prefix` (4 characters)."""
    beginning = text[:4]
    has_prefix = beginning.strip() and prefix.startswith(beginning)
    return bool(has_prefix or _LOG_LINE.match(text))


def _prefix_pattern(prefix: str) -> re.Pattern[str]:
    """A pattern for a prefix with any times and counters in the positions of NUL."""
    return re.compile(r"[\w.,:/+-]+?".join(map(re.escape, prefix.split("\0"))))


def _without_prefix(prefix: re.Pattern[str], text: str) -> str | None:
    """The text after a prefix; None if it does not begin with the prefix."""
    match = prefix.match(text)
    if match is None:
        return None
    rest = text[match.end() :]
    # The prefix `E` does not match `Exceeded`.
    is_separated = not rest or rest[0].isspace() or not match[0][-1:].isalnum()
    return rest.removeprefix(" ") if is_separated else None


def _common_prefix(left: str, right: str) -> str:
    """The longest common beginning of two texts."""
    for index, (left_character, right_character) in enumerate(zip(left, right, strict=False)):
        if left_character != right_character:
            return left[:index]
    return left[: len(right)]


def _without_times(prefix: str) -> str:
    """A prefix with NUL in place of its times and counters."""
    return _CLOCK.sub("\0", prefix)


def _read_window(log: _LogReader, window: bytes, number: int) -> int:
    """Read complete lines, the first of which has this number. Returns the next line's number."""
    offset = 0
    while offset < len(window):
        if not log.has_open_message:
            hit = _HIT.search(window, offset)
            if hit is None:
                break
            start = max(offset, window.rfind(b"\n", offset, hit.start()) + 1)
            number += window.count(b"\n", offset, start)
            offset = start
        end = window.find(b"\n", offset) + 1 or len(window)
        line = window[offset:end]
        has_end = line.endswith(b"\n")
        if len(line) > _MAX_LINE_BYTES:
            hit = _HIT.search(line)
            start = max(hit.start() - _BEFORE_HIT_BYTES, 0) if hit else 0
            line = line[start : start + _MAX_LINE_BYTES]
        log.add_line(line, number, has_end=has_end)
        number += has_end
        offset = end
    return number + window.count(b"\n", offset)


def _windows(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """The log in windows of complete lines; the last line may lack its line break.

    A line that is longer than two windows, as in a binary file, is divided.
    """
    pending = b""
    for piece in pieces:
        for start in range(0, len(piece), _WINDOW_BYTES):
            pending += piece[start : start + _WINDOW_BYTES]
            end = pending.rfind(b"\n") + 1
            if not end and len(pending) > 2 * _WINDOW_BYTES:
                end = len(pending)
            if end >= _WINDOW_BYTES // 2:
                yield pending[:end]
                pending = pending[end:]
    if pending:
        yield pending
