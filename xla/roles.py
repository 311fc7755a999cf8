"""The role of each value in a training step or an inference: weight, activation, gradient, …"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from .columns.bridge_o import (
    CONVERTS_OR_RESHAPES,
    COPIES,
    GATHERS,
    OPERAND,
    WEAK,
    Named,
    Origins,
    Phis,
    Values,
    inner_readers,
)
from .columns.dataflow import Schedule
from .columns.program import NONE, Ints, Mask
from .names import Kind
from .passes import BACKWARD, FORWARD, OPTIMIZER, PASSES, REMATERIALISED, Passes
from .runs import followed, joined

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
# place of arguments. Names and types decide where the structure leaves it open.

# JAX's name for an array argument of a function with `*args`.
_STARRED = re.compile(r"args\[\d+\]")
# The argument of the user's function that a leaf belongs to: `params` of `params['emb']`.
_CONTAINER = re.compile(r"(?:args|kwargs)\[[^]]*\]|\w+")
_NAMED_WEIGHTS = re.compile(
    r"^weights?\b|\b(?:\w+_)?(?:params?|parameters?)\b"
    r"|\b(?:frozen|teacher|model|kernel|bias|embedding)\b"
)
_NAMED_OPTIMIZER = re.compile(r"\b(?:opt|optim|optimizer)(?:_\w+)?\b")
_NAMED_CACHE = re.compile(r"\b(?:\w+_)?caches?\b")
_SHAPE = re.compile(r"(\w+)\[(\d*)")
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
) -> tuple[Ints, Mask]:
    """The role of each array, as a place in ROLES, and the instructions of programs that train.

    The role is NONE for a tuple's table. Only a program that trains has gradients and activations.
    """
    named = values.named
    of_argument, trains = argument_roles(values, origins, reads, passes, alias_set)
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
        (trains[row] & (value_pass == BACKWARD) & read_by_optimizer[alias_set], GRADIENT),
        (trains[row] & is_residual, ACTIVATION),
        ((origin_role == WEIGHT) & is_gathered, GATHERED),
        (named.program.opcode.is_one_of("constant")[row], CONSTANT),
        (lives_out(values), OUTPUT),
    ):
        role[has_role] = name
    role = np.where(is_argument, of_argument[row], role)
    return np.where(values.is_array, role, NONE), trains


def argument_roles(
    values: Values, origins: Origins, reads: Reads, passes: Passes, alias_set: Ints
) -> tuple[Ints, Mask]:
    """The role of each argument, NONE for others, and what is of a program that trains.

    Both are by instruction.

    A program trains if an output that depends on a gradient replaces an argument that the
    differentiated code reads, and if the names of such arguments say so or the model also reads
    data: an input array. Forces and scores replace the state of a simulation, and there are no
    data. A program that returns gradients and replaces nothing counts as a part of training.
    """
    arguments = Arguments(values, origins, reads, passes, alias_set)
    has_backward = arguments.has_backward
    otherwise = arguments.roles_without_training()
    if not has_backward.any():
        return otherwise, has_backward
    role = arguments.roles_in_training()
    is_weight = (role == WEIGHT) & arguments.is_trained & arguments.is_differentiated
    is_told = (arguments.is_named_weight | arguments.is_named_optimizers) & arguments.is_trained
    is_data = (role == INPUT) & arguments.is_read_by_model & arguments.holds_data
    with_any = values.named.program.with_any
    trains = has_backward & with_any(is_weight) & with_any(is_told | is_data)
    return np.where(trains, role, otherwise), trains | (has_backward & arguments.gives_gradients)


class Arguments:
    """What the structure, the names and the types of a program say of its arguments.

    All columns are by instruction, and but for the last two only valid for arguments.
    `is_replaced`: an output takes the place of the argument, or is the argument.
    `has_own_result`: there are as many outputs of its type and dimensions as arguments.
    `is_trained`: the output that replaces it, or one that may be its next value, depends on a
    gradient. `is_read_by_model` and `is_read_by_optimizer`: passes that read it.
    `is_differentiated`: differentiated code reads the argument itself.

    `has_backward` says whether the program has a backward pass, `gives_gradients` whether it
    returns gradients, has no optimizer and replaces nothing.
    """

    def __init__(
        self, values: Values, origins: Origins, reads: Reads, passes: Passes, alias_set: Ints
    ) -> None:
        self._named = values.named
        with_any = self._named.program.with_any
        self.has_backward = with_any(passes.follows_gradient)
        is_updated = self._find_readers(values, origins, reads, passes)
        results, slots = _results(values)
        is_computed = ~self._named.is_entry_parameter[values.row[results]]
        follows_gradient = passes.follows_gradient[values.row[_made_by(values)[results]]]
        self.is_replaced = _replaced(values, origins, alias_set, results)
        # The result's layout may differ from the value's, so that its slot gives the shape.
        self.has_own_result = _has_own_result(values, slots[is_computed])
        has_own_update = _has_own_result(values, slots[is_computed & follows_gradient])
        replaces = with_any(self.is_read_by_optimizer | self.is_replaced)
        self.gives_gradients = with_any(has_own_update) & ~replaces
        # Without an optimizer the program computes gradients alone, possibly also of inputs.
        has_own_update &= (
            with_any(self.is_read_by_optimizer)
            | self.is_in_container
            | (self._named.names.code == NONE)
        )
        self.is_trained = _replaced(values, origins, alias_set, results[follows_gradient])
        self.is_trained |= ~self.is_replaced & (has_own_update | is_updated)

    def _find_readers(self, values: Values, origins: Origins, reads: Reads, passes: Passes) -> Mask:
        """Set what reads each argument, and return which arguments the optimizer updates.

        What a loop carries, and copies, slices and conversions of an argument count as it. A
        partitioned program may return another part of an array than it takes, so that a read by
        the optimizer shows an update, but for a scalar, or if the reader has no name: it may be a
        gradient, such as that of the first convolution.
        """
        named = self._named
        argument = origins.instruction[reads.value]
        is_argument = (argument != NONE) & named.is_entry_parameter[argument]
        moved_from = origins.instruction[origins.moved_from[reads.value]]
        argument = np.where(is_argument, argument, moved_from)
        of_argument = np.flatnonzero((argument != NONE) & named.is_entry_parameter[argument])
        argument, value = argument[of_argument], reads.value[of_argument]
        user = reads.user[of_argument]
        # XLA fuses the optimizer's work with backward work, so that the reader inside decides.
        reader = inner_readers(named, user, reads.operand[of_argument])
        read_by = np.zeros((len(named.program), len(PASSES)), bool)
        read_by[argument, passes.codes[reader]] = True
        self.is_read_by_optimizer = read_by[:, OPTIMIZER]
        self.is_read_by_model = read_by[:, [FORWARD, BACKWARD, REMATERIALISED]].any(axis=1)
        is_convert = named.program.opcode.is_one_of("convert")[reader]
        is_differentiated = passes.is_differentiated[np.where(is_convert, user, reader)]
        self.is_differentiated = _marked(named, argument[is_differentiated])
        # A scan takes a slice of its inputs beside the body's work, so that this says nothing.
        computes = named.owns[reader] & ~named.takes_a_slice[reader]
        is_update = (passes.codes[reader] == OPTIMIZER) & computes
        is_update &= values.is_float[value] & (values.elements[value] > 1)
        return _marked(named, argument[is_update])

    @cached_property
    def is_named_weight(self) -> Mask:
        """Which arguments have a name that says `params` or the like."""
        return self._by_name(lambda name: _NAMED_WEIGHTS.search(name) is not None)

    @cached_property
    def is_named_optimizers(self) -> Mask:
        """Which arguments have a name that says `opt_state` or the like."""
        return self._by_name(lambda name: _NAMED_OPTIMIZER.search(name) is not None)

    def roles_in_training(self) -> Ints:
        """The roles if the program trains.

        What is updated by a gradient is a weight if the forward or backward pass reads it, and
        optimizer state if only the optimizer does. What is replaced otherwise is state, but for
        a count of steps, which is the optimizer's. Of the rest, the leaves of a container are
        frozen weights, unless they look like a batch, and all else is input.
        """
        is_optimizers = self.is_named_optimizers | (self.is_replaced & self._is_count)
        is_weight = self.is_trained & self.is_read_by_model
        is_optimizers |= self.is_trained & ~is_weight & self.is_read_by_optimizer
        # A weight of which there is no gradient, such as that of a router that only chooses.
        is_weight |= self.is_replaced & self.is_read_by_model & self.is_named_weight
        is_state = self.is_replaced | (self.is_in_container & self.has_own_result)
        is_frozen = self.is_in_container & ~self._is_batch(~is_weight & ~is_state, by_size=True)
        role = np.select(
            [is_optimizers, is_weight, is_state, is_frozen],
            [OPTIMIZER_STATE, WEIGHT, STATE, WEIGHT],
            INPUT,
        )
        return np.where(self._named.is_entry_parameter, role, NONE)

    def roles_without_training(self) -> Ints:
        """The roles if the program does not train.

        What an output replaces is state, as is a leaf of a container of whose type and dimensions
        there are as many outputs as arguments: a cache that is not donated. Other leaves are
        weights, but for those of a batch, and arrays are inputs.
        """
        is_state = self.is_replaced | (self.is_in_container & self.has_own_result)
        is_cache = self._by_name(lambda name: _NAMED_CACHE.search(name) is not None)
        is_state |= is_cache & ~self._is_index
        is_weight = self.is_in_container & ~self._is_batch(~is_state, by_size=False)
        role = np.select([is_state, is_weight], [STATE, WEIGHT], INPUT)
        return np.where(self._named.is_entry_parameter, role, NONE)

    @cached_property
    def is_in_container(self) -> Mask:
        """Which arguments have the name of a leaf of a container: `p['emb']`, `cache[0]`."""
        return self._by_name(
            lambda name: (
                ("[" in name or "." in name) and "/" not in name and not _STARRED.fullmatch(name)
            )
        )

    @cached_property
    def holds_data(self) -> Mask:
        """Which arguments are arrays of one dimension or more, and no random keys."""
        is_array: Mask = ~self._has_type("u32") & (self._first_dimension != NONE)
        return is_array

    @cached_property
    def _is_count(self) -> Mask:
        is_count: Mask = self._has_type("s32", "s64") & (self._first_dimension == NONE)
        return is_count

    @cached_property
    def _is_index(self) -> Mask:
        is_index: Mask = self._has_type("s32", "s64") & (self._first_dimension != NONE)
        return is_index

    def _is_batch(self, chosen: Mask, *, by_size: bool) -> Mask:
        """Which of the chosen arguments are leaves of a container of data.

        A batch has indices, or with `by_size` one first dimension, and is not named after weights.
        """
        container, count = self._container
        chosen = chosen & self._named.is_entry_parameter & ~self.is_named_weight
        size = self._first_dimension
        rows = np.flatnonzero(chosen & (size != NONE))
        is_of_data = np.zeros(count, bool)
        if by_size:
            smallest, largest = np.full(len(is_of_data), 1 << 62), np.zeros(len(is_of_data), int)
            np.minimum.at(smallest, container[rows], size[rows])
            np.maximum.at(largest, container[rows], size[rows])
            is_of_data = smallest >= largest
        is_of_data[container[rows[self._is_index[rows]]]] = True
        return chosen & is_of_data[container]

    @cached_property
    def _container(self) -> tuple[Ints, int]:
        """The container of each argument, and how many there are.

        An argument without a name counts as of the program's first container.
        """
        program, code = self._named.program, self._named.names.code
        program_of_name = np.zeros(len(self._named.names.texts) + 1, np.int64)
        program_of_name[code] = program.program_of
        number: dict[tuple[int, str], int] = {}
        of_name = np.zeros(len(program_of_name), np.int64)
        first = np.arange(len(program.entries))
        for name_code, name in self._names[::-1]:
            match = _CONTAINER.match(name)
            key = int(program_of_name[name_code]), match[0] if match else ""
            of_name[name_code] = number.setdefault(key, len(first) + len(number))
            first[key[0]] = of_name[name_code]
        container = np.where(code == NONE, first[program.program_of], of_name[code])
        return container, len(first) + len(number)

    @cached_property
    def _names(self) -> list[tuple[int, str]]:
        """The distinct names of arguments, with their numbers among the op_names."""
        names = self._named.names
        codes = np.unique(names.code[self._named.is_entry_parameter])
        return [(code, names.texts[code]) for code in codes.tolist() if code != NONE]

    def _by_name(self, holds: Callable[[str], bool]) -> Mask:
        by_code = np.zeros(len(self._named.names.texts) + 1, bool)
        by_code[[code for code, name in self._names if holds(name)]] = True
        by_instruction: Mask = by_code[self._named.names.code]
        return by_instruction

    @cached_property
    def _shapes(self) -> list[tuple[str, int]]:
        """The element type and first dimension of each shape of the program's instructions."""
        shapes = [_SHAPE.match(text) for text in self._named.program.shape.texts]
        return [(m[1], int(m[2]) if m[2] else NONE) if m else ("", NONE) for m in shapes]

    @cached_property
    def _first_dimension(self) -> Ints:
        sizes = [size for _, size in self._shapes]
        by_instruction: Ints = np.array(sizes, np.int64)[self._named.program.shape.codes]
        return by_instruction

    def _has_type(self, *types: str) -> Mask:
        has_type = [element_type in types for element_type, _ in self._shapes]
        by_instruction: Mask = np.array(has_type, bool)[self._named.program.shape.codes]
        return by_instruction


