"""An estimate of the buffer assignment of a dump that has none, from its HLO text alone.

XLA's heap simulator replays the schedule: a result may reuse the memory of an operand that ends
as the result starts, values that must alias share memory, and all others get an address of their
own. A peak needs only which values share an address, so that the offsets are not XLA's.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
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


def _find_addresses(
    analysis: Analysis, sizes: ValueSizes, sharing: Sharing, temps: Sequence[int]
) -> dict[int, int]:
    """By temp value, the first of the values at its address.

    In the order in which values start and end, each reuses the address of the first operand that
    ends as the value starts and is not reused yet; otherwise that of its alias set.
    """
    flow, liveness = analysis.flow, analysis.liveness
    start, alias_set, space = liveness.start, liveness.alias_set, sizes.memory_space
    n_values = Counter(alias_set)
    arrays = {value for value in temps if flow.slots.is_leaf(flow.defined_at[value])}
    addresses: dict[int, int] = {}
    address_of_set: dict[int, int] = {}
    reused: set[int] = set()
    ending: dict[int, list[tuple[int, int, int]]] = {}
    for value in sorted(temps, key=lambda value: (start[value], liveness.end[value])):
        row = flow.row[value]
        addresses[value] = address_of_set.setdefault(alias_set[value], value)
        if value not in arrays or analysis.program.opcode[row] == "parameter":
            continue
        if row not in ending:
            ending[row] = _ending_operands(analysis, row, start[value])
        for number, slot, operand in ending[row]:
            if operand not in arrays or operand in reused or space[operand] != space[value]:
                continue
            # XLA's heap simulator reuses no address of values that must alias others. In VMEM XLA
            # for TPU looks at the operand itself, elsewhere at the value's definition.
            is_defined = flow.defined_at[operand] == slot
            is_unaliased = n_values[alias_set[value]] == n_values[alias_set[operand]] == 1
            is_in_vmem = sharing.platform == TPU and space[value] == _VMEM
            if ((is_defined and is_unaliased) or is_in_vmem) and sharing.can_share(
                row, number, slot, flow.defined_at[value]
            ):
                reused.add(operand)
                addresses[value] = addresses.get(operand, operand)
                # Later values of the set get the address of its first one.
                if address_of_set[alias_set[value]] == value:
                    address_of_set[alias_set[value]] = addresses[value]
                break
    return addresses


def _ending_operands(analysis: Analysis, row: int, time: int) -> list[tuple[int, int, int]]:
    """The operands whose value ends at a time, each once: operand number, slot and value."""
    flow, end = analysis.flow, analysis.liveness.end
    ending: dict[int, tuple[int, int, int]] = {}
    for number, operand in enumerate(analysis.program.operands[row]):
        slot = flow.slots.start[operand]
        value = flow.value[slot]
        if value != NONE and end[value] == time:
            ending.setdefault(slot, (number, slot, value))
    return list(ending.values())


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


def _temp_offsets(first_values: Mapping[int, int], sizes: ValueSizes) -> dict[int, int]:
    """By temp value, the offset of its address: addresses follow each other within a space.

    Args:
        first_values: by temp value, the first of the values that share its address.
    """
    # Values that share an address may be in two spaces: then it is an address of each.
    largest: dict[tuple[int, int], int] = {}
    for value, first_value in first_values.items():
        address = (sizes.memory_space[value], first_value)
        largest[address] = max(largest.get(address, 0), sizes.size_bytes[value])
    offset_of_address: dict[tuple[int, int], int] = {}
    next_offset: defaultdict[int, int] = defaultdict(int)
    for address in sorted(largest):
        offset_of_address[address] = next_offset[address[0]]
        next_offset[address[0]] += largest[address]
    return {
        value: offset_of_address[sizes.memory_space[value], first_value]
        for value, first_value in first_values.items()
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
    temps = sorted(v for s in sets.values() if s.kind is Kind.TEMP for v in s.values)
    offsets = _temp_offsets(_find_addresses(analysis, sizes, sharing, temps), sizes)
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
    """The allocation that a set owns, which may be that of an argument of the program."""
    program, flow = analysis.program, analysis.flow
    allocation = _allocation(index, space, alias_set.size_bytes, alias_set.kind)
    is_live_out = alias_set.is_live_out and alias_set.kind is not Kind.CONSTANT
    allocation = allocation._replace(maybe_live_out=is_live_out)
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
    """An allocation that is not that of an argument, and not live-out."""
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
