"""The schedule of a program: its computations flattened into one order of instructions."""

from collections.abc import Sequence
from typing import Final

from .analysis import Schedule
from .errors import DumpError
from .program import NONE, Program

# The opcodes whose computations run as part of the schedule.
CONTROL_FLOW: Final = ("call", "conditional", "while", "async-start")
# The attributes that name these computations, in the order in which they run.
_CALL_ATTRIBUTES: Final = (
    "condition",
    "body",
    "to_apply",
    "calls",
    "true_computation",
    "false_computation",
    "branch_computations",
)


def flatten(program: Program, order: Sequence[int] | None = None) -> Schedule:
    """Flatten the computations that the control flow reaches into one schedule.

    An instruction follows all computations that it calls: a while its condition, then its body; a
    conditional its branches. The computation of an async-start precedes the instruction that
    binds its operands, which can be an async-update. The computations of fusions, reducers and
    comparators are not scheduled, because they run within the time of one instruction.

        %double (x) { %x = parameter(0); ROOT %sum = add(%x, %x) }
        ENTRY %main (p) { %p = parameter(0); ROOT %twice = call(%p), to_apply=%double }

    runs p, x, sum, twice.

    Args:
        order: the rows of each computation in the order in which it runs them, one computation
            after the other as in the text; default: text order.

    Raises DumpError if a computation is called twice, because XLA flattens the call graph before
    it schedules. In a text without a schedule the first of several calls runs the computation.
    """
    flattener = _Flattener(program, range(len(program)) if order is None else order)
    flattener.run()
    return flattener.schedule


class _Flattener:
    """The state of `flatten`.

    Attributes:
        rows: by position, the row that runs there, see `order` of `flatten`.
        calls: by row, the calls that it has not yet run, in reverse order: computation and the
            shift of its operands.
        starts: the async-start by the row that binds its operands.
        position: by computation, where in `rows` it continues after a call.
    """

    def __init__(self, program: Program, rows: Sequence[int]) -> None:
        computations = len(program.computation_names)
        started = _find_continued_starts(program)
        binder = _find_binders(program, started)
        self.program, self.rows = program, rows
        self.schedule = Schedule(
            order=[],
            time=[NONE] * len(program),
            span_start=[NONE] * computations,
            span_end=[NONE] * computations,
            caller=[NONE] * computations,
            operand_shift=[0] * computations,
            async_start=[NONE] * computations,
            binder=binder,
            started=started,
        )
        self.starts = {row: start for start, row in binder.items()}
        self.calls = _calls_to_run(program, binder)
        self.position = list(program.first)

    def run(self) -> None:
        """Run the entry computation with all that it calls."""
        schedule = self.schedule
        schedule.span_start[self.program.entry] = 0
        # A stack instead of recursion, because a corrupt text may nest calls without limit.
        running = [self.program.entry]
        while running:
            callee = self._run_up_to_call(running[-1])
            if callee != NONE:
                running.append(callee)
            else:
                schedule.span_end[running.pop()] = len(schedule.order)
        for time, row in enumerate(schedule.order):
            schedule.time[row] = time

    def _run_up_to_call(self, computation: int) -> int:
        """Run a computation up to its next call. Returns the callee, or NONE at the end."""
        order = self.schedule.order
        for position in range(self.position[computation], self.program.stop[computation]):
            row = self.rows[position]
            calls = self.calls.get(row)
            while calls:
                callee, operand_shift = calls.pop()
                if self._enter(row, callee, operand_shift):
                    self.position[computation] = position
                    return callee
            order.append(row)
        return NONE

    def _enter(self, caller: int, callee: int, operand_shift: int) -> bool:
        """Begin to run a computation. False if an earlier call has run it for this one too."""
        program, schedule = self.program, self.schedule
        if schedule.span_start[callee] != NONE:
            if program.opcode[caller] == "call" and not program.header.is_scheduled:
                return False
            raise DumpError(
                f"computation {program.computation_names[callee]} is called twice, "
                f"the second time by {program.names[caller]}",
                program.lines[caller],
            )
        outer_start = schedule.async_start[program.computation[caller]]
        schedule.span_start[callee] = len(schedule.order)
        schedule.caller[callee] = caller
        schedule.operand_shift[callee] = operand_shift
        schedule.async_start[callee] = self.starts.get(caller, outer_start)
        return True


