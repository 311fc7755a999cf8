"""When each value is live, and which values must share memory."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..errors import DumpError
from ..runs import components
from .dataflow import Dataflow, Schedule, find_regions, flatten, is_assumed, pairs, trace_values
from .in_place import InPlaceRules
from .parts import HloText, LiveRange
from .program import NONE, NOT_READ, Ints, Mask, NumberedProgram, number_program

# When each value is live, and which values must share memory.
#
# The rules are XLA's HloAliasAnalysis and HloLiveRange on the flattened schedule.


@dataclass(frozen=True)
class Liveness:
    """The live range of each value, and its alias set.

    `start` and `end` are times of the schedule, both inclusive; NONE for a value of a region,
    which has no time. A value that lives out ends at the schedule's length. `alias_set` is the
    smallest number of the values that must share memory with a value.
    """

    start: Ints
    end: Ints
    alias_set: Ints

    def ranges_table(self) -> pa.Table:
        """Columns: value_id, start_time, end_time; only values that have a range."""
        has = np.flatnonzero(self.start != NONE)
        return pa.table(
            {
                "value_id": pa.array(has, pa.int32()),
                "start_time": pa.array(self.start[has], pa.int32()),
                "end_time": pa.array(self.end[has], pa.int32()),
            }
        )


def live_ranges(
    program: NumberedProgram, schedule: Schedule, dataflow: Dataflow, *, async_starts_late: Mask
) -> Liveness:
    """Compute live ranges and alias sets.

    `async_starts_late` says of each program when values of async computations start; see
    `derive_all`. Raises DumpError if an alias names a sub-shape that does not exist.
    """
    aliased = _aliased_parameters(program, dataflow)
    alias_set = must_alias(program, schedule, dataflow, aliased)
    start, end = _raw_ranges(program, schedule, dataflow, aliased[0], async_starts_late)
    start, end = _without_overlap(start, end, alias_set)
    return Liveness(start, end, alias_set)


def _aliased_parameters(program: NumberedProgram, dataflow: Dataflow) -> tuple[Ints, Ints]:
    """The header's `input_output_alias` as slots: of the entry's parameters, of its root."""
    aliases, slots = program.input_output_alias, dataflow.slots
    entry = program.alias_entry
    root = program.root[entry]
    number = np.array([alias.number for alias in aliases], np.int64)
    parameters = slots.find(
        program.parameter_of(entry, number, root), [alias.operand_index for alias in aliases]
    )
    outputs = slots.find(root, [alias.output_index for alias in aliases])
    if (parameters == NONE).any() or (outputs == NONE).any():
        raise DumpError("input_output_alias names a sub-shape that is not there", 1)
    return parameters, outputs


def must_alias(
    program: NumberedProgram,
    schedule: Schedule,
    dataflow: Dataflow,
    aliased: tuple[Ints, Ints],
) -> Ints:
    """Each value's alias set: the smallest number of the values that must share its memory.

    At each index: a while with its operand, with the root and the parameter of its body and
    the parameter of its condition; a conditional with the roots of its branches; an in-place
    operand with the result; a donated parameter with the output.
    """
    slots = dataflow.slots
    loops = program.rows("while")
    loops = loops[schedule.time[loops] != NONE]
    body, condition = program.callee(loops, "body"), program.callee(loops, "condition")
    result = slots.whole(loops)
    together = [
        pairs(program, slots, result, slots.whole(rows))
        for rows in (
            program.operand(loops, 0),
            program.root[body],
            program.parameter_of(body, 0, loops),
            program.parameter_of(condition, 0, loops),
        )
    ]
    caller = schedule.caller
    branches = np.flatnonzero((caller != NONE) & program.opcode.is_one_of("conditional")[caller])
    together += [
        pairs(program, slots, slots.whole(caller[branches]), slots.whole(program.root[branches])),
        (dataflow.in_place_operand, dataflow.in_place_result),
        aliased,
    ]
    left = dataflow.value[np.concatenate([a for a, _ in together])]
    right = dataflow.value[np.concatenate([b for _, b in together])]
    both = (left != NONE) & (right != NONE)
    return components(len(dataflow), left[both], right[both])


def _raw_ranges(
    program: NumberedProgram,
    schedule: Schedule,
    dataflow: Dataflow,
    aliased: Ints,
    async_starts_late: Mask,
) -> tuple[Ints, Ints]:
    """Each value's range before values that must share memory are kept apart."""
    time, span_end = schedule.time, schedule.span_end
    computation = program.computation
    is_root = np.zeros(len(program), bool)
    is_root[program.root] = True
    # A root holds its values until its computation ends.
    until = np.where(is_root, span_end[computation], time)
    row = dataflow.instruction
    start = np.where(
        program.opcode.is_one_of("parameter")[row], schedule.span_start[computation[row]], time[row]
    )
    if async_starts_late.any():
        context = schedule.async_start[computation[row]]
        is_late = (context != NONE) & async_starts_late[program.program_of[row]]
        start = np.where(is_late, np.maximum(time[context], start), start)
    end = np.maximum(until[row], _async_ends(program, schedule)[computation[row]])
    uses_at, counts = _use_times(program, schedule)
    use = np.flatnonzero(counts[dataflow.use_instruction])
    np.maximum.at(end, dataflow.use_value[use], uses_at[dataflow.use_instruction[use]])
    held = np.flatnonzero(dataflow.value != NONE)
    np.maximum.at(end, dataflow.value[held], until[dataflow.slots.instruction[held]])
    never = _never_freed(program, dataflow, aliased)
    # Those are of the entry, which ends with the program's schedule.
    end[never] = span_end[computation[row[never]]]
    regional = time[row] == NONE
    start[regional] = end[regional] = NONE
    return start, end


