"""Reader of a BufferAssignmentProto: the allocations and their values."""

from typing import Any

from ...xla.analysis import Analysis
from ...xla.errors import LARGEST_SIZE, DumpError
from ...xla.parts import Allocation, AssignedValue, BufferAssignment
from ...xla.program import NONE, Program, ShapeIndex, index_text
from ...xla.shapes import Shape, TupleShape, array_size, parse_shape
from .proto_schema import checked_number
from .proto_shapes import shape_without_layout

_OWNER = "the buffer assignment"


def read_assignment(
    message: Any, program: Program, row_of_id: dict[int, int]
) -> BufferAssignment | None:
    """The allocations and values of a BufferAssignmentProto; None for an empty one.

    The allocation of the result is not marked: see `mark_output`.

    Args:
        row_of_id: the rows of the instructions by their ids in the file.

    Raises DumpError.
    """
    if not message.buffer_allocations:
        return None
    buffers = _logical_buffers(message, program, row_of_id)
    argument_shapes = {
        program.parameter_number[row]: program.shape[row]
        for row in program.rows_of(program.entry)
        if program.opcode[row] == "parameter"
    }
    allocations: dict[int, Allocation] = {}
    values: list[AssignedValue] = []
    for allocation in message.buffer_allocations:
        allocation_index = checked_number(allocation, "index", _OWNER)
        if allocation_index in allocations:
            raise _wrong(f"two allocations have the index {allocation_index}")
        allocations[allocation_index] = _allocation(allocation, argument_shapes)
        for assigned in allocation.assigned:
            buffer = buffers.get(assigned.logical_buffer_id)
            if buffer is None:
                raise _wrong(
                    f"allocation {allocation_index} assigns a value that is not in the file"
                )
            size = checked_number(assigned, "size", _OWNER, LARGEST_SIZE)
            values.append(
                buffer._replace(
                    allocation_index=allocation_index,
                    offset_bytes=checked_number(assigned, "offset", _OWNER, LARGEST_SIZE),
                    size_bytes=size,
                    logical_bytes=size if buffer.logical_bytes is None else buffer.logical_bytes,
                )
            )
    return BufferAssignment(list(allocations.values()), values)


def mark_output(assignment: BufferAssignment, analysis: Analysis) -> None:
    """Mark the allocation of the program's result, which a BufferAssignmentProto does not state."""
    program, flow = analysis.program, analysis.flow
    root = program.root[program.entry]
    value = flow.value_of(root)
    if value == NONE:
        return
    slot = flow.defined_at[value]
    definition = program.names[flow.row[value]], flow.slots.index_text(slot)
    outputs = {
        assigned.allocation_index
        for assigned in assignment.values
        if (assigned.instruction, assigned.shape_index) == definition
    }
    for number, allocation in enumerate(assignment.allocations):
        if allocation.allocation_index in outputs:
            shape = allocation.shape or _text_without_layout(program.shape[root])
            assignment.allocations[number] = allocation._replace(is_output=True, shape=shape)


def _logical_buffers(
    message: Any, program: Program, row_of_id: dict[int, int]
) -> dict[int, AssignedValue]:
    """The values by id, not assigned yet; logical_bytes is None if unknown. Raises DumpError."""
    merging_rows = _merging_rows(program)
    index_texts: dict[ShapeIndex, str] = {}
    shapes: dict[tuple[str, ShapeIndex], tuple[str, str | None, int | None]] = {}
    buffers: dict[int, AssignedValue] = {}
    for buffer in message.logical_buffers:
        id_ = checked_number(buffer, "id", _OWNER)
        if id_ in buffers:
            raise _wrong(f"two logical buffers have the id {id_}")
        if not buffer.HasField("defined_at"):
            raise _wrong(f"logical buffer {id_} lacks the instruction that defines it")
        location = buffer.defined_at
        row = row_of_id.get(location.instruction_id, NONE)
        # Older versions name the instruction. An id of 0 is not written: it is one without a name.
        if not location.instruction_id and location.instruction_name:
            row = program.row_of.get(location.instruction_name.decode(), NONE)
        if row == NONE:
            raise _wrong(
                f"logical buffer {id_} is defined by an instruction that is not in the file"
            )
        index = tuple(location.shape_index)
        if index not in index_texts:
            index_texts[index] = index_text(index)
        key = program.shape[row], index
        if key not in shapes:
            shapes[key] = _describe_element(*key, id_)
        color = checked_number(buffer, "color", _OWNER)
        shape, element_type, logical_bytes = shapes[key]
        buffers[id_] = AssignedValue(
            id_,
            program.names[row],
            index_texts[index],
            row in merging_rows,
            color,
            shape=shape,
            element_type=element_type,
            logical_bytes=logical_bytes,
        )
    return buffers


