"""What each opcode does with values: which it defines, and which it forwards.

The rules are XLA's HloDataflowAnalysis. An opcode that is in none of the tables below is
refused by name, because a guess would give wrong live ranges without a word.
"""

from collections.abc import Callable

import numpy as np

from ...schema.address_space.runs import joined
from ..errors import DumpError
from .flattening import Schedule
from .numbered_program import NONE, Ints, Mask, NumberedProgram
from .slots import Slots

# Each of its sub-shapes is a value of its own.
_DEFAULT = """
abs acos acosh add after-all all-gather all-reduce all-reduce-start all-to-all and asin asinh
atan2 atanh batch-norm-grad batch-norm-inference batch-norm-training bitcast-convert broadcast
cbrt ceil cholesky clamp collective-broadcast collective-permute compare complex concatenate
constant convert convolution cosh cosine count-leading-zeros custom-call divide dot
dynamic-reshape dynamic-slice dynamic-update-slice erf exponential exponential-minus-one fft
floor fusion gather get-dimension-size imag infeed iota is-finite log log-plus-one logistic
map maximum minimum multiply negate not or outfeed pad partition-id popcnt power
ragged-all-to-all ragged-dot real recv reduce reduce-precision reduce-scatter reduce-window
remainder replica-id reshape reverse rng rng-bit-generator rng-get-and-update-state
round-nearest-afz round-nearest-even rsqrt scaled-dot scatter select select-and-scatter
send-done set-dimension-size shift-left shift-right-arithmetic shift-right-logical sign sine
sinh slice sort sqrt stochastic-convert subtract tan tanh topk transpose triangular-solve xor
"""
# Defines nothing: it is its operand under another name.
_IS_OPERAND = ("bitcast", "opt-barrier", "optimization-barrier", "add-dependency", "domain",
               "all-reduce-done")  # fmt: skip
_DONE = ("all-gather-done", "collective-permute-done")
_OTHER = ("parameter", "get-tuple-element", "tuple", "copy", "while", "conditional", "call",
          "copy-start", "copy-done", "async-start", "async-update", "async-done",
          "all-gather-start", "collective-permute-start", "send", "recv-done")  # fmt: skip
KNOWN_OPCODES = frozenset(_DEFAULT.split()).union(_IS_OPERAND, _DONE, _OTHER)


def check_opcodes(program: NumberedProgram, rows: Ints) -> None:
    """Raise DumpError if one of these instructions has an opcode that no rule covers."""
    unknown = np.array([text not in KNOWN_OPCODES for text in program.opcode.texts], bool)
    at = rows[unknown[program.opcode.codes[rows]]]
    if len(at):
        row = int(at[0])
        raise DumpError(
            f"there is no dataflow rule for opcode {program.opcode.at(row)} "
            f"of instruction {program.names[row]}",
            program.line(row),
        )


class Forwarding:
    """Collects which slot holds the value of which other slot.

    `source` is that other slot, or the slot itself where a value is defined.
    `holds_none` marks the few slots that hold no value at all.
    """

    def __init__(self, program: NumberedProgram, slots: Slots) -> None:
        self.program, self.slots = program, slots
        self.source = np.arange(len(slots))
        self.holds_none = np.zeros(len(slots), bool)

    def forward(self, to: Ints, origin: Ints, *, leaves: bool = False) -> None:
        """Let the sub-shapes from each slot `to` on hold what those from `origin` on hold.

        With `leaves`, only what is not a tuple. Raises DumpError if the shapes differ.
        """
        at, value = pairs(self.program, self.slots, to, origin)
        if leaves:
            chosen = self.slots.is_leaf[at]
            at, value = at[chosen], value[chosen]
        self.source[at] = value

    def element(self, slots: Ints, number: Ints | int) -> Ints:
        """The slot of an element. Raises DumpError where the shape has no such element."""
        rows = self.slots.instruction[slots]
        have = self.slots.element_count(slots) > number
        self.program.require(rows, have, "lacks a tuple element that the text refers to")
        return self.slots.element(slots, number)


def pairs(program: NumberedProgram, slots: Slots, to: Ints, origin: Ints) -> tuple[Ints, Ints]:
    """All slots within the shapes at `to`, and their counterparts within those at `origin`."""
    counts = slots.size[to]
    rows = slots.instruction[to]
    program.require(rows, slots.size[origin] == counts, "and its operand differ in shape")
    return joined(to, counts), joined(origin, counts)


