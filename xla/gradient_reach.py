"""The instructions that depend on a gradient, and those whose results only the optimizer reads."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from .program import NONE, Program

# Control flow and fusions run what they call as work of their own. Reducers and comparators do
# not count, because instructions of different passes share them.
_RUNS_CALLEE: Final = frozenset({"fusion", "call", "conditional", "while", "async-start"})
# These do no work that belongs to a pass: they forward or copy operands, or end an operation.
_NO_WORK = """
    get-tuple-element tuple bitcast copy copy-start copy-done opt-barrier optimization-barrier
    domain add-dependency async-update async-done all-gather-done all-reduce-done
    collective-permute-done
"""
_WITHOUT_WORK: Final = frozenset(_NO_WORK.split())


@dataclass
class GradientReach:
    """The reach of the backward pass: its instructions, and all that depend on their results.

    Attributes:
        main: the main computations: the entry, and the bodies of loops over whole training steps
            or microbatches.
        main_row: by row, the instruction of a main computation that calls the row's computation,
            directly or not; the row itself in a main computation, and where nothing calls it.
        is_reached: by row of a main computation, whether it is backward, calls backward
            instructions, or depends on one that is or does.
        depends_on_parameter: by row of a main computation.
        backward_loops: the loops around backward instructions whose body is no main computation.
    """

    main: set[int]
    main_row: list[int]
    is_reached: list[bool]
    depends_on_parameter: list[bool]
    backward_loops: set[int]


def find_gradient_reach(
    program: Program, caller: list[int], loops_around_backward: dict[int, int]
) -> GradientReach:
    """Follow results of backward instructions to all that depend on them in main computations.

    Instructions that depend on no parameter are never reached, because XLA shares constants
    between the backward and the forward pass.

    Args:
        caller: by computation, the instruction that calls it, or NONE.
        loops_around_backward: by row of an instruction with a backward name, the number of loops
            around its differentiated code.
    """
    main = _main_computations(program, caller, loops_around_backward)
    enclosing = _enclosing_computations(program, caller, loops_around_backward)
    callers_of_backward = {caller[computation] for computation in enclosing}
    is_reached, depends = [False] * len(program), [False] * len(program)
    for computation in main:
        for row in program.rows_of(computation):
            depends[row] = program.parameter_number[row] != NONE
            for operand in program.operands[row]:
                depends[row] = depends[row] or depends[operand]
                is_reached[row] = is_reached[row] or is_reached[operand]
            is_backward = row in loops_around_backward or row in callers_of_backward
            if depends[row] and is_backward:
                is_reached[row] = True
    inner_callers = {caller[computation] for computation in enclosing - main}
    is_main = [computation in main for computation in program.computation]
    return GradientReach(
        main,
        nearest_callers(program, caller, is_main),
        is_reached,
        depends,
        {row for row in inner_callers if program.opcode[row] == "while"},
    )


def nearest_callers(program: Program, caller: list[int], is_end: list[bool]) -> list[int]:
    """By row, the nearest row with `is_end` among itself, its caller, that one's caller, …

    The outermost caller if none has; the row itself if no instruction calls its computation.
    """
    # By computation, the row for those of its instructions that are no end.
    nearest = [NONE] * len(program.first)
    for computation in reversed(program.callees_first()):
        row = caller[computation]
        if row != NONE:
            outer = nearest[program.computation[row]]
            nearest[computation] = row if is_end[row] or outer == NONE else outer
    return [
        row if is_end[row] or nearest[computation] == NONE else nearest[computation]
        for row, computation in enumerate(program.computation)
    ]


def _enclosing_computations(program: Program, caller: list[int], rows: Iterable[int]) -> set[int]:
    """The called computations that contain one of these rows, or call one that does."""
    enclosing: set[int] = set()
    for row in rows:
        computation = program.computation[row]
        while (
            computation not in enclosing
            and caller[computation] != NONE
            and program.opcode[caller[computation]] in _RUNS_CALLEE
        ):
            enclosing.add(computation)
            computation = program.computation[caller[computation]]
    return enclosing


def _main_computations(
    program: Program, caller: list[int], loops_around_backward: dict[int, int]
) -> set[int]:
    """The entry, and the bodies of loops around differentiated code.

    Such a body has a forward and a backward pass, so that the loop as a whole belongs to none. The
    loops that are nested n deep are around code with n loops in its name.
    """
    main = outer = {program.entry}
    depth = 0
    while outer:
        depth += 1
        rows = [row for row, loops in loops_around_backward.items() if loops >= depth]
        outer = {
            computation
            for computation in _enclosing_computations(program, caller, rows)
            if program.opcode[caller[computation]] == "while"
            and program.computation[caller[computation]] in outer
        }
        main = main | outer
    return main


def find_optimizer_inputs(
    program: Program, computations: Iterable[int], undecided: set[int], optimizer: set[int]
) -> set[int]:
    """The undecided instructions whose results only the optimizer reads.

    Readers are those in the same computation. Instead of an instruction without work its readers
    count, and an undecided reader must itself be an input of the optimizer alone. Loops, and
    instructions without a reader, are no such inputs.

        %rate = f32[] negate(%step)               is undecided, and an input
        %new = f32[8] multiply(%rate, %gradient)  belongs to the optimizer
    """
    by_optimizer, by_others = [False] * len(program), [False] * len(program)
    inputs = set()
    for computation in computations:
        # Readers come after the instructions that they read.
        for row in reversed(program.rows_of(computation)):
            optimizer_reads, others_read = by_optimizer[row], by_others[row]
            is_loop = program.opcode[row] == "while"
            is_input = row in undecided and not is_loop and optimizer_reads and not others_read
            if is_input:
                inputs.add(row)
            if program.opcode[row] not in _WITHOUT_WORK:
                optimizer_reads = is_input or (row in optimizer and not is_loop)
                others_read = not optimizer_reads
            for operand in program.operands[row]:
                by_optimizer[operand] = by_optimizer[operand] or optimizer_reads
                by_others[operand] = by_others[operand] or others_read
    return inputs
