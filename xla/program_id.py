"""Fingerprints of programs: equal for programs whose memory is the same.

Names, source lines, metadata, backend_config, the values of constants and what XLA only counts
(ids of allocations and values, channels) are left out.
"""

from collections.abc import Iterable, Mapping, Sequence

from .hashes import hash_of_texts
from .parts import Allocation, AssignedValue, BufferAssignment, LiveRange
from .program import EntryShape, Program


def skeleton_id(entry_shapes: Sequence[EntryShape] | None) -> int | None:
    """A fingerprint of the names and ranks of a program's arguments, in order.

    None if no argument has a name: such programs would be equal by chance.
    """
    arguments = [shape for shape in entry_shapes or () if not shape.is_output]
    if all(argument.argument_name is None for argument in arguments):
        return None
    texts = (f"{_rank(argument.shape)} {argument.argument_name or ''}" for argument in arguments)
    return hash_of_texts("skeleton", *texts)


def _rank(shape: str) -> int:
    """The number of dimensions: 2 for `bf16[8,128]{1,0}`; 0 for a scalar or a token."""
    dimensions = shape.partition("[")[2].partition("]")[0]
    return dimensions.count(",") + 1 if dimensions else 0


def program_id(
    program: Program,
    assignment: BufferAssignment | None = None,
    live_ranges: Mapping[int, LiveRange] | None = None,
) -> int | None:
    """A fingerprint of the instructions, allocations and values of a program, in 53 bits.

    Args:
        assignment: None if the source has none.
        live_ranges: by value_id; None if the source has none.

    Returns:
        None if computations call each other in a cycle, or a value or its allocation is missing.
    """
    computations = _computation_hashes(program)
    if len(computations) < len(program.computation_names):
        return None
    lines = [f"entry {computations[program.entry]}"]
    if assignment is not None:
        allocations = {
            allocation.allocation_index: _allocation_line(allocation)
            for allocation in assignment.allocations
        }
        values = [value for value in assignment.values if value.allocation_index is not None]
        if any(
            value.instruction not in program.row_of or value.allocation_index not in allocations
            for value in values
        ):
            return None
        lines += sorted(map(_allocation_line, assignment.allocations))
        lines += sorted(_value_lines(program, computations, allocations, values, live_ranges or {}))
    return hash_of_texts(*lines)


def _computation_hashes(program: Program) -> dict[int, int]:
    """A hash of each computation with all that it calls, without those on a cycle of calls."""
    hashes: dict[int, int] = {}
    for computation in program.callees_first():
        lines = [_instruction_line(program, row, hashes) for row in program.rows_of(computation)]
        hashes[computation] = hash_of_texts(*lines)
    return hashes


def _instruction_line(program: Program, row: int, hashes: Mapping[int, int]) -> str:
    """An instruction without names: opcode, shape, kernel, distances of operands, callees."""
    target = program.custom_call_target.get(row, "")
    distances = [row - operand for operand in program.operands[row]]
    line = f"{program.opcode[row]} {program.shape[row]} {target} {distances}"
    if row not in program.calls:
        return line
    # A stable sort: the computations of one attribute, such as branches, keep their order.
    calls = sorted(program.calls[row], key=lambda call: call[0])
    return f"{line} {[(attribute, hashes[callee]) for attribute, callee in calls]}"


def _allocation_line(allocation: Allocation) -> str:
    """The properties of an allocation, without its index and address."""
    return (
        f"allocation {allocation.memory_space} {allocation.size_bytes}"
        f" {allocation.parameter_number} {allocation.parameter_shape_index}"
        f" {allocation.maybe_live_out} {allocation.is_constant}"
        f" {allocation.is_thread_local} {allocation.is_temp}"
    )


def _value_lines(
    program: Program,
    computations: Mapping[int, int],
    allocations: Mapping[int, str],
    values: Iterable[AssignedValue],
    live_ranges: Mapping[int, LiveRange],
) -> Iterable[str]:
    """The definition, allocation, offset and live range of each value, without its id."""
    for value in values:
        row = program.row_of[value.instruction]
        computation = program.computation[row]
        live_range = live_ranges.get(value.value_id)
        times = f"{live_range.start_time} {live_range.end_time}" if live_range is not None else ""
        yield (
            f"value {row - program.first[computation]} {computations[computation]}"
            f" {value.shape_index} {value.memory_space} {value.offset_bytes} {value.size_bytes}"
            f" {times} {allocations[value.allocation_index or 0]}"
        )
