"""Lexer of instructions that are printed over several lines, or damaged.

XLA prints the JSON in `frontend_attributes={kernel_metadata={…}}` of a Pallas kernel with its line
ends (splash attention, JAX 0.10). Such an instruction ends with the line at whose end all braces,
brackets, parentheses, quotes and comments are closed.
"""

import re
from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np

from ...xla.errors import DumpError
from ...xla.parts import Unread
from .lines import Lines, Mask

_Read = TypeVar("_Read")

# Readers check fewer things of a line, and each refuses all lines that are wrong.
_MOST_ROUNDS = 30

# A quote or a comment that does not close reaches to the end of the text, so that a hostile text
# takes no more than linear time.
_TOKEN = re.compile(
    rb'"[^"\\]*+(?:\\.[^"\\]*+)*+(?P<quote>"?)|/\*(?:[^*]|\*(?!/))*+(?P<comment>(?:\*/)?)'
    rb"|(?P<opening>[({\[])|(?P<closing>[)}\]])|(?P<end>\n)",
    re.DOTALL,
)
_PAIRS = {b"(": b")", b"{": b"}", b"[": b"]"}


def joined_lines(lines: Lines, instructions: Mask, others: Mask) -> Lines:
    """The lines, with each instruction on one line, which has the number of its first line.

    `lines` follow each other in the file. `instructions` are those at which an instruction
    starts, `others` those at which something else does for certain: an instruction that is still
    open there, or at the next instruction, is damaged and stays as it is.
    """
    starts = np.flatnonzero(instructions)
    stops = np.append(np.flatnonzero(instructions | others), len(lines))
    stops = stops[np.searchsorted(stops, starts, side="right")]
    # Most often nothing follows, or a blank line.
    said = np.cumsum(lines.ends > lines.starts)
    goes_on = said[stops - 1] > said[starts]
    is_brace = lines.equal("}")
    content = lines.content.copy()
    kept = np.ones(len(lines), bool)
    ends = lines.ends.copy()
    for start, stop in zip(starts[goes_on].tolist(), stops[goes_on].tolist(), strict=True):
        first, end = int(lines.ends[start]), int(lines.ends[stop - 1])
        end = _end(lines.content.data, int(lines.starts[start]), end) or first
        last = int(np.searchsorted(lines.ends, end))
        if is_brace[last] and last + 1 < stop and not is_brace[last + 1 : stop].any():
            continue  # This brace ends the computation.
        content[lines.ends[start:last]] = ord(" ")
        kept[start + 1 : last + 1] = False
        ends[start] = lines.ends[last]
    return Lines(content, lines.starts[kept], ends[kept], lines.numbers[kept])


def _end(content: memoryview, start: int, stop: int) -> int | None:
    """The end of the line with which the instruction ends, None if it does not end."""
    closing: list[bytes] = []
    for token in _TOKEN.finditer(content, start, stop):
        kind, text = token.lastgroup, token[0]
        if kind == "opening":
            closing.append(_PAIRS[bytes(text)])
        elif kind == "closing":
            if not closing or closing.pop() != text:
                return None
        elif kind == "end":
            if not closing:
                return token.start()
        elif not token[kind or 0]:
            return None
    return None if closing else stop


def read_the_rest(lines: Lines, read: Callable[[Lines], _Read]) -> tuple[_Read, list[DumpError]]:
    """What `read` makes of the lines without those that it refuses, and why it refuses them.

    Raises DumpError if it refuses the whole.
    """
    errors: list[DumpError] = []
    while True:
        try:
            return read(lines), errors
        except DumpError as error:
            errors.append(error)
            if not error.lines or len(errors) > _MOST_ROUNDS:
                raise errors[0] from None
            lines = lines.without(error.lines)


def unread_lines(errors: Sequence[DumpError], read: int, what: str) -> tuple[Unread, ...]:
    """What `read_the_rest` left out, beside `read` instructions that were read."""
    if not errors:
        return ()
    unread = sum(len(set(error.lines)) for error in errors)
    count = f"{unread} of {unread + read} {what} {'are' if unread > 1 else 'is'} not read"
    return (Unread(errors[0].line or 1, f"{count}: {errors[0]}"),)
