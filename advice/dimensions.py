"""What each dimension of each array is: followed from the arguments through the whole program."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod

from ..xla.disjoint_sets import DisjointSets
from ..xla.opcodes import ELEMENTWISE
from ..xla.program import NONE, attribute_values
from ..xla.shapes import ArrayShape
from .asked_program import Program
from .flow import Flow
from .graph import Graph, Slot

# Which dimensions of an instruction's operands are which of its result, as its attributes say.

# Pairs of a side (the operand's number, RESULT) and an axis of it.
RESULT = -1
Axis = tuple[int, int]

_LABELS = re.compile(r"(?P<input>\w+)_(?P<kernel>\w+)->(?P<output>\w+)")


@dataclass(frozen=True)
class Links:
    """alike: axes of one size, two and two; windows: the same, unless one is only a part;
    groups: the first is so many times the second.
    """

    alike: list[tuple[Axis, Axis]]
    windows: list[tuple[Axis, Axis]]
    groups: list[tuple[Axis, Axis]]


Sizes = Mapping[int, tuple[int, ...]]


def links(opcode: str, values: Mapping[str, str], sizes: Sizes) -> Links:
    """What an instruction does to dimensions.

    values: the attributes by name, as XLA prints them; sizes: the dimensions of its operands and of
    its result, by side; a scatter has the sides operand, indices and updates.
    """
    found = Links([], [], [])
    if opcode in ("broadcast", "transpose", "reduce"):
        axes = numbers(values["dimensions"])
        if opcode == "broadcast":
            pairs = list(enumerate(axes))
        else:
            kept = axes if opcode == "transpose" else without(len(sizes[0]), axes)
            pairs = [(axis, place) for place, axis in enumerate(kept)]
        found.alike.extend(((0, here), (RESULT, there)) for here, there in pairs)
    elif opcode == "dot":
        found.alike.extend(_product(values, sizes))
    elif opcode == "convolution":
        _convolve(found, values, sizes)
    else:
        _index(found, opcode, values, sizes)
    return found


def numbers(text: str | None) -> list[int]:
    """The numbers of a list such as `{0,2}`."""
    return [int(number) for number in (text or "").strip("{}").split(",") if number]


def without(count: int, left_out: list[int]) -> list[int]:
    """The axes of so many that are not left out."""
    return [axis for axis in range(count) if axis not in left_out]


def _product(values: Mapping[str, str], sizes: Sizes) -> Iterator[tuple[Axis, Axis]]:
    contracted = [numbers(values.get(f"{side}_contracting_dims")) for side in ("lhs", "rhs")]
    batch = [numbers(values.get(f"{side}_batch_dims")) for side in ("lhs", "rhs")]
    for here, there in zip(*contracted, strict=True):
        yield (0, here), (1, there)
    for place, (here, there) in enumerate(zip(*batch, strict=True)):
        yield (RESULT, place), (0, here)
        yield (0, here), (1, there)
    place = len(batch[0])
    for side in (0, 1):
        for axis in without(len(sizes[side]), contracted[side] + batch[side]):
            yield (RESULT, place), (side, axis)
            place += 1


def _convolve(found: Links, values: Mapping[str, str], sizes: Sizes) -> None:
    """The dimensions of a convolution; a TPU's matrix products are convolutions too."""
    labels = _LABELS.fullmatch(values["dim_labels"])
    assert labels is not None
    place = {
        side: {letter: axis for axis, letter in enumerate(labels[name])}
        for side, name in ((0, "input"), (1, "kernel"), (RESULT, "output"))
    }
    source, batch = (0, place[0]["b"]), (RESULT, place[RESULT]["b"])
    taken, features = (0, place[0]["f"]), (1, place[1]["i"])
    made = (1, place[1]["o"])
    found.alike.append((made, (RESULT, place[RESULT]["f"])))
    if "batch_group_count" not in values:
        found.alike.append((source, batch))
        (found.groups if "feature_group_count" in values else found.alike).append((taken, features))
    windows = window_parts(values.get("window", ""))
    for number in range(len(sizes[0]) - 2):
        axes = [(side, place[side][str(number)]) for side in (0, 1, RESULT)]
        _slide(found, axes, sizes, {name: each[number] for name, each in windows.items()})


def window_parts(text: str) -> dict[str, list[str]]:
    """The parts of a window such as `{size=3x3 stride=2x2}`, each by dimension."""
    parts = (part.split("=") for part in text.strip("{}").split())
    return {name: each.split("x") for name, each in parts}


