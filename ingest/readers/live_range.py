"""Reader of `HloLiveRange`: the schedule, the live ranges and XLA's own peak."""

import re
from collections.abc import Callable
from typing import TypeVar

from ...xla.errors import LARGEST_SIZE, DumpError
from ...xla.parts import LiveRange, LiveRanges, PeakValue
from ...xla.program import NotUnderstood
from .lines import Lines, at_line, read_integer
from .newer_text import newer_headings, newer_lines, newer_sections

_HEADING = re.compile(r"HloLiveRange \(max ([0-9]+)\):")
_SEQUENCE, _RANGES = "InstructionSequence:", "BufferLiveRange:"
_SCHEDULED = re.compile(r"    ([0-9]+):([^ ]+)")
_RANGE = re.compile(r"    ([^ {]+)(\{[0-9,]*\}):([0-9]+)-([0-9]+)")
_PEAK = "  Live ranges at "
_PEAK_HEADING = re.compile(r"  Live ranges at ([0-9]+) \(peak\):")
_UNBOUNDED = "  Peak memory could not be determined"
# Up to JAX 0.8 `NAME: N bytes`, unordered, with repeated names; then with the shape index, largest
# first (`cpu/jax-0.9.0`).
_PEAK_VALUE = re.compile(
    r"    ([^ {]+?)(\{[0-9,]*\})?: ([0-9]+) bytes(?: \(cumulative: [0-9]+ bytes\))?"
)


# The peak list again, by Python stack; older versions print its total on this line.
_BREAKDOWN = "  Stack trace breakdown"

_Item = TypeVar("_Item")


def read_live_ranges(lines: Lines) -> LiveRanges:
    """Read the section of a dump that starts with `HloLiveRange (max N):`. Raises DumpError."""
    text = lines.text
    length = _read_number(lines, 0, _HEADING, "'HloLiveRange (max N):'")
    schedule_start = _find(lines, 1, f"  {_SEQUENCE}", f"'{_SEQUENCE}'")
    ranges_start = _find(lines, 1, f"  {_RANGES}", f"'{_RANGES}'")
    peak_start = _find(lines, ranges_start, (_PEAK, _UNBOUNDED), "'Live ranges at'")
    peak_stop = peak_start + 1
    while peak_stop < len(text) and text[peak_stop].startswith("    "):
        peak_stop += 1
    schedule, newer_lists = _read_list(
        lines.between(schedule_start + 1, ranges_start),
        _SCHEDULED,
        "a scheduled instruction",
        _read_scheduled,
    )
    if len(schedule) != length:
        raise DumpError(
            f"the schedule lists {len(schedule)} instructions of {length}: dump the program again",
            lines.first_number + ranges_start,
        )
    ranges, more_newer_lists = _read_list(
        lines.between(ranges_start + 1, peak_start), _RANGE, "a live range", _read_range
    )
    peak_time = None
    if text[peak_start].startswith(_PEAK):
        peak_time = _read_number(lines, peak_start, _PEAK_HEADING, "'Live ranges at N (peak):'")
    peak, _ = _read_list(
        lines.between(peak_start + 1, peak_stop),
        _PEAK_VALUE,
        "a value live at the peak",
        _read_peak_value,
    )
    return LiveRanges(
        schedule,
        ranges,
        peak_time,
        peak,
        not_understood=[
            *newer_lines(lines.between(1, schedule_start)),
            *newer_lists,
            *more_newer_lists,
            # The rest repeats the peak list, in newer dumps as a tree of scopes.
            *newer_headings(lines.between(peak_stop, len(text)), _BREAKDOWN),
        ],
    )


def _find(lines: Lines, start: int, prefix: str | tuple[str, ...], heading: str) -> int:
    """Index of the first line from `start` on with a prefix. Raises DumpError if none has it."""
    for index in range(start, len(lines.text)):
        if lines.text[index].startswith(prefix):
            return index
    raise DumpError(f"the file ends before {heading}: dump the program again", lines.last_number)


def _read_number(lines: Lines, index: int, pattern: re.Pattern[str], heading: str) -> int:
    """The number in a heading. Raises DumpError."""
    line = lines.text[index]
    try:
        match = pattern.fullmatch(line)
        if match is None:
            raise DumpError(f"expected {heading}")
        return read_integer(match[1])
    except DumpError as problem:
        raise at_line(problem, line, lines.first_number + index) from None


def _read_list(
    lines: Lines,
    pattern: re.Pattern[str],
    noun: str,
    read_item: Callable[[re.Match[str], int], _Item],
) -> tuple[list[_Item], list[NotUnderstood]]:
    """The items of a list, one a line, and the lists with another heading that follow it.

    Args:
        read_item: makes an item of a match of the pattern and the item's index.
    """
    items: list[_Item] = []
    for index, line in enumerate(lines.text):
        try:
            match = pattern.fullmatch(line)
            if match is not None:
                items.append(read_item(match, index))
                continue
            remaining = lines.between(index, len(lines.text))
            newer = newer_sections(
                remaining, lambda line: pattern.fullmatch(line) is not None, indented=True
            )
            if not newer:
                raise DumpError(f"expected {noun}")
            return items, newer
        except DumpError as problem:
            raise at_line(problem, line, lines.first_number + index) from None
    return items, []


def _read_scheduled(match: re.Match[str], index: int) -> str:
    if read_integer(match[1]) != index:
        raise DumpError("the schedule's times do not count up from 0")
    return match[2]


def _read_range(match: re.Match[str], _index: int) -> LiveRange:
    instruction, shape_index, start, end = match.groups()
    start_time, end_time = read_integer(start), read_integer(end)
    if start_time > end_time:
        raise DumpError("a live range ends before it starts")
    return LiveRange(instruction, shape_index, start_time, end_time)


def _read_peak_value(match: re.Match[str], index: int) -> PeakValue:
    instruction, shape_index, size = match.groups()
    return PeakValue(instruction, shape_index, read_integer(size, LARGEST_SIZE))
