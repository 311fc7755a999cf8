"""What a program saves for its backward pass, and the scans over layers that save it."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np

from ..catalogue import statement
from .array_size import dimensions, elements
from .asked_program import Program

_FREE = frozenset(
    {
        *("broadcast_in_dim", "convert_element_type", "copy", "iota", "reshape", "squeeze"),
        *("expand_dims", "transpose", "rev", "slice", "dynamic_slice", "concatenate", "pad"),
        *("select_n", "ge", "gt", "le", "lt", "eq", "ne", "and", "or", "not"),
    }
)
_PRODUCTS = frozenset({"dot_general", "conv_general_dilated", "custom_call", "pallas_call"})
_SUMS = ("reduce_", "cum", "sort", "scatter", "gather", "top_k", "argmax", "while", "scan")
# JAX marks what a policy saves with this operation; policies save what is dear.
_SAVED_BY_POLICY = "reduce_precision"


class Cost(IntEnum):
    """What it takes to compute a residual again, its own operation alone; cheapest first."""

    free = 0
    elementwise = 1
    reduction = 2
    product = 3


@dataclass(frozen=True)
class Residual:
    """A tensor that the forward pass keeps for the backward pass.

    value_id: the largest value that holds it; value_ids: all values that hold it whole; part_ids:
    those that hold a part, such as one layer of a stack. layers: the number of results of its
    operation that are stacked in it. start_time, end_time: its life in all copies; idle_end_time:
    the first touch after its longest rest, which is when the backward pass first reads it.
    """

    residual_id: int
    value_id: int
    value_ids: frozenset[int]
    part_ids: frozenset[int]
    layers: int
    size_bytes: int
    shape: str
    operation: str
    cost: Cost
    source: str | None
    start_time: int
    end_time: int
    idle_end_time: int


@dataclass(frozen=True)
class Scan:
    """A loop of the forward pass that stacks residuals, and the loop that reads them back.

    forward: the first of the two loops. layers: the turns, the first dimension of each stack.
    body: the computation of a layer. carry_bytes: what is saved of that which a turn hands to the
    next; spare_bytes: what all stacks take but for the carry's. start_time, end_time: the body of
    the backward loop. stack_places: which parts of the forward loop's tuple are stacks.
    read_back: the values that live in the backward loop alone; again_bytes: the largest that it
    computes again already; paired_bytes: the most that two of its values at one time both take.
    source: the line of the loop.
    """

    forward: int
    body: str
    layers: int
    carry_bytes: int
    spare_bytes: int
    start_time: int
    end_time: int
    stacks: tuple[Residual, ...]
    stack_places: frozenset[int]
    read_back: frozenset[int]
    again_bytes: int
    paired_bytes: int
    source: str | None


def read_residuals(program: Program) -> list[Residual]:
    """The residuals of a program's memory space, the largest first."""
    rows = program.rows(statement("advise_residuals"), [program.layout.memory_space]).to_pylist()
    holders = _holders(program, rows)
    return [
        Residual(
            row["residual_id"],
            row["value_id"],
            *holders[row["residual_id"]],
            row["layers"],
            row["size_bytes"],
            row["shape"],
            row["operation"] or row["opcode"],
            cost_of(row["operation"] or row["opcode"]),
            row["source"],
            row["start_time"],
            row["end_time"],
            row["idle_end_time"],
        )
        for row in rows
    ]


def read_scans(program: Program, residuals: Iterable[Residual]) -> list[Scan]:
    """The scans of the forward pass that stack some of these residuals."""
    loops: dict[int, list[dict[str, Any]]] = {}
    for row in program.rows(statement("advise_loops")).to_pylist():
        loops.setdefault(row["instruction_id"], []).append(row)
    by_value = {value: each for each in residuals for value in each.value_ids}
    scans = []
    for loop, carried in loops.items():
        if carried[0]["loop_pass"] != "forward":
            continue
        changing = [row for row in carried if row["is_phi"] and dimensions(row["shape"])]
        held = {by_value[row["value_id"]] for row in changing if row["value_id"] in by_value}
        layers = _layers(held)
        backward = _backward_loop(loops, carried[0], held)
        if layers > 1 and backward:
            read_back = {row["value_id"] for row in backward}
            stacks = [
                stack
                for stack in held
                if dimensions(stack.shape)[0] == layers and stack.value_ids & read_back
            ]
            stacks.sort(key=lambda stack: stack.residual_id)
            scans.append(_scan(program, loop, changing, backward[0], layers, tuple(stacks)))
    return scans


def cost_of(operation: str) -> Cost:
    """What an operation of JAX costs, by its name."""
    if operation in _PRODUCTS or operation == _SAVED_BY_POLICY:
        return Cost.product
    if operation in _FREE:
        return Cost.free
    return Cost.reduction if operation.startswith(_SUMS) else Cost.elementwise


def _holders(
    program: Program, rows: list[dict[str, Any]]
) -> dict[int, tuple[frozenset[int], frozenset[int]]]:
    """Of each residual the values that hold all of it, and those that hold a part."""
    values = program.rows(
        'SELECT value_id, residual_id, shape FROM "values"'
        " WHERE module_id = $1 AND residual_id IS NOT NULL AND element_type IS NOT NULL"
    ).to_pylist()
    whole = {row["residual_id"]: elements(row["shape"]) for row in rows}
    found: dict[int, tuple[set[int], set[int]]] = {each: (set(), set()) for each in whole}
    for value in values:
        residual = value["residual_id"]
        if residual in whole:
            is_part = elements(value["shape"]) != whole[residual]
            found[residual][is_part].add(value["value_id"])
    return {
        residual: (frozenset(wholes), frozenset(parts))
        for residual, (wholes, parts) in found.items()
    }


