"""The values of a program: the schedule, positions, uses, phis and sizes."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..errors import LARGEST_ID, LARGEST_SIZE, DumpError
from ..runs import followed, joined
from ..shapes import ArrayShape, allocated_bytes
from .in_place import InPlaceRules, in_place_slots
from .parts import HloText
from .program import NONE, Ints, Mask, NumberedProgram, Slots, lay_slots

# Schedule: when each instruction runs, called computations included.

# The opcodes whose computations run as part of the schedule.
CONTROL_FLOW = ("call", "conditional", "while", "async-start")
# The attributes that name these computations, in the order in which they run.
_ATTRIBUTES = (
    "condition",
    "body",
    "to_apply",
    "calls",
    "true_computation",
    "false_computation",
    "branch_computations",
)


@dataclass(frozen=True)
class Schedule:
    """When instructions run. Times count from 0; an instruction that never runs has NONE.

    `order` has the rows of the instructions by time. By computation: `span_start`, the time of
    its first instruction, and `span_end`, the time after its last one (NONE if the control flow
    does not reach the computation); `caller`, the instruction that calls it; `operand_shift`,
    the difference between the caller's operand number and the parameter number; `async_start`,
    the innermost async-start around it, or NONE.
    """

    order: Ints
    time: Ints
    span_start: Ints
    span_end: Ints
    caller: Ints
    operand_shift: Ints
    async_start: Ints

    def __len__(self) -> int:
        return len(self.order)

    @property
    def is_reached(self) -> Mask:
        """Which computations the control flow reaches."""
        reached: Mask = self.span_end != NONE
        return reached


def flatten(
    program: NumberedProgram, *, order: Ints | None = None, is_shared: Mask | bool = False
) -> Schedule:
    """Flatten the computations that the control flow reaches into one schedule.

    The times of several programs follow each other.

    `order` has the rows of the instructions in the order in which each computation runs them, if
    that is not the text's.

    An instruction that calls computations comes after all of what it calls; a while calls
    its condition, then its body; a conditional its branches in their order. What an async-start
    runs comes before the instruction that binds the operands, which can be an async-update. The
    computations of fusions, reducers and comparators are not part of the schedule, because they
    run within the time of one instruction.

    Raises DumpError if one computation is called twice: XLA flattens the call graph before it
    schedules. With `is_shared`, by program, of several calls only the first runs the computation.
    """
    rows = np.arange(len(program)) if order is None else order
    place = np.empty(len(program), np.int64)
    place[rows] = np.arange(len(program))
    callers, callees, start = _flow_calls(program, place)
    computations = len(program.first)
    span_start, span_end = (np.full(computations, NONE) for _ in range(2))
    caller = np.full(computations, NONE)
    shift = np.zeros(computations, np.int64)
    async_start = np.full(computations, NONE)
    runs: list[tuple[int, int]] = []  # places of rows that run one after the other
    length = 0
    waiting: list[tuple[int, int, int]] = []  # computation, its next place, its next call
    start_of = np.full(len(program), NONE)
    async_starts = program.rows("async-start")
    start_of[program.async_binder[async_starts]] = async_starts
    is_conditional = program.opcode.is_one_of("conditional")
    is_call = program.opcode.is_one_of("call")
    may_share = np.broadcast_to(is_shared, len(program.entries))[program.program_of_computation]

    def enter(computation: int) -> None:
        span_start[computation] = length
        waiting.append((computation, int(program.first[computation]), int(start[computation])))

    entries = program.entries[::-1].tolist()
    while entries or waiting:
        if not waiting:
            enter(entries.pop())
        computation, at, call = waiting.pop()
        if call == start[computation + 1]:
            stop = int(program.stop[computation])
            runs.append((at, stop))
            length += stop - at
            span_end[computation] = length
            continue
        calling, called = int(callers[call]), int(callees[call])
        if span_start[called] != NONE and may_share[called] and is_call[calling]:
            waiting.append((computation, at, call + 1))
            continue
        if span_start[called] != NONE:
            raise DumpError(
                f"computation {program.computation_names[called]} is called twice, "
                f"the second time by {program.names[calling]}",
                program.line(calling),
            )
        until = int(place[calling])
        if at < until:
            runs.append((at, until))
            length += until - at
        caller[called] = calling
        if is_conditional[calling]:
            # Operand 0 is the condition; branch k takes operand k + 1.
            first_call = int(np.searchsorted(place[callers], until))
            shift[called] = 1 + call - first_call
        if start_of[calling] != NONE:
            async_start[called] = start_of[calling]
            # An async-update binds its operands after the async-start, which is operand 0.
            shift[called] = int(start_of[calling] != calling)
        else:
            async_start[called] = async_start[computation]
        waiting.append((computation, max(at, until), call + 1))
        enter(called)
    starts, stops = np.array(runs, np.int64).reshape(-1, 2).T
    order = rows[joined(starts, stops - starts)]
    time = np.full(len(program), NONE)
    time[order] = np.arange(len(order))
    return Schedule(order, time, span_start, span_end, caller, shift, async_start)


def _flow_calls(program: NumberedProgram, place: Ints) -> tuple[Ints, Ints, Ints]:
    """The calls of the control flow, by the caller's place and order: callers, callees.

    The third array has the place where the calls of each computation's instructions start.
    """
    rank = np.array(
        [
            _ATTRIBUTES.index(text) if text in _ATTRIBUTES else NONE
            for text in program.call_attribute.texts
        ]
        or [NONE],
        np.int64,
    )[program.call_attribute.codes]
    is_control_flow = program.opcode.is_one_of(*CONTROL_FLOW)[program.call_row] & (rank != NONE)
    calls = np.flatnonzero(is_control_flow)
    callers = program.async_binder[program.call_row[calls]]
    in_order = np.lexsort((calls, rank[calls], place[callers]))
    calls, callers = calls[in_order], callers[in_order]
    start = np.searchsorted(place[callers], np.append(program.first, len(program)))
    # Computations are in the text's order, so that the calls of one end where those of the next
    # start.
    return callers, program.call_computation[calls], start


def find_regions(program: NumberedProgram, schedule: Schedule) -> Ints:
    """The regions: computations that run within one instruction's time and define values.

    These are reducers, comparators and the like, also if a fused computation calls them. A fused
    computation is no region, because its instructions have no buffers, nor is that of a fusion
    that XLA starts asynchronously. What a custom call offloads to a sparse core is a region with
    calls and asynchronous pairs. Raises DumpError for a loop or a conditional in a region.
    """
    is_fused = np.zeros(len(program.first), bool)
    by_fusion = program.opcode.is_one_of("fusion", "fusion-start")[program.call_row]
    is_fused[program.call_computation[by_fusion]] = True
    caller = program.computation[program.call_row]
    is_used = schedule.is_reached.copy()
    while True:
        # Each round goes one call further in.
        with_callees = is_used.copy()
        with_callees[program.call_computation[is_used[caller]]] = True
        if np.array_equal(with_callees, is_used):
            break
        is_used = with_callees
    is_region = is_used & ~is_fused & ~schedule.is_reached
    branching = program.rows("while", "conditional")
    program.require(
        branching, ~is_region[program.computation[branching]], "is control flow within a region"
    )
    return np.flatnonzero(is_region)


# Phis: the merged values of loops and conditionals, and which of them are other values.


def resolve_phis(source: Ints, phi: Ints, phi_input: Ints) -> Ints:
    """Replace phis that merge only one value by that value.

    `source` is the slot whose value is at each slot; (phi, phi_input) are pairs of slots, with the
    phis in the order in which XLA makes them. The result is the new `source`.
    """
    graph = _PhiGraph(phi.tolist(), source[phi_input].tolist())
    graph.resolve()
    value = np.arange(len(source))
    phis = list(graph.inputs)
    value[phis] = [graph.value_of(node) for node in phis]
    resolved: Ints = value[source]
    return resolved


class _PhiGraph:
    """The phis and the values that they merge, by slot: what XLA's PhiGraph::Optimize does to them.

    A phi is replaced in two cases:

    - its inputs, without the phi itself, are one value;
    - only one value that is not a phi reaches the phi, through any number of phis.

    What replaces a phi does not take over its users, so that a later replacement does not reach
    them. So XLA keeps several phis where a loop hands on what an outer loop changes, if two loops
    more are nested in it.
    """

    def __init__(self, phis: list[int], merged: list[int]) -> None:
        self.inputs: dict[int, list[int]] = {}
        self.users: dict[int, list[int]] = {}
        self.replaced_by: dict[int, int] = {}
        for phi, value in zip(phis, merged, strict=True):
            self.inputs.setdefault(phi, []).append(value)
            self.users.setdefault(value, []).append(phi)

    def value_of(self, node: int) -> int:
        """The phi or value that stands for a node."""
        while node in self.replaced_by:
            node = self.replaced_by[node]
        return node

    def resolve(self) -> None:
        """Replace phis until none is left to replace."""
        is_changed = True
        while is_changed:
            count, checked = len(self.replaced_by), set[int]()
            for phi in self.inputs:
                if phi not in self.replaced_by:
                    self._resolve_one(phi, checked)
            is_changed = len(self.replaced_by) > count

    def _resolve_one(self, phi: int, checked: set[int]) -> None:
        """Replace one phi, or all that reach it. `checked` are those of earlier searches."""
        self.inputs[phi] = inputs = [value for value in self.inputs[phi] if value != phi]
        self.users[phi] = [user for user in self.users.get(phi, ()) if user != phi]
        if len(set(inputs)) == 1:
            self._replace(phi, inputs[0])
        elif phi not in checked:
            reaching, values = self._reaching(phi)
            checked.update(reaching)
            if len(values) == 1:
                for node in reaching:
                    if node in self.inputs:
                        self._replace(node, values[0])

    def _reaching(self, phi: int) -> tuple[list[int], list[int]]:
        """The nodes that reach a phi, breadth first up to the second that is no phi; the latter."""
        nodes, seen, values = [phi], {phi}, []
        for at, node in enumerate(nodes):
            if node not in self.inputs:
                values.append(node)
                if len(values) > 1:
                    # Those that wait behind it are not visited.
                    return nodes[: at + 1], values
            for value in self.inputs.get(node, ()):
                if value not in seen:
                    seen.add(value)
                    nodes.append(value)
        return nodes, values

    def _replace(self, phi: int, value: int) -> None:
        value = self.value_of(value)
        if phi in self.replaced_by or phi == value:
            return
        for user in self.inputs.keys() & self.users.get(phi, ()):
            self.inputs[user] = [value if node == phi else node for node in self.inputs[user]]
        for node in self.inputs[phi]:
            self.users[node] = [value if user == phi else user for user in self.users[node]]
        self.replaced_by[phi] = value


# Forwarding: which values each opcode defines, and which it forwards.
#
# The rules are XLA's HloDataflowAnalysis. For an opcode in none of the tables below a rule is
# assumed (`is_assumed`): it defines a value at each of its sub-shapes, as most opcodes do, and an
# asynchronous pair passes operands and results on, as XLA's other pairs do.

# These define a value at each of their sub-shapes.
_DEFAULT = """
abs acos acosh add after-all all-gather all-reduce all-reduce-start all-to-all and asin asinh
atan2 atanh batch-norm-grad batch-norm-inference batch-norm-training bitcast-convert broadcast
cbrt ceil cholesky clamp collective-broadcast collective-permute collective-reduce compare complex
concatenate constant convert convolution cosh cosine count-leading-zeros custom-call divide dot
dynamic-reshape dynamic-slice dynamic-update-slice erf exponential exponential-minus-one fft
floor fusion gather get-dimension-size imag infeed iota is-finite log log-plus-one logistic
map maximum minimum mulhi multiply negate not or outfeed pad partition-id popcnt power
ragged-all-to-all ragged-dot real recv reduce reduce-precision reduce-scatter reduce-window
remainder replica-id reshape reverse rng rng-bit-generator rng-get-and-update-state
round-nearest-afz round-nearest-even rsqrt scaled-dot scan scatter select select-and-scatter
send-done set-dimension-size shift-left shift-right-arithmetic shift-right-logical shuffle sign sine
sinh slice sort sqrt stochastic-convert subtract tan tanh topk transpose triangular-solve xor
"""
# These define nothing: they are their operand under another name.
_IS_OPERAND = ("bitcast", "opt-barrier", "optimization-barrier", "add-dependency", "domain",
               "all-reduce-done")  # fmt: skip
_DONE = ("all-gather-done", "collective-permute-done")
_OTHER = ("parameter", "get-tuple-element", "tuple", "copy", "while", "conditional", "call",
          "copy-start", "copy-done", "async-start", "async-update", "async-done",
          "all-gather-start", "collective-permute-start", "send", "recv-done")  # fmt: skip
KNOWN_OPCODES = frozenset(_DEFAULT.split()).union(_IS_OPERAND, _DONE, _OTHER)


def is_assumed(program: NumberedProgram) -> Mask:
    """Which instructions have an opcode without a rule of its own, so that one is assumed."""
    unknown = [text for text in program.opcode.texts if text not in KNOWN_OPCODES]
    return program.opcode.is_one_of(*unknown)


class Forwarding:
    """Which slot has the value of which other slot, collected rule by rule.

    By slot: `source` is the slot that it has its value from, itself where a value is defined;
    `has_no_value` marks the few slots without any value.
    """

    def __init__(self, program: NumberedProgram, slots: Slots) -> None:
        self.program, self.slots = program, slots
        self.source = np.arange(len(slots))
        self.has_no_value = np.zeros(len(slots), bool)

    def forward(self, to: Ints, origin: Ints, *, leaves: bool = False) -> None:
        """Let all slots within the shape at `to` have the values of those within `origin`.

        With `leaves`, only the slots that are no tuples. Raises DumpError if the shapes differ.
        """
        slots, source = pairs(self.program, self.slots, to, origin)
        if leaves:
            is_leaf = self.slots.is_leaf[slots]
            slots, source = slots[is_leaf], source[is_leaf]
        self.source[slots] = source

    def element(self, slots: Ints, number: Ints | int) -> Ints:
        """The slot of an element. Raises DumpError where the shape has no such element."""
        rows = self.slots.instruction[slots]
        has_element = self.slots.element_count(slots) > number
        self.program.require(rows, has_element, "lacks a tuple element that the text refers to")
        return self.slots.element(slots, number)


def pairs(program: NumberedProgram, slots: Slots, to: Ints, origin: Ints) -> tuple[Ints, Ints]:
    """All slots within the shapes at `to`, and those at the same places within `origin`."""
    counts = slots.size[to]
    rows = slots.instruction[to]
    program.require(rows, slots.size[origin] == counts, "and its operand differ in shape")
    return joined(to, counts), joined(origin, counts)


def forward_within(program: NumberedProgram, slots: Slots, chosen: Mask) -> Forwarding:
    """Forwarding by the opcodes that forward their operands, without calls.

    `chosen` are the instructions that have slots.
    """
    flow = Forwarding(program, slots)
    _forward_tuples(flow, chosen)
    for opcodes, rule in _RULES:
        rows = np.flatnonzero(program.opcode.is_one_of(*opcodes) & chosen)
        if len(rows):
            rule(flow, rows)
    _assumed_pairs(flow, np.flatnonzero(is_assumed(program) & chosen))
    return flow


def _forward_tuples(flow: Forwarding, chosen: Mask) -> None:
    """A tuple defines `{}` and forwards its operands as its elements."""
    program = flow.program
    at = np.flatnonzero((program.opcode.is_one_of("tuple") & chosen)[program.operand_row])
    owner = program.operand_row[at]
    number = at - program.operand_start[owner]
    slots = flow.slots
    flow.forward(flow.element(slots.whole(owner), number), slots.whole(program.operands[at]))


def _operand(flow: Forwarding, rows: Ints) -> None:
    """Defines nothing and forwards its first operand."""
    flow.forward(flow.slots.whole(rows), flow.slots.whole(flow.program.operand(rows, 0)))


def _get_tuple_element(flow: Forwarding, rows: Ints) -> None:
    """Defines nothing and forwards an element of its operand."""
    number = flow.program.tuple_index[rows]
    flow.program.require(rows, number >= 0, "has no index")
    operand = flow.slots.whole(flow.program.operand(rows, 0))
    flow.forward(flow.slots.whole(rows), flow.element(operand, number))


def _copy(flow: Forwarding, rows: Ints) -> None:
    """A copy defines `{}`; of a tuple it copies the table only and forwards the elements."""
    to, origin = pairs(
        flow.program,
        flow.slots,
        flow.slots.whole(rows),
        flow.slots.whole(flow.program.operand(rows, 0)),
    )
    deeper = to != flow.slots.whole(flow.slots.instruction[to])
    flow.source[to[deeper]] = origin[deeper]


def _copy_start(flow: Forwarding, rows: Ints) -> None:
    """Defines `{}`, the new buffer `{0}` and the context `{2}`; `{1}` is the operand."""
    operand = flow.slots.whole(flow.program.operand(rows, 0))
    flow.forward(flow.element(flow.slots.whole(rows), 1), operand)


def _element_0_is_operand(flow: Forwarding, rows: Ints) -> None:
    """A send defines `{}`, `{1}` and `{2}`; `{0}` is the operand."""
    operand = flow.slots.whole(flow.program.operand(rows, 0))
    flow.forward(flow.element(flow.slots.whole(rows), 0), operand)


def _copy_done(flow: Forwarding, rows: Ints) -> None:
    """Defines nothing and forwards the new buffer, `{0}` of its copy-start."""
    start = flow.slots.whole(flow.program.operand(rows, 0))
    flow.forward(flow.slots.whole(rows), flow.element(start, 0))


def _recv_done(flow: Forwarding, rows: Ints) -> None:
    """Defines `{}` and `{1}`; `{0}` is that of its recv."""
    recv = flow.slots.whole(flow.program.operand(rows, 0))
    flow.forward(flow.element(flow.slots.whole(rows), 0), flow.element(recv, 0))


def _done(flow: Forwarding, rows: Ints) -> None:
    """The leaves are those of `{1}` of its start; the table of a tuple is a new value."""
    start = flow.slots.whole(flow.program.operand(rows, 0))
    flow.forward(flow.slots.whole(rows), flow.element(start, 1), leaves=True)


def _async_update(flow: Forwarding, rows: Ints) -> None:
    """An async-update defines the tables of its tuples; the leaves are its operand's.

    One that binds operands changes the shape: it defines its contexts, and `{0,i}` is the operand
    after the async-start and i more.
    """
    binds = flow.program.operand_count[rows] > 1
    _inputs_of_start(flow, rows[binds], first_operand=1)
    rows = rows[~binds]
    operand = flow.slots.whole(flow.program.operand(rows, 0))
    flow.forward(flow.slots.whole(rows), operand, leaves=True)


def _inputs_of_start(flow: Forwarding, rows: Ints, first_operand: int = 0) -> None:
    """An async-start defines `{}`, `{0}` and its contexts; `{0,i}` is its operand i."""
    inputs = flow.element(flow.slots.whole(rows), 0)
    counts = flow.slots.element_count(inputs)
    owner = np.repeat(rows, counts)
    number = joined(np.zeros(len(rows), np.int64), counts)
    operand = flow.slots.whole(flow.program.operand(owner, number + first_operand))
    flow.forward(flow.slots.element(np.repeat(inputs, counts), number), operand)


def _collective_start(flow: Forwarding, rows: Ints) -> None:
    """If `{0}` is a tuple, `{0,i}` is operand i; otherwise `{0}` is operand 0."""
    inputs = flow.element(flow.slots.whole(rows), 0)
    is_tuple = ~flow.slots.is_leaf[inputs]
    _element_0_is_operand(flow, rows[~is_tuple])
    _inputs_of_start(flow, rows[is_tuple])


def _collective_permute_start(flow: Forwarding, rows: Ints) -> None:
    """As the other collectives, but a tuple `{0}` of several operands has no value itself."""
    _collective_start(flow, rows)
    several = rows[flow.program.operand_count[rows] > 1]
    inputs = flow.element(flow.slots.whole(several), 0)
    flow.has_no_value[inputs[~flow.slots.is_leaf[inputs]]] = True


def _assumed_pairs(flow: Forwarding, rows: Ints) -> None:
    """The asynchronous pairs without a rule, such as all-to-all-start and all-to-all-done.

    XLA prints an async-start as the start of what its computation does, and has a few pairs that
    are opcodes of their own. A start is `(operands, results, contexts…)`. An end forwards what
    has its shape: the results of the start, or else the whole operand. What has another form
    defines all of its values.
    """
    program, slots = flow.program, flow.slots
    starts, updates, dones = (
        rows[program.opcode.is_one_of(*(t for t in program.opcode.texts if t.endswith(end)))[rows]]
        for end in ("-start", "-update", "-done")
    )
    starts = starts[slots.element_count(slots.whole(starts)) > 1]
    inputs = slots.element(slots.whole(starts), 0)
    is_one = slots.is_leaf[inputs]
    counts = np.where(is_one, 1, slots.element_count(inputs))
    fits = counts == program.operand_count[starts]
    inputs, is_one, counts, starts = inputs[fits], is_one[fits], counts[fits], starts[fits]
    number = joined(np.zeros(len(starts), np.int64), counts)
    operand = slots.whole(
        program.operands[np.repeat(program.operand_start[starts], counts) + number]
    )
    inputs, is_one = np.repeat(inputs, counts), np.repeat(is_one, counts)
    inputs[~is_one] = slots.element(inputs[~is_one], number[~is_one])
    _forward_equal(flow, inputs, operand)
    ends = np.concatenate([updates, dones])
    ends = ends[program.operand_count[ends] > 0]
    operand = slots.whole(program.operand(ends, 0))
    _forward_equal(flow, slots.whole(ends), operand, leaves=True)
    is_done = np.isin(ends, dones) & (slots.element_count(operand) > 1)
    results = slots.element(operand[is_done], 1)
    _forward_equal(flow, slots.whole(ends[is_done]), results, leaves=True)


def _forward_equal(flow: Forwarding, to: Ints, origin: Ints, *, leaves: bool = False) -> None:
    """Forward where both shapes have equally many sub-shapes."""
    fits = flow.slots.size[to] == flow.slots.size[origin]
    flow.forward(to[fits], origin[fits], leaves=leaves)


_RULES: tuple[tuple[tuple[str, ...], Callable[[Forwarding, Ints], None]], ...] = (
    (_IS_OPERAND, _operand),
    (("get-tuple-element",), _get_tuple_element),
    (("copy",), _copy),
    (("copy-start",), _copy_start),
    (("copy-done",), _copy_done),
    (("send",), _element_0_is_operand),
    (("recv-done",), _recv_done),
    (("async-start",), _inputs_of_start),
    (("async-update",), _async_update),
    (("all-gather-start",), _collective_start),
    (("collective-permute-start",), _collective_permute_start),
    (_DONE, _done),
)


def forward_calls(
    flow: Forwarding,
    schedule: Schedule,
    chosen: Mask,
    in_place: tuple[Ints, Ints],
    *,
    is_written_at_start: Mask | bool,
) -> None:
    """Forwarding between callers and the computations of calls, branches and async-starts.

    A parameter of a called computation is the caller's operand, but in a region it is a value of
    its own; a call is the root of its computation; the leaves of an async-done, and of `{1}` of
    what binds its operands, are the leaves of the computation's root; those of an async-done of
    what a loop carries are those of `{1}` of that. `chosen` are the instructions that have slots.
    `is_written_at_start` is as of `trace_values`.
    """
    program, slots = flow.program, flow.slots
    reached = schedule.is_reached[program.computation]
    rows = np.flatnonzero(reached & program.opcode.is_one_of("parameter"))
    caller = schedule.caller[program.computation[rows]]
    is_called = (caller >= 0) & ~program.opcode.is_one_of("while")[caller]
    rows, caller = rows[is_called], caller[is_called]
    number = program.parameter_number[rows] + schedule.operand_shift[program.computation[rows]]
    program.require(rows, number < program.operand_count[caller], "has no operand of its caller")
    flow.forward(
        slots.whole(rows), slots.whole(program.operands[program.operand_start[caller] + number])
    )
    calls = program.rows("call")
    calls = calls[chosen[calls]]
    is_first = schedule.caller[program.callee(calls, "to_apply", "calls")] == calls
    calls = calls[is_first | (schedule.time[calls] == NONE)]
    flow.forward(slots.whole(calls), slots.whole(program.called_root(calls)))
    starts = program.rows("async-start")
    starts = starts[chosen[starts]]
    root = slots.whole(program.called_root(starts))
    flow.forward(flow.element(slots.whole(program.async_binder[starts]), 1), root, leaves=True)
    at_done = ~np.broadcast_to(is_written_at_start, len(program.entries))
    _forward_written(flow, starts[at_done[program.program_of[starts]]], in_place)
    dones = program.rows("async-done")
    dones = dones[chosen[dones]]
    start = program.async_start[dones]
    dones, carried = dones[start != NONE], dones[start == NONE]
    root = slots.whole(program.called_root(start[start != NONE]))
    flow.forward(slots.whole(dones), root, leaves=True)
    result = flow.element(slots.whole(program.operand(carried, 0)), 1)
    flow.forward(slots.whole(carried), result, leaves=True)


def _forward_written(flow: Forwarding, starts: Ints, in_place: tuple[Ints, Ints]) -> None:
    """An update in place is complete only at the async-done.

    If the root of an async-start's computation updates a parameter in place, `{1}` has the value
    of the async-start's operand until then. What a fusion updates is new from the start on, and
    so is what a computation updates whose operands an async-update binds.
    """
    program, slots = flow.program, flow.slots
    starts = starts[program.async_binder[starts] == starts]
    starts = starts[~program.opcode.is_one_of("fusion")[program.called_root(starts)]]
    root = program.called_root(starts)
    start_of = np.full(len(program), NONE)
    start_of[root] = starts
    operand, written = in_place
    start = start_of[slots.instruction[written]]
    is_parameter = program.opcode.is_one_of("parameter")[slots.instruction[operand]]
    updates = np.flatnonzero((start != NONE) & is_parameter & slots.is_leaf[written])
    operand, written, start = operand[updates], written[updates], start[updates]
    place_in_shape = written - slots.whole(slots.instruction[written])
    flow.source[flow.element(slots.whole(start), 1) + place_in_shape] = operand


# Values: where each is defined, its positions and its uses.
#
# A *value* is the array, or the table of a tuple, that one instruction defines at one index of its
# shape. Its *positions* are all instructions and indices that have it, its *uses* are the operands
# that read it. The rules are XLA's HloDataflowAnalysis in SSA form.

# These do not read their operands: a tuple only refers to its elements.
_READS_NOTHING = ("tuple", "domain")
# These read the table of a tuple, not its elements.
_READS_TABLE_ONLY = ("get-tuple-element", "copy")


@dataclass(frozen=True)
class Dataflow:
    """The values of a program, numbered from 0 in the order of the text.

    `value` is the value at each slot, or NONE. By value: `defined_at`, the slot that defines it;
    `is_phi`, whether a loop or conditional merges it. By use: `use_value`; `use_instruction`,
    the reader; `use_operand`, the operand's number; `use_slot`, the slot of the operand that is
    read. The in-place pairs are the slots of an operand and of the result that shares its
    memory.
    """

    slots: Slots
    value: Ints
    defined_at: Ints
    is_phi: Mask
    use_value: Ints
    use_instruction: Ints
    use_operand: Ints
    use_slot: Ints
    in_place_operand: Ints
    in_place_result: Ints

    def __len__(self) -> int:
        return len(self.defined_at)

    @cached_property
    def instruction(self) -> Ints:
        """Each value's defining instruction."""
        defining: Ints = self.slots.instruction[self.defined_at]
        return defining

    def values_table(self) -> pa.Table:
        """Columns: value_id, instruction_id, shape_index, is_phi."""
        return pa.table(
            {
                "value_id": pa.array(np.arange(len(self)), pa.int32()),
                "instruction_id": pa.array(self.instruction, pa.int32()),
                "shape_index": self.slots.index.take(pa.array(self.defined_at)),
                "is_phi": pa.array(self.is_phi),
            }
        )

    def positions_table(self) -> pa.Table:
        """Columns: value_id, instruction_id, shape_index; by value, then in the text's order."""
        slots = np.flatnonzero(self.value != NONE)
        slots = slots[np.argsort(self.value[slots], kind="stable")]
        return pa.table(
            {
                "value_id": pa.array(self.value[slots], pa.int32()),
                "instruction_id": pa.array(self.slots.instruction[slots], pa.int32()),
                "shape_index": self.slots.index.take(pa.array(slots)),
            }
        )

    def uses_table(self) -> pa.Table:
        """Columns: value_id, instruction_id, operand_number, operand_shape_index."""
        order = np.argsort(self.use_value, kind="stable")
        return pa.table(
            {
                "value_id": pa.array(self.use_value[order], pa.int32()),
                "instruction_id": pa.array(self.use_instruction[order], pa.int32()),
                "operand_number": pa.array(self.use_operand[order], pa.int32()),
                "operand_shape_index": self.slots.index.take(pa.array(self.use_slot[order])),
            }
        )


