"""Accesses to the values of a program, and the time in which a buffer is live but not accessed."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, NamedTuple

from .analysis import Analysis
from .program import NONE

# These forward their operands, or pass them to computations, and read no elements.
_FORWARDING = """
    tuple get-tuple-element bitcast while call conditional opt-barrier optimization-barrier
    add-dependency domain async-start async-update async-done copy-done
"""
FORWARDING: Final = frozenset(_FORWARDING.split())


# First and last schedule time, both inclusive.
Interval = tuple[int, int]


@dataclass
class Accesses:
    """The accesses to the values of a program.

    Attributes:
        intervals: by value, when it is defined and read, in any order; empty for a value without
            a time. Copies are reads.
        last_use: by value, the last time at which it is read; NONE if never.
    """

    intervals: list[list[Interval]]
    last_use: list[int]


class Idle(NamedTuple):
    """The longest time between two accesses to a buffer.

    Attributes:
        start, end: the times of the accesses before and after it.
        at_peak: the length of the idle time around the peak time; 0 if the buffer is accessed or
            not live then.
    """

    start: int
    end: int
    at_peak: int


def find_accesses(analysis: Analysis) -> Accesses:
    """The definitions and reads of all values that have a time.

    A definition starts with the value's live range, which may be later than the time of the
    instruction: the newest libtpu writes the result of an async computation from the async-start
    on.
    """
    program, flow, time = analysis.program, analysis.flow, analysis.schedule.time
    intervals: list[list[Interval]] = []
    for value, row in enumerate(flow.row):
        start = max(time[row], analysis.liveness.start[value])
        has_time = time[row] != NONE
        intervals.append([_access_interval(analysis, value, row, start)] if has_time else [])
    last_use = [NONE] * len(flow)
    for value, row in zip(flow.use_value, flow.use_row, strict=True):
        if time[row] != NONE and intervals[value] and program.opcode[row] not in FORWARDING:
            interval = _access_interval(analysis, value, row, time[row])
            intervals[value].append(interval)
            last_use[value] = max(last_use[value], interval[1])
    return Accesses(intervals, last_use)


def _access_interval(analysis: Analysis, value: int, row: int, time: int) -> Interval:
    """The first and last time of an access by the instruction at `row`, which runs at `time`.

    A loop's body runs in every iteration. If a value comes from outside of the loop, or if the
    loop carries it, an access in the body counts for the whole time of the body. Loops around the
    computation that defines the value do not repeat the access.
    """
    program, schedule, flow = analysis.program, analysis.schedule, analysis.flow
    definition = flow.row[value]
    computation, origin = program.computation[row], program.computation[definition]
    # The loop's result is a phi, too, but of the computation that contains the loop.
    is_carried = flow.is_phi[value] and program.opcode[definition] == "parameter"
    if computation == origin and not is_carried:
        return time, time
    start = end = time
    while (caller := schedule.caller[computation]) != NONE:
        span_start, span_end = schedule.span_start[computation], schedule.span_end[computation]
        is_carrier = is_carried and computation == origin
        if span_start <= schedule.time[definition] < span_end and not is_carrier:
            break
        if program.opcode[caller] == "while":
            start, end = min(start, span_start), max(end, span_end - 1)
        if is_carrier:
            break
        computation = program.computation[caller]
    return start, end


def longest_idle(intervals: Iterable[Interval], last: int, peak_time: int) -> Idle:
    """The longest idle time of a buffer, the earliest if several are equally long.

    Args:
        intervals: the accesses to all values in the buffer.
        last: the last time at which the buffer is live; an idle time may end there.
        peak_time: the time for `at_peak`; NONE if unknown.
    """
    longest, at_peak = Idle(last, last, 0), 0
    longest_gap = NONE
    (_, accessed_until), *remaining = sorted([*intervals, (last, last)])
    for start, end in remaining:
        gap = start - accessed_until
        if gap > longest_gap:
            longest_gap = gap
            longest = Idle(accessed_until, start, 0)
        if accessed_until < peak_time < start:
            at_peak = gap
        accessed_until = max(accessed_until, end)
    return longest._replace(at_peak=at_peak)
