"""The ways back through a program that the rules of attribution walk.

A node is a position: an instruction and an index of its shape, in fused computations too. A step
leads from a node to the node whose result it holds.
"""

import re
from collections.abc import Iterator

from .plain_names import Names
from .plain_rules import Values, find_values
from .plain_sizes import size
from .plain_text import (
    Computation,
    Index,
    Instruction,
    Position,
    attribute_names,
    branches,
    is_array,
    sub_shapes,
)

RENAMED = ("bitcast", "copy", "opt-barrier", "optimization-barrier", "domain", "add-dependency")
RESHAPED = ("convert", "reshape", "transpose")
# Fusions of a scan's slice are named by one of these.
SLICE_NAMES = ("dynamic_slice", "squeeze", "dynamic_index_in_dim")


class Ways:
    """A module, its values and its names, with the steps between its nodes."""

    def __init__(self, text: str) -> None:
        self.names = Names(text)
        self.module = self.names.module
        self.values: Values = find_values(self.module)

    def array_values(self) -> list[Position]:
        """Every value that is an array, in the order of the text."""
        values = self.values.all()
        return [
            (x.name, index)
            for x in self.module.instructions.values()
            for index, shape in sub_shapes(x.shape).items()
            if is_array(shape) and (x.name, index) in values
        ]

    def caller(self, computation: str) -> Instruction | None:
        """Who calls a computation; the first, if several do."""
        return next(iter(self.module.callers.get(computation, [])), None)

    def at(self, node: Position) -> Instruction:
        """The instruction of a node."""
        return self.module.instructions[node[0]]

    def root(self, x: Instruction, key: str = "calls") -> Instruction:
        """The root of the computation that an instruction calls."""
        return self.computation(x, key).root

    def computation(self, x: Instruction, key: str) -> Computation:
        """The computation that an instruction names by an attribute."""
        called = attribute_names(x, key) or attribute_names(x, "to_apply")
        return self.module.computations[called[0]]

    def settled(self, node: Position) -> Position:
        """The value of a phi that is one value all round; any other node itself."""
        x = self.at(node)
        if x.opcode in ("parameter", "while", "conditional"):
            return self.values.held.get(node, node)
        return node

    # One step.

    def moved(self, node: Position) -> Position | None:
        """One step back through what only moves or renames; none for anything else."""
        x, index = self.at(node), node[1]
        if x.opcode == "get-tuple-element":
            number = re.search(r"\bindex=(\d+)", x.attributes)
            assert number is not None
            return x.operands[0], (int(number[1]), *index)
        if x.opcode == "tuple":
            return (x.operands[index[0]], index[1:]) if index else None
        if x.opcode in RENAMED or x.opcode in ("all-reduce-done", "async-update"):
            return x.operands[0], index
        if x.opcode == "copy-start":
            # The flag that says the copy is done belongs to what is copied.
            return x.operands[0], () if index[:1] == (2,) else index[1:]
        if x.opcode == "call":
            return self.root(x, "to_apply").name, index
        if x.opcode == "async-start":
            return self.moved_by_async(x, index)
        if x.opcode == "recv-done":
            return x.operands[0], index
        if x.opcode.endswith("-done"):
            into = 0 if x.opcode == "copy-done" else 1
            return x.operands[0], (into, *index)
        if x.opcode in ("all-gather-start", "collective-permute-start") and index[:1] == (0,):
            several = isinstance(x.shape[0], tuple) and len(index) > 1
            return (x.operands[index[1]], index[2:]) if several else (x.operands[0], index[1:])
        return None

    def moved_by_async(self, x: Instruction, index: tuple[int, ...]) -> Position | None:
        """The operands of an async-start at {0}, the result of its computation at {1}."""
        if index[:1] == (0,) and len(index) > 1:
            return x.operands[index[1]], index[2:]
        root = self.root(x)
        if index[:1] == (1,):
            return root.name, index[1:]
        # Contexts belong to the first result.
        return root.name, () if isinstance(root.shape, str) else (0,)

    def passed_in(self, node: Position) -> Position | None:
        """What the caller hands to a parameter; none in the entry, in loops and in reducers."""
        x = self.at(node)
        if x.opcode != "parameter" or x.computation == self.module.entry:
            return None
        for caller in self.module.callers[x.computation]:
            if caller.opcode == "conditional":
                number = branches(caller).index(x.computation) + 1
                return caller.operands[number], node[1]
            if caller.opcode in ("call", "async-start", "fusion"):
                return caller.operands[int(x.inside)], node[1]
        return None

    def loop(self, node: Position) -> Instruction | None:
        """The loop whose result or parameter a node is."""
        x = self.at(node)
        if x.opcode == "while":
            return x
        if x.opcode != "parameter" or x.computation == self.module.entry:
            return None
        callers = self.module.callers[x.computation]
        return next((caller for caller in callers if caller.opcode == "while"), None)

    def is_argument(self, node: Position) -> bool:
        """Whether a node is a parameter of the entry computation."""
        x = self.at(node)
        return x.opcode == "parameter" and x.computation == self.module.entry

    def inner(self, x: Instruction, index: tuple[int, ...]) -> Position:
        """What makes a fusion's result: its root, or the root's operand at that element."""
        root = self.root(x)
        if root.opcode == "tuple" and index:
            return root.operands[index[0]], index[1:]
        return root.name, index

    def sized(self, names: list[str]) -> list[str]:
        """The larger first; equally large ones in their order.

        Decision: what counts are the elements' bytes, not what a layout makes of them.
        """
        return sorted(names, key=lambda name: -size(self.module.instructions[name].shape))

    def largest_leaf(self, x: Instruction) -> Index:
        """Where an instruction's largest array lies; the first of equally large ones."""
        leaves = {i: shape for i, shape in sub_shapes(x.shape).items() if is_array(shape)}
        return max(leaves, key=lambda index: size(leaves[index]), default=())

    # Many steps.

    def is_fill(self, node: Position) -> bool:
        """Whether a node is one constant everywhere."""
        return bool(self.fill(node))

    def fill(self, node: Position) -> list[Position]:
        """The nodes from a fill back to its constant; empty if it is no fill."""
        way: list[Position] = []
        while node not in way:
            node = self.settled(node)
            way.append(node)
            x = self.at(node)
            if x.opcode == "constant":
                return way if isinstance(x.shape, str) and "[]" in x.shape else []
            if self.names.metadata[x.name].target == "AllocateBuffer":
                return way
            following = self.moved(node) or self.passed_in(node)
            if x.opcode in RESHAPED or x.opcode == "broadcast":
                following = (x.operands[0], ())
            elif x.opcode == "fusion":
                following = self.inner(x, node[1])
            if following is None:
                return []
            node = following
        return []

    def is_phi(self, node: Position) -> bool:
        """Whether a node, through moves and nameless conversions, is a phi of a loop."""
        node = self.through_moves(node)
        return node in self.values.phis and self.loop(node) is not None

    def is_carried(self, node: Position) -> bool:
        """Whether a node is a phi of a loop, or comes into a loop's body from outside.

        The page says "a loop phi" and, in the same line, that a scan's inputs are meant. These
        never change in the loop, so they are no phis; what counts is that the body gets them.
        """
        if self.is_phi(node):
            return True
        seen = set()
        following: Position | None = node
        while following is not None and following not in seen:
            seen.add(following)
            if self.at(following).opcode == "parameter" and self.loop(following) is not None:
                return True
            following = self.moved(following) or self.passed_in(following)
        return False

    def through_moves(self, node: Position) -> Position:
        """Go back through moves, parameters and nameless conversions."""
        seen = set()
        while node not in seen:
            seen.add(node)
            node = self.settled(node)
            x = self.at(node)
            following = self.moved(node) or self.passed_in(node)
            if following is None and x.opcode in RESHAPED and not self.names.is_strong(x):
                following = (x.operands[0], ())
            if following is None:
                return node
            node = following
        return node

    def initial(self, node: Position) -> Position:
        """Where a node's first content comes from: loops by their start, updates by operand 0."""
        seen = set()
        while node not in seen:
            seen.add(node)
            node = self.through_moves(node)
            x = self.at(node)
            if (loop := self.loop(node)) is not None:
                node = (loop.operands[0], node[1])
            elif (update := self.update(node)) is not None:
                node = (update.operands[0], ())
            elif x.opcode == "fusion":
                inner = self.through_moves(self.inner(x, node[1]))
                if inner[0] == x.name or self.at(inner).computation == self.root(x).computation:
                    return node
                node = inner
            else:
                return node
        return node

    def gathered(self, node: Position) -> Position:
        """What a collective moves: as `initial`, and through slices, pads and named ones too.

        A dynamic slice counts as a slice: a layer's part of stacked weights is still the weight.
        """
        seen = set()
        while node not in seen:
            seen.add(node)
            node = self.through_moves(node)
            x = self.at(node)
            if (loop := self.loop(node)) is not None:
                node = (loop.operands[0], node[1])
            elif x.opcode in (*RESHAPED, "slice", "dynamic-slice", "pad"):
                node = (x.operands[0], ())
            elif x.opcode == "fusion":
                node = self.inner(x, node[1])
            else:
                return node
        return node

    def update(self, node: Position) -> Instruction | None:
        """The dynamic-update-slice that a node is, through what a fusion may wrap around it."""
        x = self.at(node)
        if x.opcode == "fusion":
            node = self.inner(x, node[1])
            while self.at(node).opcode in ("bitcast", "copy", "convert"):
                node = (self.at(node).operands[0], ())
            return self.update(node)
        return x if x.opcode == "dynamic-update-slice" else None

    def slice(self, node: Position) -> Instruction | None:
        """The dynamic-slice that a node is, or that a fusion consists of.

        TPU drops the sliced dimension by a reduce inside the fusion; all of it has the slice's
        name, and what has such a name belongs to the slice.
        """
        x = self.at(node)
        if x.opcode != "fusion":
            return x if x.opcode == "dynamic-slice" else None
        for _, inner in zip(range(50), self.sliced(self.inner(x, node[1])), strict=False):
            if inner.opcode in ("dynamic-slice", "fusion"):
                return self.slice((inner.name, ()))
        return None

    def sliced(self, node: Position) -> Iterator[Instruction]:
        """The instructions back from a node that a slice may be wrapped in."""
        while True:
            x = self.at(node)
            yield x
            named_so = self.names.op_name(x).rsplit("/", 1)[-1] in SLICE_NAMES
            moves = x.opcode in ("bitcast", "copy")
            plain = x.opcode in RESHAPED and not self.names.is_strong(x)
            if not x.operands or not (moves or plain or named_so):
                return
            node = (x.operands[0], ())
