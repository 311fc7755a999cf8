"""The flattened schedule: when each instruction runs, called computations included."""

from dataclasses import dataclass

import numpy as np

from ...schema.address_space.runs import joined
from ..errors import DumpError
from .numbered_program import NONE, Ints, Mask, NumberedProgram

# The instructions whose computations run as part of the schedule, and the attributes that
# name these, in the order in which they run. Of `branch_computations` several are named.
CONTROL_FLOW = ("call", "conditional", "while", "async-start")
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

    `order` holds the instructions' rows by time. Of each computation: `span_start` and
    `span_end`, the time at which it starts and the one just after its last instruction (NONE
    if the control flow does not reach it); `caller`, the instruction that calls it;
    `operand_shift`, what to add to a parameter's number for the caller's operand number;
    `async_start`, the innermost async-start around it, NONE if there is none.
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


def flatten(program: NumberedProgram, *, is_scheduled: bool) -> Schedule:
    """Flatten the computations that the control flow reaches into one schedule.

    An instruction that calls computations comes after all of what it calls; a while calls
    its condition, then its body; a conditional its branches in their order. Fusions,
    reducers and the like are not entered: they run within one instruction's time.

    Raises DumpError if the text is not scheduled, or if one computation is called twice:
    XLA flattens the call graph before it schedules.
    """
    if not is_scheduled:
        raise DumpError(
            "the HLO text is not scheduled (no is_scheduled=true): "
            "dump the text after optimizations, or use compiled.as_text()",
            1,
        )
    _check_async_starts(program)
    callers, callees, start = _flow_calls(program)
    computations = len(program.first)
    span_start, span_end = (np.full(computations, NONE) for _ in range(2))
    caller = np.full(computations, NONE)
    shift = np.zeros(computations, np.int64)
    async_start = np.full(computations, NONE)
    runs: list[tuple[int, int]] = []  # rows that run one after the other
    length = 0
    waiting: list[tuple[int, int, int]] = []  # computation, its next row, its next call
    is_async = program.opcode.is_one_of("async-start")
    is_conditional = program.opcode.is_one_of("conditional")

    def enter(computation: int) -> None:
        span_start[computation] = length
        waiting.append((computation, int(program.first[computation]), int(start[computation])))

    enter(program.entry)
    while waiting:
        computation, row, call = waiting.pop()
        if call == start[computation + 1]:
            stop = int(program.stop[computation])
            runs.append((row, stop))
            length += stop - row
            span_end[computation] = length
            continue
        calling, called = int(callers[call]), int(callees[call])
        if span_start[called] != NONE:
            raise DumpError(
                f"computation {program.computation_names[called]} is called twice, "
                f"the second time by {program.names[calling]}",
                program.line(calling),
            )
        if row < calling:
            runs.append((row, calling))
            length += calling - row
        caller[called] = calling
        if is_conditional[calling]:
            # Operand 0 is the condition; branch k takes operand k + 1.
            first_call = int(np.searchsorted(callers, calling))
            shift[called] = 1 + call - first_call
        async_start[called] = calling if is_async[calling] else async_start[computation]
        waiting.append((computation, max(row, calling), call + 1))
        enter(called)
    starts, stops = np.array(runs, np.int64).reshape(-1, 2).T
    order = joined(starts, stops - starts)
    time = np.full(len(program), NONE)
    time[order] = np.arange(len(order))
    return Schedule(order, time, span_start, span_end, caller, shift, async_start)


def _check_async_starts(program: NumberedProgram) -> None:
    """Raise DumpError if an async-start does not bind all operands of its computation.

    XLA can bind operands with a later async-update. No known compiler prints such a text, so
    no dump shows what such a program holds and when.
    """
    starts = program.rows("async-start")
    parameters = np.diff(program.parameter_start)[program.callee(starts, "calls", "to_apply")]
    bound = program.operand_count[starts] == parameters
    program.require(starts, bound, "binds operands later than at its start, which has no rule")


def _flow_calls(program: NumberedProgram) -> tuple[Ints, Ints, Ints]:
    """The control flow's calls by caller and order: callers, callees.

    The third array says where the calls of each computation's instructions start.
    """
    rank = np.array(
        [
            _ATTRIBUTES.index(text) if text in _ATTRIBUTES else NONE
            for text in program.call_attribute.texts
        ]
        or [NONE],
        np.int64,
    )[program.call_attribute.codes]
    flow = program.opcode.is_one_of(*CONTROL_FLOW)[program.call_row] & (rank != NONE)
    at = np.flatnonzero(flow)
    at = at[np.lexsort((at, rank[at], program.call_row[at]))]
    callers = program.call_row[at]
    start = np.searchsorted(callers, np.append(program.first, len(program)))
    # Computations lie in the text's order, so that one's calls end where the next's start.
    return callers, program.call_computation[at], start


def find_regions(program: NumberedProgram, schedule: Schedule) -> Ints:
    """The computations that run within one instruction's time and have values of their own.

    These are reducers, comparators and the like, also those that a fused computation calls;
    the fused computations themselves have no buffers. Raises DumpError for control flow in
    a region.
    """
    fused = np.zeros(len(program.first), bool)
    by_fusion = program.opcode.is_one_of("fusion")[program.call_row]
    fused[program.call_computation[by_fusion]] = True
    caller = program.computation[program.call_row]
    found = schedule.is_reached.copy()
    while True:
        # One nesting of calls a round.
        further = found.copy()
        further[program.call_computation[found[caller]]] = True
        if np.array_equal(further, found):
            break
        found = further
    regions = found & ~fused & ~schedule.is_reached
    flow = program.rows(*CONTROL_FLOW)
    program.require(flow, ~regions[program.computation[flow]], "is control flow within a region")
    return np.flatnonzero(regions)
