"""Reader of `HloLiveRange`: the schedule, the live ranges and XLA's own peak."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...xla.errors import LARGEST_SIZE, DumpError
from ...xla.parts import LiveRange, NotUnderstoods
from .lines import Lines, as_numpy
from .newer_text import before_newer_sections, newer_lines

_HEADING = r"^HloLiveRange \(max (?P<schedule_length>\d+)\):$"
_SCHEDULED = r"^    (?P<schedule_time>\d+):(?P<instruction>[^ ]+)$"
_RANGE = (
    r"^    (?P<instruction>[^ {]+)(?P<shape_index>\{[\d,]*\}):"
    r"(?P<start_time>\d+)-(?P<end_time>\d+)$"
)
_PEAK_HEADING = r"^  Live ranges at (?P<peak_time>\d+) \(peak\):$"
# Old: `NAME: N bytes`, unordered, with repeated names. Newer: with the shape index, largest
# first (`cpu/jax-0.9.0`).
_PEAK = (
    r"^    (?P<instruction>[^ {]+?)(?P<shape_index>\{[\d,]*\})?: (?P<size_bytes>\d+) bytes"
    r"(?: \(cumulative: \d+ bytes\))?$"
)
# Repeats the peak list by the Python stack; older versions sum it up in this line.
_BREAKDOWN = "  Stack trace breakdown"
_UNBOUNDED = "  Peak memory could not be determined"


def read_live_range(section: Lines) -> LiveRange:
    """Read the part of a dump that starts with `HloLiveRange (max N):`. Raises DumpError."""
    heading = section.between(0, 1).extract(_HEADING, "'HloLiveRange (max N):'")
    length = section.integers(heading["schedule_length"])[0].as_py()
    schedule_at = _find(section, "  InstructionSequence:")
    ranges_at = _find(section, "  BufferLiveRange:")
    peak_at, peak_stop = _peak_bounds(section, ranges_at)
    newer = newer_lines(section.between(1, schedule_at))
    scheduled, sections = _without_newer(section.between(schedule_at + 1, ranges_at), _SCHEDULED)
    schedule = _schedule(scheduled)
    ranges, more = _without_newer(section.between(ranges_at + 1, peak_at), _RANGE)
    if len(schedule) != length:
        raise DumpError(
            f"the schedule lists {len(schedule)} instructions of {length}: dump the program again",
            int(section.numbers[ranges_at]),
        )
    peak_lines = section.between(peak_at, peak_at + 1)
    peak_time = None
    if not peak_lines.first().startswith(_UNBOUNDED):
        found = peak_lines.extract(_PEAK_HEADING, "'Live ranges at N (peak):'")
        peak_time = peak_lines.integers(found["peak_time"])[0].as_py()
    return LiveRange(
        schedule_length=length,
        schedule=schedule,
        ranges=_ranges(ranges),
        peak_time=peak_time,
        peak=_peak(section.between(peak_at + 1, peak_stop)),
        not_understood=newer
        + sections
        + more
        + _newer_after(section.between(peak_stop, len(section))),
    )


def _without_newer(lines: Lines, item: str) -> tuple[Lines, NotUnderstoods]:
    """A list without the list under another heading that follows it; `item` is its pattern."""
    if not lines.ending(":").any():
        return lines, ()
    is_item = as_numpy(pc.match_substring_regex(lines.text, item))
    return before_newer_sections(lines, is_item, indented=True)


def _newer_after(lines: Lines) -> NotUnderstoods:
    """The sections after the peak list that are not known."""
    known = lines.starting(_BREAKDOWN)
    none = np.zeros(len(lines), bool)
    found = [
        before_newer_sections(lines.where(~known), none[~known], indented=indented)[1]
        for indented in (False, True)
    ]
    return found[0] + found[1]


def _find(section: Lines, heading: str) -> int:
    at = section.equal(heading).nonzero()[0]
    if not len(at):
        raise DumpError(
            f"the file ends before '{heading.strip()}': dump the program again",
            int(section.numbers[-1]),
        )
    return int(at[0])


def _peak_bounds(section: Lines, ranges_at: int) -> tuple[int, int]:
    """The start of the peak list, including its heading, and its end.

    In newer dumps a tree of scopes follows and repeats the list. The tree is skipped.
    """
    after = section.between(ranges_at + 1, len(section))
    headings = (
        np.flatnonzero(after.starting("  Live ranges at ") | after.starting(_UNBOUNDED))
        + ranges_at
        + 1
    )
    if not len(headings):
        raise DumpError(
            "the file ends before 'Live ranges at': it is cut short, dump the program again",
            int(section.numbers[-1]),
        )
    start = int(headings[0])
    body = section.between(start + 1, len(section))
    ends = np.flatnonzero(~body.starting("    ")) + start + 1
    return start, int(ends[0]) if len(ends) else len(section)


def _schedule(lines: Lines) -> pa.Table:
    found = lines.extract(_SCHEDULED, "a scheduled instruction")
    time = lines.integers(found["schedule_time"])
    misplaced = time.to_numpy() != np.arange(len(lines))
    if misplaced.any():
        lines.refuse(misplaced, "the schedule's times do not count up from 0")
    return pa.table({"schedule_time": time, "instruction": found["instruction"]})


def _ranges(lines: Lines) -> pa.Table:
    found = lines.extract(_RANGE, "a live range")
    start, end = lines.integers(found["start_time"]), lines.integers(found["end_time"])
    backward = pc.greater(start, end).to_numpy(zero_copy_only=False)
    if backward.any():
        lines.refuse(backward, "a live range ends before it starts")
    return pa.table(
        {
            "instruction": found["instruction"],
            "shape_index": found["shape_index"],
            "start_time": start,
            "end_time": end,
        }
    )


def _peak(lines: Lines) -> pa.Table:
    found = lines.extract(_PEAK, "a value live at the peak")
    null = pa.scalar(None, pa.large_string())
    return pa.table(
        {
            "rank": pa.array(np.arange(len(lines))),
            "instruction": found["instruction"],
            "shape_index": pc.if_else(
                pc.equal(found["shape_index"], ""), null, found["shape_index"]
            ),
            "size_bytes": lines.integers(found["size_bytes"], most=LARGEST_SIZE),
        }
    )
