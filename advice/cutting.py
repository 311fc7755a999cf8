"""Which axes of a program can be computed in parts, and what the peak would be then.

An axis can be cut if no part of it needs another: nothing that is computed without the axis goes
back into what has it, and nothing sorts it or slides over it. Sums over it are sums of parts.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from math import prod

import numpy as np
import numpy.typing as npt

from ..xla.program import NONE, attribute_values
from ..xla.shapes import ArrayShape, allocated_bytes
from .asked_program import Change, Piece, Program, replay, texts_of
from .dimensions import Dimensions, Word, Words, numbers, window_parts
from .flow import Ints, Mask
from .graph import Slot

# What is summed over all parts is carried from the first to the last.
_SUMMED = 1 << 20
# They hand on what they take, or what others made.
HAND_ON = frozenset(
    {
        *("bitcast", "call", "convert", "copy", "dynamic-update-slice", "fusion"),
        *("get-tuple-element", "parameter", "tuple", "while"),
    }
)
# They work along these axes, so that a part needs its neighbours; the others work on all axes.
_ALONG = {"sort", "reduce-window", "select-and-scatter", "convolution", "fft"}
_WHOLE = {"reverse", "cholesky", "triangular-solve", "custom-call", "scatter"}
_ELEMENT_BY_ELEMENT = {
    *("AllocateBuffer", "AssumeGatherIndicesInBound", "ConcatBitcast"),
    *("GatherScatterIndicesBitpacked", "PartialReduce", "TopK"),
}
_ADDS = {"add", "and", "or"}


Floats = npt.NDArray[np.float64]
_Combinations = tuple[list[tuple[int, ...]], Ints]


@dataclass(frozen=True)
class Array:
    """A value with a live range: its row in the layout, its shape, and its dimensions' atoms."""

    value_id: int
    row: int
    shape: ArrayShape
    words: tuple[Word, ...]


@dataclass(frozen=True)
class Cut:
    """An axis that is cut, and the arrays of temps that have it; the peak for `count` parts.

    Of the pieces of the change the first `parts` are of these arrays.
    """

    atom: int
    arrays: tuple[Array, ...]
    count: int
    peak_bytes: int
    change: Change
    parts: int