def forward_within(program: NumberedProgram, slots: Slots, chosen: Mask) -> Forwarding:
    """Forwarding by the opcodes that look at their operands only.

    `chosen` are the instructions that have slots.
    """
    flow = Forwarding(program, slots)
    _forward_tuples(flow, chosen)
    for opcodes, rule in _RULES:
        rows = np.flatnonzero(program.opcode.is_one_of(*opcodes) & chosen)
        if len(rows):
            rule(flow, rows)
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
    """The leaves are those of `{1}` of its start; a tuple's own table is a new value."""
    start = flow.slots.whole(flow.program.operand(rows, 0))
    flow.forward(flow.slots.whole(rows), flow.element(start, 1), leaves=True)


def _async_update(flow: Forwarding, rows: Ints) -> None:
    """An async-update defines the tables of its tuples; the leaves are its operand's."""
    operand = flow.slots.whole(flow.program.operand(rows, 0))
    flow.forward(flow.slots.whole(rows), operand, leaves=True)


def _inputs_of_start(flow: Forwarding, rows: Ints) -> None:
    """An async-start defines `{}`, `{0}` and its contexts; `{0,i}` is operand i."""
    inputs = flow.element(flow.slots.whole(rows), 0)
    counts = flow.slots.element_count(inputs)
    owner = np.repeat(rows, counts)
    number = joined(np.zeros(len(rows), np.int64), counts)
    operand = flow.slots.whole(flow.program.operand(owner, number))
    flow.forward(flow.slots.element(np.repeat(inputs, counts), number), operand)


def _collective_start(flow: Forwarding, rows: Ints) -> None:
    """If `{0}` is a tuple, `{0,i}` is operand i; otherwise `{0}` is operand 0."""
    inputs = flow.element(flow.slots.whole(rows), 0)
    is_tuple = ~flow.slots.is_leaf[inputs]
    _element_0_is_operand(flow, rows[~is_tuple])
    _inputs_of_start(flow, rows[is_tuple])


def _collective_permute_start(flow: Forwarding, rows: Ints) -> None:
    """As the other collectives, but a tuple `{0}` of several operands holds no value itself."""
    _collective_start(flow, rows)
    several = rows[flow.program.operand_count[rows] > 1]
    inputs = flow.element(flow.slots.whole(several), 0)
    flow.holds_none[inputs[~flow.slots.is_leaf[inputs]]] = True


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
    flow: Forwarding, schedule: Schedule, rows: Ints, in_place: tuple[Ints, Ints]
) -> None:
    """Forwarding between calls, branches and async computations and their callers.

    A parameter of a called computation is the caller's operand; a call is its computation's
    root; the leaves of `{1}` of an async-start and those of its async-done are the leaves of
    its computation's root. `rows` are the parameters of the computations that the control flow
    reaches.
    """
    program, slots = flow.program, flow.slots
    caller = schedule.caller[program.computation[rows]]
    called = (caller >= 0) & ~program.opcode.is_one_of("while")[caller]
    rows, caller = rows[called], caller[called]
    number = program.parameter_number[rows] + schedule.operand_shift[program.computation[rows]]
    program.require(rows, number < program.operand_count[caller], "has no operand of its caller")
    flow.forward(
        slots.whole(rows), slots.whole(program.operands[program.operand_start[caller] + number])
    )
    calls = program.rows("call")
    calls = calls[schedule.time[calls] >= 0]
    flow.forward(slots.whole(calls), slots.whole(program.called_root(calls)))
    starts = program.rows("async-start")
    starts = starts[schedule.time[starts] >= 0]
    _forward_async(flow, starts, in_place)
    dones = program.rows("async-done")
    dones = dones[schedule.time[dones] >= 0]
    root = slots.whole(program.called_root(program.async_start[dones]))
    flow.forward(slots.whole(dones), root, leaves=True)


def _forward_async(flow: Forwarding, starts: Ints, in_place: tuple[Ints, Ints]) -> None:
    """The leaves of `{1}` of an async-start are its computation's root.

    A root that writes into the place of a parameter is done only with the async-done. Until
    then `{1}` holds the async-start's operand.
    """
    program, slots = flow.program, flow.slots
    root = program.called_root(starts)
    result = flow.element(slots.whole(starts), 1)
    flow.forward(result, slots.whole(root), leaves=True)
    start_of = np.full(len(program), NONE)
    start_of[root] = starts
    operand, written = in_place
    start = start_of[slots.instruction[written]]
    parameter = program.opcode.is_one_of("parameter")[slots.instruction[operand]]
    chosen = np.flatnonzero((start != NONE) & parameter & slots.is_leaf[written])
    operand, written, start = operand[chosen], written[chosen], start[chosen]
    within = written - slots.whole(slots.instruction[written])
    flow.source[flow.element(slots.whole(start), 1) + within] = operand
