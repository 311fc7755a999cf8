"""When values are written and read: the times at which something touches their memory."""

from dataclasses import dataclass

import numpy as np

from ..flattening import Schedule
from ..numbered_program import NONE, Ints, Mask
from .named import Named

# These hand their operand on, and read nothing.
HANDS_ON = ("tuple", "get-tuple-element", "bitcast", "while", "call", "conditional",
            "opt-barrier", "optimization-barrier", "add-dependency", "domain",
            "async-start", "async-update", "async-done", "copy-done")  # fmt: skip


@dataclass(frozen=True)
class Touches:
    """Stretches of time, and the value that is touched in each; both ends are inclusive.

    `is_read` tells the reads from the definitions.
    """

    value: Ints
    start: Ints
    end: Ints
    is_read: Mask


def find_touches(named: Named, schedule: Schedule) -> Touches:
    """Every definition and every read of a value that has a time.

    A loop's body runs in every iteration. So a touch within a loop counts for the whole of its
    body, if the value comes from outside of the loop or is carried by it.
    """
    program, flow = named.program, named.dataflow
    reads = ~program.opcode.is_one_of(*HANDS_ON)[flow.use_instruction]
    values = np.concatenate([np.arange(len(flow)), flow.use_value[reads]])
    rows = np.concatenate([flow.instruction, flow.use_instruction[reads]])
    timed = (schedule.time[rows] != NONE) & (schedule.time[flow.instruction[values]] != NONE)
    is_read = (np.arange(len(values)) >= len(flow))[timed]
    values, rows = values[timed], rows[timed]
    start = schedule.time[rows].copy()
    end = start.copy()
    made_at = schedule.time[flow.instruction[values]]
    is_carried = (
        flow.is_phi[values] & program.opcode.is_one_of("parameter")[flow.instruction[values]]
    )
    carried_by = np.where(is_carried, program.computation[flow.instruction[values]], NONE)
    is_loop = program.opcode.is_one_of("while")
    around = program.computation[rows]
    climbing = np.arange(len(values))
    while len(climbing):
        computation = around[climbing]
        caller = named.caller[computation]
        first, stop = schedule.span_start[computation], schedule.span_end[computation]
        born = made_at[climbing]
        inside = (born >= first) & (born < stop) & (carried_by[climbing] != computation)
        repeats = is_loop[caller] & ~inside & (caller != NONE)
        wide = climbing[repeats]
        start[wide] = np.minimum(start[wide], first[repeats])
        end[wide] = np.maximum(end[wide], stop[repeats] - 1)
        # Beyond the computation that makes the value, nothing repeats the touch.
        on = (caller != NONE) & ~inside & (carried_by[climbing] != computation)
        climbing = climbing[on]
        around[climbing] = program.computation[caller[on]]
    return Touches(values, start, end, is_read)


def last_uses(touches: Touches, count: int) -> Ints:
    """The last time at which each of `count` values is read or copied; NONE if never."""
    found = np.full(count, NONE)
    np.maximum.at(found, touches.value[touches.is_read], touches.end[touches.is_read])
    return found


@dataclass(frozen=True)
class Idle:
    """Of groups of values, how long nothing touches any of them.

    `start` and `end` are the touches around the longest such stretch; `at_peak` is the length
    of the stretch around a given time, 0 if the group is touched or not there then.
    """

    start: Ints
    end: Ints
    at_peak: Ints


def idle_stretches(touches: Touches, group: Ints, last: Ints, peak: Ints) -> Idle:
    """The stretches without a touch of groups of values, until the last time of each group.

    `group` is each value's group, NONE for none; `last` and `peak` are times by group.
    """
    of = group[touches.value]
    kept = of != NONE
    numbers = np.arange(len(last))
    of = np.concatenate([of[kept], numbers])
    start = np.concatenate([touches.start[kept], last])
    end = np.concatenate([touches.end[kept], last])
    order = np.lexsort((end, start, of))
    of, start, end = of[order], start[order], end[order]
    lift = of * (int(end.max(initial=0)) + 2)
    reached = np.maximum.accumulate(end + lift) - lift
    same = of[1:] == of[:-1]
    gap = np.where(same, start[1:] - reached[:-1], 0)
    best = np.zeros(len(last), np.int64)
    np.maximum.at(best, of[1:], gap)
    found_start, found_end, at_peak = last.copy(), last.copy(), np.zeros(len(last), np.int64)
    longest = np.flatnonzero(same & (gap == best[of[1:]]))[::-1]
    found_start[of[longest]], found_end[of[longest]] = reached[longest], start[longest + 1]
    time = peak[of[1:]]
    around = same & (reached[:-1] < time) & (start[1:] > time)
    at_peak[of[1:][around]] = gap[around]
    return Idle(found_start, found_end, at_peak)
