"""The ways back through a program that the rules of attribution walk.

A node is a position: an instruction and an index of its shape, in fused computations too. A step
leads from a node to the node whose result it holds.
"""

import re
from collections.abc import Callable

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
# These keep the elements, whatever their order and type.
KEPT = (*RESHAPED, "bitcast", "copy")
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

    def is_context(self, node: Position) -> bool:
        """Whether a node says how far an asynchronous operation has come.

        Decision: that belongs to nothing, so that it has no owner.
        """
        opcode, index = self.at(node).opcode, node[1]
        is_start = opcode.endswith("-start") and opcode != "all-reduce-start"
        return is_start and bool(index) and index[0] > 1

    def is_join(self, x: Instruction) -> bool:
        """Whether an instruction puts the slices of one array together again."""
        return self.names.metadata[x.name].target == "ConcatBitcast"

    def is_fused(self, node: Position) -> bool:
        """Whether a node is part of a fusion."""
        caller = self.caller(self.at(node).computation)
        return caller is not None and caller.opcode == "fusion"

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

        Decision: what counts are the elements' bytes, not what a layout makes of them; of a
        tuple those of its largest array.
        """
        return sorted(names, key=lambda name: -self.bytes(self.module.instructions[name]))

    def bytes(self, x: Instruction) -> float:
        """The bytes of an instruction's largest array."""
        leaves = [shape for shape in sub_shapes(x.shape).values() if is_array(shape)]
        return max((size(shape) for shape in leaves), default=0)

    def largest_leaf(self, x: Instruction) -> Index:
        """Where an instruction's largest array lies; the first of equally large ones."""
        leaves = {i: shape for i, shape in sub_shapes(x.shape).items() if is_array(shape)}
        return max(leaves, key=lambda index: size(leaves[index]), default=())

    # Many steps inside of a fusion.

    def inside(
        self, node: Position, opcodes: tuple[str, ...], allowed: Callable[[Instruction], bool]
    ) -> Position:
        """Go back inside of fusions, through the first operands of these opcodes, where allowed.

        Also through elements of tuples, parameters, and roots of nested fusions where these are
        allowed. What comes into the outermost fusion is the node outside of it.
        """
        while self.is_fused(node):
            x, following = self.at(node), None
            if x.opcode == "parameter":
                following = self.passed_in(node)
            elif x.opcode == "get-tuple-element" or (x.opcode == "tuple" and node[1]):
                following = self.moved(node)
            elif x.opcode == "fusion" and (node[1] or allowed(x)):
                following = self.inner(x, node[1])
            elif x.opcode in opcodes and allowed(x):
                following = (x.operands[0], ())
            if following is None:
                return node
            node = following
        return node

    def is_nameless(self, x: Instruction) -> bool:
        """Whether an instruction has no strong name, whatever it computes."""
        return self.names.kind(x) != "strong"

    def kept(self, node: Position) -> Position:
        """Through nameless instructions that keep the elements."""
        return self.inside(node, KEPT, self.is_nameless)

    # Many steps.

    def is_fill(self, node: Position) -> bool:
        """Whether a node is one constant everywhere.

        Decision: a scalar constant is, too.
        """
        return bool(self.fill(node))

    def fill(self, node: Position) -> list[Position]:
        """The nodes from a fill back to its constant; empty if it is no fill."""
        way: list[Position] = []
        while node not in way and not self.is_context(node):
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
        """Whether what is written into is a phi of a loop, laid out in whatever way."""
        outside = self.target(node)
        if outside is None:
            return False
        node = self.through_moves(outside)
        return node in self.values.phis and self.loop(node) is not None

    def enters(self, node: Position) -> bool:
        """Whether a loop's body gets a node, carried or the same every time.

        The page says "a loop phi" and, in the same line, that a scan's inputs are meant. These
        never change in the loop, so they are no phis; what counts is that the body gets them.
        """
        while True:
            x = self.at(node)
            if x.opcode == "parameter":
                return self.loop(node) is not None
            handed_on = (*RENAMED, "get-tuple-element", "copy-start", "copy-done")
            if x.opcode not in handed_on:
                return False
            node = x.operands[0], ()

    def through_moves(self, node: Position) -> Position:
        """Go back through moves, and through what has no name and only changes the layout."""
        seen = set()
        while node not in seen:
            seen.add(node)
            node = self.settled(node)
            x = self.at(node)
            following = self.moved(node) or self.passed_in(node)
            if self.is_nameless(x):
                if x.opcode in RESHAPED:
                    following = (x.operands[0], ())
                elif x.opcode == "fusion":
                    reached = self.kept(self.inner(x, node[1]))
                    following = None if self.is_fused(reached) else reached
            if following is None:
                return node
            node = following
        return node

    def target(self, node: Position) -> Position | None:
        """What a dynamic-update-slice writes into, outside of its fusion."""
        node = self.written_into(node)
        return None if self.is_fused(node) else node

    def written_into(self, node: Position) -> Position:
        """Go back through what writes in place, inside of a fusion."""
        in_place = ("dynamic-update-slice", "copy", "bitcast")

        def allowed(x: Instruction) -> bool:
            return x.opcode in in_place or self.is_nameless(x)

        return self.inside(node, (*KEPT, "dynamic-update-slice"), allowed)

    def initial(self, node: Position) -> Position:
        """Where a node's first content comes from: loops by their start, updates by operand 0.

        Decision: through nameless slices, and through what joins slices again, but not through
        dynamic slices.
        """
        seen = set()
        node = self.written_into(node)
        while node not in seen and not self.is_fused(node):
            seen.add(node)
            node = self.through_moves(node)
            x = self.at(node)
            if (loop := self.loop(node)) is not None:
                node = (loop.operands[0], node[1])
            elif (update := self.update(node)) is not None:
                node = self.written_into((update.operands[0], ()))
            elif self.is_nameless(x) and (x.opcode == "slice" or self.is_join(x)):
                node = (x.operands[0], ())
            else:
                return node
        return node

    def gathered(self, node: Position) -> Position:
        """What a collective moves: as `initial`, and through slices, pads and named ones too.

        A dynamic slice counts as a slice: a layer's part of stacked weights is still the weight.
        """
        cut = ("slice", "dynamic-slice", "pad")
        seen = set()
        while node not in seen:
            seen.add(node)
            node = self.through_moves(node)
            x = self.at(node)
            if (loop := self.loop(node)) is not None:
                node = (loop.operands[0], node[1])
            elif x.opcode in (*RESHAPED, *cut):
                node = (x.operands[0], ())
            elif x.opcode == "fusion":
                reached = self.inside(self.inner(x, node[1]), (*KEPT, *cut), lambda _: True)
                if self.is_fused(reached):
                    return node
                node = reached
            else:
                return node
        return node

    def update(self, node: Position) -> Instruction | None:
        """The dynamic-update-slice that a node is, through what a fusion may wrap around it."""
        x = self.at(node)
        if x.opcode == "fusion":
            wrapped = ("bitcast", "copy", "convert")
            reached = self.inside(self.inner(x, node[1]), wrapped, lambda _: True)
            if not self.is_fused(reached):
                return None
            x = self.at(reached)
        return x if x.opcode == "dynamic-update-slice" else None

    def scanned(self, node: Position) -> Position | None:
        """What a node is a slice of, if a loop's body gets that: so a scan takes its inputs.

        TPU drops the sliced dimension by a reduce inside the fusion; all of it has the slice's
        name, and what has such a name belongs to the slice.

        Decision: a slice of a constant keeps its own name.
        """
        x = self.at(node)
        if x.opcode == "fusion":
            node = self.inner(x, node[1])
        if self.is_fused(node):
            node = self.sliced(node)
        if self.at(node).opcode != "dynamic-slice":
            return None
        whole: Position = (self.at(node).operands[0], ())
        if self.is_fused(whole):
            whole = self.sliced(whole)
        if self.is_fused(whole) or not self.enters(whole):
            return None
        held = self.values.held.get(whole, whole)
        return None if self.at(held).opcode == "constant" else whole

    def sliced(self, node: Position) -> Position:
        """Through what a slice may be wrapped in, inside of a fusion."""

        def allowed(x: Instruction) -> bool:
            said = self.names.op_name(x).partition(";")[0].rsplit("/", 1)[-1].partition("[")[0]
            plain = self.is_nameless(x) and x.opcode != "reduce"
            return said in SLICE_NAMES or x.opcode in ("bitcast", "copy") or plain

        return self.inside(node, (*KEPT, "reduce"), allowed)
