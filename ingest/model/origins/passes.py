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

from ..numbered_program import NONE, Ints, Mask, NumberedProgram
from .op_names import Kind, OpNames
from .optimizer_readers import read_by_optimizer_alone
from .reach import Reach, climb, find_reach

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
