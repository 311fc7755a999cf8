"""The dimensions of a module's arrays as words, and how those of two arrays are the same."""

from collections.abc import Sequence
from functools import cached_property
from math import prod

from ...xla.shapes import ArrayShape, Shape, TupleShape, parse_shape
from .atoms import Atoms, Word
from .graph import Graph

# Where an array stands: an instruction, and the part of its result.
Place = tuple[int, str]

# Of more parts than these, a part's size is the program's own.
_MOST_PARTS = 8


class Arrays:
    """A word a dimension of every array, and the atoms of which the words consist."""

    def __init__(self, graph: Graph) -> None:
        self.atoms = Atoms()
        self._graph = graph
        self._words: dict[Place, list[Word]] = {}
        self._parts: list[tuple[Word, Word]] = []
        self._counts: list[int] = []

    @property
    def counts(self) -> set[int]:
        """The atoms that only say into how many parts, such as halves, a program cuts."""
        return set(self.atoms.leaves(self._counts))

    def words(self, place: Place) -> list[Word]:
        """A word a dimension of the array there."""
        found = self._words.get(place)
        if found is None:
            shape = self.shape(place)
            sizes = shape.dimensions if isinstance(shape, ArrayShape) else ()
            found = self._words[place] = [self.atoms.new(max(size, 1)) for size in sizes]
        return found

    def shape(self, place: Place) -> Shape:
        """The shape there."""
        instruction, index = place
        shape = self._parsed[instruction]
        for number in filter(None, index.strip("{}").split(",")):
            assert isinstance(shape, TupleShape)
            shape = shape.elements[int(number)]
        return shape

    def copied_from(self, instruction: int) -> tuple[int, ...] | None:
        """Of a copy of an argument the order of the argument's dimensions, from minor to major."""
        if self._graph.opcode[instruction] != "copy":
            return None
        (operand,) = self._graph.operands[instruction]
        if self._graph.opcode[operand] != "parameter":
            return None
        shape = self.shape((operand, "{}"))
        return shape.minor_to_major if isinstance(shape, ArrayShape) else None

    def same(self, one: Place, other: Place) -> None:
        """Let two arrays have the same dimensions; the parts of two tuples likewise."""
        if one == other:
            return
        here, there = self.shape(one), self.shape(other)
        if isinstance(here, TupleShape) and isinstance(there, TupleShape):
            for number in range(min(len(here.elements), len(there.elements))):
                self.same(part_of(one, number), part_of(other, number))
        elif isinstance(here, ArrayShape) and isinstance(there, ArrayShape):
            if here.dimensions == there.dimensions:
                for pair in zip(self.words(one), self.words(other), strict=True):
                    self.atoms.equate(*pair)
            elif here.dimensions and there.dimensions:
                self.lose([one, other])

    def like(self, operand: Place, result: Place) -> None:
        """Each dimension is the operand's if their sizes are equal, else their link is lost."""
        if self.is_tuple(result) or len(self.words(operand)) != len(self.words(result)):
            self.lose([operand, result])
            return
        for one, other in zip(self.words(operand), self.words(result), strict=True):
            if self.size(one) == self.size(other):
                self.atoms.equate(one, other)
            else:
                self.atoms.lose([one, other])

    def window(self, whole: Place, window: Place) -> None:
        """A window's dimension is the whole one if their sizes are equal, else the program's."""
        for one, other in zip(self.words(whole), self.words(window), strict=True):
            if self.size(one) == self.size(other):
                self.atoms.equate(one, other)

    def cut(self, operand: Place, result: Place) -> None:
        """Note which dimensions are cut, into halves say, or joined."""
        for one, other in zip(self.words(operand), self.words(result), strict=True):
            a, b = self.size(one), self.size(other)
            if a == b:
                self.atoms.equate(one, other)
            else:
                self._parts.append((one, other) if a > b else (other, one))

    def lose(self, places: Sequence[Place]) -> None:
        """Note that arrays have to do with each other, but not how."""
        lost: list[Word] = []
        waiting = list(places)
        for place in waiting:
            shape = self.shape(place)
            if isinstance(shape, TupleShape):
                waiting.extend(part_of(place, number) for number in range(len(shape.elements)))
            else:
                lost.extend(self.words(place))
        self.atoms.lose(lost)

    def is_tuple(self, place: Place) -> bool:
        """Whether there are several arrays."""
        return isinstance(self.shape(place), TupleShape)

    def flat(self, place: Place) -> list[int]:
        """All dimensions as one."""
        return [atom for word in self.words(place) for atom in word]

    def in_memory(self, place: Place) -> list[Word]:
        """The dimensions that are not 1, from major to minor."""
        shape, words = self.shape(place), self.words(place)
        assert isinstance(shape, ArrayShape)
        order = shape.minor_to_major or tuple(reversed(range(len(words))))
        return [words[at] for at in reversed(order) if words[at]]

    def is_linear(self, place: Place) -> bool:
        """Whether the elements lie in the order of the dimensions, although there are tiles."""
        shape = self.shape(place)
        assert isinstance(shape, ArrayShape)
        tile = shape.tiles[0] if shape.tiles else ()
        sizes = [shape.dimensions[at] for at in shape.minor_to_major or ()]
        if len(tile) < 2 or len(sizes) < 2:
            return True
        return sizes[0] == tile[-1] and sizes[1] % tile[-2] == 0

    def size(self, word: Word) -> int:
        """What a word stands for."""
        return prod(self.atoms.sizes[atom] for atom in word)

    def divide(self, whole: Word, part: Word) -> None:
        """Such as halves: the whole is so many times the part."""
        times, rest = divmod(self.size(whole), self.size(part))
        if rest or times > _MOST_PARTS or not part:
            self.atoms.lose([whole, part])
        else:
            count = self.atoms.new(times)
            self._counts.extend(count)
            self.atoms.equate(whole, (*count, *part))

    def equate_parts(self) -> None:
        """Follow the cuts, when all else is known."""
        for whole, part in self._parts:
            self.divide(whole, part)

    @cached_property
    def _parsed(self) -> list[Shape]:
        return [parse_shape(shape) for shape in self._graph.shape]


def part_of(place: Place, number: int) -> Place:
    """A part of a tuple."""
    instruction, index = place
    inner = index.strip("{}")
    return instruction, f"{{{inner},{number}}}" if inner else f"{{{number}}}"
