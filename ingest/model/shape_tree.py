"""Tuple shapes flattened: every sub-shape of a shape, the whole first.

A shape's sub-shapes are numbered in preorder, so that each sub-shape with all that it holds
is one run of numbers: forwarding a value from one shape to another copies runs.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ...schema.array_shapes.shapes import ArrayShape, Shape, TupleShape, parse_shape

Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class ShapeTrees:
    """The sub-shapes of some shapes: those of shape s are `start[s]` up to `start[s + 1]`.

    Of each sub-shape (a *node*): `index`, a code in `index_texts` such as `{1,0}`; `size`, how
    many nodes it holds, itself counted; `is_leaf`, false of a tuple; `array`, a code in
    `arrays`, NONE of a tuple; `shapes`, the node as a shape. The elements of a tuple are
    `children[child_start[node]:child_start[node + 1]]`, as numbers within the shape.
    """

    start: Ints
    index: Ints
    index_texts: list[str]
    size: Ints
    is_leaf: Mask
    array: Ints
    arrays: list[ArrayShape]
    shapes: list[Shape]
    child_start: Ints
    children: Ints

    @property
    def counts(self) -> Ints:
        """How many nodes each shape has."""
        return np.diff(self.start)

    def child_count(self, nodes: Ints) -> Ints:
        """How many elements each node has; 0 of an array."""
        found: Ints = self.child_start[nodes + 1] - self.child_start[nodes]
        return found

    def child(self, nodes: Ints, number: Ints | int) -> Ints:
        """An element of each node, as its number within the shape."""
        found: Ints = self.children[self.child_start[nodes] + number]
        return found


class _Builder:
    """Collects the nodes of shape after shape."""

    def __init__(self) -> None:
        self.index: list[int] = []
        self.size: list[int] = []
        self.is_leaf: list[bool] = []
        self.array: list[int] = []
        self.children: list[list[int]] = []
        self.texts: dict[tuple[int, ...], int] = {}
        self.arrays: dict[ArrayShape, int] = {}
        self.shapes: list[Shape] = []

    def add(self, shape: Shape, index: tuple[int, ...], start: int) -> int:
        """Append a shape's nodes; returns how many."""
        node = len(self.index)
        self.shapes.append(shape)
        self.index.append(self.texts.setdefault(index, len(self.texts)))
        self.size.append(1)
        self.children.append([])
        self.is_leaf.append(isinstance(shape, ArrayShape))
        if isinstance(shape, TupleShape):
            self.array.append(-1)
            for number, element in enumerate(shape.elements):
                self.children[node].append(len(self.index) - start)
                self.size[node] += self.add(element, (*index, number), start)
        else:
            self.array.append(self.arrays.setdefault(shape, len(self.arrays)))
        return self.size[node]


def flatten_shapes(texts: Iterable[str]) -> ShapeTrees:
    """The sub-shapes of shapes, which are given as texts. Raises ValueError for a bad text.

    Programs repeat few shapes many times: give each distinct text once.
    """
    nodes = _Builder()
    start = [0]
    for text in texts:
        nodes.add(parse_shape(text), (), start[-1])
        start.append(len(nodes.index))
    counts = np.fromiter(map(len, nodes.children), np.int64, len(nodes.children))
    return ShapeTrees(
        start=np.array(start, np.int64),
        index=np.array(nodes.index, np.int64),
        index_texts=["{" + ",".join(map(str, index)) + "}" for index in nodes.texts],
        size=np.array(nodes.size, np.int64),
        is_leaf=np.array(nodes.is_leaf, bool),
        array=np.array(nodes.array, np.int64),
        arrays=list(nodes.arrays),
        shapes=nodes.shapes,
        child_start=np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
        children=np.array([child for row in nodes.children for child in row], np.int64),
    )
