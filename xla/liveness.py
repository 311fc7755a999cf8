"""When each value is live, and which values must share memory."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .dataflow import Dataflow, Schedule, find_regions, flatten, is_assumed, pairs, trace_values
from .errors import DumpError
from .in_place import InPlaceRules
from .parts import HloText, LiveRange
from .program import NONE, NOT_READ, Ints, Mask, NumberedProgram, number_program
from .runs import components

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
    program: NumberedProgram, schedule: Schedule, dataflow: Dataflow, *, async_starts_late: bool
) -> Liveness:
    """Compute live ranges and alias sets.

    `async_starts_late` says when values of async computations start; see `derive`. Raises
    DumpError if an alias names a sub-shape that does not exist.
    """
    aliased = _aliased_parameters(program, dataflow)
    alias_set = must_alias(program, schedule, dataflow, aliased)
    start, end = _raw_ranges(program, schedule, dataflow, aliased[0], async_starts_late)
    start, end = _without_overlap(start, end, alias_set)
    return Liveness(start, end, alias_set)


def _aliased_parameters(program: NumberedProgram, dataflow: Dataflow) -> tuple[Ints, Ints]:
    """The header's `input_output_alias` as slots: of the entry's parameters, of its root."""
    aliases, slots = program.input_output_alias, dataflow.slots
    entry = np.full(len(aliases), program.entry)
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
    async_starts_late: bool,
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
    if async_starts_late:
        context = schedule.async_start[computation[row]]
        start = np.where(context != NONE, np.maximum(time[context], start), start)
    end = np.maximum(until[row], _async_ends(program, schedule)[computation[row]])
    uses_at, counts = _use_times(program, schedule)
    use = np.flatnonzero(counts[dataflow.use_instruction])
    np.maximum.at(end, dataflow.use_value[use], uses_at[dataflow.use_instruction[use]])
    held = np.flatnonzero(dataflow.value != NONE)
    np.maximum.at(end, dataflow.value[held], until[dataflow.slots.instruction[held]])
    end[_never_freed(program, dataflow, aliased)] = len(schedule)
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
    done_at = np.full(len(program) + 1, NONE)
    done_at[program.async_start[done]] = schedule.time[done]
    found: Ints = done_at[schedule.async_start]
    return found


def _never_freed(program: NumberedProgram, dataflow: Dataflow, aliased: Ints) -> Ints:
    """The values of the entry's parameters that no output takes the place of."""
    entry = program.computation[dataflow.instruction] == program.entry
    parameters = entry & program.opcode.is_one_of("parameter")[dataflow.instruction]
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

    `is_newest_libtpu` and `async_starts_late` tell compilers apart: see `derive`.
    """

    program: NumberedProgram
    schedule: Schedule
    dataflow: Dataflow
    liveness: Liveness
    is_newest_libtpu: bool
    async_starts_late: bool

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
    """Compute a module's schedule, values, positions, uses and live ranges.

    `program` is the numbered text, if the caller has it. The text's order is taken for the
    schedule. If the text is not scheduled, the times are an estimate, and all else but the live
    ranges holds. For an opcode without a rule one is assumed (`Derived.assumed`): then values,
    positions, uses and live ranges are an estimate.

    Compilers differ in two rules. In the newest libtpu no value reuses the memory of an output.
    `changelist` is that of the TPU compiler, if the file names tell; without it the text decides
    by a heuristic: only the newest libtpu prints `dma_priority`. In an older libtpu an array that
    an async-start updates in place is the new value from the start on.

    In XLA since JAX 0.12, and in the newest libtpu, a value of an async computation starts at the
    time of the async-start and not at its own earlier time. The `live_range` of the dump tells,
    because the texts of JAX 0.11 and 0.12 do not differ. Without it, text that leaves out the
    elements of tuples is taken to be new. Raises DumpError where an instruction does not fit its
    operands, or a computation its callers.
    """
    program = program or number_program(hlo)
    newest, is_written_at_start = hlo.attributes().has_dma_priority, False
    late = newest or bool(pc.any(pc.match_substring(program.names, "#")).as_py())
    if changelist is not None:
        is_written_at_start = changelist < _WRITTEN_AT_DONE
        late = newest = changelist > _BEFORE_NEWEST_LIBTPU
    schedule = flatten(program, is_shared=not hlo.header["is_scheduled"])
    regions = find_regions(program, schedule)
    dataflow = trace_values(
        program, schedule, regions, InPlaceRules(program), is_written_at_start=is_written_at_start
    )
    if live_range is not None:
        late = _starts_late(program, schedule, dataflow, live_range, late)
    liveness = live_ranges(program, schedule, dataflow, async_starts_late=late)
    return Derived(program, schedule, dataflow, liveness, newest, late)


def _starts_late(
    program: NumberedProgram,
    schedule: Schedule,
    dataflow: Dataflow,
    live_range: LiveRange,
    otherwise: bool,
) -> bool:
    """Whether the dump's values of async computations start at the async-start.

    `otherwise` is the answer if the dump has no such value.
    """
    row = np.unique(dataflow.instruction)
    start = schedule.async_start[program.computation[row]]
    row, start = row[start != NONE], start[start != NONE]
    if not len(row):
        return otherwise
    whole = live_range.ranges.filter(pc.equal(live_range.ranges["shape_index"], "{}"))
    at = pc.index_in(
        program.names.take(pa.array(row)), value_set=whole["instruction"].combine_chunks()
    )
    if at.null_count == len(at):
        return otherwise
    dumped = whole["start_time"].take(at.drop_null()).to_numpy()
    known = pc.is_valid(at).to_numpy(zero_copy_only=False)
    late = np.maximum(schedule.time[start[known]], schedule.time[row[known]])
    return bool((dumped == late).all())