def trace_values(
    program: NumberedProgram,
    schedule: Schedule,
    regions: Ints,
    rules: InPlaceRules,
    *,
    is_written_at_start: Mask | bool = False,
) -> Dataflow:
    """Find the values of the scheduled computations, and of `regions`.

    A region, such as a reducer, is applied to elements, so that its parameters define values.
    With `is_written_at_start`, by program, what an async-start updates in place is the new value
    from there on, otherwise from the async-done on. Raises DumpError where an instruction does
    not fit its operands.
    """
    has_values = schedule.is_reached.copy()
    has_values[regions] = True
    chosen = has_values[program.computation]
    slots = lay_slots(program, chosen)
    flow = forward_within(program, slots, chosen)
    in_place = in_place_slots(program, slots, rules)
    forward_calls(flow, schedule, chosen, in_place, is_written_at_start=is_written_at_start)
    phi, phi_input = _phis(flow, schedule)
    source = resolve_phis(followed(flow.source), phi, phi_input)
    is_value = (source == np.arange(len(source))) & ~flow.has_no_value
    number = np.where(is_value, np.cumsum(is_value) - 1, NONE)
    value = number[source]
    defined_at = np.flatnonzero(is_value)
    is_phi_slot = np.zeros(len(slots), bool)
    is_phi_slot[phi] = True
    return Dataflow(
        slots,
        value,
        defined_at,
        is_phi_slot[defined_at],
        *_uses(program, slots, value, chosen),
        *in_place,
    )


