"""The role of each value in a training step or an inference: weight, activation, gradient, …"""

import re
from dataclasses import dataclass

import numpy as np

from .dataflow import Schedule
from .op_names import Kind
from .origins import (
    CONVERTS_OR_RESHAPES,
    COPIES,
    GATHERS,
    OPERAND,
    WEAK,
    Named,
    Origins,
    Values,
    inner_readers,
)
from .passes import BACKWARD, FORWARD, OPTIMIZER, PASSES, REMATERIALISED, Passes
from .program import NONE, Ints, Mask

# Touches: the times at which values are defined and read.

# These forward their operands, or pass them to computations, and read no elements.
_FORWARDS = ("tuple", "get-tuple-element", "bitcast", "while", "call", "conditional",
             "opt-barrier", "optimization-barrier", "add-dependency", "domain",
             "async-start", "async-update", "async-done", "copy-done")  # fmt: skip


@dataclass(frozen=True)
class Touches:
    """Intervals of time, both ends included, and the value that is touched in each.

    `is_read` marks the reads; the others are definitions.
    """

    value: Ints
    start: Ints
    end: Ints
    is_read: Mask


def find_touches(named: Named, schedule: Schedule, live_from: Ints) -> Touches:
    """The definitions and reads of all values that have a time.

    `live_from` is the start of each value's live range, which may be later than the time of the
    instruction: the newest libtpu writes the result of an async computation from the async-start
    on. A loop's body runs in every iteration. If a value comes from outside of the loop, or if the
    loop carries it, a touch in the body counts for the whole time of the body.
    """
    program, flow = named.program, named.dataflow
    reads_elements = ~program.opcode.is_one_of(*_FORWARDS)[flow.use_instruction]
    values = np.concatenate([np.arange(len(flow)), flow.use_value[reads_elements]])
    rows = np.concatenate([flow.instruction, flow.use_instruction[reads_elements]])
    is_timed = (schedule.time[rows] != NONE) & (schedule.time[flow.instruction[values]] != NONE)
    is_read = (np.arange(len(values)) >= len(flow))[is_timed]
    values, rows = values[is_timed], rows[is_timed]
    start = np.where(
        is_read, schedule.time[rows], np.maximum(schedule.time[rows], live_from[values])
    )
    end = start.copy()
    time_made = schedule.time[flow.instruction[values]]
    is_carried = (
        flow.is_phi[values] & program.opcode.is_one_of("parameter")[flow.instruction[values]]
    )
    carried_by = np.where(is_carried, program.computation[flow.instruction[values]], NONE)
    is_loop = program.opcode.is_one_of("while")
    around = program.computation[rows]
    open_touches = np.arange(len(values))
    while len(open_touches):
        computation = around[open_touches]
        caller = named.caller[computation]
        first, stop = schedule.span_start[computation], schedule.span_end[computation]
        made_at = time_made[open_touches]
        inside = (made_at >= first) & (made_at < stop) & (carried_by[open_touches] != computation)
        is_repeated = is_loop[caller] & ~inside & (caller != NONE)
        repeated = open_touches[is_repeated]
        start[repeated] = np.minimum(start[repeated], first[is_repeated])
        end[repeated] = np.maximum(end[repeated], stop[is_repeated] - 1)
        # Loops around the computation that makes the value do not repeat the touch.
        may_repeat = (caller != NONE) & ~inside & (carried_by[open_touches] != computation)
        open_touches = open_touches[may_repeat]
        around[open_touches] = program.computation[caller[may_repeat]]
    return Touches(values, start, end, is_read)


def last_uses(touches: Touches, count: int) -> Ints:
    """The last time at which each of `count` values is read or copied; NONE if never."""
    last_use = np.full(count, NONE)
    np.maximum.at(last_use, touches.value[touches.is_read], touches.end[touches.is_read])
    return last_use


@dataclass(frozen=True)
class Idle:
    """By group of values: the longest time in which no value of the group is touched.

    `start` and `end` are the touches before and after it; `at_peak` is the length of the idle
    time around a given time, 0 if the group is touched or not live then.
    """

    start: Ints
    end: Ints
    at_peak: Ints