def _merging_rows(program: Program) -> set[int]:
    """The instructions at which a value merges several values.

    These are loops, conditionals, and the parameters of a loop's body and condition.
    """
    rows: set[int] = set()
    looped: set[int] = set()
    for row, calls in program.calls.items():
        if program.opcode[row] in ("while", "conditional"):
            rows.add(row)
        if program.opcode[row] == "while":
            looped.update([computation for _, computation in calls])
    for computation in looped:
        for row in program.rows_of(computation):
            if program.opcode[row] == "parameter":
                rows.add(row)
    return rows


def _describe_element(
    shape_text: str, index: ShapeIndex, id_: int
) -> tuple[str, str | None, int | None]:
    """The text of the element at an index of a shape, and its element type and logical bytes.

    Raises DumpError; for a sub-shape that does not exist it names the value.
    """
    shape = _parse(shape_text)
    for number in index:
        if not isinstance(shape, TupleShape) or not 0 <= number < len(shape.elements):
            raise _wrong(f"value {id_} names a sub-shape that its instruction does not have")
        shape = shape.elements[number]
    text = str(shape)
    try:
        size = array_size(text)
    except ValueError as error:
        raise _wrong(f"a value has a wrong shape, {error}") from None
    return text, size.element_type, size.logical_bytes


def _allocation(message: Any, argument_shapes: dict[int, str]) -> Allocation:
    """A row of `allocations`. Its shape is that of the argument in it; others have none yet."""
    shape = None
    number = checked_number(message, "parameter_number", _OWNER)
    is_parameter = bool(message.is_entry_computation_parameter)
    if is_parameter:
        if number not in argument_shapes:
            raise _wrong(f"an allocation holds parameter {number}, which is not in the module")
        shape = _text_without_layout(argument_shapes[number])
    is_constant, is_thread_local = bool(message.is_constant), bool(message.is_thread_local)
    maybe_live_out = bool(message.maybe_live_out)
    return Allocation(
        allocation_index=message.index,
        memory_space=checked_number(message, "color", _OWNER),
        size_bytes=checked_number(message, "size", _OWNER, LARGEST_SIZE),
        is_parameter=is_parameter,
        parameter_number=number if is_parameter else None,
        parameter_shape_index=index_text(message.parameter_shape_index) if is_parameter else None,
        is_output=False,
        is_constant=is_constant,
        is_thread_local=is_thread_local,
        maybe_live_out=maybe_live_out,
        is_temp=not (is_parameter or is_constant or is_thread_local or maybe_live_out),
        shape=shape,
        address=None,
    )


def _text_without_layout(shape_text: str) -> str:
    """The text of a shape without its layouts, as XLA prints it for allocations."""
    return str(shape_without_layout(_parse(shape_text)))


def _parse(shape_text: str) -> Shape:
    try:
        return parse_shape(shape_text)
    except ValueError as error:
        raise _wrong(f"a value has a wrong shape, {error}") from None


def _wrong(complaint: str) -> DumpError:
    return DumpError(f"in {_OWNER} {complaint}: dump the program again")