def _calls_to_run(program: Program, binder: dict[int, int]) -> dict[int, list[tuple[int, int]]]:
    """By row, the computations that run before it, the last first, with their operand shifts."""
    result: dict[int, list[tuple[int, int]]] = {}
    for row, calls in program.calls.items():
        opcode = program.opcode[row]
        if opcode not in CONTROL_FLOW:
            continue
        ranked = [
            (_CALL_ATTRIBUTES.index(attribute), number, computation)
            for number, (attribute, computation) in enumerate(calls)
            if attribute in _CALL_ATTRIBUTES
        ]
        computations = [computation for _, _, computation in sorted(ranked)]
        if opcode == "conditional":
            # Operand 0 selects the branch; branch k takes operand k + 1.
            shifts = list(range(1, len(computations) + 1))
        else:
            # An async-update binds its operands after the async-start, which is its operand 0.
            shifts = [int(binder.get(row, row) != row)] * len(computations)
        pairs = list(zip(computations, shifts, strict=True))
        result[binder.get(row, row)] = pairs[::-1]
    return result


def _find_continued_starts(program: Program) -> dict[int, int]:
    """The async-start that each async-update and async-done continues, by row.

    What continues an element of a tuple has no entry: in a pipelined loop of libtpu the async-done
    belongs to the async-start of the previous iteration, or to one before the loop.
    """
    origins: dict[int, int] = {}
    for row in program.rows_with("async-update", "async-done"):
        operand = program.operand(row, 0)
        origin = origins[row] = origins.get(operand, operand)
        if program.opcode[origin] not in ("async-start", "get-tuple-element"):
            raise program.error(row, "does not continue an async-start")
    return {
        row: origin for row, origin in origins.items() if program.opcode[origin] == "async-start"
    }


def _find_binders(program: Program, started: dict[int, int]) -> dict[int, int]:
    """The instruction that binds the operands of each async-start, by its row.

    That is the async-start, or a later async-update if the async-start has no operands:

        start = ((), (), …) async-start(), calls=%gather
        update = ((…), …) async-update(start, table, indices)

    Raises DumpError if neither binds all operands of the computation.
    """
    binder = {row: row for row in program.rows_with("async-start")}
    for row, start in started.items():
        if program.opcode[row] == "async-update" and len(program.operands[row]) > 1:
            binder[start] = row
    for start, row in binder.items():
        is_late = row != start
        n_bound = len(program.operands[row]) - is_late
        n_parameters = len(program.parameters(program.callee(start, "calls", "to_apply")))
        if n_bound != n_parameters or (is_late and program.operands[start]):
            raise program.error(start, "binds its operands in several steps, which has no rule")
    return binder


def last_times(program: Program, schedule: Schedule) -> list[int]:
    """By row, its time; for a root the end of its computation: until then it has its values."""
    times = list(schedule.time)
    for computation, root in enumerate(program.root):
        times[root] = schedule.span_end[computation]
    return times


def scheduled_rows(program: Program, schedule: Schedule, *opcodes: str) -> list[int]:
    """The scheduled instructions with one of these opcodes, by time: inner before outer loops."""
    rows = [row for row in program.rows_with(*opcodes) if schedule.time[row] != NONE]
    return sorted(rows, key=schedule.time.__getitem__)


def find_computations_with_values(program: Program, schedule: Schedule) -> list[bool]:
    """By computation, whether its instructions define values: scheduled ones and regions.

    A region runs within one instruction's time: a reducer, a comparator and the like, also if a
    fused computation calls it. A fused computation is no region, because its instructions have
    no buffers, nor is that of a fusion that XLA starts asynchronously. The computation that a
    custom call offloads to a sparse core is a region with calls and asynchronous pairs. Raises
    DumpError for a loop or a conditional in a region.
    """
    callees: dict[int, list[int]] = {}
    fused: set[int] = set()
    for row, calls in program.calls.items():
        called = [computation for _, computation in calls]
        callees.setdefault(program.computation[row], []).extend(called)
        if program.opcode[row] in ("fusion", "fusion-start"):
            fused.update(called)
    stack = [c for c, end in enumerate(schedule.span_end) if end != NONE]
    used = set(stack)
    while stack:
        for callee in callees.get(stack.pop(), ()):
            if callee not in used:
                used.add(callee)
                stack.append(callee)
    regions = {c for c in used - fused if not schedule.is_reached(c)}
    for row in program.rows_with("while", "conditional"):
        if program.computation[row] in regions:
            raise program.error(row, "is control flow within a region")
    return [schedule.is_reached(c) or c in regions for c in range(len(program.computation_names))]