def _made_by(values: Values) -> Ints:
    """Which value each value is without copies and loops: the one that the last turn computes."""
    phis = Phis(values)
    source = np.arange(len(values.row))
    copies = values.of(*COPIES)
    operand = values.operand(copies, 0)
    source[copies] = np.where(operand != NONE, operand, copies)
    is_loop = values.named.program.opcode.is_one_of("while")[values.row[phis.loop_phis]]
    source[phis.loop_phis[is_loop]] = phis.computed[is_loop]
    return followed(source)


def _has_own_result(values: Values, slots: Ints) -> Mask:
    """The arguments, by instruction, whose shape at least as many of these slots have."""
    arguments = np.flatnonzero(values.named.is_entry_parameter[values.row] & values.is_array)
    program = values.named.program
    flow = values.named.dataflow

    def shapes(slots: Ints) -> Ints:
        """A number for the program and the plain shape of each slot."""
        program_of = program.program_of[flow.slots.instruction[slots]]
        return values.plain_shape(slots) * len(program.entries) + program_of

    shape, of_results = shapes(flow.defined_at[arguments]), shapes(slots)
    size = int(max(shape.max(initial=0), of_results.max(initial=0))) + 1
    suffices = np.bincount(of_results, minlength=size) >= np.bincount(shape, minlength=size)
    return _marked(values.named, values.row[arguments[suffices[shape]]])