def idle_stretches(touches: Touches, group: Ints, last: Ints, peak: Ints) -> Idle:
    """The idle times of groups of values: between their touches and until their last time.

    `group` is the group of each value, NONE if it has none; `last` and `peak` are times by group.
    """
    groups = group[touches.value]
    has_group = groups != NONE
    all_groups = np.arange(len(last))
    groups = np.concatenate([groups[has_group], all_groups])
    start = np.concatenate([touches.start[has_group], last])
    end = np.concatenate([touches.end[has_group], last])
    order = np.lexsort((end, start, groups))
    groups, start, end = groups[order], start[order], end[order]
    offset = groups * (int(end.max(initial=0)) + 2)
    touched_until = np.maximum.accumulate(end + offset) - offset
    is_same_group = groups[1:] == groups[:-1]
    gap = np.where(is_same_group, start[1:] - touched_until[:-1], 0)
    longest_gap = np.zeros(len(last), np.int64)
    np.maximum.at(longest_gap, groups[1:], gap)
    longest_start, longest_end, at_peak = last.copy(), last.copy(), np.zeros(len(last), np.int64)
    longest = np.flatnonzero(is_same_group & (gap == longest_gap[groups[1:]]))[::-1]
    longest_start[groups[longest]] = touched_until[longest]
    longest_end[groups[longest]] = start[longest + 1]
    time = peak[groups[1:]]
    around = is_same_group & (touched_until[:-1] < time) & (start[1:] > time)
    at_peak[groups[1:][around]] = gap[around]
    return Idle(longest_start, longest_end, at_peak)


# Reads: the instructions that read values, and their passes.


@dataclass(frozen=True)
class Reads:
    """Of each read: `value`; `reader`, the instruction that reads it, in a fusion the one inside.

    `user` is the reader, or the fusion that it is part of; `operand` is the number of the user's
    operand; `pass_` is the reader's pass.
    """

    value: Ints
    reader: Ints
    user: Ints
    operand: Ints
    pass_: Ints


def find_reads(named: Named, passes: Passes) -> Reads:
    """The reads of all values, as far as the reader's pass is known.

    Copies and instructions that forward a value are not readers, nor are nameless converts and
    reshapes, because they only move data. A reader with an op_name has that name's pass; a
    nameless fusion has the pass of the first named instruction inside that reads the value.
    """
    program, flow = named.program, named.dataflow
    is_nameless = named.names.kind < Kind.JOINED
    is_skipped = program.opcode.is_one_of(*_FORWARDS, *COPIES)
    is_skipped |= is_nameless & program.opcode.is_one_of(*CONVERTS_OR_RESHAPES)
    use = np.flatnonzero(~is_skipped[flow.use_instruction])
    user = flow.use_instruction[use]
    reader = user.copy()
    nameless_users = np.flatnonzero(is_nameless[user])
    reader[nameless_users] = inner_readers(
        named, user[nameless_users], flow.use_operand[use[nameless_users]]
    )
    reader_pass = passes.codes[reader]
    is_known = ~is_nameless[reader] | (reader_pass == OPTIMIZER)
    return Reads(
        flow.use_value[use[is_known]],
        reader[is_known],
        user[is_known],
        flow.use_operand[use[is_known]],
        reader_pass[is_known].astype(np.int64),
    )


# Roles: they follow from structure, that is from the passes that read a value, and from outputs in
# place of arguments.

# JAX's name for an array argument of a function with `*args`.
_STARRED = re.compile(r"args\[\d+\]")
ROLES = (
    "weight",
    "optimizer state",
    "state",
    "input",
    "gathered weight",
    "activation",
    "gradient",
    "output",
    "constant",
    "workspace",
)
(
    WEIGHT,
    OPTIMIZER_STATE,
    STATE,
    INPUT,
    GATHERED,
    ACTIVATION,
    GRADIENT,
    OUTPUT,
    CONSTANT,
    WORKSPACE,
) = range(len(ROLES))


def find_roles(
    values: Values,
    origins: Origins,
    value_pass: Ints,
    reads: Reads,
    passes: Passes,
    alias_set: Ints,
    is_residual: Mask,
) -> Ints:
    """The role of each array, as a place in ROLES; NONE for a tuple's table."""
    named = values.named
    of_argument = argument_roles(values, origins, reads, passes, alias_set)
    row = values.row
    is_argument = named.is_entry_parameter[row]
    origin_role = np.where(origins.instruction != NONE, of_argument[origins.instruction], NONE)
    is_larger = values.elements > named.elements[origins.instruction]
    is_gathered = named.program.opcode.is_one_of(*GATHERS)[row] | is_larger
    read_by_optimizer = np.zeros(len(row), bool)
    backward_reads = np.flatnonzero(value_pass[reads.value] == BACKWARD)
    # XLA fuses the optimizer's work with backward work, so that the reader inside decides.
    reader = inner_readers(named, reads.user[backward_reads], reads.operand[backward_reads])
    backward_reads = backward_reads[passes.codes[reader] == OPTIMIZER]
    read_by_optimizer[alias_set[reads.value[backward_reads]]] = True
    role = np.full(len(row), WORKSPACE)
    for has_role, name in (
        ((value_pass == BACKWARD) & read_by_optimizer[alias_set], GRADIENT),
        (is_residual, ACTIVATION),
        ((origin_role == WEIGHT) & is_gathered, GATHERED),
        (named.program.opcode.is_one_of("constant")[row], CONSTANT),
        (lives_out(values), OUTPUT),
    ):
        role[has_role] = name
    role = np.where(is_argument, of_argument[row], role)
    return np.where(values.is_array, role, NONE)