def _phis(flow: Forwarding, schedule: Schedule) -> tuple[Ints, Ints]:
    """Pairs (slot, input) of all slots that merge values, by slot in the order XLA makes them.

    A while merges the root of its body and its operand at each index; the parameters of its body
    and its condition merge the same two. A conditional merges the roots of its branches.

    XLA finds that values meet once a body's root has them: inner loops come before outer ones,
    and of a loop its condition, its body, then itself.
    """
    program, slots = flow.program, flow.slots
    loops = program.rows("while")
    loops = loops[schedule.time[loops] != NONE]
    body, condition = program.callee(loops, "body"), program.callee(loops, "condition")
    first, last = program.operand(loops, 0), program.root[body]
    branches = np.flatnonzero(
        program.opcode.is_one_of("conditional")[schedule.caller] & (schedule.caller != NONE)
    )
    branching = schedule.caller[branches]
    condition, body = (program.parameter_of(of, 0, loops) for of in (condition, body))
    # What merges, what it merges, the instruction whose time it has, its place at that time.
    merging = (
        (condition, first, loops, 0),
        (condition, last, loops, 0),
        (body, first, loops, 1),
        (body, last, loops, 1),
        (loops, last, loops, 2),
        (loops, first, loops, 2),
        (branching, program.root[branches], branching, 2),
    )
    to, origin, order = [], [], []
    for rows, entering, at, rank in merging:
        phi, phi_input = pairs(program, slots, slots.whole(rows), slots.whole(entering))
        to.append(phi)
        origin.append(phi_input)
        order.append(np.repeat(schedule.time[at] * 3 + rank, slots.count[rows]))
    phi, phi_input, place = (np.concatenate(columns) for columns in (to, origin, order))
    by_place = np.lexsort((phi, place))
    return phi[by_place], phi_input[by_place]