def _replaced(values: Values, origins: Origins, alias_set: Ints, results: Ints) -> Mask:
    """The arguments, by instruction, whose place one of these results takes, or that it is."""
    named = values.named
    arguments = np.flatnonzero(named.is_entry_parameter[values.row])
    takes_place = np.isin(alias_set[arguments], alias_set[results])
    owner = origins.instruction[results]
    is_sure = (owner != NONE) & ~np.isin(origins.rule[results], (OPERAND, WEAK))
    rows = np.concatenate([values.row[arguments[takes_place]], owner[is_sure]])
    return _marked(named, rows) & named.is_entry_parameter


def _marked(named: Named, rows: Ints) -> Mask:
    """A mask by instruction that marks these."""
    marked = np.zeros(len(named.program), bool)
    marked[rows] = True
    return marked


def lives_out(values: Values) -> Mask:
    """Which values are part of the program's result."""
    is_result = np.zeros(len(values.row), bool)
    is_result[_results(values)[0]] = True
    return is_result


def _results(values: Values) -> tuple[Ints, Ints]:
    """The values that are part of a program's result, and the result's slot of each."""
    named = values.named
    slots, roots = named.dataflow.slots, named.program.root[named.program.entries]
    result_slots = joined(slots.start[roots], slots.count[roots])
    result_values = named.dataflow.value[result_slots]
    return result_values[result_values != NONE], result_slots[result_values != NONE]
