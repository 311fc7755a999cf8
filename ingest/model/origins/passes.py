"""The pass that each instruction's work belongs to: forward, backward, optimizer and others.

JAX names the transformations that a computation went through: `jvp(…)` is the forward pass of
differentiated code, `transpose(jvp(…))` its backward pass, `rematted_computation` what
`jax.checkpoint` computes again. The rest of a training step has no such name; its place in the
graph tells it apart: what reads gradients is the optimizer.
"""

import re
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ..flattening import CONTROL_FLOW
from ..numbered_program import NONE, Ints, Mask, NumberedProgram
from ..runs import followed
from .op_names import Kind, OpNames
from .readers import read_by_optimizer_alone

PassCodes = npt.NDArray[np.int8]

PASSES = ("argument", "forward", "backward", "rematerialised", "optimizer", "other")
ARGUMENT, FORWARD, BACKWARD, REMATERIALISED, OPTIMIZER, OTHER = range(len(PASSES))

# XLA names what it computes again after the original: `fusion.16.remat3`.
_CLONE = r"\.remat\d*(\.|$)"
# JAX 0.4 to 0.6 has this component after the program's; it drops a `jvp()` without a name.
_OLD = "/jit(main)/"


@dataclass(frozen=True)
class Passes:
    """Of each instruction: its pass, as a place in PASSES, if it owns what it makes itself.

    `is_clone` marks the instructions that XLA made to compute something again;
    `in_optimizer_reach` those that are backward, contain what is, or read one of these; an
    instruction of a called computation is as the caller that the rules look at.
    """

    codes: PassCodes
    is_clone: Mask
    in_optimizer_reach: Mask
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
    7. Without an op_name, or with a relative one, the pass is that of the nearest caller that
    has an op_name. 8. What is backward, contains it or reads such is in the optimizer's reach:
    see `_by_place`.
    """
    is_clone = _clones(program)
    codes = _by_name(program, names, is_clone)
    if not names.has_transpose.any():
        codes[codes == NONE] = OTHER
        return Passes(codes, is_clone, np.zeros(len(program), bool))
    main = _main_computations(program, caller, codes)
    has_pass = (codes != NONE) | ((names.kind >= Kind.JOINED) & ~names.by_row(names.is_relative))
    in_main = main[program.computation]
    # Rule 7: up to the first caller with a pass, or in a main computation.
    target = _climb(program, caller, has_pass | in_main)
    # Rule 8: up to the caller in a main computation, by the reach there.
    place = _climb(program, caller, in_main)
    reach = _optimizer_reach(program, caller, main, codes)
    waiting = (codes == NONE) & (has_pass | in_main)
    placed = _by_place(program, names, source_file, source_line, codes, reach, place)
    codes = np.where(waiting, placed, codes)
    codes = np.where(codes == NONE, codes[target], codes)
    # Nothing calls the rest.
    codes[codes == NONE] = FORWARD
    return Passes(codes, is_clone, reach[place])


def in_optimizer_reach(program: NumberedProgram, names: OpNames, caller: Ints) -> Mask:
    """Which instructions are backward, contain what is, or read one of these; see Passes."""
    codes = _by_name(program, names, _clones(program))
    main = _main_computations(program, caller, codes)
    place = _climb(program, caller, main[program.computation])
    return _optimizer_reach(program, caller, main, codes)[place]


def value_pass(found: Passes, made_by: Ints, origin: Ints) -> PassCodes:
    """The pass of values, of the instructions that make them and of those that own them.

    An argument's is `argument` whatever makes the value, then a clone by XLA makes it
    rematerialised; NONE without an owner.
    """
    codes = found.codes[origin]
    cloned = (found.is_clone[made_by] | found.is_clone[origin]) & (codes != ARGUMENT)
    codes = np.where(cloned, np.int8(REMATERIALISED), codes)
    return np.where(origin == NONE, np.int8(NONE), codes)


def _clones(program: NumberedProgram) -> Mask:
    # Few names have the text, and one search over all of them at once is quick.
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
    by_text = np.select(rules, [REMATERIALISED, BACKWARD, FORWARD], NONE)
    codes = np.append(by_text, NONE)[names.code].astype(np.int8)
    codes[is_clone] = REMATERIALISED
    entry = slice(program.first[program.entry], program.stop[program.entry])
    codes[entry][program.parameter_number[entry] != NONE] = ARGUMENT
    return codes


def _holds(program: NumberedProgram, caller: Ints, rows: Mask) -> Mask:
    """Which computations hold one of these instructions, or call what does.

    Reducers and the like do not count: instructions of different passes share them.
    """
    runs = program.opcode.is_one_of("fusion", *CONTROL_FLOW)[caller] & (caller != NONE)
    parent = program.computation[caller]
    found = np.zeros(len(program.first), bool)
    found[program.computation[rows]] = True
    new = np.flatnonzero(found & runs)
    while len(new):
        above = np.unique(parent[new])
        above = above[~found[above]]
        found[above] = True
        new = above[runs[above]]
    found[~runs] = False
    return found


def _main_computations(program: NumberedProgram, caller: Ints, codes: PassCodes) -> Mask:
    """The entry, and the bodies of loops over whole training steps or microbatches.

    Such a body holds a forward and a backward pass. Like the entry it is looked into, because
    the loop as a whole belongs to no pass.
    """
    mixed = _holds(program, caller, codes == FORWARD) & _holds(program, caller, codes == BACKWARD)
    mixed &= program.opcode.is_one_of("while")[caller]
    main = np.zeros(len(program.first), bool)
    main[program.entry] = True
    while True:
        further = main | (mixed & main[program.computation[caller]])
        if np.array_equal(further, main):
            return main
        main = further


def _climb(program: NumberedProgram, caller: Ints, stops: Mask) -> Ints:
    """Each instruction if it is one of `stops`, else its nearest caller that is one.

    The outermost caller if none is one; the instruction itself if nothing calls it.
    """
    above = program.computation[caller]
    ends = (caller == NONE) | stops[caller]
    ends |= caller[above] == NONE
    last = followed(np.where(ends, np.arange(len(caller)), above))
    target = caller[last][program.computation]
    rows = np.arange(len(program))
    return np.where(stops | (target == NONE), rows, target)


def _optimizer_reach(program: NumberedProgram, caller: Ints, main: Mask, codes: PassCodes) -> Mask:
    """The instructions of main computations that are backward, contain it or read such."""
    backward = codes == BACKWARD
    reach = backward & main[program.computation]
    reach[caller[_holds(program, caller, backward)]] = True
    for computation in np.flatnonzero(main).tolist():
        first, stop = int(program.first[computation]), int(program.stop[computation])
        _spread(program, reach, first, stop)
    return reach


def _spread(program: NumberedProgram, reach: Mask, first: int, stop: int) -> None:
    """Add to `reach` all instructions of a computation that read one in it, transitively.

    A plain loop: each operand stands before its reader, so that the text's order needs one
    round, where rounds over all operands at once can be as many as there are instructions.
    """
    edges = slice(program.operand_start[first], program.operand_start[stop])
    operand, reader = program.operands[edges] - first, program.operand_row[edges] - first
    reached = bytearray(reach[first:stop].tobytes())
    seed = int(np.argmax(reach[first:stop]))
    open_ends = ~reach[first:stop][reader] & (operand >= seed)
    for one, other in zip(operand[open_ends].tolist(), reader[open_ends].tolist(), strict=True):
        if reached[one]:
            reached[other] = 1
    reach[first:stop] = np.frombuffer(reached, bool)


def _by_place(
    program: NumberedProgram,
    names: OpNames,
    source_file: pa.Array | pa.ChunkedArray,
    source_line: pa.Array | pa.ChunkedArray,
    codes: PassCodes,
    reach: Mask,
    place: Ints,
) -> PassCodes:
    """Rule 8, of each instruction as if no earlier rule applied to it.

    In reach: optimizer. But old JAX names part of the backward pass without `transpose`: what
    shares its source line with an instruction out of reach is backward. Out of reach: what only
    the optimizer reads, such as a learning rate, is the optimizer's; all else forward.
    """
    in_reach = reach[place]
    found = np.where(in_reach, np.int8(OPTIMIZER), np.int8(FORWARD))
    if any(_OLD in text for text in names.texts):
        line = _source_lines(source_file, source_line)
        outside = line[~in_reach & (codes != ARGUMENT)]
        shares = np.isin(line, outside[outside != NONE])
        found[in_reach & shares] = BACKWARD
    of_optimizer = (found == OPTIMIZER) & (codes == NONE)
    is_place = place == np.arange(len(place))
    alone = read_by_optimizer_alone(program, (codes == NONE) & ~in_reach & is_place, of_optimizer)
    found[~in_reach & alone[place]] = OPTIMIZER
    return found


def _source_lines(
    source_file: pa.Array | pa.ChunkedArray, source_line: pa.Array | pa.ChunkedArray
) -> Ints:
    """A number for each instruction's file and line; NONE without a line."""
    column = (
        source_file.combine_chunks() if isinstance(source_file, pa.ChunkedArray) else source_file
    )
    file = pc.fill_null(column.dictionary_encode().indices, NONE).to_numpy().astype(np.int64)
    line = pc.fill_null(source_line, NONE).to_numpy().astype(np.int64)
    width = int(line.max(initial=0)) + 1
    return np.where((file == NONE) | (line == NONE), NONE, file * width + line)
