"""What reads gradients: the instructions that are backward, contain what is, or read such."""

from dataclasses import dataclass

import numpy as np

from ....schema.address_space.runs import followed
from ..flattening import CONTROL_FLOW
from ..numbered_program import NONE, Ints, Mask, NumberedProgram

# How far what reads constants alone is followed. XLA folds constants, so chains are short.
_DEEPEST = 100


@dataclass(frozen=True)
class Reach:
    """By instruction, what lies in the optimizer's reach.

    `is_main` marks the instructions of main computations: those of the entry, and of the bodies
    of loops over whole training steps or microbatches. `place` is the main instruction that an
    instruction is in or under (itself if nothing calls it), and all else is that of the place:
    `is_in_reach`; `depends`, whether a parameter goes into it; `is_backward_loop`, whether it is
    a loop with backward instructions that is not looked into.
    """

    is_main: Mask
    place: Ints
    is_in_reach: Mask
    depends: Mask
    is_backward_loop: Mask


def find_reach(program: NumberedProgram, caller: Ints, backward: Mask, loops: Ints) -> Reach:
    """Spread the optimizer's reach from the instructions that are backward by their names.

    `loops` is how many loops lie around the differentiated code of each such instruction. What
    depends on no parameter is never in reach: XLA shares the constants of the backward pass
    with the forward pass.
    """
    holds = _holds(program, caller, backward)
    is_loop = program.opcode.is_one_of("while")[caller] & (caller != NONE)
    main = _main_computations(program, caller, is_loop, backward, loops)
    is_main = main[program.computation]
    place = climb(program, caller, is_main)
    depends = is_main.copy()
    reach = is_main & backward
    reach[caller[holds]] = True
    for computation in np.flatnonzero(main).tolist():
        first, stop = int(program.first[computation]), int(program.stop[computation])
        depends[first:stop] = _depends(program, first, stop)
        reach[first:stop] &= depends[first:stop]
        _spread(program, reach, first, stop)
    backward_loop = np.zeros(len(program), bool)
    backward_loop[caller[holds & is_loop & ~main]] = True
    return Reach(is_main, place, reach[place], depends[place], backward_loop[place])


def climb(program: NumberedProgram, caller: Ints, stops: Mask) -> Ints:
    """Each instruction if it is one of `stops`, else its nearest caller that is one.

    The outermost caller if none is one; the instruction itself if nothing calls it.
    """
    above = program.computation[caller]
    ends = (caller == NONE) | stops[caller] | (caller[above] == NONE)
    last = followed(np.where(ends, np.arange(len(caller)), above))
    target = caller[last][program.computation]
    return np.where(stops | (target == NONE), np.arange(len(program)), target)


def _holds(program: NumberedProgram, caller: Ints, rows: Mask) -> Mask:
    """Which called computations hold one of these instructions, or call what does.

    Reducers and the like do not count: instructions of different passes share them.
    """
    runs = program.opcode.is_one_of("fusion", *CONTROL_FLOW)[caller] & (caller != NONE)
    found = np.zeros(len(program.first), bool)
    found[program.computation[rows]] = True
    found &= runs
    new = np.flatnonzero(found)
    while len(new):
        above = np.unique(program.computation[caller[new]])
        new = above[runs[above] & ~found[above]]
        found[new] = True
    return found


def _main_computations(
    program: NumberedProgram, caller: Ints, is_loop: Mask, backward: Mask, loops: Ints
) -> Mask:
    """The entry, and the bodies of loops around differentiated code.

    Such a body holds a forward and a backward pass. It is looked into like the entry, because
    the loop as a whole belongs to no pass.
    """
    main = np.zeros(len(program.first), bool)
    main[program.entry] = True
    level = main
    for depth in range(1, int(loops.max(initial=0, where=backward)) + 1):
        holds = _holds(program, caller, backward & (loops >= depth))
        level = is_loop & level[program.computation[caller]] & holds
        if not level.any():
            break
        main = main | level
    return main


def _depends(program: NumberedProgram, first: int, stop: int) -> Mask:
    """Which instructions of a computation depend on a parameter of it.

    Goes from constants to what reads constants alone, one reader further a round.
    """
    operand, reader = _operands(program, first, stop)
    open_operands = program.operand_count[first:stop].copy()
    open_operands[program.parameter_number[first:stop] != NONE] = 1
    new = open_operands == 0
    found: Mask = ~new
    for _ in range(_DEEPEST):
        open_operands -= np.bincount(reader[new[operand]], minlength=len(new))
        new = (open_operands == 0) & found
        if not new.any():
            break
        found &= ~new
    return found


def _spread(program: NumberedProgram, reach: Mask, first: int, stop: int) -> None:
    """Add to `reach` all instructions of a computation that read one in it, transitively.

    A plain loop: each operand stands before its reader, so that the text's order needs one
    round, where rounds over all operands at once can be as many as there are instructions.
    """
    before = reach[first:stop]
    if not before.any():
        return
    operand, reader = _operands(program, first, stop)
    open_ends = ~before[reader] & (operand >= np.argmax(before))
    reached = bytearray(before.tobytes())
    for one, other in zip(operand[open_ends].tolist(), reader[open_ends].tolist(), strict=True):
        if reached[one]:
            reached[other] = 1
    reach[first:stop] = np.frombuffer(reached, bool)


def _operands(program: NumberedProgram, first: int, stop: int) -> tuple[Ints, Ints]:
    """A computation's operands and their readers, counted from its first instruction."""
    edges = slice(program.operand_start[first], program.operand_start[stop])
    return program.operands[edges] - first, program.operand_row[edges] - first
