"""Reader of `HloLiveRange`: the schedule, the live ranges and XLA's own peak."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...xla.columns.parts import LiveRange, NotUnderstoods
from ...xla.errors import LARGEST_SIZE, DumpError
from .lines import Lines, Mask, Positions, as_numpy, counted, divided
from .newer_text import before_newer_sections, newer_lines

_HEADING = r"^HloLiveRange \(max (?P<schedule_length>\d+)\):$"
_SEQUENCE, _RANGES = "InstructionSequence:", "BufferLiveRange:"
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
    (found,) = read_live_ranges(section, section.starts[:1])
    return found


def read_live_ranges(lines: Lines, starts: Positions) -> list[LiveRange]:
    """Read such parts of several dumps, which start at these positions of the lines' content.

    Raises DumpError if one of several says what is not known, too.
    """
    bounds = lines.bounds(starts)
    first, stop = bounds[:-1], bounds[1:]
    headings = lines.where(first)
    lengths = headings.integers(
        headings.extract(_HEADING, "'HloLiveRange (max N):'")["schedule_length"]
    ).to_pylist()
    schedule_at = _find(lines, lines.equal(f"  {_SEQUENCE}"), first, stop, f"'{_SEQUENCE}'")
    ranges_at = _find(lines, lines.equal(f"  {_RANGES}"), first, stop, f"'{_RANGES}'")
    is_peak = lines.starting("  Live ranges at ") | lines.starting(_UNBOUNDED)
    peak_at = _find(lines, is_peak, ranges_at + 1, stop, "'Live ranges at'")
    # In newer dumps a tree of scopes follows the peak list and repeats it. The tree is skipped.
    is_listed = lines.starting("    ")
    is_listed[peak_at] = True
    others = np.append(np.flatnonzero(~is_listed), len(lines))
    peak_stop = np.minimum(others[np.searchsorted(others, peak_at)], stop)
    newer = newer_lines(lines.runs(first + 1, schedule_at))
    scheduled, sections = _without_newer(lines.runs(schedule_at + 1, ranges_at), _SCHEDULED)
    schedules = scheduled.bounds(starts)
    schedule = _schedule(scheduled, schedules)
    listed, more = _without_newer(lines.runs(ranges_at + 1, peak_at), _RANGE)
    ranges = _ranges(listed)
    for number, (length, count) in enumerate(zip(lengths, np.diff(schedules), strict=True)):
        if count != length:
            raise DumpError(
                f"the schedule lists {count} instructions of {length}: dump the program again",
                int(lines.numbers[ranges_at[number]]),
            )
    peak_headings = lines.where(peak_at)
    is_known = ~peak_headings.starting(_UNBOUNDED)
    timed = peak_headings.where(is_known)
    times = timed.integers(timed.extract(_PEAK_HEADING, "'Live ranges at N (peak):'")["peak_time"])
    known_times = iter(times.to_pylist())
    peak_times = [next(known_times) if is_one else None for is_one in is_known.tolist()]
    peaks = lines.runs(peak_at + 1, peak_stop)
    peak_bounds = peaks.bounds(starts)
    peak = _peak(peaks, peak_bounds)
    newer += sections + more + _newer_after(lines.runs(peak_stop, stop))
    return [
        LiveRange(*columns, not_understood=newer)
        for columns in zip(
            lengths,
            divided(schedule, schedules),
            divided(ranges, listed.bounds(starts)),
            peak_times,
            divided(peak, peak_bounds),
            strict=True,
        )
    ]


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


def _find(lines: Lines, mask: Mask, first: Positions, stop: Positions, what: str) -> Positions:
    """The first line of the mask in each of these stretches. Raises DumpError if one has none."""
    at = np.append(np.flatnonzero(mask), len(lines))
    found: Positions = at[np.searchsorted(at, first)]
    for last in stop[found >= stop][:1].tolist():
        raise DumpError(
            f"the file ends before {what}: dump the program again", int(lines.numbers[last - 1])
        )
    return found


def _schedule(lines: Lines, bounds: Positions) -> pa.Table:
    found = lines.extract(_SCHEDULED, "a scheduled instruction")
    time = lines.integers(found["schedule_time"])
    misplaced = time.to_numpy() != counted(bounds)
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


def _peak(lines: Lines, bounds: Positions) -> pa.Table:
    found = lines.extract(_PEAK, "a value live at the peak")
    null = pa.scalar(None, pa.large_string())
    return pa.table(
        {
            "rank": pa.array(counted(bounds)),
            "instruction": found["instruction"],
            "shape_index": pc.if_else(
                pc.equal(found["shape_index"], ""), null, found["shape_index"]
            ),
            "size_bytes": lines.integers(found["size_bytes"], most=LARGEST_SIZE),
        }
    )
