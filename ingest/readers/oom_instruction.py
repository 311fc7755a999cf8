"""An HLO instruction in an out-of-memory message, of which parts may be missing."""

import codecs
import re

from ..oom_report import OomBuffer, OomReport
from .compact_text import ARRAY, NUMBER_END, CompactText, Span

_ASSIGNED_NAME = re.compile(r"%?(?P<name>[\w.<>-]{1,1000})=", re.DOTALL)
_RESULT_SHAPE = re.compile(rf"(?:{ARRAY}|\(.*?\))(?=[a-z][\w-]*\()", re.DOTALL)
_OPCODE = re.compile(r"([a-z][\w-]*)\(")
_NAME = re.compile(r"%?([\w.<>-]{1,1000})")
_STRINGS = {
    "op_name": re.compile(r'\bop_name="((?:[^"\\\0]|\\.){0,20000})"'),
    "source_file": re.compile(r'source_file="((?:[^"\\\0]|\\.){0,20000})"'),
}
_NUMBERS = {
    "source_line": re.compile(rf"source_line=(\d{{1,9}}){NUMBER_END}"),
    "stack_frame_id": re.compile(rf"stack_frame_id=(\d{{1,9}}){NUMBER_END}"),
}


def read_report_instruction(
    report: OomReport, message: CompactText, span: Span, *, is_complete: bool
) -> None:
    """Read `NAME = [SHAPE] OPCODE(...)` or, if it is complete, `NAME` into a report."""
    text = message.text[slice(*span)]
    if match := _ASSIGNED_NAME.match(text):
        report.instruction = match["name"]
        if shape := _RESULT_SHAPE.match(text, match.end()):
            report.shape = message.printed((span[0] + shape.start(), span[0] + shape.end()))
    elif is_complete and (name := _NAME.fullmatch(text)):
        report.instruction = name[1]
    read_metadata(report, message, span)


def read_buffer_instruction(buffer: OomBuffer, message: CompactText, span: Span) -> None:
    """Read `NAME = [SHAPE] OPCODE(...)` into a buffer, whose shape is in a field of its own."""
    text = message.text[slice(*span)]
    if match := _ASSIGNED_NAME.match(text):
        buffer.instruction = match["name"]
        shape = _RESULT_SHAPE.match(text, match.end())
        if opcode := _OPCODE.match(text, (shape or match).end()):
            buffer.opcode = opcode[1]
    read_metadata(buffer, message, span)


def read_metadata(target: OomReport | OomBuffer, message: CompactText, span: Span) -> None:
    """Read op_name, source_file, source_line and stack_frame_id, those that are complete."""
    # The character after the part shows whether a number ends there.
    end = min(span[1] + 1, message.end)
    for name, pattern in (_STRINGS | _NUMBERS).items():
        match = pattern.search(message.text, span[0], end)
        if match and match.end() <= span[1]:
            is_string = name in _STRINGS
            value = _unescape(message.printed(match.span(1))) if is_string else int(match[1])
            setattr(target, name, value)


def _unescape(text: str) -> str:
    """A quoted text with its C escapes decoded; unchanged if they are invalid."""
    if "\\" not in text:
        return text
    try:
        decoded: bytes = codecs.escape_decode(text.encode())[0]
        return decoded.decode()
    except ValueError:
        return text
