"""An estimate of the buffer assignment of a dump that has none, from its HLO text alone.

XLA's heap simulator replays the schedule: a result may reuse the memory of an operand that ends
as the result starts, values that must alias share memory, and all others get an address of their
own. A peak needs only which values share an address, so that the offsets are not XLA's.
"""

from collections import defaultdict
from dataclasses import replace
from functools import cache
from typing import Final

from .analysis import Analysis
from .parts import Allocation, AssignedValue, BufferAssignment
from .placement import AliasSet, Kind, place_values
from .program import NONE
from .shapes import TupleShape, logical_bytes
from .sharing import Sharing
from .sizes import TPU, ValueSizes, value_sizes
from .slots import ShapeTree

_VMEM: Final = 1


class _AddressSharing:
    """Decides which temp values share an address."""

    def __init__(
        self,
        analysis: Analysis,
        sizes: ValueSizes,
        sets: dict[int, AliasSet],
        sharing: Sharing,
    ) -> None:
        self._analysis, self._sizes, self._sets, self._sharing = analysis, sizes, sets, sharing
        self._temps = sorted(v for s in sets.values() if s.kind is Kind.TEMP for v in s.values)
        flow = analysis.flow
        self._arrays = {v for v in self._temps if flow.slots.is_leaf(flow.defined_at[v])}
        self._candidates: dict[int, list[tuple[int, int, int]]] = {}

    def first_values(self) -> dict[int, int]:
        """By temp value, ascending, the first of the values at its address.

        In the order in which values start and end, each reuses the address of the first operand
        that ends then and is not reused yet; otherwise that of its alias set.
        """
        start, end = self._analysis.liveness.start, self._analysis.liveness.end
        pointer = list(range(len(start)))
        first_of_set: dict[int, int] = {}
        for value in sorted(self._temps, key=start.__getitem__):
            number = self._analysis.liveness.alias_set[value]
            pointer[value] = first_of_set.setdefault(number, value)
        reused: set[int] = set()
        for value in sorted(self._temps, key=lambda value: (start[value], end[value])):
            operand_value = self._operand_to_reuse(value, reused)
            if operand_value != NONE:
                reused.add(operand_value)
                pointer[value] = operand_value
        resolved = _resolve_pointers(pointer)
        return {value: resolved[value] for value in self._temps}

    def _operand_to_reuse(self, value: int, reused: set[int]) -> int:
        """The value of the first operand that this value may be written over, or NONE."""
        flow = self._analysis.flow
        row, slot = flow.row[value], flow.defined_at[value]
        if value not in self._arrays or self._analysis.program.opcode[row] == "parameter":
            return NONE
        if row not in self._candidates:
            self._candidates[row] = self._ending_operands(row, self._analysis.liveness.start[value])
        space, is_unaliased = self._sizes.memory_space, self._is_unaliased(value)
        for number, operand_slot, operand_value in self._candidates[row]:
            if operand_value in reused or space[operand_value] != space[value]:
                continue
            # XLA's heap leaves values alone that must alias others. In VMEM a TPU looks at the
            # operand itself, elsewhere at the instruction that defines its value.
            is_defined = flow.defined_at[operand_value] == operand_slot
            is_plain = is_defined and is_unaliased and self._is_unaliased(operand_value)
            is_in_vmem = self._sharing.platform == TPU and space[value] == _VMEM
            if (is_plain or is_in_vmem) and self._sharing.can_share(
                row, number, operand_slot, slot
            ):
                return operand_value
        return NONE

    def _is_unaliased(self, value: int) -> bool:
        """Whether a value is the only one of its alias set."""
        return len(self._sets[self._analysis.liveness.alias_set[value]].values) == 1

    def _ending_operands(self, row: int, time: int) -> list[tuple[int, int, int]]:
        """The temp arrays among the operands that end at a time, each once.

        Returns the operand's number, slot and value.
        """
        flow, end = self._analysis.flow, self._analysis.liveness.end
        ending: dict[int, tuple[int, int, int]] = {}
        for number, operand in enumerate(self._analysis.program.operands[row]):
            slot = flow.slots.start[operand]
            value = flow.value[slot]
            if value in self._arrays and end[value] == time:
                ending.setdefault(slot, (number, slot, value))
        return list(ending.values())


def _resolve_pointers(pointer: list[int]) -> list[int]:
    """The end of the chain of pointers from each number; for a cycle, one of its members."""
    resolved = list(pointer)
    for value in range(len(pointer)):
        path: list[int] = []
        end = value
        while resolved[end] != end and len(path) <= len(pointer):
            path.append(end)
            end = resolved[end]
        for other in path:
            resolved[other] = end
    return resolved


def with_heap_ends(analysis: Analysis, platform: str) -> Analysis:
    """The analysis with the ends of live ranges as XLA's heap counts them.

    The operands of a TPU's ConcatBitcast are within its result, so that they end one earlier.
    """
    if platform != TPU:
        return analysis
    targets, flow = analysis.program.custom_call_target, analysis.flow
    ends = list(analysis.liveness.end)
    inner = {
        value
        for row, value in zip(flow.use_row, flow.use_value, strict=True)
        if targets.get(row) == "ConcatBitcast"
    }
    for value in inner:
        ends[value] -= 1
    return replace(analysis, liveness=replace(analysis.liveness, end=ends))


