"""What the peak would be if a dimension of an argument had another size."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations
from math import prod

from ...xla.program import NONE
from ...xla.shapes import ArrayShape, allocated_bytes, logical_bytes
from .asked_program import Change, Piece, Program, replay
from .dimensions import Dimensions, Word

# What the peak would be if a dimension had another size: layouts, tiles and schedule kept.


@dataclass(frozen=True)
class Array:
    """A value with a live range: its row in the layout, its shape, and its dimensions' atoms.

    copied_from: of a copy of an argument the order of the argument's dimensions in memory.
    """

    value_id: int
    row: int
    shape: ArrayShape
    words: tuple[Word, ...]
    copied_from: tuple[int, ...] | None


class Resizing:
    """The arrays of a program's memory space, at other sizes."""

    def __init__(self, program: Program, dimensions: Dimensions) -> None:
        self._program = program
        self._atoms = dimensions.atoms
        self.arrays = list(_arrays(program, dimensions))

    def resized_peak(self, sizes: dict[int, int]) -> int:
        """The peak if these atoms have these sizes, from what the same replay gives unchanged."""
        change = self._replayed(sizes)
        allocations = change.freed
        unchanged = self._replayed({}, allocations)
        layout = self._program.layout
        return layout.peak_bytes + (
            replay(layout, change).peak_bytes - replay(layout, unchanged).peak_bytes
        )

    def padding_bytes(self, array: Array) -> int:
        """What tiles add to an array."""
        layout = self._program.layout
        return int(layout.size[array.row]) - logical_bytes(array.shape)

    def with_sizes(self, array: Array, sizes: dict[int, int]) -> int:
        """An array's bytes at other sizes; what a shape does not tell stays as it is."""
        now = int(self._program.layout.size[array.row])
        is_tpu = self._program.platform == "tpu"
        before = allocated_bytes(array.shape, is_tpu)
        dimensions = tuple(
            prod(sizes.get(atom, self._atoms.sizes[atom]) for atom in word) for word in array.words
        )
        return now + allocated_bytes(replace(array.shape, dimensions=dimensions), is_tpu) - before

    def _replayed(self, sizes: dict[int, int], also: frozenset[int] = frozenset()) -> Change:
        """All temps at their sizes, each address a place; and allocations of resized arrays."""
        layout = self._program.layout
        now = {array.row: self.with_sizes(array, sizes) for array in self.arrays}
        temps = set(layout.allocation_index[layout.is_temp].tolist())
        grown: dict[int, int] = defaultdict(int)
        for row, size in now.items():
            allocation = int(layout.allocation[row])
            more = size - int(layout.size[row])
            if allocation not in temps and more:
                grown[allocation] = max(grown[allocation], more, key=abs)
        freed = frozenset(grown) | also
        whole = dict(
            zip(layout.allocation_index.tolist(), layout.allocation_bytes.tolist(), strict=True)
        )
        places: dict[tuple[int, int], int] = {}
        pieces = [
            Piece(
                places.setdefault((each, -1), len(places)),
                whole[each] + grown[each],
                0,
                layout.schedule_length,
            )
            for each in sorted(freed)
        ]
        gone = []
        for row, allocation in enumerate(layout.allocation.tolist()):
            if allocation in temps:
                place = places.setdefault((allocation, int(layout.offset[row])), len(places))
                size = now.get(row, int(layout.size[row]))
                pieces.append(Piece(place, size, int(layout.start[row]), int(layout.end[row])))
            if allocation in temps or allocation in freed:
                gone.append(int(layout.value_id[row]))
        return Change(frozenset(gone), freed, tuple(pieces))


def resizing_of(program: Program) -> Resizing:
    """The arrays of a program by its own dimensions."""
    return Resizing(program, program.worked_out(Dimensions))