def _uses(
    program: NumberedProgram, slots: Slots, value: Ints, chosen: Mask
) -> tuple[Ints, Ints, Ints, Ints]:
    """The uses of all values: value, instruction, operand number, slot of the operand.

    A root is a user of each value at its positions, even if it only forwards the value.
    """
    is_root = np.zeros(len(program), bool)
    is_root[program.root] = True
    reads_nothing = program.opcode.is_one_of(*_READS_NOTHING)
    reads_table_only = program.opcode.is_one_of(*_READS_TABLE_ONLY)
    at = np.flatnonzero((chosen & (is_root | ~reads_nothing))[program.operand_row])
    owner, operand = program.operand_row[at], program.operands[at]
    counts = np.where(reads_table_only[owner] & ~is_root[owner], 1, slots.count[operand])
    slot = joined(slots.whole(operand), counts)
    user = np.repeat(owner, counts)
    number = np.repeat(at - program.operand_start[owner], counts)
    used = value[slot]
    reads = ~reads_nothing[user] & ~(
        reads_table_only[user] & (slot != slots.whole(slots.instruction[slot]))
    )
    not_reading = np.flatnonzero(~reads)
    reads[not_reading] = _has_position(slots, value, user[not_reading], used[not_reading])
    reads &= used != NONE
    return used[reads], user[reads], number[reads], slot[reads]