def argument_roles(
    values: Values, origins: Origins, reads: Reads, passes: Passes, alias_set: Ints
) -> Ints:
    """The role of each argument, by instruction; NONE for other instructions.

    With a backward pass: an argument that is not updated is an input. An updated one is a weight
    if the forward or backward pass reads it, optimizer state if only the optimizer does, else an
    input. It is updated if an output takes its place or has its type and dimensions, or if the
    optimizer reads it and it is an array of floating-point numbers.

    Without a backward pass: an argument is state if an output takes its place. Otherwise the
    leaves of a container are weights, and arguments that are arrays themselves are inputs.
    """
    named = values.named
    program = named.program
    count = len(program)
    rows = np.flatnonzero(named.is_entry_parameter)
    results = np.flatnonzero(lives_out(values))
    arguments = np.flatnonzero(named.is_entry_parameter[values.row])
    in_place = np.zeros(count, bool)
    in_place[values.row[arguments[np.isin(alias_set[arguments], alias_set[results])]]] = True
    result_owner = origins.instruction[results]
    is_sure = (result_owner != NONE) & ~np.isin(origins.rule[results], (OPERAND, WEAK))
    in_place[result_owner[is_sure]] = True
    by_instruction = np.full(count, NONE)
    if (reads.pass_ == BACKWARD).any():
        # The result's layout may differ from the value's, so that its slot gives the shape.
        result_values, result_slots = _results(values)
        computed_slots = result_slots[~named.is_entry_parameter[values.row[result_values]]]
        argument_shape = values.plain_shape(named.dataflow.defined_at[arguments])
        is_same_shape = np.isin(argument_shape, values.plain_shape(computed_slots))
        has_result_shape = np.zeros(count, bool)
        has_result_shape[values.row[arguments[is_same_shape]]] = True
        owner = origins.instruction[reads.value]
        argument_reads = np.flatnonzero((owner != NONE) & named.is_entry_parameter[owner])
        # XLA fuses the optimizer's work with backward work, so that the reader inside decides.
        reader = inner_readers(named, reads.user[argument_reads], reads.operand[argument_reads])
        read_by = np.zeros((count, len(PASSES)), bool)
        read_by[owner[argument_reads], passes.codes[reader]] = True
        # A partitioned program may return another part of an array than it takes.
        large_arguments = arguments[values.is_float[arguments] & (values.elements[arguments] > 1)]
        is_large = np.zeros(count, bool)
        is_large[values.row[large_arguments]] = True
        is_updated = in_place | has_result_shape | (read_by[:, OPTIMIZER] & is_large)
        if not read_by[:, OPTIMIZER].any():
            # The program computes gradients alone, possibly also of inputs.
            is_updated &= _in_container(named) | (named.names.code == NONE)
        read_by_model = read_by[:, [FORWARD, BACKWARD, REMATERIALISED]].any(axis=1)
        role = np.where(
            read_by_model, WEIGHT, np.where(read_by[:, OPTIMIZER], OPTIMIZER_STATE, INPUT)
        )
        role[~is_updated] = INPUT
    else:
        role = np.where(in_place, STATE, np.where(_in_container(named), WEIGHT, INPUT))
    by_instruction[rows] = role[rows]
    return by_instruction


def lives_out(values: Values) -> Mask:
    """Which values are part of the program's result."""
    is_result = np.zeros(len(values.row), bool)
    is_result[_results(values)[0]] = True
    return is_result


def _results(values: Values) -> tuple[Ints, Ints]:
    """The values that are part of the program's result, and the result's slot of each."""
    named = values.named
    slots, root = named.dataflow.slots, named.program.root[named.program.entry]
    result_slots = np.arange(slots.start[root], slots.start[root] + slots.count[root])
    result_values = named.dataflow.value[result_slots]
    return result_values[result_values != NONE], result_slots[result_values != NONE]


def _in_container(named: Named) -> Mask:
    """Which instructions have the name of a leaf of a container: `p['emb']`, `cache[0]`."""
    is_leaf = [
        ("[" in text or "." in text) and "/" not in text and not _STARRED.fullmatch(text)
        for text in named.names.texts
    ]
    by_instruction: Mask = np.array([*is_leaf, False], bool)[named.names.code]
    return by_instruction