def _slide(found: Links, axes: list[Axis], sizes: Sizes, window: Mapping[str, str]) -> None:
    """A dimension of space, along which the kernel slides over the input.

    XLA also writes products so: a kernel as long as the input adds it up or, where it steps over
    the zeros between the elements, goes along with it; and one that slides over a single element
    only gives its own elements.
    """
    source, kernel, made = axes
    size = {axis: sizes[axis[0]][axis[1]] for axis in axes}
    is_batch = window.get("lhs_dilate") == window.get("size") != "1" and "lhs_dilate" in window
    if is_batch and len(set(size.values())) == 1:
        found.alike.extend([(source, kernel), (kernel, made)])
        return
    long = [axis for axis in axes if size[axis] > 1]
    if len(long) == 2 and size[long[0]] == size[long[1]]:
        found.alike.append((long[0], long[1]))
    elif len(long) == 3 and size[source] == size[made] != size[kernel]:
        found.alike.append((source, made))
    elif len(long) == 3 and size[source] == size[kernel] != size[made]:
        found.alike.append((source, kernel))


def _index(found: Links, opcode: str, values: Mapping[str, str], sizes: Sizes) -> None:
    """A gather's slices of its operand, or where a scatter writes its updates."""
    if opcode == "gather":
        part, names = RESULT, ("offset_dims", "collapsed_slice_dims")
        of_operand, of_indices = "operand_batching_dims", "start_indices_batching_dims"
    else:
        part, names = 2, ("update_window_dims", "inserted_window_dims")
        of_operand, of_indices = "input_batching_dims", "scatter_indices_batching_dims"
    batching, with_batch = (numbers(values.get(name)) for name in (of_operand, of_indices))
    offset, collapsed = (numbers(values.get(name)) for name in names)
    kept = without(len(sizes[0]), collapsed + batching)
    found.windows.extend(
        ((0, here), (part, there)) for here, there in zip(kept, offset, strict=True)
    )
    places = without(len(sizes[1]), [int(values["index_vector_dim"])])
    others = without(len(sizes[part]), offset)
    found.alike.extend(
        ((1, here), (part, there)) for here, there in zip(places, others, strict=True)
    )
    found.alike.extend(
        ((0, here), (1, there)) for here, there in zip(batching, with_batch, strict=True)
    )


# Sizes that must be the same, and sizes that are products of others.

# The atoms that a size is the product of, the major first; a size of 1 has none.
Word = tuple[int, ...]
# A word a dimension.
Words = tuple[Word, ...]


