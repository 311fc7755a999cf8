"""The pass of training that each instruction's work belongs to: by its op_name, or by the graph.

JAX names the transformations that a computation went through: `jvp(…)` is the forward pass of
differentiated code, `transpose(jvp(…))` its backward pass, `rematted_computation` the work that
`jax.checkpoint` repeats. The rest of a training step has no such name. There the position in the
graph decides: the instructions that read gradients are the optimizer.
"""

import re
from dataclasses import dataclass
from typing import Final, Literal, get_args

from .gradient_reach import (
    GradientReach,
    find_gradient_reach,
    find_optimizer_inputs,
    nearest_callers,
)
from .named_program import NamedProgram
from .program import NONE, Program

Pass = Literal["argument", "forward", "backward", "rematerialised", "optimizer", "other"]
PASSES: Final[tuple[Pass, ...]] = get_args(Pass)
ARGUMENT: Final = "argument"
FORWARD: Final = "forward"
BACKWARD: Final = "backward"
REMATERIALISED: Final = "rematerialised"
OPTIMIZER: Final = "optimizer"
OTHER: Final = "other"

# XLA names a rematerialised instruction after the original: `fusion.16.remat3`.
_CLONE: Final = re.compile(r"\.remat\d*(\.|$)")
# JAX 0.4 to 0.6 has this component in its op_names, and drops a `jvp()` without a name.
_OLD_JAX: Final = "/jit(main)/"
_TORCH_OPTIMIZERS: Final = "/torch/optim/"


@dataclass
class Passes:
    """The pass of each instruction's own work.

    Attributes:
        by_row: the pass.
        is_clone: by row, whether XLA made the instruction to rematerialise a value.
        depends_on_gradient: by row.
        names_lack_passes: whether op_names do not mark differentiated code, as those of old JAX.
    """

    by_row: list[Pass]
    is_clone: list[bool]
    depends_on_gradient: list[bool]
    names_lack_passes: bool = False


def find_passes(named: NamedProgram) -> Passes:
    """Find each instruction's pass. The first rule that applies decides.

    1. Entry parameters are arguments.
    2. XLA's clones and 3. `rematted_computation` are rematerialised.
    4. `transpose(…)` is backward, 5. `jvp(…)` forward.
    6. A module without a backward pass has no other passes.
    7. Without an op_name of JAX, or with a relative one, the pass is that of the nearest caller
       that has one.
    8. The position in the graph decides: see `_GraphRule`.
    """
    program, op_names = named.program, named.op_name
    is_clone = [".remat" in name and bool(_CLONE.search(name)) for name in program.names]
    by_name = [_pass_by_name(named, row, is_clone[row]) for row in range(len(program))]
    if not any(op_name.is_backward for op_name in op_names):
        return Passes([pass_ or OTHER for pass_ in by_name], is_clone, [False] * len(program))
    loops_around_backward = {
        row: op_names[row].loop_count for row, pass_ in enumerate(by_name) if pass_ == BACKWARD
    }
    is_old_jax = any(_OLD_JAX in text for text in {op_name.text or "" for op_name in op_names})
    reach = find_gradient_reach(program, named.caller, loops_around_backward)
    graph_rule = _GraphRule(program, by_name, reach, is_old_jax)
    has_pass = [
        pass_ is not None
        or (op_name.has_path and not op_name.is_relative)
        or computation in reach.main
        for pass_, op_name, computation in zip(by_name, op_names, program.computation, strict=True)
    ]
    nearest = nearest_callers(program, named.caller, has_pass)
    passes = {row: by_name[row] or graph_rule.pass_of(row) for row in set(nearest)}
    return Passes(
        [passes[row] for row in nearest],
        is_clone,
        [reach.is_reached[row] for row in reach.main_row],
        names_lack_passes=is_old_jax or not any(op_name.is_forward for op_name in op_names),
    )


