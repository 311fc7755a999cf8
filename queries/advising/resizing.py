"""What the peak would be if a dimension had another size: layouts, tiles and schedule kept."""

from collections import defaultdict
from dataclasses import dataclass, replace
from math import prod

from ...xla.shapes import ArrayShape, allocated_bytes, logical_bytes
from .arrays import Place
from .asked_program import Program
from .atoms import Word
from .dimensions import Dimensions
from .replay import Change, Piece, replay


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


def _arrays(program: Program, dimensions: Dimensions) -> list[Array]:
    rows = {int(value): row for row, value in enumerate(program.layout.value_id)}
    table = program.rows(
        'SELECT value_id, instruction_id, shape_index FROM "values" WHERE module_id = $1'
    )
    arrays = []
    for value, instruction, index in zip(*table.to_pydict().values(), strict=True):
        place: Place = (instruction, index)
        shape = dimensions.arrays.shape(place) if value in rows else None
        if isinstance(shape, ArrayShape):
            words = tuple(dimensions.atoms.leaves(word) for word in dimensions.arrays.words(place))
            order = dimensions.arrays.copied_from(instruction)
            arrays.append(Array(value, rows[value], shape, words, order))
    return arrays
