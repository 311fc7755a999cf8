"""Which axes of a program can be computed in parts, and what the peak would be then.

An axis can be cut if no part of it needs another: nothing that is computed without the axis goes
back into what has it, and nothing sorts it or slides over it. Sums over it are sums of parts.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from math import prod

from ...xla.program import attribute_values
from .asked_program import Change, Piece, Place, Program, replay
from .dimensions import Dimensions, Words, numbers, window_parts
from .resizing import Array, resizing_of

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
_ALONG = {"sort", "reduce-window", "select-and-scatter", "convolution"}
_WHOLE = {"reverse", "cholesky", "triangular-solve", "custom-call", "scatter"}
_ELEMENT_BY_ELEMENT = {
    *("AllocateBuffer", "AssumeGatherIndicesInBound", "ConcatBitcast"),
    *("GatherScatterIndicesBitpacked", "PartialReduce", "TopK"),
}
_ADDS = {"add", "and", "or"}


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
        self.resizing = program.worked_out(resizing_of)
        self.flow = self.dimensions.flow
        self._atoms: dict[Words, tuple[int, ...]] = {}

    @cached_property
    def arrays(self) -> list[Array]:
        """The arrays that lie in temps."""
        temps = set(self.layout.allocation_index[self.layout.is_temp].tolist())
        allocation = self.layout.allocation.tolist()
        return [array for array in self.resizing.arrays if allocation[array.row] in temps]

    @cached_property
    def roles(self) -> dict[int, str]:
        """The role of each value that has one."""
        rows = self.program.rows(
            'SELECT value_id, role FROM "values" WHERE module_id = $1 AND role IS NOT NULL'
        )
        return dict(zip(rows["value_id"].to_pylist(), rows["role"].to_pylist(), strict=True))

    @cached_property
    def arguments(self) -> list[tuple[str, str | None, tuple[tuple[int, ...], ...]]]:
        """The name, the role and the words of each argument."""
        words, roles = {array.value_id: array.words for array in self.resizing.arrays}, self.roles
        return [
            (str(row["op_name"] or row["instruction"]), roles.get(row["value_id"]), words[value])
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

    def atoms(self, place: Place) -> tuple[int, ...]:
        """All atoms of an array, in order of its dimensions."""
        words = self.dimensions.arrays.words(place)
        found = self._atoms.get(words)
        if found is None:
            leaves = self.dimensions.atoms.leaves
            found = self._atoms[words] = tuple(atom for word in words for atom in leaves(word))
        return found

    def region(self, has: Callable[[tuple[int, ...]], bool]) -> set[Place]:
        """All arrays whose atoms are such; each combination of atoms is asked once."""
        asked: dict[tuple[int, ...], bool] = {}
        found = set()
        for place in self.flow.sources:
            atoms = self.atoms(place)
            is_such = asked.get(atoms)
            if is_such is None:
                is_such = asked[atoms] = has(atoms)
            if is_such:
                found.add(place)
        return found

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

    def can_be_cut(self, atom: int, region: set[Place]) -> bool:
        """Whether a part of an axis needs no other: see above."""
        graph, flow = self.program.graph, self.flow

        def has(place: Place) -> bool:
            return atom in self.atoms(place)

        for place in region:
            opcode = graph.opcode[place[0]]
            if opcode in _ALONG | _WHOLE and has(place) and self._goes_along(place, atom):
                return False
            for reader in flow.readers[place]:
                if not has(reader) and not self._adds(reader):
                    return False
        twice = [place for place in region if self.atoms(place).count(atom) > 1]
        if twice and len({*self._summed_over(twice, atom)}) > 1:
            return False
        return not flow.comes_back(region, has)

    def _goes_along(self, place: Place, atom: int) -> bool:
        """Whether an instruction sorts along an axis, or computes elements from neighbours."""
        instruction, _ = place
        program = self.program.graph.program
        opcode = self.program.graph.opcode[instruction]
        axes = [atom in self.dimensions.atoms.leaves(word) for word in self._words(place)]
        code = int(program.attributes.codes[instruction])
        values = attribute_values(program.attributes.texts[code]) if code >= 0 else {}
        if opcode == "sort":
            return any(axes[axis] for axis in numbers(values.get("dimensions")))
        if opcode in {"reduce-window", "select-and-scatter"}:
            sizes = window_parts(values.get("window", "")).get("size", [])
            return any(on and size != "1" for on, size in zip(axes, sizes, strict=False))
        if opcode == "convolution":
            return self._slides(instruction, values, axes)
        if opcode == "scatter":
            return not {*self.atoms((self.program.graph.operands[instruction][-1], "{}"))} >= {atom}
        if opcode == "custom-call":
            target = self.program.graph.program.custom_call_target.at(instruction)
            if target in _ELEMENT_BY_ELEMENT:
                return False
        # Of the others the last two dimensions are those of one matrix, or of one row.
        return any(axes[-2:])

    def _slides(self, instruction: int, values: dict[str, str], axes: list[bool]) -> bool:
        """Whether a kernel of several elements slides along an axis of the result."""
        labels = values["dim_labels"].partition("->")[2]
        sizes = window_parts(values.get("window", "")).get("size", [])
        source = self._words((self.program.graph.operands[instruction][0], "{}"))
        inputs = values["dim_labels"].partition("_")[0]
        return any(
            axes[labels.index(str(number))]
            and size != "1"
            and self.dimensions.arrays.size(source[inputs.index(str(number))]) > 1
            and "lhs_dilate" not in values.get("window", "")
            for number, size in enumerate(sizes)
        )

    def _words(self, place: Place) -> Words:
        return self.dimensions.arrays.words(place)

    def _adds(self, place: Place) -> bool:
        """Whether a result without the axis is a sum over it."""
        graph, (instruction, _) = self.program.graph, place
        opcode = graph.opcode[instruction]
        if opcode in {"dot", "convolution"}:
            # A gradient is a sum over the batch; other programs have no reason to add up parts.
            return self.program.trains
        # XLA adds up a large array in steps.
        in_steps = opcode == "reduce-window" and self.program.trains
        if not in_steps and opcode not in {"reduce", "scatter", "all-reduce", "reduce-scatter"}:
            return False
        (computation,) = graph.called[instruction]["to_apply"]
        return graph.opcode[graph.root(computation)] in _ADDS

    def _summed_over(self, region: list[Place], atom: int) -> Iterator[int]:
        """Of an axis that arrays have twice, which of the two the reductions go over."""
        graph = self.program.graph
        attributes = graph.program.attributes
        for place in region:
            for reader, _ in self.flow.readers[place]:
                if graph.opcode[reader] == "reduce":
                    values = attribute_values(attributes.texts[int(attributes.codes[reader])])
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
                part = self.resizing.with_sizes(array, {atom: size // count})
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

    def summed(self, region: set[Place], atom: int) -> set[int]:
        """The rows of temps that are large sums over an axis."""
        rows = {int(value): row for row, value in enumerate(self.layout.value_id)}
        temps = set(self.layout.allocation_index[self.layout.is_temp].tolist())
        values = self.values
        found = set()
        for place in region:
            for reader in self.flow.readers[place]:
                row = rows.get(values.get(self._outer(reader), -1))
                if row is None or atom in self.atoms(reader):
                    continue
                if int(self.layout.allocation[row]) in temps and self.layout.size[row] > _SUMMED:
                    found.add(row)
        return found

    @cached_property
    def values(self) -> dict[Place, int]:
        """The value that is defined at a place."""
        table = self.program.rows(
            'SELECT instruction_id, shape_index, value_id FROM "values" WHERE module_id = $1'
        )
        instructions, indices, values = (column.to_pylist() for column in table.columns)
        return dict(zip(zip(instructions, indices, strict=True), values, strict=True))

    def _outer(self, place: Place) -> Place:
        """What a fusion gives, of a place within it; else the place."""
        while place not in self.values:
            readers = self.flow.readers[place]
            if len(readers) != 1 or self.program.graph.opcode[readers[0][0]] not in HAND_ON:
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
