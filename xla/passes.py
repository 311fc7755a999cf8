"""The pass that each instruction's work belongs to: forward, backward, optimizer and others."""

import re
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from .columns.bridge_o import OpNames
from .columns.dataflow import CONTROL_FLOW
from .columns.program import NONE, Ints, Mask, NumberedProgram
from .names import Kind
from .runs import followed

# Readers: which results only the optimizer reads.

# These do no work that belongs to a pass: they forward or copy operands, or end an operation.
_WITHOUT_WORK = (
    "get-tuple-element",
    "tuple",
    "bitcast",
    "copy",
    "copy-start",
    "copy-done",
    "opt-barrier",
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

    Readers are those in the same computation. An instruction without work counts as its own
    readers, and an undecided reader must itself be read by the optimizer alone. Loops, and
    instructions that nothing reads, are not the optimizer's.
    """
    is_workless = program.opcode.is_one_of(*_WITHOUT_WORK)
    is_loop = program.opcode.is_one_of("while")
    undecided, of_optimizer = undecided & ~is_loop, of_optimizer & ~is_loop
    operand, reader = _edges(program, undecided, is_workless)
    passes_on = (is_workless | undecided)[reader]
    # Bit 0: the optimizer reads the instruction; bit 1: another pass does.
    read_by = np.zeros(len(program), np.int8)
    bits = np.where(of_optimizer[reader], 1, 2).astype(np.int8)
    np.bitwise_or.at(read_by, operand[~passes_on], bits[~passes_on])
    # A plain loop from the text's end, because the readers of an instruction stand after it.
    states = bytearray(read_by.tobytes())
    edges = np.flatnonzero(passes_on)[::-1]
    readers, reader_is_workless = reader[edges], is_workless[reader[edges]]
    for source, user, workless in zip(
        operand[edges].tolist(), readers.tolist(), reader_is_workless.tolist(), strict=True
    ):
        states[source] |= states[user] if workless else (1 if states[user] == 1 else 2)
    is_optimizer_alone: Mask = np.frombuffer(states, np.int8) == 1
    return is_optimizer_alone & undecided


def _edges(program: NumberedProgram, undecided: Mask, is_workless: Mask) -> tuple[Ints, Ints]:
    """Operands that are undecided or forward something undecided, and their readers."""
    operand, reader = program.operands, program.operand_row
    forwarding = np.flatnonzero(is_workless[reader] & (is_workless | undecided)[operand])
    leads_from_undecided = bytearray(undecided.tobytes())
    for source, user in zip(operand[forwarding].tolist(), reader[forwarding].tolist(), strict=True):
        if leads_from_undecided[source]:
            leads_from_undecided[user] = 1
    edges = np.flatnonzero(np.frombuffer(leads_from_undecided, bool)[operand])
    return operand[edges], reader[edges]


# Reach of the optimizer: backward instructions, and all that read their results.

# The longest chain of instructions on constants alone. XLA folds constants, so chains are short.
_DEEPEST = 100


@dataclass(frozen=True)
class Reach:
    """By instruction, what is in the optimizer's reach: backward, or a reader of such a result.

    `is_main` marks the instructions of main computations: the entry, and the bodies of loops
    over whole training steps or microbatches. `place` is the main instruction that each
    instruction is, or that calls its computation, directly or not; itself if nothing does. The
    other columns are those of the place: `is_in_reach`; `depends`, whether its result depends on
    a parameter; `is_backward_loop`, whether it is a loop with backward instructions whose body
    is not a main computation.
    """

    is_main: Mask
    place: Ints
    is_in_reach: Mask
    depends: Mask
    is_backward_loop: Mask


def find_reach(
    program: NumberedProgram, caller: Ints, backward: Mask, loops: Ints, chosen: Mask
) -> Reach:
    """Spread the optimizer's reach from the instructions that are backward by their names.

    `chosen` are the instructions of the programs that have a backward pass; `loops` is how many
    loops lie around the differentiated code of each such instruction. Instructions that depend on
    no parameter are never in reach, because XLA shares constants between the backward and the
    forward pass.
    """
    holds = _holds(program, caller, backward)
    is_loop = program.opcode.is_one_of("while")[caller] & (caller != NONE)
    main = np.zeros(len(program.first), bool)
    main[program.entries] = chosen[program.root[program.entries]]
    main = _main_computations(program, caller, main, is_loop, backward, loops)
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
    """The nearest instruction in `stops`: each instruction itself, its caller, that one's caller, …

    The outermost caller if none is in `stops`; the instruction itself if nothing calls it.
    """
    above = program.computation[caller]
    ends = (caller == NONE) | stops[caller] | (caller[above] == NONE)
    last = followed(np.where(ends, np.arange(len(caller)), above))
    target = caller[last][program.computation]
    return np.where(stops | (target == NONE), np.arange(len(program)), target)


def _holds(program: NumberedProgram, caller: Ints, rows: Mask) -> Mask:
    """Which called computations hold one of these instructions, or call one that does.

    Reducers and comparators do not count, because instructions of different passes share them.
    """
    is_run = program.opcode.is_one_of("fusion", *CONTROL_FLOW)[caller] & (caller != NONE)
    holds = np.zeros(len(program.first), bool)
    holds[program.computation[rows]] = True
    holds &= is_run
    added = np.flatnonzero(holds)
    while len(added):
        above = np.unique(program.computation[caller[added]])
        added = above[is_run[above] & ~holds[above]]
        holds[added] = True
    return holds


def _main_computations(
    program: NumberedProgram, caller: Ints, main: Mask, is_loop: Mask, backward: Mask, loops: Ints
) -> Mask:
    """The entries that are `main`, and the bodies of loops around differentiated code.

    Such a body has a forward and a backward pass, so that the loop as a whole belongs to none.
    """
    level = main
    for depth in range(1, int(loops.max(initial=0, where=backward)) + 1):
        holds = _holds(program, caller, backward & (loops >= depth))
        level = is_loop & level[program.computation[caller]] & holds
        if not level.any():
            break
        main = main | level
    return main


def _depends(program: NumberedProgram, first: int, stop: int) -> Mask:
    """Which instructions of a computation depend on one of its parameters.

    The others are constants, and instructions whose operands are all among the others; each
    round goes on from an instruction to its readers.
    """
    operand, reader = _operands(program, first, stop)
    open_operands = program.operand_count[first:stop].copy()
    open_operands[program.parameter_number[first:stop] != NONE] = 1
    newly_constant = open_operands == 0
    depends: Mask = ~newly_constant
    for _ in range(_DEEPEST):
        open_operands -= np.bincount(reader[newly_constant[operand]], minlength=len(newly_constant))
        newly_constant = (open_operands == 0) & depends
        if not newly_constant.any():
            break
        depends &= ~newly_constant
    return depends


def _spread(program: NumberedProgram, reach: Mask, first: int, stop: int) -> None:
    """Add to `reach` all instructions of a computation that read one in it, transitively.

    A plain loop in the text's order needs one round, because operands stand before readers.
    Rounds over all operands at once could be as many as there are instructions.
    """
    before = reach[first:stop]
    if not before.any():
        return
    operand, reader = _operands(program, first, stop)
    open_ends = ~before[reader] & (operand >= np.argmax(before))
    reached = bytearray(before.tobytes())
    for source, user in zip(operand[open_ends].tolist(), reader[open_ends].tolist(), strict=True):
        if reached[source]:
            reached[user] = 1
    reach[first:stop] = np.frombuffer(reached, bool)


def _operands(program: NumberedProgram, first: int, stop: int) -> tuple[Ints, Ints]:
    """A computation's operands and their readers, counted from its first instruction."""
    edges = slice(program.operand_start[first], program.operand_start[stop])
    return program.operands[edges] - first, program.operand_row[edges] - first


# Passes: by the op_name, else by the place in the graph.
#
# JAX names the transformations that a computation went through: `jvp(…)` is the forward pass of
# differentiated code, `transpose(jvp(…))` its backward pass, `rematted_computation` the work that
# `jax.checkpoint` repeats. The rest of a training step has no such name. There the place in the
# graph decides: the optimizer is what reads gradients.

PassCodes = npt.NDArray[np.int8]

PASSES = ("argument", "forward", "backward", "rematerialised", "optimizer", "other")
ARGUMENT, FORWARD, BACKWARD, REMATERIALISED, OPTIMIZER, OTHER = map(np.int8, range(len(PASSES)))

# XLA names a rematerialised instruction after the original: `fusion.16.remat3`.
_CLONE = r"\.remat\d*(\.|$)"
# JAX 0.4 to 0.6 has this component in its op_names, and drops a `jvp()` without a name.
_OLD = "/jit(main)/"
_TORCH_OPTIMIZERS = "/torch/optim/"


@dataclass(frozen=True)
class Passes:
    """Of each instruction: the pass of its own work, as a place in PASSES.

    `is_clone` marks the instructions that XLA made to rematerialise a value, `follows_gradient`
    those that depend on a gradient, `is_differentiated` those of differentiated code.
    """

    codes: PassCodes
    is_clone: Mask
    follows_gradient: Mask
    is_differentiated: Mask
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
    has_backward = program.with_any(names.by_row(names.has_transpose))
    codes[(codes == NONE) & ~has_backward] = OTHER
    if not has_backward.any():
        return Passes(codes, is_clone, *np.zeros((2, len(program)), bool))
    reach = _reach(program, names, caller, codes, has_backward)
    has_pass = (codes != NONE) | reach.is_main
    has_pass |= (names.kind >= Kind.JOINED) & ~names.by_row(names.is_relative)
    is_old = program.with_any(names.by_row(np.array([_OLD in text for text in names.texts], bool)))
    by_place = _by_place(program, is_old, source_file, source_line, codes, reach)
    codes = np.where(codes == NONE, by_place, codes)
    # The gradient of looked up rows is one of their table.
    is_lookup = np.array([operation == "gather" for operation in names.operation], bool)
    is_differentiated = names.by_row(
        names.has_jvp | names.has_transpose | names.has_rematted | is_lookup
    )
    codes = np.where(has_backward, codes[climb(program, caller, has_pass)], codes)
    # There names do not tell the forward pass from code around it.
    is_vague = is_old | ~program.with_any(names.by_row(names.has_jvp))
    is_differentiated |= is_vague & ((codes == FORWARD) | (codes == BACKWARD))
    return Passes(codes, is_clone, reach.is_in_reach, is_differentiated & has_backward)


def value_pass(by_instruction: Passes, made_by: Ints, origin: Ints, uses_maker: Mask) -> PassCodes:
    """The pass of values, from the instructions that make them and those that own them.

    The pass is the owner's. `uses_maker` marks the values whose owner is a guess and whose maker
    has a joined name, which says the pass: the maker's pass is used. If a clone by XLA makes or
    owns a value, the value is rematerialised, unless an argument owns it. NONE without an owner.
    """
    row = np.where(uses_maker, made_by, origin)
    codes = by_instruction.codes[row]
    is_cloned = (by_instruction.is_clone[made_by] & (made_by != NONE)) | by_instruction.is_clone[
        row
    ]
    codes = np.where(is_cloned & (codes != ARGUMENT), REMATERIALISED, codes)
    return np.where(origin == NONE, np.int8(NONE), codes)


def without_optimizer(
    by_instruction: Passes, by_value: Ints, row: Ints, trains: Mask
) -> tuple[Passes, Ints]:
    """The passes of instructions and values, where only programs that train have an optimizer.

    What depends on the gradients of another one, such as a particle's next velocity, is in no pass
    of its own. `row` is the instruction of each value; `trains` is by instruction.
    """
    codes = np.where((by_instruction.codes == OPTIMIZER) & ~trains, OTHER, by_instruction.codes)
    of_value = np.where((by_value == OPTIMIZER) & ~trains[row], OTHER, by_value)
    return replace(by_instruction, codes=codes), of_value


def _clones(program: NumberedProgram) -> Mask:
    # Few names contain the text, and one search over all of them at once is quick.
    _, offsets, content = program.names.buffers()
    starts = np.frombuffer(offsets, np.int64)[program.names.offset :]
    places = [match.start() for match in re.finditer(rb"\.remat", memoryview(content or b""))]
    rows = np.unique(np.searchsorted(starts, places, side="right") - 1)
    rows = rows[(rows >= 0) & (rows < len(program))]
    matching = pc.match_substring_regex(program.names.take(pa.array(rows)), pattern=_CLONE)
    is_clone = np.zeros(len(program), bool)
    is_clone[rows] = matching.to_numpy(zero_copy_only=False)
    return is_clone


def _by_name(program: NumberedProgram, names: OpNames, is_clone: Mask) -> PassCodes:
    """The pass by rules 1 to 5; NONE where none of them applies."""
    rules = [names.has_rematted, names.has_transpose, names.has_jvp]
    by_text = np.select(rules, [REMATERIALISED, BACKWARD, FORWARD], np.int8(NONE))
    codes: PassCodes = np.append(by_text, np.int8(NONE))[names.code]
    codes[is_clone] = REMATERIALISED
    codes[program.is_entry & (program.parameter_number != NONE)] = ARGUMENT
    return codes


def _reach(
    program: NumberedProgram, names: OpNames, caller: Ints, codes: PassCodes, has_backward: Mask
) -> Reach:
    loops = np.append(names.loops, 0)[names.code]
    return find_reach(program, caller, codes == BACKWARD, loops, has_backward)


def _by_place(
    program: NumberedProgram,
    is_old: Mask,
    source_file: pa.Array | pa.ChunkedArray,
    source_line: pa.Array | pa.ChunkedArray,
    codes: PassCodes,
    reach: Reach,
) -> PassCodes:
    """The pass of each instruction by rule 8, as if no earlier rule applied to it.

    In the optimizer's reach it is optimizer, with three exceptions. A loop with backward
    instructions is backward. PyTorch/XLA names part of the backward pass as it does the forward
    pass: if lines of its optimizers are known, what has another line or none is backward. Old JAX
    names part of the backward pass without `transpose`: there
    an instruction that shares its source line with one out of reach is backward. Out of reach it
    is optimizer if only the optimizer reads the result, such as a learning rate, else forward.
    """
    by_place = np.where(reach.is_in_reach, OPTIMIZER, FORWARD)
    by_place[reach.is_backward_loop] = BACKWARD
    of_torch = pc.match_substring(source_file, _TORCH_OPTIMIZERS)
    is_torch = pc.fill_null(of_torch, False).to_numpy(zero_copy_only=False).astype(bool)
    by_place[reach.is_in_reach & program.with_any(is_torch) & ~is_torch] = BACKWARD
    if is_old.any():
        line = _source_lines(program, source_file, source_line)
        outside = reach.depends & ~reach.is_in_reach & (codes != ARGUMENT) & (line != NONE)
        by_place[is_old & reach.is_in_reach & np.isin(line, line[outside])] = BACKWARD
    undecided = reach.is_main & (codes == NONE)
    optimizer_alone = read_by_optimizer_alone(
        program, undecided & ~reach.is_in_reach, undecided & (by_place == OPTIMIZER)
    )
    by_place[~reach.is_in_reach & optimizer_alone[reach.place]] = OPTIMIZER
    return by_place


def _source_lines(
    program: NumberedProgram,
    source_file: pa.Array | pa.ChunkedArray,
    source_line: pa.Array | pa.ChunkedArray,
) -> Ints:
    """A number for each instruction's program, file and line; NONE without them."""
    chunked = isinstance(source_file, pa.ChunkedArray)
    column = source_file.combine_chunks() if chunked else source_file
    file = pc.fill_null(column.dictionary_encode().indices, NONE).to_numpy().astype(np.int64)
    line = pc.fill_null(source_line, NONE).to_numpy().astype(np.int64)
    numbers = (line * (file.max() + 1) + file) * len(program.entries) + program.program_of
    return np.where((file == NONE) | (line == NONE), NONE, numbers)
