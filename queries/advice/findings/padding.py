"""What tiles add at the peak, dimension by dimension, and what the next multiples would bring.

A TPU pads the most minor dimensions of an array to its tile, such as 8 x 128. A larger dimension
never saves memory; that it costs little is worth to know, as its padding is paid already.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain

from ....schema.readable import human_bytes
from ....xla.shapes import COMBINE, logical_bytes
from ...result import without_layout
from ..asked_program import Program, memory_on_chip
from ..cutting import Cutting
from ..dimensions import Dimensions
from ..finding import Finding, Grade
from ..resizing import Array, Dimension, Resizing, argument_dimensions, resizing_of
from . import INSTRUCTIONS, OWNERS, listed

# Less of the peak is not worth a line.
_WORTH = 0.01
# A figure holds if what may also change, but cannot be followed, has less of the peak.
_UNKNOWN = 0.002
_NAMED = 4
# What takes hardly more than its elements has no better shape.
_TIMES = 1.1


@dataclass(frozen=True)
class _Padded:
    """An array at the peak that a tile pads along a dimension."""

    array: Array
    tile: int
    padding: int


@listed(9, OWNERS, INSTRUCTIONS)
def padding(program: Program) -> list[Finding]:
    """A finding for each dimension that costs enough padding at the peak; none has a saving."""
    layout = program.layout
    if program.platform != "tpu" or _padding_at_peak(program) < _WORTH * layout.peak_bytes:
        return []
    dimensions, resizing = program.worked_out(Dimensions), program.worked_out(resizing_of)
    found = argument_dimensions(program, dimensions, resizing)
    of_atom = {atom: each for each in found for atom in each.atoms}
    padded: dict[Dimension, list[_Padded]] = defaultdict(list)
    others: dict[str, list[_Padded]] = defaultdict(list)
    for one, word in _padded_at_peak(program, resizing):
        of_word = {of_atom[atom] for atom in word if atom in of_atom}
        if len(of_word) == 1:
            padded[of_word.pop()].append(one)
        else:
            others[str(one.array.shape)].append(one)
    worth = _WORTH * layout.peak_bytes
    return [
        *(
            _finding(program, dimensions, resizing, dimension, ones)
            for dimension, ones in padded.items()
            if _padding(ones) >= worth and not _is_of_data(program, dimension)
        ),
        *(
            _of_shape(program, ones)
            for ones in others.values()
            if _padding(ones) >= worth and _times(program, ones) >= _TIMES
        ),
    ]


def resized_peak(
    program: Program, dimensions: Dimensions, resizing: Resizing, dimension: Dimension, size: int
) -> int | None:
    """The peak if a dimension had this size; None if not all that would change can be followed."""
    sizes = {}
    for atom in dimension.atoms:
        now = dimensions.atoms.sizes[atom]
        if now * size % dimension.size:
            return None
        sizes[atom] = now * size // dimension.size
    layout = program.layout
    # What is small may lie in the memory on chip at one size, and not at another.
    if layout.peak_bytes < memory_on_chip(program):
        return None
    suspects = dimensions.atoms.suspects(set(sizes))
    unknown = sum(
        int(layout.size[array.row])
        for array in resizing.arrays
        if _is_at_peak(program, array) and not suspects.isdisjoint(chain(*array.words))
    )
    if unknown > _UNKNOWN * layout.peak_bytes or _is_copied(program, resizing, set(sizes)):
        return None
    return resizing.resized_peak(sizes)


def _is_copied(program: Program, resizing: Resizing, atoms: set[int]) -> bool:
    """Whether such arrays are copied to another layout at the peak.

    XLA lays arguments out with as little padding as it can, so at another size it might not copy.
    """
    copied = [
        int(program.layout.size[array.row])
        for array in resizing.arrays
        if array.copied_from not in {None, array.shape.minor_to_major}
        and _is_at_peak(program, array)
        and not atoms.isdisjoint(chain(*array.words))
    ]
    return sum(copied) > _UNKNOWN * program.layout.peak_bytes


def _finding(
    program: Program,
    dimensions: Dimensions,
    resizing: Resizing,
    dimension: Dimension,
    ones: list[_Padded],
) -> Finding:
    ones.sort(key=lambda one: -one.padding)
    size, tile = dimension.size, ones[0].tile
    axes = [f"axis {axis.number} of `{axis.argument}`" for axis in dimension.axes]
    named = ", ".join(axes[:_NAMED])
    named += f" and {len(axes) - _NAMED} more" if len(axes) > _NAMED else ""
    told = []
    for to in (size - size % tile, size + -size % tile):
        peak = None
        if size <= 2 * to <= 4 * size and to != size:
            peak = resized_peak(program, dimensions, resizing, dimension, to)
        if peak is not None:
            told.append(_told(to, tile, program.layout.peak_bytes - peak))
    return Finding(
        kind="padding",
        title=f"{human_bytes(_padding(ones))} of the peak are padding of a dimension of {size}",
        grade=Grade.expected if told else Grade.fact,
        write=f"{named}: " + ("; ".join(told) or "what another size brings cannot be told"),
        why=f"the tile is {ones[0].array.shape.tiles[0]}, so that {size} takes"
        f" {size + -size % tile} in {len(ones)} arrays: {ones[0].array.shape} is the largest",
        value_ids=tuple(one.array.value_id for one in ones),
        source=_source(program, ones),
        tolerance=0.01 if told else None,
    )


def _of_shape(program: Program, ones: list[_Padded]) -> Finding:
    """Arrays of which no argument has the padded dimension: another shape may hold the same."""
    ones.sort(key=lambda one: -one.padding)
    array, tile, times = ones[0].array, ones[0].tile, _times(program, ones)
    return Finding(
        kind="padding",
        title=f"{human_bytes(_padding(ones))} of the peak are padding of"
        f" {without_layout(str(array.shape))}",
        grade=Grade.fact,
        write=f"reorder or merge its dimensions, so that its last is a multiple of {tile}",
        why=f"the tile is {array.shape.tiles[0]}, so that it takes {times:.1f} times its elements",
        value_ids=tuple(one.array.value_id for one in ones),
        source=_source(program, ones),
        high_bytes=_padding(ones),
    )


def _is_of_data(program: Program, dimension: Dimension) -> bool:
    """Whether a training step has it of its data alone, which a user gives no other size."""
    roles = program.worked_out(Cutting).roles
    return program.trains and all(
        roles.get(axis.array.value_id) == "input" for axis in dimension.axes
    )


def _times(program: Program, ones: list[_Padded]) -> float:
    """How many times its elements the array takes that has the most padding."""
    array = max(ones, key=lambda one: one.padding).array
    return int(program.layout.size[array.row]) / logical_bytes(array.shape)


def _padding(ones: list[_Padded]) -> int:
    return sum(one.padding for one in ones)


def _source(program: Program, ones: list[_Padded]) -> str | None:
    """The line of the array with the most padding."""
    return program.lines.get(ones[0].array.value_id)


def _told(size: int, tile: int, less: int) -> str:
    does = "saves" if less >= 0 else "costs"
    return f"{size}, a multiple of {tile}, {does} {human_bytes(abs(less))}"


def _padding_at_peak(program: Program) -> int:
    rows = program.rows(
        "SELECT padding_bytes FROM module_memory WHERE module_id = $1 AND memory_space = $2",
        [program.layout.memory_space],
    )
    return int(sum(rows["padding_bytes"].drop_null().to_pylist()))


def _padded_at_peak(
    program: Program, resizing: Resizing
) -> Iterable[tuple[_Padded, tuple[int, ...]]]:
    """The padded arrays at the peak, each address once, with the atoms that are padded most."""
    layout = program.layout
    seen = set()
    for array in sorted(resizing.arrays, key=lambda each: -int(layout.size[each.row])):
        place = (int(layout.allocation[array.row]), int(layout.offset[array.row]))
        size = resizing.padding_bytes(array)
        if size <= 0 or place in seen or not _is_at_peak(program, array):
            continue
        seen.add(place)
        tile = array.shape.tiles[0] if array.shape.tiles else ()
        order = array.shape.minor_to_major or ()
        sizes = [
            (array.shape.dimensions[axis], each, array.words[axis])
            for axis, each in zip(order, reversed(tile), strict=False)
            if each != COMBINE and array.shape.dimensions[axis] % each
        ]
        if sizes:
            _, each, word = max(sizes, key=lambda one: (one[0] + -one[0] % one[1]) / one[0])
            yield _Padded(array, each, size), word


def _is_at_peak(program: Program, array: Array) -> bool:
    """Whether it takes memory at the peak: live, or in an allocation that is always there."""
    layout, row = program.layout, array.row
    if layout.start[row] <= layout.peak_time <= layout.end[row]:
        return True
    is_temp = layout.is_temp[layout.allocation_index == layout.allocation[row]]
    return not is_temp.any()
