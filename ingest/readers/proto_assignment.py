"""Reader of a BufferAssignmentProto: the allocations and their values."""

from typing import Any, NamedTuple

from ...xla.analysis import Analysis
from ...xla.errors import LARGEST_ID, LARGEST_SIZE, DumpError
from ...xla.parts import Allocation, AssignedValue, BufferAssignment
from ...xla.program import NONE, Program, ShapeIndex
from ...xla.shapes import Shape, TupleShape, has_size, logical_bytes, parse_shape
from .proto_attributes import index_text
from .proto_shapes import shape_without_layout


class _LogicalBuffer(NamedTuple):
    """A value: the part of an instruction's result that defines it, and its memory space."""

    row: int
    shape_index: ShapeIndex
    color: int


def read_assignment(
    message: Any, program: Program, row_of_id: dict[int, int]
) -> BufferAssignment | None:
    """The allocations and values of a BufferAssignmentProto; None for an empty one.

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
    allocations: list[Allocation] = []
    values = _ValueReader(program, buffers)
    indices: set[int] = set()
    for allocation in message.buffer_allocations:
        index = _checked(allocation, "index", LARGEST_ID)
        if index in indices:
            raise _wrong(f"two allocations have the index {index}")
        indices.add(index)
        for assigned in allocation.assigned:
            values.add(assigned, index)
        allocations.append(_allocation(allocation, index, argument_shapes))
    return BufferAssignment(allocations, values.values)


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
            shape = allocation.shape or _shape_text(program.shape[root])
            assignment.allocations[number] = allocation._replace(is_output=True, shape=shape)


def _logical_buffers(
    message: Any, program: Program, row_of_id: dict[int, int]
) -> dict[int, _LogicalBuffer]:
    """The logical buffers by id. Raises DumpError."""
    buffers: dict[int, _LogicalBuffer] = {}
    for buffer in message.logical_buffers:
        id_ = _checked(buffer, "id", LARGEST_ID)
        if id_ in buffers:
            raise _wrong(f"two logical buffers have the id {id_}")
        if not buffer.HasField("defined_at"):
            raise _wrong(f"logical buffer {id_} does not say where it is defined")
        location = buffer.defined_at
        row = row_of_id.get(location.instruction_id, NONE)
        # Older versions name the instruction. An id of 0 is not written: it is one without a name.
        if not location.instruction_id and location.instruction_name:
            row = program.row_of.get(location.instruction_name.decode(), NONE)
        if row == NONE:
            raise _wrong(
                f"logical buffer {id_} is defined by an instruction that is not in the file"
            )
        color = _checked(buffer, "color", LARGEST_ID)
        buffers[id_] = _LogicalBuffer(row, tuple(location.shape_index), color)
    return buffers


def _allocation(message: Any, index: int, argument_shapes: dict[int, str]) -> Allocation:
    """A row of `allocations`. Its shape is that of the argument in it; others have none yet."""
    shape = None
    number = _checked(message, "parameter_number", LARGEST_ID)
    is_parameter = bool(message.is_entry_computation_parameter)
    if is_parameter:
        if number not in argument_shapes:
            raise _wrong(f"an allocation holds parameter {number}, which is not in the module")
        shape = _shape_text(argument_shapes[number])
    is_constant, is_thread_local = bool(message.is_constant), bool(message.is_thread_local)
    maybe_live_out = bool(message.maybe_live_out)
    return Allocation(
        allocation_index=index,
        memory_space=_checked(message, "color", LARGEST_ID),
        size_bytes=_checked(message, "size", LARGEST_SIZE),
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


class _ArrayText(NamedTuple):
    """A part of a shape: its text, and the element type and bytes if it is an array."""

    shape: str
    element_type: str | None
    logical_bytes: int | None


class _ValueReader:
    """Collects the values of all allocations; parts of equal shapes are printed once."""

    def __init__(self, program: Program, buffers: dict[int, _LogicalBuffer]) -> None:
        self.program = program
        self.buffers = buffers
        self.merging_rows = _merging_rows(program)
        self.texts: dict[tuple[str, ShapeIndex], _ArrayText] = {}
        self.index_texts: dict[ShapeIndex, str] = {}
        self.values: list[AssignedValue] = []

    def add(self, assigned: Any, allocation_index: int) -> None:
        """Append one assigned value. Raises DumpError."""
        program = self.program
        id_ = assigned.logical_buffer_id
        buffer = self.buffers.get(id_)
        if buffer is None:
            raise _wrong(f"allocation {allocation_index} assigns a value that is not in the file")
        row, index, color = buffer
        size = _checked(assigned, "size", LARGEST_SIZE)
        text = self._array_text(program.shape[row], index, id_)
        self.values.append(
            AssignedValue(
                value_id=id_,
                instruction=program.names[row],
                shape_index=self._index_text(index),
                is_phi=row in self.merging_rows,
                memory_space=color,
                allocation_index=allocation_index,
                offset_bytes=_checked(assigned, "offset", LARGEST_SIZE),
                size_bytes=size,
                logical_bytes=size if text.logical_bytes is None else text.logical_bytes,
                shape=text.shape,
                element_type=text.element_type,
            )
        )

    def _index_text(self, index: ShapeIndex) -> str:
        if index not in self.index_texts:
            self.index_texts[index] = index_text(index)
        return self.index_texts[index]

    def _array_text(self, shape_text: str, index: ShapeIndex, id_: int) -> _ArrayText:
        """The part of a shape at an index. Raises DumpError, which names the value."""
        key = (shape_text, index)
        text = self.texts.get(key)
        if text is None:
            shape = _parsed(shape_text)
            for number in index:
                if not isinstance(shape, TupleShape) or not 0 <= number < len(shape.elements):
                    raise _wrong(
                        f"value {id_} names a sub-shape that its instruction does not have"
                    )
                shape = shape.elements[number]
            text = self.texts[key] = _describe(shape)
        return text


def _describe(shape: Shape) -> _ArrayText:
    if isinstance(shape, TupleShape):
        return _ArrayText(str(shape), None, None)
    size = logical_bytes(shape) if has_size(shape) else None
    return _ArrayText(str(shape), shape.element_type, size)


def _shape_text(text: str) -> str:
    """The text of a shape without its layouts, as XLA prints it for allocations."""
    return str(shape_without_layout(_parsed(text)))


def _parsed(text: str) -> Shape:
    try:
        return parse_shape(text)
    except ValueError as error:
        raise _wrong(f"a value has a wrong shape, {error}") from None


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


def _checked(message: Any, field: str, limit: int) -> int:
    """A number that is neither negative nor over the limit. Raises DumpError."""
    number: int = getattr(message, field)
    if not 0 <= number <= limit:
        raise _wrong(f"the {field} {number} is negative or over {limit}")
    return number


def _wrong(complaint: str) -> DumpError:
    return DumpError(f"in the buffer assignment {complaint}: dump the program again")
