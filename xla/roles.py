"""What values are in a training step or an inference: weights, activations, gradients."""

import re
from dataclasses import dataclass

import numpy as np

from .dataflow import Schedule
from .op_names import Kind
from .origins import GATHERS, OPERAND, WEAK, Named, Origins, Values, inner_readers
from .passes import BACKWARD, FORWARD, OPTIMIZER, PASSES, REMATERIALISED, Passes
from .program import NONE, Ints, Mask

# When values are written and read: the times at which something touches their memory.

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


# Reads of values, and the pass that each read belongs to.

# Without a name these read only to hand on what they read.
_REARRANGES = ("convert", "reshape", "transpose")


@dataclass(frozen=True)
class Reads:
    """Of each read: the value, the instruction that reads it (also within a fusion), its pass.

    `user` is the instruction of the schedule that reads the value, itself or in its fusion, and
    `operand` the number of its operand.
    """

    value: Ints
    reader: Ints
    user: Ints
    operand: Ints
    pass_: Ints


def find_reads(named: Named, passes: Passes) -> Reads:
    """The reads of all values whose pass is known.

    Instructions that hand a value on do not read it. A reader with an op_name has its pass;
    of a nameless fusion, the pass is that of the first instruction with a name which reads the
    value inside.
    """
    program, flow = named.program, named.dataflow
    nameless = named.names.kind < Kind.JOINED
    skipped = program.opcode.is_one_of(*HANDS_ON, "copy", "copy-start")
    skipped |= nameless & program.opcode.is_one_of(*_REARRANGES)
    use = np.flatnonzero(~skipped[flow.use_instruction])
    user = flow.use_instruction[use]
    reader = user.copy()
    asks = np.flatnonzero(nameless[user])
    reader[asks] = inner_readers(named, user[asks], flow.use_operand[use[asks]])
    found = passes.codes[reader]
    known = ~nameless[reader] | (found == OPTIMIZER)
    return Reads(
        flow.use_value[use[known]],
        reader[known],
        user[known],
        flow.use_operand[use[known]],
        found[known].astype(np.int64),
    )


# What values are in a training step or an inference: weights, activations, gradients.
#
# The role follows from structure: what reads a value in which pass, and what takes its place.

# JAX's name for an array that a function takes by `*args`.
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
    """The role of each array, a number of ROLES; NONE of a tuple's table."""
    named = values.named
    of_argument = argument_roles(values, origins, reads, passes, alias_set)
    row = values.row
    is_argument = named.is_entry_parameter[row]
    origin_role = np.where(origins.instruction != NONE, of_argument[origins.instruction], NONE)
    is_larger = values.elements > named.elements[origins.instruction]
    gathered = named.program.opcode.is_one_of(*GATHERS)[row] | is_larger
    later = np.zeros(len(row), bool)
    asked = np.flatnonzero(value_pass[reads.value] == BACKWARD)
    # XLA fuses the optimizer's work with other products of the backward pass.
    reader = inner_readers(named, reads.user[asked], reads.operand[asked])
    asked = asked[passes.codes[reader] == OPTIMIZER]
    later[alias_set[reads.value[asked]]] = True
    role = np.full(len(row), WORKSPACE)
    for chosen, name in (
        ((value_pass == BACKWARD) & later[alias_set], GRADIENT),
        (is_residual, ACTIVATION),
        ((origin_role == WEIGHT) & gathered, GATHERED),
        (named.program.opcode.is_one_of("constant")[row], CONSTANT),
        (lives_out(values), OUTPUT),
    ):
        role[chosen] = name
    role = np.where(is_argument, of_argument[row], role)
    return np.where(values.is_array, role, NONE)


def argument_roles(
    values: Values, origins: Origins, reads: Reads, passes: Passes, alias_set: Ints
) -> Ints:
    """The role of each argument, by instruction; NONE of other instructions.

    In a program with a backward pass: a weight is read in the forward pass and updated, an
    optimizer's state is read by the optimizer alone and updated, the rest are inputs. An
    argument is updated if an output takes its place, or has its type and dimensions, or if the
    optimizer reads it and it is an array of floating-point numbers. In a
    program without: state is what an output takes the place of; the leaves of a container are
    weights, arguments that are arrays themselves are inputs.
    """
    named = values.named
    program = named.program
    count = len(program)
    rows = np.flatnonzero(named.is_entry_parameter)
    out = np.flatnonzero(lives_out(values))
    arguments = np.flatnonzero(named.is_entry_parameter[values.row])
    in_place = np.zeros(count, bool)
    in_place[values.row[arguments[np.isin(alias_set[arguments], alias_set[out])]]] = True
    sure = out[(origins.instruction[out] != NONE) & ~np.isin(origins.rule[out], (OPERAND, WEAK))]
    in_place[origins.instruction[sure]] = True
    found = np.full(count, NONE)
    if (reads.pass_ == BACKWARD).any():
        # A result may be laid out anew where it is given back.
        held, at = _results(values)
        computed = at[~named.is_entry_parameter[values.row[held]]]
        taken = values.plain_shape(named.dataflow.defined_at[arguments])
        same = np.zeros(count, bool)
        same[values.row[arguments[np.isin(taken, values.plain_shape(computed))]]] = True
        owner = origins.instruction[reads.value]
        asked = np.flatnonzero((owner != NONE) & named.is_entry_parameter[owner])
        # XLA fuses the optimizer's work with the last product of the backward pass.
        reader = inner_readers(named, reads.user[asked], reads.operand[asked])
        by = np.zeros((count, len(PASSES)), bool)
        by[owner[asked], passes.codes[reader]] = True
        # A partitioned program may give back another part than it takes.
        large = arguments[values.is_float[arguments] & (values.elements[arguments] > 1)]
        is_large = np.zeros(count, bool)
        is_large[values.row[large]] = True
        updated = in_place | same | (by[:, OPTIMIZER] & is_large)
        if not by[:, OPTIMIZER].any():
            # Gradients alone: of inputs too.
            updated &= _in_container(named) | (named.names.code == NONE)
        by_model = by[:, [FORWARD, BACKWARD, REMATERIALISED]].any(axis=1)
        role = np.where(by_model, WEIGHT, np.where(by[:, OPTIMIZER], OPTIMIZER_STATE, INPUT))
        role[~updated] = INPUT
    else:
        role = np.where(in_place, STATE, np.where(_in_container(named), WEIGHT, INPUT))
    found[rows] = role[rows]
    return found


def lives_out(values: Values) -> Mask:
    """Which values are part of the program's result."""
    found = np.zeros(len(values.row), bool)
    found[_results(values)[0]] = True
    return found


def _results(values: Values) -> tuple[Ints, Ints]:
    """The values that the program's result holds, and the slot of the result that holds each."""
    named = values.named
    slots, root = named.dataflow.slots, named.program.root[named.program.entry]
    at = np.arange(slots.start[root], slots.start[root] + slots.count[root])
    held = named.dataflow.value[at]
    return held[held != NONE], at[held != NONE]


def _in_container(named: Named) -> Mask:
    """Which instructions have the name of a container's leaf, such as `p['emb']` or `cache[0]`."""
    leaf = [
        ("[" in text or "." in text) and "/" not in text and not _STARRED.fullmatch(text)
        for text in named.names.texts
    ]
    found: Mask = np.array([*leaf, False], bool)[named.names.code]
    return found