def _has_position(slots: Slots, value: Ints, rows: Ints, values: Ints) -> Mask:
    """Whether each of these instructions is a position of the value beside it, at any index."""
    distinct = np.unique(rows)
    positions = joined(slots.whole(distinct), slots.count[distinct])
    width = len(slots) + 1
    position_keys = slots.instruction[positions] * width + value[positions]
    has_position: Mask = np.isin(rows * width + values, position_keys)
    return has_position


# Sizes: the bytes of each value by its shape and the platform.

CPU, GPU, TPU = "cpu", "gpu", "tpu"

_POINTER_BYTES = {CPU: 8, GPU: 8, TPU: 4}
# 512 on v5e; v5p and v6e round to 32, but the text does not name the device. The difference is
# less than 0.005 % of a peak.
_TPU_TABLE_UNIT = 512


@dataclass(frozen=True)
class Sizes:
    """Of each value: its bytes with padding, and its memory space."""

    size: Ints
    space: Ints


def platform_of(hlo: HloText) -> str:
    """The platform that the text was compiled for; a tiled layout means TPU."""
    shapes = pc.unique(hlo.instructions["shape"])
    if pc.any(pc.match_substring(shapes, ":T(")).as_py():
        return TPU
    return GPU if hlo.attributes().is_gpu else CPU


