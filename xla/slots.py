"""Slots: the parts of the results of instructions; each has one value."""

from functools import lru_cache

from .errors import DumpError
from .program import NONE, Program, ShapeIndex, index_text
from .shapes import ArrayShape, Shape, TupleShape, parse_shape


class ShapeTree:
    """The parts of one shape in preorder: each part is followed by all parts within it.

    `(f32[2], (s32[], s32[]))` has the parts {}, {0}, {1}, {1,0} and {1,1}; part 0 is {}.

    Attributes:
        indices: by part, its shape index; index_texts the same as XLA prints it, `{1,0}`.
        sizes: by part, the number of parts within it, including itself.
        children: by part, the parts that are its elements; empty for an array.
        shapes: by part, its shape; arrays the same, but None for a tuple.
        part: part by index.
    """

    def __init__(self, shape: Shape) -> None:
        self.indices: list[ShapeIndex] = []
        self.sizes: list[int] = []
        self.children: list[list[int]] = []
        self.shapes: list[Shape] = []
        self.arrays: list[ArrayShape | None] = []
        self._add(shape, ())
        self.index_texts = [index_text(index) for index in self.indices]
        self.part = {index: part for part, index in enumerate(self.indices)}

    def _add(self, shape: Shape, index: ShapeIndex) -> int:
        """Append a part and all parts within it. Returns the part."""
        part = len(self.indices)
        children: list[int] = []
        self.indices.append(index)
        self.sizes.append(1)
        self.children.append(children)
        self.shapes.append(shape)
        self.arrays.append(shape if isinstance(shape, ArrayShape) else None)
        # The parser limits how deep tuples nest.
        if isinstance(shape, TupleShape):
            for number, element in enumerate(shape.elements):
                children.append(self._add(element, (*index, number)))
            self.sizes[part] = len(self.indices) - part
        return part


@lru_cache(maxsize=2048)
def read_shape_tree(text: str) -> ShapeTree:
    """The parts of a shape's text. Raises DumpError if it is not a shape."""
    try:
        return ShapeTree(parse_shape(text))
    except ValueError as error:
        raise DumpError(str(error)) from None


class Slots:
    """The parts of the results of the instructions that have values, numbered in text order.

    Attributes:
        start: by row, the slot of the complete result; NONE without slots.
        row: by slot, the instruction.
        size: by slot, the number of slots within it, including itself.
        trees: by shape text.
    """

    def __init__(self, program: Program, has_values: list[bool]) -> None:
        """Number the slots of the computations that have values.

        Raises DumpError for a shape that cannot be read.
        """
        self.program = program
        self.trees: dict[str, ShapeTree] = {}
        self.start: list[int] = [NONE] * len(program)
        self.row: list[int] = []
        self.size: list[int] = []
        for row, computation in enumerate(program.computation):
            if not has_values[computation]:
                continue
            self.start[row] = len(self.row)
            text = program.shape[row]
            tree = self.trees.get(text)
            if tree is None:
                tree = self.trees[text] = read_shape_tree(text)
            self.row.extend([row] * len(tree.sizes))
            self.size.extend(tree.sizes)

    def __len__(self) -> int:
        return len(self.row)

    def tree(self, row: int) -> ShapeTree:
        """The parts of an instruction's result."""
        return self.trees[self.program.shape[row]]

    def count(self, row: int) -> int:
        """The number of an instruction's slots; 0 if it has no values."""
        start = self.start[row]
        return self.size[start] if start != NONE else 0

    def part(self, slot: int) -> int:
        """The part of its instruction's shape that a slot has, see `ShapeTree`."""
        return slot - self.start[self.row[slot]]

    def index(self, slot: int) -> ShapeIndex:
        """The shape index of a slot."""
        return self.tree(self.row[slot]).indices[self.part(slot)]

    def index_text(self, slot: int) -> str:
        """The shape index of a slot as XLA prints it: `{1,0}`."""
        return self.tree(self.row[slot]).index_texts[self.part(slot)]

    def index_texts(self) -> list[str]:
        """By slot, its shape index as XLA prints it."""
        texts: list[str] = []
        for row, start in enumerate(self.start):
            if start != NONE:
                texts += self.tree(row).index_texts
        return texts

    def array(self, slot: int) -> ArrayShape | None:
        """The array at a slot; None for a tuple."""
        return self.tree(self.row[slot]).arrays[self.part(slot)]

    def is_leaf(self, slot: int) -> bool:
        """Whether a slot has an array, a token or an opaque value, and not a tuple."""
        return self.array(slot) is not None

    def element_count(self, slot: int) -> int:
        """The number of elements of the tuple at a slot; 0 for an array."""
        return len(self.tree(self.row[slot]).children[self.part(slot)])

    def element(self, slot: int, number: int) -> int:
        """The slot of an element of the tuple at a slot. Raises DumpError if there is none."""
        row = self.row[slot]
        children = self.tree(row).children[self.part(slot)]
        if not 0 <= number < len(children):
            raise self.program.error(row, "lacks a tuple element that the text refers to")
        return self.start[row] + children[number]

    def find(self, row: int, index: ShapeIndex) -> int:
        """The slot at an index of an instruction's result; NONE if it has no such part."""
        start = self.start[row]
        if start == NONE:
            return NONE
        part = self.tree(row).part.get(index)
        return NONE if part is None else start + part
