"""Reader of pasted buffer assignments: in a comment, without a heading, or abridged."""

import re
from dataclasses import replace

from ...xla.parts import BufferAssignment
from ...xla.program import Unread
from .buffer_assignment import HEADING, read_allocations
from .lines import Lines

# Characters before a line in a comment, a quotation or a listing.
_PREFIX = r"[^A-Za-z0-9<\n]*"
_SHAPE = r"\|?(?P<{}>(?:[a-z][a-z0-9]*\[[^\]|]*\]|\([^|]*\))(?:\{{[^}}|]*\}})?)\|?"
_ALLOCATION = re.compile(
    r"allocation (?P<index>\d+): (?P<address>0x[0-9a-f]+, )?size (?P<size>\d+)"
    r"(?P<space>, color \d+)?(?P<page>, page \d+)?"
    rf"(?:, parameter (?P<number>\d+)(?:, shape {_SHAPE.format('parameter')})?"
    r"(?: at ShapeIndex (?P<within>\{[\d,]*\}))?)?"
    rf"(?:, output(?: shape is {_SHAPE.format('output')})?)?"
    r"(?P<kinds>(?:, (?:constant|thread-local|maybe-live-out|preallocated-temp))*):?$"
)
_VALUE = re.compile(
    r"value: (?P<name><[^>]*>) *\(size=(?P<size>\d+), ?offset=(?P<offset>\d+)\): (?P<shape>\S.*)$"
)
_FIRST = re.compile(
    rf"^{_PREFIX}(?:{HEADING}|allocation \d+: (?:0x[0-9a-f]+, )?size \d+[,:]).*$", re.MULTILINE
)
_LEADING = re.compile(f"^{_PREFIX}")
# XLA lists a value of another color once more below this line.
_LISTED_AGAIN = "reused by buffers of a different color:"
_MAX_LINE_LENGTH = 10_000


def contains_assignment(text: str, *, at_start: bool = False) -> bool:
    """Whether a text contains a pasted buffer assignment, or starts with one."""
    return (_FIRST.match(text) if at_start else _FIRST.search(text)) is not None


def allocation_line(text: str) -> str | None:
    """An allocation's line as XLA prints it; None if the text is not such a line."""
    match = _ALLOCATION.match(text) if len(text) <= _MAX_LINE_LENGTH else None
    if match is None:
        return None
    line = f"allocation {match['index']}: {match['address'] or ''}size {match['size']}"
    line += (match["space"] or "") + (match["page"] or "")
    if match["number"]:
        line += f", parameter {match['number']}, shape |{match['parameter'] or ''}|"
        line += f" at ShapeIndex {match['within'] or '{}'}"
    if match["output"]:
        line += f", output shape is |{match['output']}|"
    return f"{line}{match['kinds']}:"


def _value_line(text: str) -> str | None:
    """A value's line as XLA prints it; None if the text is not such a line."""
    match = _VALUE.match(text) if len(text) <= _MAX_LINE_LENGTH else None
    return match and " value: {} (size={},offset={}): {}".format(*match.groups())


def read_pasted_assignment(lines: Lines) -> BufferAssignment | None:
    """The allocations of a pasted buffer assignment, and those of its values that are complete.

    None if the lines contain none. Raises DumpError if a number is out of range.
    """
    printed = [""] * len(lines.text)
    unread_indices: list[int] = []
    n_allocations = 0
    is_inside = skips_values = False
    for index, line in enumerate(lines.text):
        is_inside = is_inside or contains_assignment(line, at_start=True)
        text = _LEADING.sub("", line).rstrip()
        if not is_inside or text in ("", HEADING):
            continue
        if text.startswith("allocation ") or "allocation ".startswith(text):
            n_allocations += 1
            xla_line = allocation_line(text)
            # The values below belong to an allocation that is not read.
            skips_values = xla_line is None
        elif text.startswith("value: "):
            if skips_values:
                continue
            xla_line = _value_line(text)
        elif text == _LISTED_AGAIN:
            skips_values = True
            continue
        else:
            break
        if xla_line is None:
            unread_indices.append(index)
        else:
            printed[index] = xla_line
    read_indices = [index for index, line in enumerate(printed) if line]
    if not read_indices:
        return None
    assignment = read_allocations(Lines(printed, lines.first_number))
    indices = sorted(allocation.allocation_index for allocation in assignment.allocations)
    is_complete = indices == list(range(n_allocations))
    unread = []
    if unread_indices:
        n_lines = len(unread_indices) + len(read_indices)
        counts = f"{len(unread_indices)} allocations or values of {n_lines} are not read"
        number = lines.first_number + unread_indices[0]
        unread.append(Unread(number, f"{counts}: they are not as XLA prints them"))
    if not is_complete:
        number = lines.first_number + read_indices[0]
        unread.append(Unread(number, "allocations are missing, so nothing adds up"))
    return replace(assignment, unread=unread, is_complete=is_complete)