def value_sizes(dataflow: Dataflow, platform: str) -> Sizes:
    """The bytes and memory space of each value. Raises DumpError for an unbounded shape.

    The size of a tuple is that of its table of pointers, which is in space 0.
    """
    slots = dataflow.slots
    at = dataflow.defined_at
    array = slots.array[at]
    is_array = array >= 0
    arrays = slots.trees.arrays
    try:
        bytes_of = np.array([array_bytes(shape, platform) for shape in arrays] or [0], np.int64)
    except ValueError as error:
        raise DumpError(str(error)) from None
    space_of = np.array([shape.memory_space for shape in arrays] or [0], np.int64)
    table = _table_bytes(slots, at, platform)
    return Sizes(np.where(is_array, bytes_of[array], table), np.where(is_array, space_of[array], 0))


def array_bytes(shape: ArrayShape, platform: str) -> int:
    """An array's bytes as XLA allocates them on the platform.

    Raises ValueError for an unbounded shape, or one beyond all memory.
    """
    size = allocated_bytes(shape, platform == TPU)
    if size > LARGEST_SIZE or shape.memory_space > LARGEST_ID:
        raise ValueError(f"shape {str(shape)[:80]!r} is larger than any memory")
    return size


def _table_bytes(slots: Slots, at: Ints, platform: str) -> Ints:
    """The bytes of a tuple's table of pointers."""
    table = slots.element_count(at) * _POINTER_BYTES[platform]
    if platform == TPU:
        table = -(-table // _TPU_TABLE_UNIT) * _TPU_TABLE_UNIT
    return table