def _use_times(program: NumberedProgram, schedule: Schedule) -> tuple[Ints, Mask]:
    """When each instruction reads its operands, and whether its use counts.

    A while reads when the parameter of its body starts; a call reads nothing itself, because
    its computation's parameters stand for the operands.
    """
    times = schedule.time.copy()
    loops = program.rows("while")
    loops = loops[schedule.time[loops] != NONE]
    times[loops] = schedule.time[program.parameter_of(program.callee(loops, "body"), 0, loops)]
    counts = np.ones(len(program), bool)
    counts[schedule.caller[schedule.is_reached & (schedule.caller != NONE)]] = False
    return times, counts | ~program.opcode.is_one_of("call")


def _async_ends(program: NumberedProgram, schedule: Schedule) -> Ints:
    """Until when the values of each computation live at least.

    In an asynchronous context that is the time of the async-done; otherwise NONE.
    """
    done = program.rows("async-done")
    done = done[program.async_start[done] != NONE]
    done_at = np.full(len(program) + 1, NONE)
    done_at[program.async_start[done]] = schedule.time[done]
    found: Ints = done_at[schedule.async_start]
    return found


def _never_freed(program: NumberedProgram, dataflow: Dataflow, aliased: Ints) -> Ints:
    """The values of the entry's parameters that no output takes the place of."""
    is_parameter = program.is_entry & program.opcode.is_one_of("parameter")
    parameters = is_parameter[dataflow.instruction]
    taken = np.zeros(len(dataflow.slots), bool)
    taken[aliased] = True
    return np.flatnonzero(parameters & ~taken[dataflow.defined_at])


def _without_overlap(start: Ints, end: Ints, alias_set: Ints) -> tuple[Ints, Ints]:
    """End each value where the next value of its alias set begins.

    In the order of start and end, of two neighbours that touch the second lives on as long
    as either does, and the first ends when the second starts. XLA lets a value that must
    alias end at the next one's start, and not one earlier; ranges with a gap between them
    keep their ends.
    """
    order = np.lexsort((end, start, alias_set))
    order = order[start[order] != NONE]
    begin, stop, group = start[order], end[order], alias_set[order]
    if not len(order):
        return start, end
    # The latest end so far within a set: sets are lifted apart for one running maximum.
    lift = group * (int(stop.max()) + 2)
    latest = np.maximum.accumulate(stop + lift) - lift
    joins = (group[1:] == group[:-1]) & (latest[:-1] >= begin[1:])
    # Behind a gap all earlier ends lie before the gap, so that `latest` holds there too.
    stop = latest.copy()
    stop[:-1][joins] = begin[1:][joins]
    end = end.copy()
    end[order] = stop
    return start, end


# A module's schedule, values and live ranges, worked out from its HLO text alone.

# The changes lie between the known changelists 933746096 and 1014260217.
_BEFORE_NEWEST_LIBTPU = 10**9
# The change lies between the known changelists 885286250 and 897798484.
_WRITTEN_AT_DONE = 890_000_000


