"""Residuals: the values of the forward pass that the backward pass reads."""

from collections import defaultdict
from typing import Final, NamedTuple

from .disjoint_sets import DisjointSets
from .named_program import COPIES
from .passes import BACKWARD, FORWARD, REMATERIALISED
from .program import NONE
from .reads import OwnedValues, Read

_LATER: Final = frozenset({BACKWARD, REMATERIALISED})
# These copy a residual or take a layer of it.
_COPIES_OR_SLICES: Final = COPIES | {"slice", "dynamic-slice"}
# These do so if they have no name, or the name of one of JAX's slices.
_MAY_MOVE: Final = _COPIES_OR_SLICES | {"custom-call", "fusion", "concatenate"}


class Residual(NamedTuple):
    """A tensor that the forward pass saves for the backward pass, in one memory space.

    Attributes:
        value: its largest value.
        layers: the number of results of the owner that are stacked in this value.
        reader: the named instruction of the backward pass that reads it first, or NONE.
    """

    value: int
    layers: int
    reader: int


def find_residuals(owned: OwnedValues) -> tuple[list[int], list[Residual]]:
    """Find the values that the forward pass computes and the backward pass is the last to read.

    An alias set is one tensor. Two sets with one owner are one residual if one set is a copy or
    a slice of the other. Each memory space has its own residuals.

    Returns:
        By value, the index of its residual, or NONE; and the residuals, the largest first.
    """
    alias_set, time = owned.analysis.liveness.alias_set, owned.analysis.schedule.time
    sizes = owned.values.bytes
    largest_first = sorted(range(len(alias_set)), key=lambda value: (-sizes[value], value))
    is_forward = _forward_values(owned, largest_first)
    reads = [read for read in owned.reads if is_forward[read.value]]
    reads.sort(key=lambda read: time[read.user])
    parts = _find_parts(owned)
    saved_sets = _saved_sets(owned, reads, parts)
    tensors = DisjointSets(len(alias_set))
    for part, source in parts:
        tensors.join(alias_set[part], alias_set[source])
    smallest = tensors.smallest_members()
    tensor_of = [smallest[number] for number in alias_set]
    first_readers = {
        tensor_of[read.value]: read.reader
        for read in reversed(reads)
        # A scan's slice of a stacked array only moves a layer.
        if read.pass_ in _LATER and not owned.named.op_name[read.reader].is_slice
    }
    residual_of, residuals = [NONE] * len(alias_set), list[Residual]()
    numbers: dict[tuple[int, int], int] = {}
    for value in largest_first:
        array, tensor = owned.values.array[value], tensor_of[value]
        if array is not None and is_forward[value] and alias_set[value] in saved_sets:
            number = numbers.setdefault((tensor, array.memory_space), len(residuals))
            residual_of[value] = number
            if number == len(residuals):
                layers = _count_layers(owned, value)
                residuals.append(Residual(value, layers, first_readers.get(tensor, NONE)))
    return residual_of, residuals


def _forward_values(owned: OwnedValues, largest_first: list[int]) -> list[bool]:
    """By value, whether it is an array with a time, in an alias set of the forward pass.

    The pass of an alias set is that of its largest value. Values inside of reducers have no time.
    """
    alias_set, time = owned.analysis.liveness.alias_set, owned.analysis.schedule.time
    largest = {alias_set[value]: value for value in reversed(largest_first)}
    return [
        array is not None and time[row] != NONE and owned.value_pass[largest[number]] == FORWARD
        for array, row, number in zip(owned.values.array, owned.values.row, alias_set, strict=True)
    ]


def _saved_sets(owned: OwnedValues, reads: list[Read], parts: list[tuple[int, int]]) -> set[int]:
    """The alias sets whose last read is in the backward pass.

    If the backward pass reads a copy or slice that it computes itself, it also reads the source.

    Args:
        reads: the reads of values of the forward pass, by time.
    """
    alias_set, time = owned.analysis.liveness.alias_set, owned.analysis.schedule.time
    last_reads = {alias_set[read.value]: read for read in reads}
    backward_times = [time[read.user] for read in owned.reads if read.pass_ == BACKWARD]
    first_backward = min((time for time in backward_times if time != NONE), default=len(time))
    sources: dict[int, list[int]] = defaultdict(list)
    for part, source in parts:
        if time[owned.values.row[part]] >= first_backward:
            sources[alias_set[part]].append(alias_set[source])
    worklist = [number for number, read in last_reads.items() if read.pass_ in _LATER]
    saved = set(worklist)
    while worklist:
        new = [source for source in sources.get(worklist.pop(), ()) if source not in saved]
        saved.update(new)
        worklist += new
    return saved


def _find_parts(owned: OwnedValues) -> list[tuple[int, int]]:
    """Pairs of a value and the value that it copies or slices, if both have one owner.

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
                    parts.append((value, source))
    return parts


def _count_layers(owned: OwnedValues, value: int) -> int:
    """The number of results of its owner that a value stacks; 1 if the sizes do not fit."""
    owner, elements = owned.owners.row[value], owned.values.elements[value]
    elements_of_result = owned.named.elements[owner] if owner != NONE else 0
    if elements_of_result == 0 or elements < elements_of_result:
        return 1
    layers, remainder = divmod(elements, elements_of_result)
    return 1 if remainder else layers
