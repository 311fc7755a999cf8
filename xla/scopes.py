"""The scope and operation of each instruction: a row of `scopes`."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from .names import OpName
from .program import NONE, Program

# Functions of jax.numpy and the like, `jit(silu)`, and einsums, `bqhe,bkhe->bhqk`, are operations.
_OPERATION = re.compile(r"p?jit\(.*\)|.*->.*", re.DOTALL)
# A step that is one of several alike: `encoder_3`, `layers[3]`.
_NUMBERED_STEP = re.compile(r"(.*?\D)(\d+)(\D?)", re.DOTALL)


class Scope(NamedTuple):
    """A distinct pair of scope and operation of a program.

    Attributes:
        scope, operation: see `op_names.Path`; the scope is that from the program on.
        module_path: the scope without operations.
        fold: the module_path with `{}` for the numbers of repeated layers.
    """

    scope: str
    operation: str
    module_path: str
    fold: str


@dataclass
class Scopes:
    """The scopes of a program.

    Attributes:
        rows: the distinct scopes, by scope_id.
        scope_id: by row of the program; NONE for an instruction whose op_name has no path.
    """

    rows: list[Scope]
    scope_id: list[int]


def find_scopes(program: Program, op_names: list[OpName], callers: list[int]) -> Scopes:
    """The scope of each instruction.

    A relative op_name continues the scope of its caller, or of that one's caller if the caller has
    no path either.
    """
    ids: dict[tuple[str, str], int] = {}
    rank = {op_name: number for number, op_name in enumerate(dict.fromkeys(op_names))}
    absolute_ids = {
        op_name: ids.setdefault((op_name.scope, op_name.operation), len(ids))
        for op_name in rank
        if op_name.has_path and not op_name.is_relative
    }
    scope_id = [absolute_ids.get(op_name, NONE) for op_name in op_names]
    outer = _outer_scopes(program, op_names, callers)
    for computation in range(len(program.first)):
        rows = [row for row in program.rows_of(computation) if op_names[row].is_relative]
        # Ids are in the order of the op_names, not of the rows.
        for row in sorted(rows, key=lambda row: rank[op_names[row]]):
            pair = _join(outer[computation], op_names[row].scope), op_names[row].operation
            scope_id[row] = ids.setdefault(pair, len(ids))
    modules = [module_path(scope) for scope, _ in ids]
    rows_of_scopes = [
        Scope(scope, operation, module, fold)
        for (scope, operation), module, fold in zip(ids, modules, folds(modules), strict=True)
    ]
    return Scopes(rows_of_scopes, scope_id)


def _outer_scopes(program: Program, op_names: list[OpName], callers: list[int]) -> list[str]:
    """By computation, the scope that its relative op_names continue."""
    outer = [""] * len(program.first)
    for computation in reversed(program.callees_first()):
        caller = callers[computation]
        if caller != NONE:
            op_name = op_names[caller]
            is_absolute = op_name.has_path and not op_name.is_relative
            start = "" if is_absolute else outer[program.computation[caller]]
            outer[computation] = _join(start, op_name.scope)
    return outer


def _join(outer: str, inner: str) -> str:
    return f"{outer}/{inner}" if outer and inner else outer or inner


def module_path(scope: str) -> str:
    """The modules of a scope, without operations; the scope itself if it has only operations.

    >>> module_path("Net/block_3/jit(silu)"), module_path("bqhe,bkhe->bhqk")
    ('Net/block_3', 'bqhe,bkhe->bhqk')
    """
    modules = [step for step in scope.split("/") if not _OPERATION.fullmatch(step)]
    return "/".join(modules) or scope


def folds(paths: Sequence[str]) -> list[str]:
    """The path that each module path shares with repeated layers: `{}` stands for the number.

    The outermost step that occurs with several numbers is the layer. A step within it bears the
    layer's number if it never has another. Without a repeated layer the fold is the path itself.

    >>> folds(["net/block_0/mlp", "net/block_1/mlp", "net/block_1/drop_1", "net/head_0"])
    ['net/block_{}/mlp', 'net/block_{}/mlp', 'net/block_{}/drop_{}', 'net/head_0']
    >>> folds(["net/block_0/norm_0", "net/block_1/norm_0"])
    ['net/block_{}/norm_0', 'net/block_{}/norm_0']
    """
    numbers: dict[tuple[str, str, str], set[str]] = {}
    distinct = {path: path.split("/") for path in paths}
    for steps in distinct.values():
        for depth, step in enumerate(steps):
            if match := _NUMBERED_STEP.fullmatch(step):
                parent = "/".join(steps[:depth])
                numbers.setdefault((parent, match[1], match[3]), set()).add(match[2])
    layered = {path: _numbered_steps(steps, numbers) for path, steps in distinct.items()}
    differing = {
        numbered_step.pattern
        for numbered in layered.values()
        for numbered_step in numbered
        if numbered_step.number != numbered[0].number
    }
    for path, steps in distinct.items():
        for numbered_step in layered[path]:
            if numbered_step.pattern not in differing:
                steps[numbered_step.depth] = numbered_step.pattern[-1]
    return ["/".join(distinct[path]) for path in paths]


class _NumberedStep(NamedTuple):
    """A numbered step of a layer.

    Attributes:
        depth: its position in the path.
        number: as text.
        pattern: the steps before the layer, then those from the layer on without their numbers.
    """

    depth: int
    number: str
    pattern: tuple[str, ...]


def _numbered_steps(
    steps: Sequence[str], numbers: Mapping[tuple[str, str, str], set[str]]
) -> list[_NumberedStep]:
    """The numbered steps of a path from its layer on, the layer first; none without a layer."""
    numbered: list[_NumberedStep] = []
    pattern: tuple[str, ...] = ()
    for depth, step in enumerate(steps):
        match = _NUMBERED_STEP.fullmatch(step)
        parent = "/".join(steps[:depth])
        if match and (numbered or len(numbers[parent, match[1], match[3]]) > 1):
            pattern = (*(pattern or (parent,)), f"{match[1]}{{}}{match[3]}")
            numbered.append(_NumberedStep(depth, match[2], pattern))
        elif numbered:
            pattern = (*pattern, step)
    return numbered