def _arrays(program: Program, dimensions: Dimensions) -> list[Array]:
    rows = {int(value): row for row, value in enumerate(program.layout.value_id)}
    table = program.rows(
        'SELECT value_id, instruction_id, shape_index FROM "values" WHERE module_id = $1'
    )
    instructions = table["instruction_id"].to_numpy()
    places = program.graph.slots.named(instructions, table["shape_index"]).tolist()
    arrays = []
    for value, place in zip(table["value_id"].to_pylist(), places, strict=True):
        shape = dimensions.arrays.shape(place) if value in rows and place != NONE else None
        if isinstance(shape, ArrayShape):
            words = tuple(dimensions.atoms.leaves(word) for word in dimensions.arrays.words(place))
            order = dimensions.arrays.copied_from(program.graph.instruction[place])
            arrays.append(Array(value, rows[value], shape, words, order))
    return arrays


# The dimensions that a user can give another size: those of the arguments.


@dataclass(frozen=True)
class Axis:
    """A dimension of an argument that consists of one atom, and of parts such as halves."""

    argument: str
    number: int
    atom: int
    size: int
    array: Array


@dataclass(frozen=True)
class Dimension:
    """Axes of arguments that change together, and all atoms that change with them."""

    axes: tuple[Axis, ...]
    atoms: frozenset[int]

    @property
    def size(self) -> int:
        """The size of each axis."""
        return self.axes[0].size


def argument_dimensions(
    program: Program, dimensions: Dimensions, resizing: Resizing
) -> list[Dimension]:
    """The arguments' dimensions: the same atom is one, and so is what a program makes alike.

    Where sizes cannot tell which of several equal dimensions is which, all of them are one.
    """
    found: list[Dimension] = []
    for axes in _alike(list(_axes(program, dimensions, resizing))):
        joined = Dimension(axes, _closure(dimensions, frozenset(axis.atom for axis in axes)))
        for other in [each for each in found if each.atoms & joined.atoms]:
            found.remove(other)
            joined = Dimension(other.axes + joined.axes, other.atoms | joined.atoms)
        found.append(joined)
    return [each for each in found if len({axis.size for axis in each.axes}) == 1]


def _closure(dimensions: Dimensions, atoms: frozenset[int]) -> frozenset[int]:
    """With the atoms of the same sizes that a lost link leaves in doubt."""
    sizes = {dimensions.atoms.sizes[atom] for atom in atoms}
    while True:
        suspects = dimensions.atoms.suspects(set(atoms))
        same = {each for each in suspects if dimensions.atoms.sizes[each] in sizes}
        if not same:
            return atoms
        atoms |= same


def _axes(program: Program, dimensions: Dimensions, resizing: Resizing) -> Iterator[Axis]:
    """The dimensions of the arguments that are not products of several."""
    names = {
        array["value_id"]: str(array["op_name"] or array["instruction"])
        for array in program.entry_arrays.to_pylist()
        if not array["is_output"]
    }
    for array in resizing.arrays:
        if array.value_id not in names:
            continue
        for number, word in enumerate(array.words):
            atoms = [atom for atom in word if atom not in dimensions.arrays.counts]
            if len(atoms) == 1:
                size = array.shape.dimensions[number]
                yield Axis(names[array.value_id], number, atoms[0], size, array)


def _alike(axes: list[Axis]) -> list[tuple[Axis, ...]]:
    """The axes in groups that a program gives one size: the same atom, or of like arguments.

    Heads of keys and of values are not the same to a program. Their arguments are alike in all
    other dimensions, though.
    """
    group = {axis.atom: axis.atom for axis in axes}
    for one, other in combinations(axes, 2):
        if one.number != other.number or one.array.shape.dimensions != other.array.shape.dimensions:
            continue
        same = [a == b for a, b in zip(one.array.words, other.array.words, strict=True)]
        if any(same) and not same[one.number]:
            old, new = group[other.atom], group[one.atom]
            group = {atom: new if each == old else each for atom, each in group.items()}
    groups: dict[int, list[Axis]] = defaultdict(list)
    for axis in axes:
        groups[group[axis.atom]].append(axis)
    return [tuple(each) for each in groups.values()]
