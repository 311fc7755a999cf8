"""The dimensions that a user can give another size: those of the arguments."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

from .asked_program import Program
from .dimensions import Dimensions
from .resizing import Array, Resizing


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
