"""The op_names of a program: their worth as owners, their scopes and transformations."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from .op_names import GRADIENT_TAPE, NO_PATH, Path, read_component, read_path
from .program import Program

# The primitives with which JAX takes a slice out of a stacked array.
_SLICING = ("dynamic_slice", "squeeze", "dynamic_index_in_dim")
# XLA numbers the names that it makes up: `broadcast.92`.
_NUMBERED = re.compile(r"\.\d+$")


class Kind(IntEnum):
    """The worth of an op_name as an owner, in ascending order.

    NONE: no op_name. ARGUMENT: the op_name of an entry parameter. XLA_MADE: without a `/`, so
    that XLA made it up. JOINED: XLA joined it from several. WEAK: its last component is control
    flow or a wrapper. STRONG: all others.
    """

    NONE = 0
    ARGUMENT = 1
    XLA_MADE = 2
    JOINED = 3
    WEAK = 4
    STRONG = 5


# Equal op_names of a program are one object, so that identity is equality.
@dataclass(frozen=True, slots=True, eq=False)
class OpName:
    """A distinct op_name of a program.

    Attributes:
        text: as in the HLO text; None for an instruction without metadata.
        kind: its worth as an owner.
        has_path: whether the kind is JOINED, WEAK or STRONG. Without a path, the fields below
            but `is_slice` are empty or False.
        scope, operation: see `Path`.
        is_relative: whether it lacks the program at its start and continues its caller's.
        is_forward: whether a component went through `jvp`, or is a layer that has a gradient.
        is_backward: whether a component went through `transpose`.
        is_rematerialised: whether a component is `rematted_computation`.
        loop_count: number of loops around the differentiated code.
        is_slice: whether it ends in a primitive with which JAX slices a stacked array.
    """

    text: str | None = None
    kind: Kind = Kind.NONE
    has_path: bool = False
    scope: str = ""
    operation: str = ""
    is_relative: bool = False
    is_forward: bool = False
    is_backward: bool = False
    is_rematerialised: bool = False
    loop_count: int = 0
    is_slice: bool = False


NO_OP_NAME: Final = OpName()


def read_op_names(program: Program) -> list[OpName]:
    """The op_name of each instruction, by row; NO_OP_NAME without one."""
    texts = [metadata.op_name for metadata in program.metadata]
    paths = {text: read_path(text) for text in dict.fromkeys(texts) if text is not None}
    arguments = {texts[row] for row in program.parameters(program.entry)}
    is_jax = any(path.has_program for path in paths.values())
    kinds = {text: _kind(path, text in arguments) for text, path in paths.items()}
    if not is_jax:
        for text, kind in kinds.items():
            # Other frameworks name operations without a path: `aten__mm`.
            if kind == Kind.XLA_MADE and text and not _NUMBERED.search(text):
                kinds[text] = Kind.STRONG
                paths[text] = Path((read_component(text),), False, False)
    for text, kind in kinds.items():
        if kind < Kind.JOINED:
            paths[text] = NO_PATH
    layers = _layers_with_gradient(paths.values())
    op_names: dict[str | None, OpName] = {None: NO_OP_NAME}
    for text, path in paths.items():
        is_of_layer = any(part.name in layers for part in path.components[:1])
        op_names[text] = OpName(
            text=text,
            kind=kinds[text],
            has_path=kinds[text] >= Kind.JOINED,
            scope=path.scope,
            operation=path.operation,
            is_relative=is_jax and kinds[text] >= Kind.JOINED and not path.has_program,
            is_forward=is_of_layer or path.has_transformation("jvp"),
            is_backward=path.has_transformation("transpose"),
            is_rematerialised=path.has_component("rematted_computation"),
            loop_count=path.loop_count,
            is_slice=path.operation in _SLICING,
        )
    return [op_names[text] for text in texts]


def _kind(path: Path, is_argument: bool) -> Kind:
    # XLA may replace an instruction that moves a parameter by the parameter, with its op_name.
    if is_argument and not path.has_program:
        return Kind.ARGUMENT
    if len(path.components) + path.has_program < 2:
        return Kind.XLA_MADE
    if path.is_joined:
        return Kind.JOINED
    return Kind.WEAK if path.is_weak else Kind.STRONG


def _layers_with_gradient(paths: Iterable[Path]) -> set[str]:
    """The layers that TensorFlow differentiates: `dense` of `gradient_tape/dense/MatMul`."""
    return {
        path.components[1].name
        for path in paths
        if len(path.components) > 1 and path.components[0].name == GRADIENT_TAPE
    }
