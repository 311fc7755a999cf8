"""Slots: a number for each sub-shape of each instruction that dataflow looks at."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from ...schema.address_space.runs import joined, starts_of
from ..errors import DumpError
from .numbered_program import NONE, Ints, Mask, NumberedProgram
from .shape_tree import ShapeTrees, flatten_shapes


@dataclass(frozen=True)
class Slots:
    """The (instruction, sub-shape) pairs: those of row i start at `start[i]`.

    `instruction` and `node` are those of each slot, `count` is how many slots an instruction
    has, 0 if it has none; `root` is the node of an instruction's whole shape.
    """

    trees: ShapeTrees
    start: Ints
    count: Ints
    root: Ints
    instruction: Ints
    node: Ints

    def __len__(self) -> int:
        return len(self.instruction)

    @cached_property
    def index(self) -> pa.DictionaryArray:
        """Each slot's shape index as text, such as `{1,0}`."""
        codes = self.trees.index[self.node].astype(np.int32)
        return pa.DictionaryArray.from_arrays(
            pa.array(codes), pa.array(self.trees.index_texts, pa.large_string())
        )

    @cached_property
    def is_leaf(self) -> Mask:
        """Which slots are of an array, a token or an opaque value, and not of a tuple."""
        found: Mask = self.trees.is_leaf[self.node]
        return found

    @cached_property
    def size(self) -> Ints:
        """How many slots follow in the tuple of each slot, itself counted."""
        found: Ints = self.trees.size[self.node]
        return found

    @cached_property
    def array(self) -> Ints:
        """Each slot's code in `trees.arrays`; NONE of a tuple."""
        found: Ints = self.trees.array[self.node]
        return found

    def whole(self, rows: Ints) -> Ints:
        """The slot of the whole of each instruction."""
        return self.start[rows]

    def element_count(self, slots: Ints) -> Ints:
        """How many elements the tuple at each slot has; 0 of an array."""
        return self.trees.child_count(self.node[slots])

    def element(self, slots: Ints, number: Ints | int) -> Ints:
        """The slot of an element of the tuple at each slot; the element must exist."""
        within = self.trees.child(self.node[slots], number)
        rows = self.instruction[slots]
        found: Ints = self.start[rows] + within
        return found

    def find(self, rows: Ints, indices: Sequence[tuple[int, ...]]) -> Ints:
        """The slot of a sub-shape of each instruction; NONE if its shape has no such."""
        trees, root = self.trees, self.root[rows]
        node, found = root.copy(), np.arange(len(rows))
        depth = np.fromiter(map(len, indices), np.int64, len(indices))
        for level in range(int(depth.max(initial=0))):
            found = found[depth[found] > level]
            number = np.array([indices[at][level] for at in found.tolist()], np.int64)
            has = number < trees.child_count(node[found])
            node[found[~has]] = NONE
            found, number = found[has], number[has]
            node[found] = root[found] + trees.child(node[found], number)
        return np.where(node == NONE, NONE, self.start[rows] + node - root)


def lay_slots(program: NumberedProgram, chosen: Mask) -> Slots:
    """Number the sub-shapes of the chosen instructions, in the text's order.

    Raises DumpError for a shape that cannot be read.
    """
    rows = np.flatnonzero(chosen)
    shapes = np.unique(program.shape.codes[rows])
    try:
        trees = flatten_shapes(program.shape.texts[shape] for shape in shapes)
    except ValueError as error:
        raise DumpError(str(error)) from None
    place = np.full(len(program.shape.texts), NONE)
    place[shapes] = np.arange(len(shapes))
    shape = place[program.shape.codes]
    count = np.where(chosen, trees.counts[shape], 0) if len(shapes) else np.zeros(len(program), int)
    start = starts_of(count)
    root = np.where(chosen, trees.start[shape], NONE)
    instruction = np.repeat(np.arange(len(program)), count)
    node = joined(root[rows], count[rows])
    return Slots(trees, start[:-1], count, root, instruction, node)
