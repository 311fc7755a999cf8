"""Residuals: the values of the forward pass that the backward pass reads."""

from collections import defaultdict
from collections.abc import Iterable
from typing import Final, NamedTuple

from .disjoint_sets import DisjointSets
from .named_program import COPIES
from .passes import BACKWARD, FORWARD, REMATERIALISED
from .program import NONE
from .reads import OwnedValues, Read

_LATER: Final = frozenset({BACKWARD, REMATERIALISED})
# These copy a residual or take a layer of it.
_COPIES_OR_SLICES: Final = COPIES | {"slice", "dynamic-slice"}
# Fusions and the like do so without a name, or if JAX names them so.
_MAY_MOVE: Final = _COPIES_OR_SLICES | {"custom-call", "fusion", "concatenate"}


class Residual(NamedTuple):
    """A tensor that the forward pass saves for the backward pass, in one memory space.

    Attributes:
        value: its largest value.
        layers: the number of results of the owner that are stacked in this value.
        reader: the first named instruction of the backward pass that reads it, or NONE.
    """

    value: int
    layers: int
    reader: int


class _Part(NamedTuple):
    """A value that is a copy or a slice of a source value with the same owner."""

    part: int
    source: int


def find_residuals(owned: OwnedValues) -> tuple[list[int], list[Residual]]:
    """Find the values that the forward pass computes and the backward pass is the last to read.

    An alias set is one tensor. Two sets with one owner are one residual if one set is a copy or
    a slice of the other. Each memory space has its own residuals.

    Returns:
        By value, the index of its residual, or NONE; and the residuals, the largest first.
    """
    alias_set, sizes = owned.analysis.liveness.alias_set, owned.values.bytes
    is_forward = _forward_values(owned)
    reads = [read for read in owned.reads if is_forward[read.value]]
    parts = _find_parts(owned)
    saved_sets = _saved_sets(owned, reads, parts)
    tensor_of = _connect_sets(alias_set, parts)
    # By tensor and memory space.
    groups: dict[tuple[int, int], list[int]] = defaultdict(list)
    for value, array in enumerate(owned.values.array):
        if array is not None and is_forward[value] and alias_set[value] in saved_sets:
            groups[tensor_of[value], array.memory_space].append(value)
    largest_first = sorted(
        # Of equally large values, the first one is the residual's.
        (min((-sizes[value], value) for value in group), tensor, group)
        for (tensor, _), group in groups.items()
    )
    readers = _first_readers(owned, reads, tensor_of)
    residual_of, residuals = [NONE] * len(alias_set), list[Residual]()
    for (_, largest), tensor, group in largest_first:
        for value in group:
            residual_of[value] = len(residuals)
        layers = _count_layers(owned, largest)
        residuals.append(Residual(largest, layers, readers.get(tensor, NONE)))
    return residual_of, residuals


def _forward_values(owned: OwnedValues) -> list[bool]:
    """By value, whether it is an array with a time, in an alias set of the forward pass.

    The pass of an alias set is that of its largest value. Values inside of reducers have no time.
    """
    alias_set, time = owned.analysis.liveness.alias_set, owned.analysis.schedule.time
    largest, sizes = dict[int, int](), owned.values.bytes
    for value, number in enumerate(alias_set):
        if number not in largest or sizes[value] > sizes[largest[number]]:
            largest[number] = value
    return [
        array is not None and time[row] != NONE and owned.value_pass[largest[number]] == FORWARD
        for array, row, number in zip(owned.values.array, owned.values.row, alias_set, strict=True)
    ]


def _saved_sets(owned: OwnedValues, reads: list[Read], parts: list[_Part]) -> set[int]:
    """The alias sets whose last read is in the backward pass.

    If the backward pass reads a copy or slice that it makes itself, it also reads the source.

    Args:
        reads: the reads of values of the forward pass.
    """
    alias_set, time = owned.analysis.liveness.alias_set, owned.analysis.schedule.time
    last_reads: dict[int, Read] = {}
    for read in reads:
        number = alias_set[read.value]
        if number not in last_reads or time[read.user] >= time[last_reads[number].user]:
            last_reads[number] = read
    backward_times = [time[read.user] for read in owned.reads if read.pass_ == BACKWARD]
    first_backward = min((time for time in backward_times if time != NONE), default=len(time))
    sources: dict[int, list[int]] = defaultdict(list)
    for part, source in parts:
        if time[owned.values.row[part]] >= first_backward:
            sources[alias_set[part]].append(alias_set[source])
    stack = [number for number, read in last_reads.items() if read.pass_ in _LATER]
    saved = set(stack)
    while stack:
        new = [source for source in sources.get(stack.pop(), ()) if source not in saved]
        saved.update(new)
        stack += new
    return saved


def _find_parts(owned: OwnedValues) -> list[_Part]:
    """The values that are copies or slices of others with the same owner.

    A nameless fusion or custom call with the owner of its operand only moves the operand.
    """
    named, program = owned.named, owned.named.program
    parts = []
    for value, row in enumerate(named.flow.row):
        opcode, owner = program.opcode[row], owned.owners.row[value]
        if opcode not in _MAY_MOVE or owned.values.array[value] is None or owner == NONE:
            continue
        op_name = named.op_name[row]
        if opcode in _COPIES_OR_SLICES or op_name.is_slice or not op_name.has_path:
            for operand in program.operands[row]:
                source = named.value_of(operand)
                if source != NONE and owned.owners.row[source] == owner:
                    parts.append(_Part(value, source))
    return parts


def _connect_sets(alias_set: list[int], parts: Iterable[_Part]) -> list[int]:
    """By value, the smallest number of the alias sets that parts connect with its own."""
    sets = DisjointSets(len(alias_set))
    for part, source in parts:
        sets.join(alias_set[part], alias_set[source])
    smallest = sets.smallest_members()
    return [smallest[number] for number in alias_set]


def _first_readers(owned: OwnedValues, reads: list[Read], tensor_of: list[int]) -> dict[int, int]:
    """By tensor, the first instruction of the backward pass that reads it.

    A slice that a scan takes out of a stack does not count, because it only moves a layer. Of
    several reads at one time, the last of the last alias set counts.
    """
    alias_set, time = owned.analysis.liveness.alias_set, owned.analysis.schedule.time
    first: dict[int, Read] = {}
    for read in reads:
        if read.pass_ in _LATER and not owned.named.op_name[read.reader].is_slice:
            best = first.setdefault(tensor_of[read.value], read)
            if (time[read.user], -alias_set[read.value]) <= (
                time[best.user],
                -alias_set[best.value],
            ):
                first[tensor_of[read.value]] = read
    return {number: read.reader for number, read in first.items()}


def _count_layers(owned: OwnedValues, value: int) -> int:
    """The number of results of its owner that a value stacks; 1 if the sizes do not fit."""
    owner, elements = owned.owners.row[value], owned.values.elements[value]
    elements_of_result = owned.named.elements[owner] if owner != NONE else 0
    if elements_of_result == 0 or elements < elements_of_result:
        return 1
    layers, remainder = divmod(elements, elements_of_result)
    return 1 if remainder else layers
