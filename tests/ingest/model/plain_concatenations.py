"""Concatenations that XLA makes and cuts again: combined collectives, halos."""

import re

from .plain_sizes import elements, size
from .plain_text import Instruction, Position
from .plain_ways import Ways

# An operand with at least this share of a concatenation's bytes is what the concatenation is.
NEARLY_ALL = 7 / 8
HANDS_ON = ("copy", "copy-start", "all-reduce", "all-reduce-start")


def nearly_all(ways: Ways, x: Instruction) -> Position | None:
    """The operand that a concatenation is, but for an eighth of its bytes."""
    if x.opcode != "concatenate":
        return None
    for name in reversed(x.operands):
        if size(ways.module.instructions[name].shape) >= NEARLY_ALL * size(x.shape):
            return name, ()
    return None


def piece(ways: Ways, x: Instruction, whole: Position) -> Position | None:
    """What a slice cuts out of a nameless concatenation of flat arrays."""
    if (match := re.search(r"\bslice=\{\[(\d+):", x.attributes)) is None or not is_flat(x):
        return None
    joined = concatenation(ways, whole)
    if joined is None or not is_flat(joined):
        return None
    low, high, start = int(match[1]), int(match[1]) + count(x), 0
    for name in joined.operands:
        stop = start + count(ways.module.instructions[name])
        if start <= low and high <= stop:
            return outside(ways, (name, ()))
        start = stop
    return None


def concatenation(ways: Ways, node: Position) -> Instruction | None:
    """The nameless concatenation that a node is, summed over devices or copied since."""
    while True:
        node = ways.values.held.get(node, node)
        x = ways.at(node)
        if x.opcode in HANDS_ON and len(x.operands) == 1 and not ways.names.is_strong(x):
            node = x.operands[0], ()
            continue
        if x.opcode == "fusion":
            x = ways.at(ways.kept(ways.inner(x, node[1])))
        is_one = x.opcode == "concatenate" and not ways.names.is_strong(x)
        return x if is_one else None


def outside(ways: Ways, node: Position) -> Position | None:
    """An operand of a concatenation, outside of the fusion if that is in one."""
    if not ways.is_fused(node):
        return node
    node = ways.kept(node)
    return None if ways.is_fused(node) else node


def is_flat(x: Instruction) -> bool:
    """Whether an instruction gives an array of one dimension."""
    return isinstance(x.shape, str) and re.match(r"\w+\[[^,\]]+\]", x.shape) is not None


def count(x: Instruction) -> int:
    """How many elements an array has."""
    assert isinstance(x.shape, str)
    return elements(x.shape.partition("[")[2].partition("]")[0])
