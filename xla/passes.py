"""The pass that each instruction's work belongs to: forward, backward, optimizer and others."""

import re
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from .dataflow import CONTROL_FLOW
from .op_names import Kind, OpNames
from .program import NONE, Ints, Mask, NumberedProgram
from .runs import followed

# What the instructions that read a result have in common.

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


# What reads gradients: the instructions that are backward, contain what is, or read such.

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


# The pass that each instruction's work belongs to: forward, backward, optimizer and others.
#
# JAX names the transformations that a computation went through: `jvp(…)` is the forward pass of
# differentiated code, `transpose(jvp(…))` its backward pass, `rematted_computation` what
# `jax.checkpoint` computes again. The rest of a training step has no such name; its place in the
# graph tells it apart: what reads gradients is the optimizer.

PassCodes = npt.NDArray[np.int8]

PASSES = ("argument", "forward", "backward", "rematerialised", "optimizer", "other")
ARGUMENT, FORWARD, BACKWARD, REMATERIALISED, OPTIMIZER, OTHER = map(np.int8, range(len(PASSES)))

# XLA names what it computes again after the original: `fusion.16.remat3`.
_CLONE = r"\.remat\d*(\.|$)"
# JAX 0.4 to 0.6 has this component after the program's; it drops a `jvp()` without a name.
_OLD = "/jit(main)/"


@dataclass(frozen=True)
class Passes:
    """Of each instruction: its pass, as a place in PASSES, if it owns what it makes itself.

    `is_clone` marks the instructions that XLA made to compute something again.
    """

    codes: PassCodes
    is_clone: Mask
    texts: tuple[str, ...] = PASSES


def passes(
    program: NumberedProgram,
    names: OpNames,
    caller: Ints,
    source_file: pa.Array | pa.ChunkedArray,
    source_line: pa.Array | pa.ChunkedArray,
) -> Passes:
    """Find each instruction's pass.

    `caller` is that of `callers`; the source columns are those of the HLO text, a row for each
    instruction. The first rule that applies decides: 1. entry parameters are arguments.
    2. XLA's clones and 3. `rematted_computation` are rematerialised. 4. `transpose(…)` is
    backward, 5. `jvp(…)` forward. 6. A module without a backward pass has no other passes.
    7. Without an op_name of JAX, or with a relative one, the pass is that of the nearest caller
    that has one. 8. The place in the graph decides: see `_by_place`.
    """
    is_clone = _clones(program)
    codes = _by_name(program, names, is_clone)
    if not names.has_transpose.any():
        codes[codes == NONE] = OTHER
        return Passes(codes, is_clone)
    reach = _reach(program, names, caller, codes)
    has_pass = (codes != NONE) | reach.is_main
    has_pass |= (names.kind >= Kind.JOINED) & ~names.by_row(names.is_relative)
    by_place = _by_place(program, names, source_file, source_line, codes, reach)
    codes = np.where(codes == NONE, by_place, codes)
    codes = codes[climb(program, caller, has_pass)]
    return Passes(codes, is_clone)


def value_pass(found: Passes, made_by: Ints, origin: Ints, told: Mask) -> PassCodes:
    """The pass of values, of the instructions that make them and of those that own them.

    `told` marks values whose owner is a guess while the joined name of what makes them says the
    pass: then it is the maker's. An argument's is `argument` whatever makes the value; else a
    clone by XLA makes it rematerialised; else it is the owner's. NONE without an owner.
    """
    owner = np.where(told, made_by, origin)
    codes = found.codes[owner]
    cloned = (found.is_clone[made_by] & (made_by != NONE)) | found.is_clone[owner]
    codes = np.where(cloned & (codes != ARGUMENT), REMATERIALISED, codes)
    return np.where(origin == NONE, np.int8(NONE), codes)


def _clones(program: NumberedProgram) -> Mask:
    # Few names hold the text, and one search over all of them at once is quick.
    _, offsets, content = program.names.buffers()
    starts = np.frombuffer(offsets, np.int64)[program.names.offset :]
    places = [match.start() for match in re.finditer(rb"\.remat", memoryview(content or b""))]
    rows = np.unique(np.searchsorted(starts, places, side="right") - 1)
    rows = rows[(rows >= 0) & (rows < len(program))]
    matching = pc.match_substring_regex(program.names.take(pa.array(rows)), pattern=_CLONE)
    found = np.zeros(len(program), bool)
    found[rows] = matching.to_numpy(zero_copy_only=False)
    return found


def _by_name(program: NumberedProgram, names: OpNames, is_clone: Mask) -> PassCodes:
    """Rules 1 to 5; NONE where none of them applies."""
    rules = [names.has_rematted, names.has_transpose, names.has_jvp]
    by_text = np.select(rules, [REMATERIALISED, BACKWARD, FORWARD], np.int8(NONE))
    codes: PassCodes = np.append(by_text, np.int8(NONE))[names.code]
    codes[is_clone] = REMATERIALISED
    entry = slice(program.first[program.entry], program.stop[program.entry])
    codes[entry][program.parameter_number[entry] != NONE] = ARGUMENT
    return codes


def _reach(program: NumberedProgram, names: OpNames, caller: Ints, codes: PassCodes) -> Reach:
    return find_reach(program, caller, codes == BACKWARD, np.append(names.loops, 0)[names.code])


def _by_place(
    program: NumberedProgram,
    names: OpNames,
    source_file: pa.Array | pa.ChunkedArray,
    source_line: pa.Array | pa.ChunkedArray,
    codes: PassCodes,
    reach: Reach,
) -> PassCodes:
    """Rule 8, of each instruction as if no earlier rule applied to it.

    In the optimizer's reach: optimizer. But a loop with backward instructions is backward; and
    old JAX names part of the backward pass without `transpose`: there what shares its source
    line with an instruction out of reach is backward. Out of reach: what only the optimizer
    reads, such as a learning rate, is the optimizer's; all else is forward.
    """
    found = np.where(reach.is_in_reach, OPTIMIZER, FORWARD)
    found[reach.is_backward_loop] = BACKWARD
    if any(_OLD in text for text in names.texts):
        line = _source_lines(source_file, source_line)
        outside = reach.depends & ~reach.is_in_reach & (codes != ARGUMENT) & (line != NONE)
        found[reach.is_in_reach & np.isin(line, line[outside])] = BACKWARD
    undecided = reach.is_main & (codes == NONE)
    alone = read_by_optimizer_alone(
        program, undecided & ~reach.is_in_reach, undecided & (found == OPTIMIZER)
    )
    found[~reach.is_in_reach & alone[reach.place]] = OPTIMIZER
    return found


def _source_lines(
    source_file: pa.Array | pa.ChunkedArray, source_line: pa.Array | pa.ChunkedArray
) -> Ints:
    """A number for each instruction's file and line; NONE without them."""
    chunked = isinstance(source_file, pa.ChunkedArray)
    column = source_file.combine_chunks() if chunked else source_file
    file = pc.fill_null(column.dictionary_encode().indices, NONE).to_numpy().astype(np.int64)
    line = pc.fill_null(source_line, NONE).to_numpy().astype(np.int64)
    numbers: Ints = np.where((file == NONE) | (line == NONE), NONE, line * (file.max() + 1) + file)
    return numbers
