"""What each dimension of each array is: followed from the arguments through the whole program.

The attributes of instructions say which dimension is which. Where they do not, as in a bitcast of
tiled arrays or a kernel, the sizes decide if they can; else the link is lost, which `Atoms` notes.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence

from ...xla.opcodes import ELEMENTWISE
from ...xla.program import attribute_values
from ...xla.shapes import ArrayShape
from .arrays import Arrays, Place, part_of
from .asked_program import Program
from .atoms import Word
from .axes import RESULT, Axis, Links, links

# Their dimensions are their operands', one by one.
_ALIKE = {
    *ELEMENTWISE,
    "all-reduce",
    "all-reduce-start",
    "all-reduce-done",
    "cholesky",
    "collective-permute",
    "domain",
    "optimization-barrier",
    "reverse",
    "sort",
    "triangular-solve",
}
# Their parts stand at the positions of values.
_BY_POSITIONS = {"get-tuple-element", "async-start", "async-done", "async-update", "copy-done"}
# Their attributes say it.
_SAID = {"broadcast", "convolution", "dot", "gather", "reduce", "scatter", "transpose"}
# Their results have sizes of their own.
_NOTHING = {"add-dependency", "after-all", "rng-bit-generator", "rng-get-and-update-state"}
# Their operand and result are alike, but for what a window makes of a dimension.
_LIKE = {"reduce-window", "select-and-scatter", "all-to-all"}


class Dimensions:
    """The arrays of a module, with what the whole program says about their dimensions."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._graph = graph = program.graph
        self.arrays = Arrays(graph)
        self.atoms = self.arrays.atoms
        self._attributes = list(map(attribute_values, [*graph.program.attributes.texts, ""]))
        starts = graph.program.rows("async-start")
        self._fetches = set(graph.program.callee(starts, "calls").tolist())
        self._positions()
        for instruction, opcode in enumerate(graph.opcode):
            if graph.operands[instruction] and opcode != "parameter":
                self._follow(instruction, opcode)
        self.arrays.equate_parts()

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
        elif opcode in {"fusion", "call", "while", "conditional"}:
            self._calls(instruction, opcode)
        elif opcode == "tuple":
            for number, operand in enumerate(operands):
                self.arrays.same(part_of(result, number), operand)
        elif opcode in {"copy-start", "collective-permute-start", "all-gather-start"}:
            self.arrays.same(first, (instruction, "{0}"))
            if opcode == "collective-permute-start":
                self.arrays.same(first, (instruction, "{1}"))
            if opcode == "all-gather-start" and not self.arrays.is_tuple((instruction, "{1}")):
                self.arrays.cut(first, (instruction, "{1}"))
        elif opcode in {"collective-permute-done", "all-gather-done"}:
            self.arrays.same(part_of(first, 1), result)
        elif opcode in _BY_POSITIONS:
            pass
        elif opcode == "bitcast":
            self._bitcast(first, result)
        elif opcode == "reshape":
            self.atoms.equate(self.arrays.flat(first), self.arrays.flat(result))
        elif opcode in _SAID:
            self._by_attributes(instruction, opcode)
        elif opcode in {"dynamic-slice", "dynamic-update-slice"}:
            if opcode == "dynamic-update-slice":
                self.arrays.same(first, result)
            self.arrays.window(first, result if opcode == "dynamic-slice" else operands[1])
        elif opcode in {"all-gather", "reduce-scatter"} and not self.arrays.is_tuple(result):
            # A device has a part of the dimension.
            self.arrays.cut(first, result)
        elif opcode in {"slice", "pad", "concatenate"}:
            # A fetch in parts is XLA's own, and no dimension is that of a part.
            is_fetch = self._graph.computation[instruction] in self._fetches
            cut = self.arrays.window if is_fetch else self.arrays.cut
            for operand in operands if opcode == "concatenate" else operands[:1]:
                cut(operand, result)
        elif opcode == "custom-call" and self._is_joined(instruction):
            self._joined(instruction)
        elif opcode in _LIKE or (opcode == "custom-call" and len(operands) == 1):
            self.arrays.like(first, result)
        elif opcode not in _NOTHING:
            self.arrays.lose([result, *operands])

    def _by_attributes(self, instruction: int, opcode: str) -> None:
        """Follow what the attributes say; of a reduce or scatter of several arrays, each."""
        result, operands = (instruction, "{}"), self._graph.operands[instruction]
        places = [(each, "{}") for each in operands]
        code = int(self._graph.program.attributes.codes[instruction])
        count = {"reduce": len(operands) // 2, "scatter": (len(operands) - 1) // 2}.get(opcode, 1)
        for number in range(count):
            at = part_of(result, number) if self.arrays.is_tuple(result) else result
            sides = {RESULT: at, **dict(enumerate(places))}
            if opcode in {"reduce", "scatter"}:
                sides[0] = places[number]
            if opcode == "scatter":
                self.arrays.same(places[number], at)
                sides = {0: places[number], 1: places[count], 2: places[count + 1 + number]}
            sizes = {side: self._sizes(place) for side, place in sides.items()}
            self._link(sides, links(opcode, self._attributes[code], sizes))

    def _link(self, sides: dict[int, Place], found: Links) -> None:
        """Follow links between the dimensions of the arrays at these places."""

        def words(axis: Axis) -> Word:
            side, place = axis
            return self.arrays.words(sides[side])[place]

        for one, other in found.alike:
            self.atoms.equate(words(one), words(other))
        for one, other in found.windows:
            if self.arrays.size(words(one)) == self.arrays.size(words(other)):
                self.atoms.equate(words(one), words(other))
        for whole, part in found.groups:
            self.arrays.divide(words(whole), words(part))
        for axes in found.lost:
            self.atoms.lose([words(axis) for axis in axes])

    def _sizes(self, place: Place) -> tuple[int, ...]:
        shape = self.arrays.shape(place)
        return shape.dimensions if isinstance(shape, ArrayShape) else ()

    def _elementwise(self, result: Place, operands: Sequence[Place]) -> None:
        if self.arrays.is_tuple(result):
            for number, operand in enumerate(operands):
                self.arrays.same(part_of(result, number), operand)
            return
        for operand in operands:
            if not self.arrays.is_tuple(operand) and self.arrays.words(operand):
                self.arrays.same(operand, result)

    def _runs(self, caller: int, computation: int, operands: Sequence[int]) -> None:
        """The arguments are a computation's parameters, and the result is its root."""
        parameters = self._graph.parameters(computation)
        for operand, parameter in zip(operands, parameters, strict=True):
            self.arrays.same((operand, "{}"), (parameter, "{}"))
        self.arrays.same((self._graph.root(computation), "{}"), (caller, "{}"))

    def _calls(self, caller: int, opcode: str) -> None:
        operands, called = self._graph.operands[caller], self._graph.called[caller]
        if opcode == "while":
            # What a loop carries has the same dimensions in every turn.
            self._runs(caller, called["body"][0], operands)
            (parameter,) = self._graph.parameters(called["condition"][0])
            self.arrays.same((parameter, "{}"), (caller, "{}"))
            self.arrays.same((operands[0], "{}"), (caller, "{}"))
        elif opcode == "conditional":
            branches = [branch for computations in called.values() for branch in computations]
            for number, branch in enumerate(branches, start=1):
                self._runs(caller, branch, [operands[number]])
        else:
            self._runs(caller, self._graph.body(caller), operands)

    def _bitcast(self, operand: Place, result: Place) -> None:
        """Both have their elements in one order, if tiles do not take it apart."""
        here, there = (self.arrays.in_memory(place) for place in (operand, result))
        last = [self.arrays.size(words[-1]) if words else 1 for words in (here, there)]
        if last[0] == last[1] or (self.arrays.is_linear(operand) and self.arrays.is_linear(result)):
            self.atoms.equate([a for w in here for a in w], [a for w in there for a in w])
            return
        left_over: list[list[int]] = [[], []]
        for ones, others in self._by_size(here, there):
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

    def _by_size(self, *sides: Sequence[Word]) -> Iterator[tuple[list[Word], ...]]:
        """The dimensions of each size, side by side."""
        by_size: dict[int, tuple[list[Word], ...]] = defaultdict(lambda: tuple([] for _ in sides))
        for place, side in enumerate(sides):
            for word in side:
                by_size[self.arrays.size(word)][place].append(word)
        by_size.pop(1, None)
        yield from by_size.values()

    def _is_joined(self, instruction: int) -> bool:
        return self._graph.program.custom_call_target.at(instruction) == "ConcatBitcast"
