"""Several programs as the rows of one, and what was worked out on these as that of each.

Small programs cost the calls, not the rows: what a thousand instructions take for fifty programs
at once is little more than for one. No rule looks beyond the graph of a program, and what asks of
a whole program asks of each (`NumberedProgram.with_any`).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .dataflow import Dataflow, Schedule
from .errors import DumpError
from .liveness import Derived, Liveness
from .parts import Parts
from .program import NumberedProgram, Slots
from .runs import ints, starts_of
from .shifts import MOST, Shifts, less


@dataclass(frozen=True)
class Bounds:
    """Where each program's rows, computations, times, slots and values start, and where all end."""

    rows: list[int]
    computations: list[int]
    times: list[int]
    slots: list[int]
    values: list[int]

    def __len__(self) -> int:
        return len(self.rows) - 1


def bounds_of(derived: Derived) -> Bounds:
    """The bounds of the programs."""
    program, flow = derived.program, derived.dataflow
    count = len(program.entries)
    computations = np.searchsorted(program.program_of_computation, np.arange(count + 1))
    rows = np.append(program.first, len(program))[computations]
    slots = np.append(flow.slots.start, len(flow.slots))[rows]
    return Bounds(
        rows.tolist(),
        computations.tolist(),
        [0, *derived.schedule.span_end[program.entries].tolist()],
        slots.tolist(),
        np.searchsorted(flow.defined_at, slots).tolist(),
    )


def derived_of_each(derived: Derived, programs: Sequence[NumberedProgram]) -> Iterator[Derived]:
    """What was worked out of each of the programs; their shapes stay together."""
    if len(programs) == 1:
        yield derived
        return
    bounds, flow, slots = bounds_of(derived), derived.dataflow, derived.dataflow.slots
    schedule, liveness = derived.schedule, derived.liveness
    uses = np.searchsorted(flow.use_instruction, bounds.rows).tolist()
    in_place = np.searchsorted(flow.in_place_result, bounds.slots).tolist()
    for number, program in enumerate(programs):
        row, time, slot, value = (
            starts[number] for starts in (bounds.rows, bounds.times, bounds.slots, bounds.values)
        )
        rows, computations, times, of_slots, values, of_uses, pairs = (
            slice(*starts[number : number + 2])
            for starts in (bounds.rows, bounds.computations, bounds.times, bounds.slots,
                           bounds.values, uses, in_place)
        )  # fmt: skip
        yield Derived(
            program,
            Schedule(
                schedule.order[times] - row,
                less(schedule.time[rows], time),
                less(schedule.span_start[computations], time),
                less(schedule.span_end[computations], time),
                less(schedule.caller[computations], row),
                schedule.operand_shift[computations],
                less(schedule.async_start[computations], row),
            ),
            Dataflow(
                Slots(
                    slots.trees,
                    slots.start[rows] - slot,
                    slots.count[rows],
                    slots.root[rows],
                    slots.instruction[of_slots] - row,
                    slots.node[of_slots],
                ),
                less(flow.value[of_slots], value),
                flow.defined_at[values] - slot,
                flow.is_phi[values],
                flow.use_value[of_uses] - value,
                flow.use_instruction[of_uses] - row,
                flow.use_operand[of_uses],
                flow.use_slot[of_uses] - slot,
                flow.in_place_operand[pairs] - slot,
                flow.in_place_result[pairs] - slot,
            ),
            Liveness(
                less(liveness.start[values], time),
                less(liveness.end[values], time),
                liveness.alias_set[values] - value,
            ),
            derived.is_newest_libtpu[number : number + 1],
            derived.async_starts_late[number : number + 1],
        )


# The parts of several programs as those of one.


def shifts_of(parts: Sequence[Parts]) -> Shifts:
    """Where the numbers in the parts of programs start, one program after the other.

    Raises DumpError if a program's own numbers are at odds, or very large.
    """
    counts: dict[str, list[int]] = {}
    for each in parts:
        for counted, count in _counts(each).items():
            counts.setdefault(counted, []).append(count)
    starts = {counted: starts_of(np.array(each)) for counted, each in counts.items()}
    if any(each[-1] >= MOST for each in starts.values()):
        raise DumpError("a program has very large numbers")
    return Shifts(starts)


def _counts(parts: Parts) -> dict[str, int]:
    """How many numbers a program needs, by what they count. Raises DumpError."""
    assignment, used, lives, hlo = (
        parts.buffer_assignment, parts.used_values, parts.live_range, parts.hlo
    )  # fmt: skip
    columns: dict[str, list[pa.ChunkedArray]] = {"value": [], "allocation": [], "space": []}
    counts = {"time": 0}
    if hlo is not None:
        counts["instruction"] = len(hlo.instructions)
        columns["frame"] = [
            hlo.stack_frames["stack_frame_id"],
            hlo.stack_frames["parent_frame_id"],
            hlo.instructions["stack_frame_id"],
        ]
    if lives is not None:
        counts["time"] = lives.schedule_length
        if not counts["time"] or _beyond(lives.ranges["end_time"]) > counts["time"] + 1:
            raise DumpError("a live range ends after the schedule")
    if used is not None:
        columns["value"].append(used.values["value_id"])
        columns["space"].append(used.values["memory_space"])
    if assignment is not None:
        columns["value"].append(assignment.values["value_id"])
        columns["allocation"].append(assignment.allocations["allocation_index"])
        columns["space"].append(assignment.values["memory_space"])
        columns["space"].append(assignment.allocations["memory_space"])
        total = pc.sum(assignment.allocations["size_bytes"]).as_py()
        if used is not None and used.total_bytes not in (None, total):
            raise DumpError("the allocations do not add up")
    if parts.space_names is not None:
        columns["space"].append(parts.space_names["memory_space"])
    for counted, numbers in columns.items():
        counts[counted] = max(map(_beyond, numbers), default=0)
    return counts


def _beyond(numbers: pa.ChunkedArray) -> int:
    """The number after the largest; 0 if there are none."""
    return int(ints(numbers).max(initial=-1)) + 1


def joined_parts(parts: Sequence[Parts], shifts: Shifts) -> Parts:
    """The parts of programs as those of one; all have the same parts.

    Of what has no numbers to shift it has that of the first.
    """

    def joined(part: str, *tables: str, **others: object) -> Any:
        found = [getattr(each, part) for each in parts]
        if found[0] is None:
            return None
        rows = {name: shifts.joined([getattr(each, name) for each in found]) for name in tables}
        return replace(found[0], **rows, **others)

    length = int(shifts.starts["time"][-1])
    hlo = ("instructions", "operands", "calls", "stack_frames", "kernels", "control")
    return Parts(
        joined("buffer_assignment", "allocations", "values"),
        joined("used_values", "values", "positions", "uses", total_bytes=None),
        joined("live_range", "schedule", "ranges", schedule_length=length),
        hlo=joined("hlo", *hlo),
    )
