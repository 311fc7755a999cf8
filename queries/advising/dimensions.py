"""What each dimension of each array is: followed from the arguments through the whole program.

The warehouse has instructions' operands and shapes, but not their attributes, such as which
dimensions a broadcast adds. A dimension is followed where the shapes alone decide; elsewhere
its link is lost, which `Atoms` notes.
"""

from collections.abc import Sequence
from functools import cached_property

from ...xla.opcodes import ELEMENTWISE
from ...xla.shapes import ArrayShape
from .arrays import Arrays, Place, part_of
from .asked_program import Program
from .matching import by_size, settle
from .open_links import OPEN, OpenLink, open_links

# Their dimensions are their operands', one by one.
_ALIKE = {
    *ELEMENTWISE,
    "all-reduce",
    "cholesky",
    "domain",
    "optimization-barrier",
    "reverse",
    "sort",
    "triangular-solve",
}
# Their parts stand at the positions of values.
_BY_POSITIONS = {"get-tuple-element", "async-start", "async-done", "async-update", "copy-done"}
# Their results have sizes of their own.
_NOTHING = {"add-dependency", "after-all", "rng-bit-generator", "rng-get-and-update-state"}
# Their operand and result are alike, but for what a window makes of a dimension.
_LIKE = {"reduce-window", "select-and-scatter", "all-gather", "reduce-scatter"}