def _temp_offsets(first_values: dict[int, int], sizes: ValueSizes) -> dict[int, int]:
    """By temp value, the offset of its address: addresses follow each other within a space.

    Args:
        first_values: by temp value, the first of the values at its address.
    """
    # Values that share an address may be in two spaces: then it is an address of each.
    largest: dict[tuple[int, int], int] = {}
    for value, first in first_values.items():
        address = (sizes.memory_space[value], first)
        largest[address] = max(largest.get(address, 0), sizes.size_bytes[value])
    offset_of_address: dict[tuple[int, int], int] = {}
    next_offset: defaultdict[int, int] = defaultdict(int)
    for address in sorted(largest):
        offset_of_address[address] = next_offset[address[0]]
        next_offset[address[0]] += largest[address]
    return {
        value: offset_of_address[sizes.memory_space[value], first]
        for value, first in first_values.items()
    }


def estimate_assignment(analysis: Analysis, platform: str) -> BufferAssignment:
    """An estimate of the buffer assignment on cpu, gpu or tpu; value ids are those of the dataflow.

    Values that share an address have one offset. Temp offsets follow the order of the text and
    are not XLA's, so that the size of a temp allocation means nothing. Values of regions belong to
    the computations within an instruction, and not to the program: they are left out.

    Raises DumpError for an unbounded shape.
    """
    program, flow = analysis.program, analysis.flow
    sizes, sharing = value_sizes(flow, platform), Sharing(analysis, platform)
    sets = place_values(analysis, sizes, sharing)
    first_values = _AddressSharing(analysis, sizes, sets, sharing).first_values()
    offsets = _temp_offsets(first_values, sizes)
    temp_bytes: dict[int, int] = {}
    for value, offset in offsets.items():
        space, end = sizes.memory_space[value], offset + sizes.size_bytes[value]
        temp_bytes[space] = max(temp_bytes.get(space, 0), end)
    allocations: list[Allocation] = []
    index_of_set: dict[int, int] = {}
    for alias_set in sets.values():
        if alias_set.allocation == alias_set.number:
            index = index_of_set[alias_set.number] = len(allocations)
            space = sizes.memory_space[alias_set.number]
            allocations.append(_fixed_allocation(analysis, alias_set, index, space))
    index_of_temp: dict[int, int] = {}
    for space, size in sorted(temp_bytes.items()):
        index = index_of_temp[space] = len(allocations)
        allocations.append(_allocation(index, space, size, Kind.TEMP))
    values: list[AssignedValue] = []
    describe, index_texts = cache(_describe_part), flow.slots.index_texts()
    for value, (row, slot) in enumerate(zip(flow.row, flow.defined_at, strict=True)):
        alias_set = sets[analysis.liveness.alias_set[value]]
        if alias_set.kind is Kind.THREAD_LOCAL:
            continue
        space, size = sizes.memory_space[value], sizes.size_bytes[value]
        is_temp = alias_set.kind is Kind.TEMP
        index = index_of_temp[space] if is_temp else index_of_set[alias_set.allocation]
        shape, element_type, logical = describe(flow.slots.tree(row), flow.slots.part(slot))
        values.append(
            AssignedValue(
                value,
                program.names[row],
                index_texts[slot],
                flow.is_phi[value],
                space,
                index,
                offsets.get(value, 0),
                size,
                size if logical is None else logical,
                shape,
                element_type,
            )
        )
    return BufferAssignment(allocations, values, origin="estimated")


def _fixed_allocation(
    analysis: Analysis, alias_set: AliasSet, index: int, space: int
) -> Allocation:
    """The allocation that is made for a set, which may be for an argument of the program."""
    program, flow = analysis.program, analysis.flow
    allocation = _allocation(index, space, alias_set.size_bytes, alias_set.kind)
    allocation = allocation._replace(
        maybe_live_out=alias_set.is_live_out and alias_set.kind is not Kind.CONSTANT
    )
    for value in alias_set.values:
        row, slot = flow.row[value], flow.defined_at[value]
        if program.opcode[row] == "parameter" and program.is_in_entry(row):
            shape = str(flow.slots.tree(row).shapes[flow.slots.part(slot)])
            return allocation._replace(
                parameter_number=program.parameter_number[row],
                parameter_shape_index=flow.slots.index_text(slot),
                shape=shape.partition("{")[0],
            )
    return allocation


def _allocation(index: int, space: int, size: int, kind: Kind) -> Allocation:
    """An allocation of the program that is for no argument and not live-out."""
    return Allocation(
        allocation_index=index,
        memory_space=space,
        size_bytes=size,
        is_parameter=kind is Kind.PARAMETER,
        parameter_number=None,
        parameter_shape_index=None,
        is_output=False,
        is_constant=kind is Kind.CONSTANT,
        is_thread_local=False,
        maybe_live_out=False,
        is_temp=kind is Kind.TEMP,
        shape=None,
        address=None,
    )


def _describe_part(tree: ShapeTree, part: int) -> tuple[str, str | None, int | None]:
    """Text, element type and bytes without padding of a part; a tuple has only a text."""
    shape = tree.shapes[part]
    if isinstance(shape, TupleShape):
        return str(shape), None, None
    return str(shape), shape.element_type, logical_bytes(shape)
