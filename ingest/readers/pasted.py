"""A buffer assignment as people paste it: in a comment, without its heading, or shortened."""

import re
from dataclasses import replace

import numpy as np
import pyarrow as pa

from ...xla.columns.parts import BufferAssignment, Unread
from .buffer_assignment import HEADING, read_buffer_assignment
from .lines import Lines, lines_of

# What stands before a line in a comment, a quotation or a listing.
_BEFORE = r"[^A-Za-z0-9<\n]*"
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
    rf"^{_BEFORE}(?:{HEADING}|allocation \d+: (?:0x[0-9a-f]+, )?size \d+[,:]).*$", re.MULTILINE
)
_STRIPPED = re.compile(f"^{_BEFORE}")
# XLA lists a value of another color once more under this line.
_OF_COLOR = "reused by buffers of a different color:"
_LONGEST = 10_000


def holds_assignment(text: str, *, at_start: bool = False) -> bool:
    """Whether a pasted buffer assignment stands in the text, or at its start."""
    return (_FIRST.match(text) if at_start else _FIRST.search(text)) is not None


def xla_allocation(text: str) -> str | None:
    """An allocation's line as XLA prints it, None if it is no such line."""
    found = _ALLOCATION.match(text) if len(text) <= _LONGEST else None
    if found is None:
        return None
    said = [f"allocation {found['index']}: {found['address'] or ''}size {found['size']}"]
    said += [found["space"] or "", found["page"] or ""]
    if found["number"]:
        place = f"|{found['parameter'] or ''}| at ShapeIndex {found['within'] or '{}'}"
        said.append(f", parameter {found['number']}, shape {place}")
    if found["output"]:
        said.append(f", output shape is |{found['output']}|")
    return "".join([*said, found["kinds"], ":"])


def read_pasted_assignment(lines: Lines) -> BufferAssignment | None:
    """The allocations of a pasted buffer assignment, and its values as far as they are whole.

    None if the lines hold none. Raises DumpError if a number is out of range.
    """
    texts = [(HEADING, int(lines.numbers[0]))]
    unread = []
    allocations = 0
    is_begun = skips = False
    for number, line in zip(lines.numbers.tolist(), lines.text.to_pylist(), strict=True):
        is_begun = is_begun or holds_assignment(line, at_start=True)
        text = _STRIPPED.sub("", line).rstrip()
        if not is_begun or text in ("", HEADING):
            continue
        if text.startswith("allocation ") or "allocation ".startswith(text):
            allocations += 1
            read = xla_allocation(text)
            skips = read is None
        elif text.startswith("value: "):
            if skips:
                continue
            read = _xla_value(text)
        elif text == _OF_COLOR:
            skips = True
            continue
        else:
            break
        if read is None:
            unread.append(number)
        else:
            texts.append((read, number))
    if len(texts) == 1:
        return None
    found = read_buffer_assignment(
        lines_of(
            pa.array([text for text, _ in texts], pa.large_string()),
            np.array([number for _, number in texts]),
        )
    )
    index = np.sort(found.allocations["allocation_index"].to_numpy())
    is_whole = allocations == len(index) and bool((index == np.arange(len(index))).all())
    lost = []
    if unread:
        what = f"{len(unread)} allocations or values of {len(unread) + len(texts) - 1} are not read"
        lost.append(Unread(unread[0], f"{what}: they are not as XLA prints them"))
    if not is_whole:
        lost.append(Unread(texts[1][1], "allocations are missing, so nothing adds up"))
    return replace(found, unread=tuple(lost), is_whole=is_whole)


def _xla_value(text: str) -> str | None:
    """A value's line as XLA prints it, None if it is no such line."""
    found = _VALUE.match(text) if len(text) <= _LONGEST else None
    return found and " value: {} (size={},offset={}): {}".format(*found.groups())
