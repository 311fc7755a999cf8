"""Several programs as the rows of one, and what was worked out on these as that of each.

Small programs cost the calls, not the rows: what a thousand instructions take for fifty programs
at once is little more than for one. No rule looks beyond the graph of a program, and what asks of
a whole program asks of each (`NumberedProgram.with_any`).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .dataflow import Dataflow, Schedule
from .errors import DumpError
from .liveness import Derived, Liveness
from .parts import BufferAssignment, HloText, LiveRange, Parts, UsedValues
from .program import NONE, Codes, Ints, NumberedProgram, Slots
from .runs import ints, starts_of
from .shifts import MOST, Shifts, less

if TYPE_CHECKING:
    from .attribution import Attribution


def joined_programs(programs: Sequence[NumberedProgram]) -> NumberedProgram:
    """The programs one after the other; one alone is itself."""
    if len(programs) == 1:
        return programs[0]
    rows = [len(program) for program in programs]
    computations = [len(program.first) for program in programs]
    operands = [len(program.operands) for program in programs]

    def columns(name: str, shifts: Sequence[int] | None = None) -> Ints:
        found = [getattr(program, name) for program in programs]
        if shifts is None:
            return np.concatenate(found)
        starts = starts_of(np.array(shifts))[:-1].tolist()
        return np.concatenate([each + start for each, start in zip(found, starts, strict=True)])

    def codes(name: str) -> Codes:
        return joined_codes([getattr(program, name) for program in programs])

    operand_start = [program.operand_start[:-1] for program in programs]
    starts = starts_of(np.array(operands)).tolist()
    return NumberedProgram(
        names=pa.concat_arrays([program.names for program in programs]),
        lines=columns("lines"),
        opcode=codes("opcode"),
        shape=codes("shape"),
        computation=columns("computation", computations),
        computation_names=[name for program in programs for name in program.computation_names],
        entries=columns("entries", computations),
        program_of_computation=np.repeat(np.arange(len(programs)), computations),
        first=columns("first", rows),
        stop=columns("stop", rows),
        root=columns("root", rows),
        operand_start=np.concatenate(
            [
                *(each + start for each, start in zip(operand_start, starts, strict=False)),
                starts[-1:],
            ]
        ),
        operands=columns("operands", rows),
        call_row=columns("call_row", rows),
        call_attribute=codes("call_attribute"),
        call_computation=columns("call_computation", computations),
        parameter_number=columns("parameter_number"),
        tuple_index=columns("tuple_index"),
        fusion_kind=codes("fusion_kind"),
        attributes=codes("attributes"),
        custom_call_target=codes("custom_call_target"),
        input_output_alias=[alias for each in programs for alias in each.input_output_alias],
        alias_entry=columns("alias_entry", computations),
        control=columns("control", rows),
    )


def joined_codes(columns: Sequence[Codes]) -> Codes:
    """The columns one after the other, with one code for a text that several have."""
    numbers: dict[str, int] = {}
    codes = []
    for column in columns:
        texts = [numbers.setdefault(text, len(numbers)) for text in column.texts]
        codes.append(np.array([*texts, NONE], np.int64)[column.codes])
    return Codes(np.concatenate(codes), list(numbers))


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


def shifts_of(parts: Sequence[Parts], attribution: "Attribution") -> Shifts:
    """Where the numbers of programs of which all parts are known start, one after the other.

    Raises DumpError if a program's own numbers are at odds, or very large.
    """
    bounds = bounds_of(attribution.derived)
    counts: dict[str, list[int]] = {"value": [], "allocation": [], "space": [], "frame": []}
    for number, each in enumerate(parts):
        assignment, used, lives, hlo = _all_parts(each)
        total = pc.sum(assignment.allocations["size_bytes"]).as_py()
        length = bounds.times[number + 1] - bounds.times[number]
        if (
            used.total_bytes not in (None, total)
            or lives.schedule_length != length
            or not length
            or _beyond(lives.ranges["end_time"]) > length + 1
        ):
            raise DumpError("the parts of a program are at odds")
        columns = {
            "value": (assignment.values["value_id"], used.values["value_id"]),
            "allocation": (assignment.allocations["allocation_index"],),
            "space": (
                assignment.allocations["memory_space"],
                assignment.values["memory_space"],
                used.values["memory_space"],
                *([] if each.space_names is None else [each.space_names["memory_space"]]),
            ),
            "frame": (
                hlo.stack_frames["stack_frame_id"],
                hlo.stack_frames["parent_frame_id"],
                hlo.instructions["stack_frame_id"],
            ),
        }
        for counted, numbers in columns.items():
            counts[counted].append(max(map(_beyond, numbers)))
    starts = {counted: starts_of(np.array(each)) for counted, each in counts.items()} | {
        "instruction": np.array(bounds.rows),
        "time": np.array(bounds.times),
        "scope": attribution.scope_starts,
        "residual": attribution.residual_starts,
    }
    if any(each[-1] >= MOST for each in starts.values()):
        raise DumpError("a program has very large numbers")
    return Shifts(starts)


def _beyond(numbers: pa.ChunkedArray) -> int:
    """The number after the largest; 0 if there are none."""
    return int(ints(numbers).max(initial=-1)) + 1


def _all_parts(parts: Parts) -> tuple[BufferAssignment, UsedValues, LiveRange, HloText]:
    """The parts, if all are known. Raises DumpError."""
    found = parts.buffer_assignment, parts.used_values, parts.live_range, parts.hlo
    assignment, used, lives, hlo = found
    if assignment is None or used is None or lives is None or hlo is None:
        raise DumpError("a part of a program is not known")
    return assignment, used, lives, hlo


def joined_parts(parts: Sequence[Parts], shifts: Shifts) -> Parts:
    """The parts of programs as those of one; of what has no numbers to shift, nothing."""
    of_each = [_all_parts(each) for each in parts]
    assignment, used, lives, hlo = of_each[0]

    def joined(number: int, *names: str) -> dict[str, pa.Table]:
        return {
            name: shifts.joined([getattr(each[number], name) for each in of_each]) for name in names
        }

    return Parts(
        replace(assignment, **joined(0, "allocations", "values")),
        replace(used, total_bytes=None, **joined(1, "values", "positions", "uses")),
        replace(
            lives,
            schedule_length=int(shifts.starts["time"][-1]),
            **joined(2, "schedule", "ranges"),
        ),
        hlo=replace(
            hlo,
            **joined(3, "instructions", "operands", "calls", "stack_frames", "kernels", "control"),
        ),
    )