@dataclass(frozen=True)
class Derived:
    """What the text of a scheduled module says, as XLA's own analyses would.

    `is_newest_libtpu` and `async_starts_late` tell the programs' compilers apart: see `derive`.
    """

    program: NumberedProgram
    schedule: Schedule
    dataflow: Dataflow
    liveness: Liveness
    is_newest_libtpu: Mask
    async_starts_late: Mask

    @cached_property
    def assumed(self) -> dict[str, int]:
        """The opcodes for which a rule is assumed: how many instructions with values have each.

        The end of an asynchronous pair is not named beside its start, and what was not read is
        told as such.
        """
        rows = np.flatnonzero(is_assumed(self.program) & (self.dataflow.slots.count > 0))
        codes, counts = np.unique(self.program.opcode.codes[rows], return_counts=True)
        texts = [self.program.opcode.texts[code] for code in codes.tolist()]
        ends = {text[: -len("start")] + end for text in texts for end in ("update", "done")
                if text.endswith("-start")}  # fmt: skip
        found = zip(texts, counts.tolist(), strict=True)
        left_out = {*ends, NOT_READ}
        return {text: count for text, count in sorted(found) if text not in left_out}


def derive(
    hlo: HloText,
    program: NumberedProgram | None = None,
    *,
    changelist: int | None = None,
    live_range: LiveRange | None = None,
) -> Derived:
    """Compute a module's schedule, values, positions, uses and live ranges: see `derive_all`.

    `program` is the numbered text, if the caller has it.
    """
    return derive_all([hlo], program or number_program(hlo), [changelist], [live_range])


def derive_all(
    texts: Sequence[HloText],
    program: NumberedProgram,
    changelists: Sequence[int | None],
    live_ranges_of: Sequence[LiveRange | None],
) -> Derived:
    """Compute the schedule, values, positions, uses and live ranges of programs.

    `program` has the rows of all of them. The text's order is taken for the schedule. If a text is
    not scheduled, the times are an estimate, and all else but the live ranges holds. For an opcode
    without a rule one is assumed (`Derived.assumed`): then values, positions, uses and live ranges
    are an estimate.

    Compilers differ in two rules. In the newest libtpu no value reuses the memory of an output.
    A changelist is that of the TPU compiler, if the file names tell; without it the text decides
    by a heuristic: only the newest libtpu prints `dma_priority`. In an older libtpu an array that
    an async-start updates in place is the new value from the start on.

    In XLA since JAX 0.12, and in the newest libtpu, a value of an async computation starts at the
    time of the async-start and not at its own earlier time. The live range of the dump tells,
    because the texts of JAX 0.11 and 0.12 do not differ. Without it, text that leaves out the
    elements of tuples is taken to be new. Raises DumpError where an instruction does not fit its
    operands, or a computation its callers.
    """
    newest = np.array([hlo.attributes().has_dma_priority for hlo in texts], bool)
    has_element = pc.match_substring(program.names, "#").to_numpy(zero_copy_only=False)
    late = newest | program.with_any(has_element)[program.root[program.entries]]
    is_written_at_start = np.zeros(len(texts), bool)
    for number, changelist in enumerate(changelists):
        if changelist is not None:
            is_written_at_start[number] = changelist < _WRITTEN_AT_DONE
            late[number] = newest[number] = changelist > _BEFORE_NEWEST_LIBTPU
    is_shared = np.array([not hlo.header["is_scheduled"] for hlo in texts], bool)
    schedule = flatten(program, is_shared=is_shared)
    regions = find_regions(program, schedule)
    dataflow = trace_values(
        program, schedule, regions, InPlaceRules(program), is_written_at_start=is_written_at_start
    )
    late = _starts_late(program, schedule, dataflow, live_ranges_of, late)
    liveness = live_ranges(program, schedule, dataflow, async_starts_late=late)
    return Derived(program, schedule, dataflow, liveness, newest, late)


def _starts_late(
    program: NumberedProgram,
    schedule: Schedule,
    dataflow: Dataflow,
    dumped: Sequence[LiveRange | None],
    otherwise: Mask,
) -> Mask:
    """Whether a dump's values of async computations start at the async-start, by program.

    `otherwise` is the answer for a dump that has no live ranges or no such value.
    """
    is_late = otherwise.copy()
    row = np.unique(dataflow.instruction)
    start = schedule.async_start[program.computation[row]]
    row, start = row[start != NONE], start[start != NONE]
    of = program.program_of[row]
    for number in np.unique(of).tolist():
        live_range = dumped[number]
        if live_range is None:
            continue
        whole = live_range.ranges.filter(pc.equal(live_range.ranges["shape_index"], "{}"))
        rows, starts = row[of == number], start[of == number]
        at = pc.index_in(
            program.names.take(pa.array(rows)), value_set=whole["instruction"].combine_chunks()
        )
        if at.null_count == len(at):
            continue
        known = pc.is_valid(at).to_numpy(zero_copy_only=False)
        times = np.maximum(schedule.time[starts[known]], schedule.time[rows[known]])
        times -= schedule.span_start[program.entries[number]]
        at_start = whole["start_time"].take(at.drop_null()).to_numpy()
        is_late[number] = (at_start == times).all()
    return is_late