class Atoms:
    """Atoms by number. An atom is one of several that are the same, or a product of others."""

    def __init__(self) -> None:
        self.sizes: list[int] = []
        self._parent: list[int] = []
        self._parts: dict[int, Word] = {}

    def new(self, size: int) -> Word:
        """A size of which nothing is known yet."""
        if size == 1:
            return ()
        self.sizes.append(size)
        self._parent.append(len(self._parent))
        return (len(self._parent) - 1,)

    def leaves(self, word: Iterable[int]) -> Word:
        """The word in atoms that are not products."""
        found: list[int] = []
        for atom in word:
            root = self._root(atom)
            parts = self._parts.get(root)
            if parts is None:
                found.append(root)
            else:
                found.extend(self.leaves(parts))
        return tuple(found)

    def equate(self, one: Sequence[int], other: Sequence[int]) -> None:
        """Let two words be the same size, as far as they fit."""
        if len(one) == len(other) == 1:
            # So are most, and this is quicker than what follows.
            a, b = self._root(one[0]), self._root(other[0])
            is_of_parts = a in self._parts or b in self._parts
            if a == b:
                return
            if self.sizes[a] == self.sizes[b] and not is_of_parts:
                self._parent[a] = b
                return
        ones, others = list(self.leaves(one))[::-1], list(self.leaves(other))[::-1]
        while ones and others:
            a, b = ones.pop(), others.pop()
            if a == b:
                continue
            if self.sizes[a] == self.sizes[b]:
                self._parent[self._root(a)] = self._root(b)
                # The union may have changed what the rest consists of.
                ones, others = (list(self.leaves(rest[::-1]))[::-1] for rest in (ones, others))
                continue
            if self.sizes[a] < self.sizes[b]:
                a, b, ones, others = b, a, others, ones
            if self.sizes[a] % self.sizes[b] or a in self.leaves((b,)):
                return
            rest = self.new(self.sizes[a] // self.sizes[b])
            self._parts[a] = (b, *rest)
            ones, others = (list(self.leaves(more[::-1]))[::-1] for more in (ones, others))
            ones.extend(rest)

    def _root(self, atom: int) -> int:
        while self._parent[atom] != atom:
            self._parent[atom] = self._parent[self._parent[atom]]
            atom = self._parent[atom]
        return atom


# The dimensions of a module's arrays as words, and how those of two arrays are the same.

# Of more parts than these, a part's size is the program's own.
_MOST_PARTS = 8


class Arrays:
    """A word a dimension of every array, and the atoms of which the words consist.

    alike: places whose arrays are the same, two and two. first: of each place, the first that has
    the same words.
    """

    def __init__(self, graph: Graph, alike: Iterable[tuple[Slot, Slot]]) -> None:
        self.atoms = Atoms()
        self._shapes = graph.arrays
        self._words: list[Words | None] = [None] * len(self._shapes)
        self._parts: list[tuple[Word, Word]] = []
        self._counts: list[int] = []
        dimensions = [shape.dimensions if shape is not None else () for shape in self._shapes]
        # The first of all slots that are known to have the same dimensions has their words.
        sets = DisjointSets(len(dimensions))
        for one, other in alike:
            if dimensions[one] == dimensions[other]:
                sets.join(one, other)
        self.first = sets.smallest_members()

    @property
    def counts(self) -> set[int]:
        """The atoms that only say into how many parts, such as halves, a program cuts."""
        return set(self.atoms.leaves(self._counts))

    def words(self, place: Slot) -> Words:
        """A word a dimension of the array there."""
        first = self.first[place]
        found = self._words[first]
        if found is None:
            shape = self._shapes[first]
            sizes = shape.dimensions if shape is not None else ()
            new = self.atoms.new
            found = self._words[first] = tuple([new(max(size, 1)) for size in sizes])
        return found

    def shape(self, place: Slot) -> ArrayShape | None:
        """The array at a slot; None for a tuple."""
        return self._shapes[place]

    def like(self, operand: Slot, result: Slot) -> None:
        """Each dimension is the operand's if there are as many and their sizes are equal."""
        if not self.is_tuple(result) and len(self.words(operand)) == len(self.words(result)):
            self.window(operand, result)

    def window(self, whole: Slot, window: Slot) -> None:
        """A window's dimension is the whole one if their sizes are equal, else the program's."""
        for one, other in zip(self.words(whole), self.words(window), strict=True):
            if self.size(one) == self.size(other):
                self.atoms.equate(one, other)

    def cut(self, operand: Slot, result: Slot) -> None:
        """Note which dimensions are cut, into halves say, or joined."""
        for one, other in zip(self.words(operand), self.words(result), strict=True):
            a, b = self.size(one), self.size(other)
            if a == b:
                self.atoms.equate(one, other)
            else:
                self._parts.append((one, other) if a > b else (other, one))

    def is_tuple(self, place: Slot) -> bool:
        """Whether there are several arrays."""
        return self._shapes[place] is None

    def flat(self, place: Slot) -> list[int]:
        """All dimensions as one."""
        return [atom for word in self.words(place) for atom in word]

    def in_memory(self, place: Slot) -> list[Word]:
        """The dimensions that are not 1, from major to minor."""
        shape, words = self.shape(place), self.words(place)
        assert shape is not None
        order = shape.minor_to_major or tuple(reversed(range(len(words))))
        return [words[at] for at in reversed(order) if words[at]]

    def is_linear(self, place: Slot) -> bool:
        """Whether the elements lie in the order of the dimensions, although there are tiles."""
        shape = self.shape(place)
        assert shape is not None
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
        if part and not rest and times <= _MOST_PARTS:
            count = self.atoms.new(times)
            self._counts.extend(count)
            self.atoms.equate(whole, (*count, *part))

    def equate_parts(self) -> None:
        """Follow the cuts, when all else is known."""
        for whole, part in self._parts:
            self.divide(whole, part)


# What each dimension of each array is: followed from the arguments through the whole program.
#
# The attributes of instructions say which dimension is which. Where they do not, as in a bitcast
# of tiled arrays or a kernel, the sizes decide if they can.

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
# What indices are put together by.
_MAKES_INDICES = {
    *ELEMENTWISE,
    *("bitcast", "broadcast", "call", "concatenate", "custom-call", "fusion", "get-tuple-element"),
    *("copy-done", "copy-start", "dynamic-update-slice", "pad", "parameter", "reshape", "slice"),
    *("async-done", "async-start", "transpose", "tuple"),
}
# What they give is alike by the flow of arrays, or by the positions of values.
_MOVED = {
    *("async-done", "async-start", "async-update", "call", "collective-permute-done"),
    *("collective-permute-start", "all-gather-done", "conditional", "copy-done", "copy-start"),
    *("fusion", "get-tuple-element", "parameter", "tuple", "while"),
}
# Their attributes say it.
_SAID = {"broadcast", "convolution", "dot", "gather", "reduce", "scatter", "transpose"}
# Custom calls that give the largest elements and their places.
_OF_THE_LARGEST = {"TopK", "PartialReduce"}
# Their operand and result are alike, but for what a window or a transform makes of a dimension.
_LIKE = {"reduce-window", "select-and-scatter", "all-to-all", "fft"}


class Dimensions:
    """The arrays of a module, with what the whole program says about their dimensions."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._graph = graph = program.graph
        self.flow = Flow(graph)
        self.arrays = Arrays(graph, [*self._alike()])
        self.atoms = self.arrays.atoms
        self._values: dict[str, dict[str, str]] = {}
        hlo = graph.program
        self._fetches = {hlo.callee(row, "calls") for row in hlo.rows_with("async-start")}
        for row, opcode in enumerate(graph.opcode):
            is_join = graph.root_slot[row] in self.flow.joins
            if (
                graph.operands[row]
                and opcode not in _ALIKE
                and opcode not in _MOVED
                and not is_join
            ):
                self._follow(row, opcode)
        for row in hlo.rows_with("gather", "scatter"):
            self._own_rows(row)
        self.arrays.equate_parts()

    def _alike(self) -> Iterator[tuple[Slot, Slot]]:
        """Pairs of slots whose arrays have the same dimensions, if they have as many elements."""
        graph, flow = self._graph, self.flow
        yield from flow.same
        yield from self._positions()
        for row, opcode in enumerate(graph.opcode):
            operands, result = graph.operands[row], graph.root_slot[row]
            if opcode in _ALIKE:
                count = len(operands)
            elif opcode == "scatter":
                count = (len(operands) - 1) // 2
            else:
                count = int(opcode in ("dynamic-update-slice", "all-gather-start"))
            for number, operand in enumerate(operands[:count]):
                is_tuple = graph.arrays[result] is None
                element = graph.element(result, number) if is_tuple else result
                yield from flow.parts(element, graph.root_slot[operand])
            if opcode == "collective-permute-start":
                for number in (0, 1):
                    element = graph.element(result, number)
                    yield from flow.parts(element, graph.root_slot[graph.program.operand(row, 0)])
            elif opcode in ("collective-permute-done", "all-gather-done"):
                start = graph.root_slot[graph.program.operand(row, 0)]
                yield from flow.parts(result, graph.element(start, 1))

    def _positions(self) -> Iterator[tuple[Slot, Slot]]:
        """Pairs of positions of one value, but for those of a bitcast."""
        table = self._program.positions
        columns = [table[name].to_pylist() for name in table.column_names]
        first: dict[object, Slot] = {}
        for value, place in zip(columns[0], self._graph.find_slots(*columns[1:]), strict=True):
            shape = self._graph.arrays[place] if place != NONE else None
            if shape is not None:
                key = value, shape.dimensions, shape.minor_to_major
                yield first.setdefault(key, place), place

    def _follow(self, instruction: int, opcode: str) -> None:
        root_slot = self._graph.root_slot
        result = root_slot[instruction]
        operands = [root_slot[each] for each in self._graph.operands[instruction]]
        first = operands[0]
        if opcode == "all-gather-start":
            made = self._graph.slots.element(result, 1)
            if not self.arrays.is_tuple(made):
                self.arrays.cut(first, made)
        elif opcode == "bitcast":
            self._bitcast(first, result)
        elif opcode == "reshape":
            self.atoms.equate(self.arrays.flat(first), self.arrays.flat(result))
        elif opcode in _SAID:
            self._by_attributes(instruction, opcode)
        elif opcode in {"dynamic-slice", "dynamic-update-slice"}:
            self.arrays.window(first, result if opcode == "dynamic-slice" else operands[1])
        elif opcode in {"all-gather", "reduce-scatter"} and not self.arrays.is_tuple(result):
            # A device has a part of the dimension.
            self.arrays.cut(first, result)
        elif opcode in {"slice", "pad", "concatenate"}:
            # A fetch in parts is XLA's own, and no dimension is that of a part.
            is_fetch = self._graph.program.computation[instruction] in self._fetches
            cut = self.arrays.window if is_fetch else self.arrays.cut
            for operand in operands if opcode == "concatenate" else operands[:1]:
                cut(operand, result)
        elif opcode == "custom-call" and self._calls_for(instruction) in _OF_THE_LARGEST:
            # The largest elements of each row, and their places.
            for number in range(min(2, self._graph.slots.element_count(result))):
                self.arrays.window(first, self._graph.slots.element(result, number))
        elif opcode in _LIKE or (opcode == "custom-call" and len(operands) == 1):
            self.arrays.like(first, result)

    def _by_attributes(self, instruction: int, opcode: str) -> None:
        """Follow what the attributes say; of a reduce or scatter of several arrays, each."""
        root_slot, operands = self._graph.root_slot, self._graph.operands[instruction]
        places, result = [root_slot[each] for each in operands], root_slot[instruction]
        attributes = self._attributes(instruction)
        count = {"reduce": len(operands) // 2, "scatter": (len(operands) - 1) // 2}.get(opcode, 1)
        for number in range(count):
            is_tuple = self.arrays.is_tuple(result)
            at = self._graph.slots.element(result, number) if is_tuple else result
            sides = {RESULT: at, **dict(enumerate(places))}
            if opcode in {"reduce", "scatter"}:
                sides[0] = places[number]
            if opcode == "scatter":
                sides = {0: places[number], 1: places[count], 2: places[count + 1 + number]}
            sizes = {side: self._sizes(place) for side, place in sides.items()}
            self._link(sides, links(opcode, attributes, sizes))

    def _own_rows(self, instruction: int) -> None:
        """Of a gather or scatter whose indices count the rows: a row is an index's own.

        So JAX takes an element of each row, as the loss of a label.
        """
        root_slot, operands = self._graph.root_slot, self._graph.operands[instruction]
        values, indices = self._attributes(instruction), root_slot[operands[-1]]
        name = "start_index_map"
        if self._graph.opcode[instruction] == "scatter":
            name, indices = "scatter_dims_to_operand_dims", root_slot[operands[1]]
        axes = numbers(values.get(name))
        if len(axes) < 2:
            return
        counted = {
            self._sizes(place)[axis]
            for place in self.flow.before(indices, _MAKES_INDICES)
            if self._graph.opcode_at(place) == "iota"
            for axis in numbers(
                self._attributes(self._graph.instruction[place]).get("iota_dimension")
            )
        }
        words = self.arrays.words(indices)
        vector = int(values["index_vector_dim"])
        rows = self.atoms.leaves(
            a for axis, word in enumerate(words) if axis != vector for a in word
        )
        operand = self.arrays.words(root_slot[operands[0]])
        for axis in axes:
            same = [
                atom for atom in rows if self.atoms.sizes[atom] == self.arrays.size(operand[axis])
            ]
            if len(same) == 1 and self.arrays.size(operand[axis]) in counted:
                self.atoms.equate(operand[axis], same)

    def _attributes(self, instruction: int) -> dict[str, str]:
        """The attributes of an instruction by name, as XLA prints them."""
        text = self._graph.program.attributes.get(instruction, "")
        if text not in self._values:
            self._values[text] = attribute_values(text)
        return self._values[text]

    def _link(self, sides: dict[int, Slot], found: Links) -> None:
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

    def _sizes(self, place: Slot) -> tuple[int, ...]:
        shape = self.arrays.shape(place)
        return shape.dimensions if shape is not None else ()

    def _bitcast(self, operand: Slot, result: Slot) -> None:
        """Both have their elements in one order, if tiles do not take it apart."""
        here, there = (self.arrays.in_memory(place) for place in (operand, result))
        last = [self.arrays.size(words[-1]) if words else 1 for words in (here, there)]
        if last[0] == last[1] or (self.arrays.is_linear(operand) and self.arrays.is_linear(result)):
            self.atoms.equate([a for w in here for a in w], [a for w in there for a in w])
            return
        for ones, others in self._by_size(here, there):
            if len(ones) == len(others) == 1:
                self.atoms.equate(ones[0], others[0])

    def _by_size(self, *sides: Sequence[Word]) -> Iterator[tuple[list[Word], ...]]:
        """The dimensions of each size, side by side."""
        by_size: dict[int, tuple[list[Word], ...]] = defaultdict(lambda: tuple([] for _ in sides))
        for place, side in enumerate(sides):
            for word in side:
                by_size[self.arrays.size(word)][place].append(word)
        by_size.pop(1, None)
        yield from by_size.values()

    def _calls_for(self, instruction: int) -> str:
        return self._graph.program.custom_call_target.get(instruction, "")