class Cutting:
    """A program's temps by their dimensions, and which of these can be cut."""

    def __init__(self, program: Program) -> None:
        self.program, self.layout = program, program.layout
        self.dimensions = program.worked_out(Dimensions)
        self.flow = self.dimensions.flow
        self._graph = program.graph

    @cached_property
    def arrays(self) -> list[Array]:
        """The arrays that lie in temps."""
        temps = set(self.layout.allocation_index[self.layout.is_temp].tolist())
        allocation = self.layout.allocation.tolist()
        return [array for array in self.live_arrays if allocation[array.row] in temps]

    @cached_property
    def live_arrays(self) -> list[Array]:
        """The arrays with a live range, in temps or not."""
        rows = {int(value): row for row, value in enumerate(self.layout.value_id)}
        table = self.program.rows(
            'SELECT value_id, instruction_id, shape_index FROM "values" WHERE module_id = $1'
        )
        values, *parts = (table[name].to_pylist() for name in table.column_names)
        dimensions, arrays = self.dimensions, []
        for value, place in zip(values, self._graph.find_slots(*parts), strict=True):
            shape = dimensions.arrays.shape(place) if value in rows and place != NONE else None
            if shape is not None:
                words = map(dimensions.atoms.leaves, dimensions.arrays.words(place))
                arrays.append(Array(value, rows[value], shape, tuple(words)))
        return arrays

    @cached_property
    def roles(self) -> dict[int, str]:
        """The role of each value that has one."""
        rows = self.program.rows(
            'SELECT value_id, role FROM "values" WHERE module_id = $1 AND role IS NOT NULL'
        )
        return texts_of(rows, "role")

    @cached_property
    def arguments(self) -> list[tuple[str, str | None, tuple[tuple[int, ...], ...]]]:
        """The name, the role and the words of each argument."""
        words, roles = {array.value_id: array.words for array in self.live_arrays}, self.roles
        return [
            (
                str(row["argument_name"] or row["instruction"]),
                roles.get(row["value_id"]),
                words[value],
            )
            for row in self.program.entry_arrays.to_pylist()
            if not row["is_output"] and (value := row["value_id"]) in words
        ]

    @cached_property
    def of_weights(self) -> set[int]:
        """The atoms of a training step's weights. What else is a weight, roles do not tell.

        What no output has the dimensions of is not trained. It may be frozen, or data that a frozen
        weight is multiplied with: the first axis may be a batch.
        """
        if not self.program.trains:
            return set()
        renewed = {
            row["dimensions"] for row in self.program.entry_arrays.to_pylist() if row["is_output"]
        }
        sizes = self.dimensions.atoms.sizes
        found: set[int] = set()
        for _, role, words in self.arguments:
            if role in {"weight", "optimizer state"}:
                dimensions = ",".join(str(prod(sizes[atom] for atom in word)) for word in words)
                of_features = words if dimensions in renewed else words[1:]
                found.update(atom for word in of_features for atom in word)
        return found

    @cached_property
    def _atoms(self) -> _Combinations:
        """The combinations of atoms that arrays have, and which one each place has."""
        leaves, arrays = self.dimensions.atoms.leaves, self.dimensions.arrays
        places, of_place = np.unique(np.array(arrays.first, np.int64), return_inverse=True)
        number: dict[tuple[int, ...], int] = {}
        numbers = [
            number.setdefault(tuple(chain(*map(leaves, arrays.words(place)))), len(number))
            for place in places.tolist()
        ]
        return list(number), np.array(numbers, np.int64)[of_place]

    @cached_property
    def elements(self) -> Floats:
        """How many elements the array at each place has; 0 of a tuple."""
        return np.array(
            [
                0.0 if shape is None else float(prod(shape.dimensions))
                for shape in self._graph.arrays
            ]
        )

    def atoms(self, place: Slot) -> tuple[int, ...]:
        """All atoms of an array, in order of its dimensions."""
        combinations, of_place = self._atoms
        return combinations[int(of_place[place])]

    def region(self, has: Callable[[tuple[int, ...]], bool]) -> Mask:
        """At which places arrays have such atoms; each combination of atoms is asked once."""
        combinations, of_place = self._atoms
        found: Mask = np.array(list(map(has, combinations)), bool)[of_place]
        return found

    def with_atom(self, atom: int) -> Mask:
        """At which places arrays have an atom."""
        return self.region(lambda atoms: atom in atoms)

    def lies_at(self, array: Array, time: int) -> bool:
        """Whether it is live at a time."""
        return bool(self.layout.start[array.row] <= time <= self.layout.end[array.row])

    def size(self, array: Array) -> int:
        """Its bytes."""
        return int(self.layout.size[array.row])

    def bytes_of(self, arrays: list[Array]) -> int:
        """Their bytes, each address once."""
        places: dict[tuple[int, int], int] = {}
        for array in arrays:
            at = int(self.layout.allocation[array.row]), int(self.layout.offset[array.row])
            places[at] = max(places.get(at, 0), self.size(array))
        return sum(places.values())

    def groups(self, time: int) -> list[tuple[tuple[int, ...], list[Array]]]:
        """The temps at a time by their dimensions, the group of most bytes first."""
        found: dict[tuple[int, ...], list[Array]] = defaultdict(list)
        for array in self.arrays:
            if self.lies_at(array, time):
                found[flat(array)].append(array)
        return sorted(found.items(), key=lambda group: -self.bytes_of(group[1]))

    def can_be_cut(self, atom: int, region: Mask) -> bool:
        """Whether a part of an axis needs no other: see above."""
        graph, flow, has = self._graph, self.flow, self.with_atom(atom)
        if any(
            graph.opcode_at(place) in _ALONG | _WHOLE and self._goes_along(place, atom)
            for place in np.flatnonzero(region).tolist()
        ):
            return False
        without = {graph.instruction[place] for place in flow.leaving(region, has).tolist()}
        if not all(map(self._adds, without)):
            return False
        twice = region & self.region(lambda atoms: atoms.count(atom) > 1)
        if len({*self._summed_over(twice, atom)}) > 1:
            return False
        return not flow.comes_back(region, has)

    def _goes_along(self, place: Slot, atom: int) -> bool:
        """Whether an instruction sorts along an axis, or computes elements from neighbours."""
        graph = self.program.graph
        instruction, program = graph.instruction[place], graph.program
        opcode = graph.opcode[instruction]
        axes = [atom in self.dimensions.atoms.leaves(word) for word in self._words(place)]
        values = attribute_values(program.attributes.get(instruction, ""))
        if opcode == "sort":
            return any(axes[axis] for axis in numbers(values.get("dimensions")))
        if opcode in {"reduce-window", "select-and-scatter"}:
            sizes = window_parts(values.get("window", "")).get("size", [])
            return any(on and size != "1" for on, size in zip(axes, sizes, strict=False))
        if opcode == "convolution":
            return self._slides(instruction, values, axes)
        if opcode == "fft":
            # Of one to three axes, the last ones; how many is not kept.
            return any(axes[-3:])
        if opcode == "scatter":
            return atom not in self.atoms(graph.root_slot[graph.operands[instruction][-1]])
        if opcode == "custom-call":
            target = program.custom_call_target.get(instruction, "")
            if target in _ELEMENT_BY_ELEMENT:
                return False
        # Of the others the last two dimensions are those of one matrix, or of one row.
        return any(axes[-2:])

    def _slides(self, instruction: int, values: dict[str, str], axes: list[bool]) -> bool:
        """Whether a kernel of several elements slides along an axis of the result."""
        labels = values["dim_labels"].partition("->")[2]
        sizes = window_parts(values.get("window", "")).get("size", [])
        graph = self.program.graph
        source = self._words(graph.root_slot[graph.operands[instruction][0]])
        inputs = values["dim_labels"].partition("_")[0]
        return any(
            axes[labels.index(str(number))]
            and size != "1"
            and self.dimensions.arrays.size(source[inputs.index(str(number))]) > 1
            and "lhs_dilate" not in values.get("window", "")
            for number, size in enumerate(sizes)
        )

    def _words(self, place: Slot) -> Words:
        return self.dimensions.arrays.words(place)

    def _adds(self, instruction: int) -> bool:
        """Whether a result without the axis is a sum over it."""
        graph = self.program.graph
        opcode = graph.opcode[instruction]
        if opcode in {"dot", "convolution"}:
            # A gradient is a sum over the batch; other programs have no reason to add up parts.
            return self.program.trains
        # XLA adds up a large array in steps.
        in_steps = opcode == "reduce-window" and self.program.trains
        if not in_steps and opcode not in {"reduce", "scatter", "all-reduce", "reduce-scatter"}:
            return False
        (computation,) = graph.called(instruction, "to_apply")
        combined = graph.program.root[computation]
        # XLA for CPU rounds sums of narrow types.
        while graph.opcode[combined] == "convert":
            (combined,) = graph.operands[combined]
        return graph.opcode[combined] in _ADDS

    def _summed_over(self, region: Mask, atom: int) -> Iterator[int]:
        """Of an axis that arrays have twice, which of the two the reductions go over."""
        graph, flow = self.program.graph, self.flow
        attributes = graph.program.attributes
        reads = region[flow.source]
        pairs = (flow.source[reads].tolist(), flow.reader[reads].tolist())
        for place, reader in zip(*pairs, strict=True):
            instruction = graph.instruction[reader]
            if graph.opcode[instruction] == "reduce":
                values = attribute_values(attributes.get(instruction, ""))
                words = [self.dimensions.atoms.leaves(word) for word in self._words(place)]
                both = [axis for axis, word in enumerate(words) if atom in word]
                yield from (
                    both.index(axis) for axis in numbers(values["dimensions"]) if axis in both
                )

    def cut(self, atom: int, arrays: list[Array], summed: set[int], count: int) -> Cut:
        """The program with an axis in so many parts; what is summed over them is there from the
        first part on.
        """
        layout, size = self.layout, self.dimensions.atoms.sizes[atom]
        places: dict[tuple[int, int], int] = {}
        pieces, gone = [], set[int]()
        first = min(int(layout.start[array.row]) for array in arrays)
        for array in arrays:
            at = int(layout.allocation[array.row]), int(layout.offset[array.row])
            now = self.size(array)
            times = flat(array).count(atom)
            part = -(-now // count)
            if times == 1 and size % count == 0:
                part = self._with_size(array, atom, size // count)
            place = places.setdefault(at, len(places))
            start, end = int(layout.start[array.row]), int(layout.end[array.row])
            pieces.append(Piece(place, min(part, now), start, end))
            gone.add(array.value_id)
        parts = len(pieces)
        for row in summed:
            if int(layout.value_id[row]) not in gone:
                at = -1 - row, 0
                place = places.setdefault(at, len(places))
                pieces.append(Piece(place, int(layout.size[row]), first, int(layout.end[row])))
                gone.add(int(layout.value_id[row]))
        change = Change(gone=frozenset(gone), pieces=tuple(pieces))
        peak = replay(layout, change).peak_bytes
        return Cut(atom, tuple(arrays), count, peak, change, parts)

    def _with_size(self, array: Array, atom: int, size: int) -> int:
        """An array's bytes if an atom had a size; what a shape does not tell stays as it is."""
        is_tpu, sizes = self.program.platform == "tpu", self.dimensions.atoms.sizes
        dimensions = tuple(
            prod(size if each == atom else sizes[each] for each in word) for word in array.words
        )
        resized = allocated_bytes(replace(array.shape, dimensions=dimensions), is_tpu)
        return self.size(array) + resized - allocated_bytes(array.shape, is_tpu)

    def summed(self, region: Mask, atom: int) -> set[int]:
        """The rows of temps that are large sums over an axis."""
        layout = self.layout
        rows = {int(value): row for row, value in enumerate(layout.value_id)}
        temps = set(layout.allocation_index[layout.is_temp].tolist())
        found = set()
        for place in self.flow.leaving(region, self.with_atom(atom)).tolist():
            row = rows.get(self.values.get(self._outer(place), NONE))
            if row is None:
                continue
            if int(layout.allocation[row]) in temps and layout.size[row] > _SUMMED:
                found.add(row)
        return found

    @cached_property
    def values(self) -> dict[Slot, int]:
        """The value that is defined at a slot."""
        table = self.program.rows(
            'SELECT instruction_id, shape_index, value_id FROM "values" WHERE module_id = $1'
        )
        *parts, values = (table[name].to_pylist() for name in table.column_names)
        return dict(zip(self._graph.find_slots(*parts), values, strict=True))

    def _outer(self, place: Slot) -> Slot:
        """What a fusion gives, of a place within it; else the place."""
        while place not in self.values:
            readers = self.flow.readers[place]
            if len(readers) != 1 or self.program.graph.opcode_at(readers[0]) not in HAND_ON:
                return place
            (place,) = readers
        return place

    def named(self, atom: int) -> str:
        """The axis as an argument's, such as `axis 0 of x (1024)`; its size if it is of none."""
        sizes = self.dimensions.atoms.sizes
        for data in (True, False):
            for name, role, words in self.arguments:
                for axis, word in enumerate(words):
                    if atom in word and (role == "input" or not data):
                        return f"axis {axis} of {name} ({prod(sizes[each] for each in word)})"
        return f"the axis of {sizes[atom]}"


def flat(array: Array) -> tuple[int, ...]:
    """The atoms of an array, whatever their order: its dimensions, however they are written."""
    return tuple(sorted(atom for word in array.words for atom in word))
