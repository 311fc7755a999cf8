"""Live ranges and alias sets: when each value is live, and which values must share memory.

The rules are XLA's HloAliasAnalysis and HloLiveRange on the flattened schedule.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Final

from .analysis import Analysis, Dataflow, Liveness, Schedule
from .dataflow import trace_values
from .disjoint_sets import DisjointSets
from .errors import DumpError
from .forwarding import KNOWN_OPCODES
from .parts import LiveRange
from .program import NONE, NOT_READ, Program
from .schedule import flatten, last_times, scheduled_rows

# The rule changed between the known changelists 933746096 and 1014260217 of libtpu.
_LAST_BEFORE_NEWEST_LIBTPU: Final = 10**9
# The rule changed between the known changelists 885286250 and 897798484.
_FIRST_WRITTEN_AT_DONE: Final = 890_000_000


def analyse(
    program: Program, changelist: int | None = None, dumped: Sequence[LiveRange] | None = None
) -> Analysis:
    """Derive the schedule, values, positions, uses and live ranges as XLA's own analyses do.

    The order of the text is taken as the schedule. If the text is not scheduled, the times are an
    estimate, and all else but the live ranges holds. For an opcode without a rule one is assumed
    (`Analysis.assumed`): then values, positions, uses and live ranges are an estimate.

    Compilers differ in three rules:

    - In the newest libtpu no value reuses the memory of an output. Without a changelist the
      text decides by a heuristic: only the newest libtpu prints `dma_priority`.
    - In an older libtpu an array that an async-start updates in place is the new value from the
      async-start on.
    - In XLA since JAX 0.12, and in the newest libtpu, a value of an async computation starts at
      the time of the async-start, and not at its own earlier time. The dumped live ranges show
      it, because the texts of JAX 0.11 and 0.12 do not differ. Without them, a text that omits
      the elements of tuples is taken to be new.

    Args:
        changelist: of the TPU compiler, if the file names state it.
        dumped: the live ranges of the dump, if it has them.

    Raises DumpError where an instruction does not fit its operands, or a computation its callers.
    """
    program.check_computations()
    is_newest_libtpu = program.has_dma_priority
    async_starts_late = is_newest_libtpu or "#" in "".join(program.names)
    is_written_at_start = False
    if changelist is not None:
        is_written_at_start = changelist < _FIRST_WRITTEN_AT_DONE
        is_newest_libtpu = async_starts_late = changelist > _LAST_BEFORE_NEWEST_LIBTPU
    schedule = flatten(program)
    flow = trace_values(program, schedule, is_written_at_start=is_written_at_start)
    if dumped is not None:
        observed = _observe_async_starts(program, schedule, flow, dumped)
        async_starts_late = async_starts_late if observed is None else observed
    return Analysis(
        program,
        schedule,
        flow,
        live_ranges(program, schedule, flow, async_starts_late=async_starts_late),
        is_newest_libtpu,
        async_starts_late,
        _count_assumed(program, flow),
    )


def reorder(analysis: Analysis, order: Sequence[int]) -> Analysis:
    """Analyse the program again in another order of its instructions, see `flatten`."""
    program, flow = analysis.program, analysis.flow
    schedule = flatten(program, order)
    liveness = live_ranges(program, schedule, flow, async_starts_late=analysis.async_starts_late)
    return replace(analysis, schedule=schedule, liveness=liveness)


def _count_assumed(program: Program, flow: Dataflow) -> dict[str, int]:
    """By opcode for which a rule is assumed, the instructions with values; sorted by opcode.

    The end of an asynchronous pair is not listed in addition to its start, and instructions that
    were not read are reported as such.
    """
    counts: dict[str, int] = {}
    for opcode, rows in program.rows_by_opcode().items():
        if opcode not in KNOWN_OPCODES:
            n_with_values = sum(flow.slots.start[row] != NONE for row in rows)
            if n_with_values:
                counts[opcode] = n_with_values
    omitted = {NOT_READ}
    for opcode in counts:
        if opcode.endswith("-start"):
            stem = opcode.removesuffix("start")
            omitted |= {stem + "update", stem + "done"}
    return {opcode: counts[opcode] for opcode in sorted(counts.keys() - omitted)}


def _observe_async_starts(
    program: Program, schedule: Schedule, flow: Dataflow, dumped: Sequence[LiveRange]
) -> bool | None:
    """Whether the dumped values of async computations all start at the async-start.

    None if the dump has no such value.
    """
    if all(start == NONE for start in schedule.async_start):
        return None
    dumped_start: dict[str, int] = {}
    for live_range in dumped:
        if live_range.shape_index == "{}":
            dumped_start.setdefault(live_range.instruction, live_range.start_time)
    observed: list[bool] = []
    for row in flow.row:
        start = schedule.async_start[program.computation[row]]
        name = program.names[row]
        if start != NONE and name in dumped_start:
            late_time = max(schedule.time[start], schedule.time[row])
            observed.append(dumped_start[name] == late_time)
    return all(observed) if observed else None


def live_ranges(
    program: Program, schedule: Schedule, flow: Dataflow, *, async_starts_late: bool
) -> Liveness:
    """Compute live ranges and alias sets.

    Args:
        async_starts_late: whether values of async computations start at the async-start.

    Raises DumpError if an alias of the header names a part that does not exist.
    """
    aliased_slots = _find_aliased_slots(program, flow)
    sets = _find_alias_sets(program, schedule, flow, aliased_slots)
    parameters = {parameter for parameter, _ in aliased_slots}
    start = _start_times(program, schedule, flow, async_starts_late=async_starts_late)
    end = _end_times(program, schedule, flow, parameters)
    _end_where_next_starts(start, end, sets)
    return Liveness(start, end, sets)


def _find_aliased_slots(program: Program, flow: Dataflow) -> list[tuple[int, int]]:
    """The header's `input_output_alias` as pairs of slots: of a parameter, of the entry's root."""
    root = program.root[program.entry]
    pairs = []
    for alias in program.aliases:
        parameter = program.parameter(program.entry, alias.number, caller=root)
        parameter_slot = flow.slots.find(parameter, alias.operand_index)
        output_slot = flow.slots.find(root, alias.output_index)
        if NONE in (parameter_slot, output_slot):
            raise DumpError("input_output_alias names a part of a shape that does not exist", 1)
        pairs.append((parameter_slot, output_slot))
    return pairs


def _find_alias_sets(
    program: Program, schedule: Schedule, flow: Dataflow, aliased_slots: list[tuple[int, int]]
) -> list[int]:
    """By value, the smallest value in its alias set: the values that must share one buffer.

    At each shape index these share memory: a while, its operand, the root and the parameter of its
    body, and the parameter of its condition; a conditional and the roots of its branches; an
    in-place operand and the result; a donated parameter and the output. Calls need no rule, because
    the values of operands and results pass through them.
    """
    slots, sets = flow.slots, DisjointSets(len(flow))

    def join_slots(slot: int, other_slot: int) -> None:
        value, other_value = flow.value[slot], flow.value[other_slot]
        if value != NONE and other_value != NONE:
            sets.join(value, other_value)

    def join_results(row: int, other_row: int) -> None:
        for part in range(slots.count(row)):
            join_slots(slots.start[row] + part, slots.start[other_row] + part)

    for row in scheduled_rows(program, schedule, "while"):
        body, condition = program.callee(row, "body"), program.callee(row, "condition")
        join_results(row, program.operand(row, 0))
        join_results(row, program.root[body])
        join_results(row, program.parameter(body, 0, caller=row))
        join_results(row, program.parameter(condition, 0, caller=row))
    for computation, caller in enumerate(schedule.caller):
        if caller != NONE and program.opcode[caller] == "conditional":
            join_results(caller, program.root[computation])
    for slot, other_slot in (*flow.in_place_pairs, *aliased_slots):
        join_slots(slot, other_slot)
    return sets.smallest_members()


def _start_times(
    program: Program, schedule: Schedule, flow: Dataflow, *, async_starts_late: bool
) -> list[int]:
    """By value, the time when it starts; NONE in a region.

    A parameter's value starts with its computation.
    """
    starts = []
    for row in flow.row:
        start, computation = schedule.time[row], program.computation[row]
        if start != NONE and program.opcode[row] == "parameter":
            start = schedule.span_start[computation]
        context = schedule.async_start[computation]
        if start != NONE and context != NONE and async_starts_late:
            start = max(start, schedule.time[context])
        starts.append(start)
    return starts


def _end_times(
    program: Program, schedule: Schedule, flow: Dataflow, aliased_parameters: set[int]
) -> list[int]:
    """By value, the time when it ends, as if no other value shared its memory; NONE in a region.

    Args:
        aliased_parameters: the slots of parameters that the header aliases with an output.
    """
    time = schedule.time
    position_time = last_times(program, schedule)
    # XLA keeps the values of an async computation live up to the async-done.
    done_time = {
        start: time[row]
        for row, start in schedule.started.items()
        if program.opcode[row] == "async-done"
    }
    ends = []
    for slot, row in zip(flow.defined_at, flow.row, strict=True):
        computation = program.computation[row]
        end = position_time[row]
        is_parameter = program.opcode[row] == "parameter"
        if computation == program.entry and is_parameter and slot not in aliased_parameters:
            # XLA never frees the memory of an argument that is not donated: the caller owns it.
            end = schedule.span_end[computation]
        ends.append(max(end, done_time.get(schedule.async_start[computation], NONE)))
    for value, row in zip(flow.value, flow.slots.row, strict=True):
        if value != NONE and ends[value] < position_time[row]:
            ends[value] = position_time[row]
    read_time = _read_times(program, schedule)
    for used, row in zip(flow.use_value, flow.use_row, strict=True):
        if ends[used] < read_time[row]:
            ends[used] = read_time[row]
    return [NONE if time[row] == NONE else end for row, end in zip(flow.row, ends, strict=True)]


def _read_times(program: Program, schedule: Schedule) -> list[int]:
    """By row, the time when it reads its operands; NONE if it never does.

    A while reads when the parameter of its body starts. A call reads nothing itself, because the
    parameters of its computation have the values of the operands.
    """
    times = list(schedule.time)
    for row in scheduled_rows(program, schedule, "while"):
        parameter = program.parameter(program.callee(row, "body"), 0, caller=row)
        times[row] = schedule.time[parameter]
    for caller in schedule.caller:
        if caller != NONE and program.opcode[caller] == "call":
            times[caller] = NONE
    return times


def _end_where_next_starts(start: list[int], end: list[int], alias_set: list[int]) -> None:
    """Let each value end where the next value of its alias set starts, if their ranges touch.

    XLA ends a value at the start of the next, not one earlier. Of two values whose ranges touch,
    the second by start and end is live as long as either is. Ranges with a gap between them keep
    their ends.
    """
    members: dict[int, list[int]] = {}
    for value, smallest in enumerate(alias_set):
        if value != smallest and start[value] != NONE:
            members.setdefault(smallest, [smallest]).append(value)
    for values in members.values():
        values.sort(key=lambda value: (start[value], end[value]))
        for value, successor in pairwise(values):
            if end[value] >= start[successor]:
                end[successor] = max(end[value], end[successor])
                end[value] = start[successor]