class Dimensions:
    """The arrays of a module, with what the whole program says about their dimensions."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._graph = graph = program.graph
        self.arrays = Arrays(graph)
        self.atoms = self.arrays.atoms
        self._open: list[OpenLink] = []
        self._positions()
        for instruction, opcode in enumerate(graph.opcode):
            if graph.operands[instruction] and opcode != "parameter":
                self._follow(instruction, opcode)
        self._settle()
        self.arrays.equate_parts()
        self._settle()
        for link in self._open:
            for (words,) in by_size(self.atoms, link.words):
                self.atoms.lose(words)

    def _positions(self) -> None:
        """A value's dimensions are the same at all its positions, but for a bitcast's."""
        table = self._program.positions
        columns = (
            table[name].to_pylist() for name in ("value_id", "instruction_id", "shape_index")
        )
        first: dict[tuple[int, str], Place] = {}
        for value, instruction, index in zip(*columns, strict=True):
            shape = self.arrays.shape((instruction, index))
            if isinstance(shape, ArrayShape) and shape.dimensions:
                form = f"{shape.dimensions}{shape.minor_to_major}"
                self.arrays.same(
                    first.setdefault((value, form), (instruction, index)), (instruction, index)
                )

    def _follow(self, instruction: int, opcode: str) -> None:
        result = (instruction, "{}")
        operands = [(each, "{}") for each in self._graph.operands[instruction]]
        first = operands[0]
        if opcode in _ALIKE:
            self._elementwise(result, operands)
        elif opcode == "fusion":
            self._fusion(instruction)
        elif opcode in {"while", "conditional", "call"}:
            self._called(instruction, opcode)
        elif opcode == "tuple":
            for number, operand in enumerate(operands):
                self.arrays.same(part_of(result, number), operand)
        elif opcode == "copy-start":
            self.arrays.same(first, (instruction, "{0}"))
        elif opcode in _BY_POSITIONS:
            pass
        elif opcode == "bitcast":
            self._bitcast(first, result)
        elif opcode == "reshape":
            self.atoms.equate(self.arrays.flat(first), self.arrays.flat(result))
        elif opcode in OPEN and not self.arrays.is_tuple(result):
            if opcode == "scatter":
                self.arrays.same(first, result)
            words = [self.arrays.long(place) for place in operands]
            self._open.extend(open_links(opcode, self.atoms, self.arrays.long(result), words))
        elif opcode in {"dynamic-slice", "dynamic-update-slice"}:
            if opcode == "dynamic-update-slice":
                self.arrays.same(first, result)
            self.arrays.window(first, result if opcode == "dynamic-slice" else operands[1])
        elif opcode in {"slice", "pad", "concatenate"}:
            # A fetch in parts is XLA's own, and no dimension is that of a part.
            is_fetch = self._graph.computation[instruction].startswith("async_computation")
            cut = self.arrays.window if is_fetch else self.arrays.cut
            for operand in operands if opcode == "concatenate" else operands[:1]:
                cut(operand, result)
        elif opcode == "custom-call" and self._target[instruction] == "ConcatBitcast":
            self._joined(instruction)
        elif opcode in _LIKE or (opcode == "custom-call" and len(operands) == 1):
            self.arrays.like(first, result)
        elif opcode not in _NOTHING:
            self.arrays.lose([result, *operands])

    def _settle(self) -> None:
        """Follow what is open as long as something becomes known."""
        while True:
            still = [link for link in self._open if not settle(self.atoms, link.words, link.ways)]
            if len(still) == len(self._open):
                return
            self._open = still

    def _elementwise(self, result: Place, operands: Sequence[Place]) -> None:
        if self.arrays.is_tuple(result):
            for number, operand in enumerate(operands):
                self.arrays.same(part_of(result, number), operand)
            return
        for operand in operands:
            if not self.arrays.is_tuple(operand) and self.arrays.words(operand):
                self.arrays.same(operand, result)

    def _fusion(self, fusion: int) -> None:
        operands = self._graph.operands[fusion]
        computation, parameters = self._graph.inside(fusion), self._graph.parameters(fusion)
        root = self._graph.root(computation, self._graph.shape[fusion]) if computation else None
        if parameters is None or root is None:
            self.arrays.lose([(fusion, "{}"), *((each, "{}") for each in operands)])
            return
        for operand, parameter in zip(operands, parameters, strict=True):
            self.arrays.same((operand, "{}"), (parameter, "{}"))
        self.arrays.same((root, "{}"), (fusion, "{}"))

    def _called(self, caller: int, opcode: str) -> None:
        """The result is a computation's; of a loop also its argument, turn by turn."""
        result, graph = (caller, "{}"), self._graph
        for attribute, computations in graph.called[caller].items():
            for number, computation in enumerate(computations):
                if attribute != "condition":
                    root = graph.root(computation, graph.shape[caller])
                    if root is None:
                        self.arrays.lose([result])
                    else:
                        self.arrays.same((root, "{}"), result)
                inside = [e for e in graph.members[computation] if graph.opcode[e] == "parameter"]
                if opcode == "while" and inside:
                    self.arrays.same((inside[0], "{}"), result)
                if opcode == "conditional" and inside:
                    self.arrays.same((inside[0], "{}"), (graph.operands[caller][number + 1], "{}"))
        if opcode == "while":
            self.arrays.same((graph.operands[caller][0], "{}"), result)

    def _bitcast(self, operand: Place, result: Place) -> None:
        """Both have their elements in one order, if tiles do not take it apart."""
        here, there = (self.arrays.in_memory(place) for place in (operand, result))
        last = [self.arrays.size(words[-1]) if words else 1 for words in (here, there)]
        if last[0] == last[1] or (self.arrays.is_linear(operand) and self.arrays.is_linear(result)):
            self.atoms.equate([a for w in here for a in w], [a for w in there for a in w])
            return
        left_over: list[list[int]] = [[], []]
        for ones, others in by_size(self.atoms, here, there):
            if len(ones) == len(others) == 1:
                self.atoms.equate(ones[0], others[0])
            else:
                for side, words in zip(left_over, (ones, others), strict=True):
                    side.extend(atom for word in words for atom in word)
        self.atoms.lose(left_over)

    def _joined(self, joining: int) -> None:
        """What XLA fetches in parts and joins again is the array that it fetches."""
        graph = self._graph
        start = graph.operands[joining][0]
        while graph.opcode[start] in {"async-done", "async-start", "bitcast"}:
            start = graph.operands[start][0]
        shapes = [self.arrays.shape((each, "{}")) for each in (start, joining)]
        if all(isinstance(shape, ArrayShape) for shape in shapes):
            self.arrays.like((start, "{}"), (joining, "{}"))

    @cached_property
    def _target(self) -> list[str | None]:
        targets: list[str | None] = self._program.instructions["custom_call_target"].to_pylist()
        return targets
