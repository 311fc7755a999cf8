"""What the instructions that read a result have in common."""

import numpy as np

from ..numbered_program import Ints, Mask, NumberedProgram

# These only hand their operands on.
MOVES = (
    "get-tuple-element",
    "tuple",
    "bitcast",
    "copy",
    "copy-start",
    "copy-done",
    "optimization-barrier",
    "domain",
    "add-dependency",
    "async-update",
    "async-done",
    "all-gather-done",
    "all-reduce-done",
    "collective-permute-done",
)


def read_by_optimizer_alone(program: NumberedProgram, undecided: Mask, of_optimizer: Mask) -> Mask:
    """Which of the undecided instructions only the optimizer reads.

    Readers are those in the same computation. A move stands for its own readers, and an
    undecided reader must itself be read by the optimizer alone. A loop is never the optimizer's.
    What nothing reads is not the optimizer's either.
    """
    moves = program.opcode.is_one_of(*MOVES)
    is_loop = program.opcode.is_one_of("while")
    undecided, of_optimizer = undecided & ~is_loop, of_optimizer & ~is_loop
    operand, reader = _edges(program, undecided, moves)
    passes_on = (moves | undecided)[reader]
    # Bit 0: the optimizer reads it; bit 1: something else does.
    seen = np.zeros(len(program), np.int8)
    bits = np.where(of_optimizer[reader], 1, 2).astype(np.int8)
    np.bitwise_or.at(seen, operand[~passes_on], bits[~passes_on])
    # Plain loops, here from the text's end: an instruction's readers are done before it then.
    states = bytearray(seen.tobytes())
    at = np.flatnonzero(passes_on)[::-1]
    through, is_move = reader[at], moves[reader[at]]
    for one, other, move in zip(
        operand[at].tolist(), through.tolist(), is_move.tolist(), strict=True
    ):
        states[one] |= states[other] if move else (1 if states[other] == 1 else 2)
    found: Mask = np.frombuffer(states, np.int8) == 1
    return found & undecided


def _edges(program: NumberedProgram, undecided: Mask, moves: Mask) -> tuple[Ints, Ints]:
    """The operands that are undecided or move something undecided, and their readers."""
    operand, reader = program.operands, program.operand_row
    moved = np.flatnonzero(moves[reader] & (moves | undecided)[operand])
    wanted = bytearray(undecided.tobytes())
    for one, other in zip(operand[moved].tolist(), reader[moved].tolist(), strict=True):
        if wanted[one]:
            wanted[other] = 1
    at = np.flatnonzero(np.frombuffer(wanted, bool)[operand])
    return operand[at], reader[at]