def _pass_by_name(named: NamedProgram, row: int, is_clone: bool) -> Pass | None:
    """The pass by rules 1 to 5, or None if none of them applies."""
    op_name = named.op_name[row]
    if named.is_argument[row]:
        return ARGUMENT
    if is_clone or op_name.is_rematerialised:
        return REMATERIALISED
    if op_name.is_backward:
        return BACKWARD
    return FORWARD if op_name.is_forward else None


class _GraphRule:
    """The pass of an instruction by rule 8: by its position in the graph.

    An instruction that depends on a gradient is optimizer, with three exceptions. A loop with
    backward instructions is backward. PyTorch/XLA names part of the backward pass as it does the
    forward pass: if lines of its optimizers are known, an instruction with another line or none is
    backward. Old JAX names part of the backward pass without `transpose`: there an instruction that
    shares its source line with one that depends on no gradient is backward.

    Any other instruction is optimizer if only the optimizer reads the result, such as a learning
    rate, otherwise forward.

    Args:
        by_name: by row, the pass by rules 1 to 5.
        is_old_jax: whether JAX 0.4 to 0.6 named the instructions.
    """

    def __init__(
        self, program: Program, by_name: list[Pass | None], reach: GradientReach, is_old_jax: bool
    ) -> None:
        self._program, self._reach = program, reach
        files = {metadata.source_file or "" for metadata in program.metadata}
        self._torch_files = {file for file in files if _TORCH_OPTIMIZERS in file}
        self._forward_lines = _find_forward_lines(program, by_name, reach) if is_old_jax else set()
        undecided, optimizer = set(), set()
        for computation in reach.main:
            for row in program.rows_of(computation):
                if by_name[row] is None and not reach.is_reached[row]:
                    undecided.add(row)
                elif by_name[row] is None and not self._is_backward(row):
                    optimizer.add(row)
        self._optimizer_inputs = find_optimizer_inputs(program, reach.main, undecided, optimizer)

    def pass_of(self, row: int) -> Pass:
        """The pass of an instruction, as if no earlier rule applied to it."""
        main_row = self._reach.main_row[row]
        if main_row in self._reach.backward_loops:
            return BACKWARD
        if self._reach.is_reached[main_row]:
            return BACKWARD if self._is_backward(row) else OPTIMIZER
        return OPTIMIZER if main_row in self._optimizer_inputs else FORWARD

    def _is_backward(self, row: int) -> bool:
        """Whether an instruction that depends on a gradient is backward by its source line."""
        if self._torch_files and self._program.metadata[row].source_file not in self._torch_files:
            return True
        return bool(self._forward_lines) and _source_line(self._program, row) in self._forward_lines


def _find_forward_lines(
    program: Program, by_name: list[Pass | None], reach: GradientReach
) -> set[tuple[str, int]]:
    """The source lines of instructions that depend on a parameter and on no gradient."""
    lines = {
        _source_line(program, row)
        for row, main_row in enumerate(reach.main_row)
        if reach.depends_on_parameter[main_row]
        and not reach.is_reached[main_row]
        and by_name[row] != ARGUMENT
    }
    return {line for line in lines if line is not None}


def _source_line(program: Program, row: int) -> tuple[str, int] | None:
    """The source file and line of an instruction, if both are known."""
    metadata = program.metadata[row]
    if metadata.source_file is None or metadata.source_line is None:
        return None
    return metadata.source_file, metadata.source_line


def pass_of_value(
    passes: Passes, definition: int, owner: int, *, uses_definition: bool
) -> Pass | None:
    """The pass of a value: that of the instruction that owns it; None without an owner.

    If XLA's clone defines or owns a value, the value is rematerialised, unless an argument owns it.

    Args:
        definition: the row of the defining instruction.
        owner: the row of the owner, or NONE.
        uses_definition: whether the defining instruction's pass is used: the owner is a guess, and
            the defining instruction has a joined name, which contains the pass.
    """
    if owner == NONE:
        return None
    row = definition if uses_definition else owner
    if passes.by_row[row] == ARGUMENT:
        return ARGUMENT
    is_cloned = passes.is_clone[definition] or passes.is_clone[row]
    return REMATERIALISED if is_cloned else passes.by_row[row]