def _backward_loop(
    loops: dict[int, list[dict[str, Any]]], forward: dict[str, Any], stacks: Iterable[Residual]
) -> list[dict[str, Any]]:
    """The later loop of the same computation that takes the most bytes of the stacks."""
    sizes = {value: stack.size_bytes for stack in stacks for value in stack.value_ids}
    best: list[dict[str, Any]] = []
    most = 0
    for carried in loops.values():
        head = carried[0]
        taken = sum(sizes.get(row["value_id"], 0) for row in carried)
        is_later = head["end_time"] > forward["end_time"]
        if is_later and head["computation"] == forward["computation"] and taken > most:
            best, most = carried, taken
    return best


def _layers(held: Iterable[Residual]) -> int:
    """The first dimension of most bytes that a loop stacks; 0 if it stacks nothing."""
    sizes: Counter[int] = Counter()
    for residual in held:
        if residual.layers > 1:
            sizes[dimensions(residual.shape)[0]] += residual.size_bytes
    return sizes.most_common(1)[0][0] if sizes else 0


def _scan(
    program: Program,
    loop: int,
    changing: list[dict[str, Any]],
    backward: dict[str, Any],
    layers: int,
    stacks: tuple[Residual, ...],
) -> Scan:
    stacked = {value for stack in stacks for value in stack.value_ids}
    parts = {value for stack in stacks for value in stack.part_ids}
    others = [
        row for row in changing if row["pass"] == "forward" and row["value_id"] not in stacked
    ]
    # What is stacked for other readers is an output of the scan. A batch of as many as the layers
    # looks like that too, but the scan stacks what it carries.
    saved = {dimensions(stack.shape) for stack in stacks}
    carry = [
        row
        for row in others
        if dimensions(row["shape"])[0] != layers or (layers, *dimensions(row["shape"])) in saved
    ] or others
    return Scan(
        loop,
        changing[0]["body"],
        layers,
        sum(_kept_bytes(row, layers, stacks) for row in carry),
        _spare_bytes([layers * elements(row["shape"]) for row in carry], stacks),
        backward["body_start_time"],
        backward["end_time"],
        stacks,
        frozenset(_place(row) for row in changing if row["value_id"] in stacked),
        _inner_values(program, backward),
        _made_again(program, backward),
        _paired_bytes(program, backward, parts),
        changing[0]["source"],
    )


def _kept_bytes(carry: dict[str, Any], layers: int, stacks: Iterable[Residual]) -> int:
    """What one layer of a carry takes if it is saved.

    XLA saves it converted where a layer begins with a conversion to a narrower type.
    """
    size = layers * elements(carry["shape"])
    converted = [
        stack.size_bytes // layers
        for stack in stacks
        if stack.operation == "convert_element_type" and elements(stack.shape) == size
    ]
    return min([int(carry["size_bytes"]), *converted])


def _spare_bytes(carried: Iterable[int], stacks: Iterable[Residual]) -> int:
    """What stacks take but for one of each carry, told by its number of elements."""
    sizes = [(elements(stack.shape), stack.size_bytes) for stack in stacks]
    for count in carried:
        same = [size for size in sizes if size[0] == count]
        if same:
            sizes.remove(max(same))
    return sum(size for _, size in sizes)


def _place(row: dict[str, Any]) -> int:
    return int(row["shape_index"].strip("{}").partition(",")[0])


def _inner_values(program: Program, loop: dict[str, Any]) -> frozenset[int]:
    layout = program.layout
    inside = (layout.start >= loop["body_start_time"]) & (layout.end < loop["end_time"])
    return frozenset(layout.value_id[inside].tolist())


def _paired_bytes(program: Program, loop: dict[str, Any], parts: Iterable[int]) -> int:
    """The most that two buffers of a loop's body both take at one time; no parts of stacks."""
    layout = program.layout
    inside = (layout.start >= loop["body_start_time"]) & (layout.end < loop["end_time"])
    # What the loop hands on shares its buffer with what lives before or after it.
    inside &= ~np.isin(layout.alias_set, layout.alias_set[~inside])
    inside &= ~np.isin(layout.value_id, np.fromiter(parts, np.int64))
    rows = np.flatnonzero(inside)
    rows = rows[np.argsort(-layout.size[rows], kind="stable")]
    start, end, sets = layout.start[rows], layout.end[rows], layout.alias_set[rows]
    for last in range(1, len(rows)):
        meets = (start[:last] <= end[last]) & (start[last] <= end[:last])
        if (meets & (sets[:last] != sets[last])).any():
            return int(layout.size[rows[last]])
    return 0


def _made_again(program: Program, backward: dict[str, Any]) -> int:
    (row,) = program.rows(
        statement("advise_made_again"),
        [program.layout.memory_space, backward["body_start_time"], backward["end_time"]],
    ).to_pylist()
    return int(row["size_bytes"])
