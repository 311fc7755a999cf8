"""Reader of a BufferAssignmentProto: the allocations and their values."""

import re
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...xla.errors import DumpError
from ...xla.limits import LARGEST_ID, LARGEST_SIZE
from ...xla.parts import BufferAssignment
from ...xla.shapes import shape_columns
from .lines import Mask, Positions
from .output_value import output_value
from .proto_instructions import PARAMETER, ProtoInstructions, found_in
from .wire import Messages, read_messages
from .wire_bytes import Wire

# Fields of BufferAssignmentProto.
_BUFFERS, _ALLOCATIONS = 1, 3
# Fields of LogicalBufferProto and of its Location.
_ID, _DEFINED_AT, _COLOR = 1, 3, 4
_AT_NAME, _AT_INDEX, _AT_ID = 2, 3, 4
# Fields of BufferAllocationProto and of Assigned.
_INDEX, _SIZE, _THREAD_LOCAL, _IS_PARAMETER, _NUMBER, _LIVE_OUT, _SPACE = 1, 2, 3, 5, 6, 7, 8
_ASSIGNED, _PARAMETER_INDEX, _IS_CONSTANT = 9, 10, 12
_NUMBERS = (_INDEX, _SIZE, _THREAD_LOCAL, _IS_PARAMETER, _NUMBER, _LIVE_OUT, _SPACE, _IS_CONSTANT)
_OF, _OFFSET, _VALUE_SIZE = 1, 2, 3


@dataclass(frozen=True)
class _Buffers:
    """The logical buffers: where each is defined, as a row and a code in `index_texts`."""

    ids: Positions
    color: Positions
    row: Positions
    index: Positions
    index_texts: list[str]


def read_proto_assignment(
    wire: Wire, start: int, end: int, rows: ProtoInstructions
) -> BufferAssignment | None:
    """The allocations and values of the message between two bytes; None of an empty one.

    Raises DumpError.
    """
    assignment = read_messages(
        wire, np.array([start]), np.array([end]), contents=(_BUFFERS, _ALLOCATIONS)
    )
    each = assignment.each(_ALLOCATIONS)
    if not len(each):
        return None
    buffers = _buffers(assignment, rows)
    allocations = read_messages(
        wire,
        each.first,
        each.end,
        numbers=_NUMBERS,
        contents=(_ASSIGNED,),
        lists=(_PARAMETER_INDEX,),
    )
    assigned = allocations.each(_ASSIGNED)
    values = read_messages(wire, assigned.first, assigned.end, numbers=(_OF, _OFFSET, _VALUE_SIZE))
    order = np.argsort(buffers.ids, kind="stable")
    _require_once(buffers.ids, assignment.each(_BUFFERS).first)
    buffer = found_in(buffers.ids[order], order, values.numbers(_OF))
    _require(buffer >= 0, assigned.first, "assigns a value that is not in the file")
    index = _within(allocations, _INDEX, each.first, LARGEST_ID)
    _require_once(index, each.first)
    output = _output(buffers, rows, buffer)
    is_output = np.zeros(len(each), bool)
    is_output[assigned.message[output]] = True
    return BufferAssignment(
        _allocations(allocations, each.first, rows, index, is_output),
        _values(values, assigned.first, rows, buffers, buffer).append_column(
            "allocation_index", pa.array(index[assigned.message], pa.int32())
        ),
    )


def _buffers(assignment: Messages, rows: ProtoInstructions) -> _Buffers:
    wire, each = assignment.wire, assignment.each(_BUFFERS)
    found = read_messages(
        wire, each.first, each.end, numbers=(_ID, _COLOR), contents=(_DEFINED_AT,)
    )
    _require(found.has(_DEFINED_AT), each.first, "does not say where it is defined")
    at = found.last(_DEFINED_AT)
    places = read_messages(
        wire, at.first, at.end, numbers=(_AT_ID,), contents=(_AT_NAME,), lists=(_AT_INDEX,)
    )
    row = rows.find(places.numbers(_AT_ID))
    # Older versions name the instruction.
    named = np.flatnonzero(~places.has(_AT_ID))
    if len(named):
        names = places.texts(_AT_NAME, "an instruction's name").take(pa.array(named))
        at_name = pc.index_in(names, value_set=rows.names)
        row[named] = pc.fill_null(at_name, -1).to_numpy()
    _require(row >= 0, each.first, "is defined by an instruction that is not in the file")
    ids = _within(found, _ID, each.first, LARGEST_ID)
    encoded = index_texts(places, _AT_INDEX).dictionary_encode()
    return _Buffers(
        ids,
        _within(found, _COLOR, each.first, LARGEST_ID),
        row,
        encoded.indices.to_numpy().astype(np.int64),
        encoded.dictionary.to_pylist(),
    )


def _require(right: Mask, starts: Positions, complaint: str) -> None:
    """Raise DumpError at the first message of the buffer assignment that is not right."""
    if not right.all():
        byte = int(starts[np.argmin(right)])
        raise DumpError(f"the buffer assignment at byte {byte} {complaint}: dump the program again")


def _require_once(numbers: Positions, starts: Positions) -> None:
    """Raise DumpError at the first number that is there again."""
    first = np.zeros(len(numbers), bool)
    first[np.unique(numbers, return_index=True)[1]] = True
    _require(first, starts, "repeats a number")


def _within(messages: Messages, number: int, starts: Positions, most: int) -> Positions:
    """A column of numbers that are neither negative nor over `most`. Raises DumpError."""
    column = messages.numbers(number)
    right = (column >= 0) & (column <= most)
    _require(right, starts, f"has a number that is negative or over {most}")
    return column


def index_texts(messages: Messages, number: int) -> pa.LargeStringArray:
    """A field with a shape index as text, of all messages: `{1,0}`."""
    owner, numbers = messages.lists(number)
    count = np.bincount(owner, minlength=messages.count)
    bounds = np.concatenate([[0], np.cumsum(count)])
    texts = pa.array(numbers).cast(pa.large_string())
    joined = pc.binary_join(
        pa.LargeListArray.from_arrays(pa.array(bounds), texts), pa.scalar(",", pa.large_string())
    )
    brackets = [pa.scalar(text, pa.large_string()) for text in ("{", "}", "")]
    return pc.binary_join_element_wise(brackets[0], joined, *brackets[1:])


def _allocations(
    found: Messages,
    starts: Positions,
    rows: ProtoInstructions,
    index: Positions,
    is_output: Mask,
) -> pa.Table:
    is_parameter = found.numbers(_IS_PARAMETER) != 0
    is_constant = found.numbers(_IS_CONSTANT) != 0
    is_thread_local = found.numbers(_THREAD_LOCAL) != 0
    maybe_live_out = found.numbers(_LIVE_OUT) != 0
    number = _within(found, _NUMBER, starts, LARGEST_ID)
    return pa.table(
        {
            "allocation_index": pa.array(index, pa.int32()),
            "memory_space": pa.array(_within(found, _SPACE, starts, LARGEST_ID), pa.int32()),
            "size_bytes": pa.array(_within(found, _SIZE, starts, LARGEST_SIZE)),
            "is_parameter": pa.array(is_parameter),
            "parameter_number": pa.array(number, pa.int32(), mask=~is_parameter),
            "parameter_shape_index": pc.if_else(
                pa.array(is_parameter), index_texts(found, _PARAMETER_INDEX), None
            ),
            "is_output": pa.array(is_output),
            "is_constant": pa.array(is_constant),
            "is_thread_local": pa.array(is_thread_local),
            "maybe_live_out": pa.array(maybe_live_out),
            "is_temp": pa.array(~(is_parameter | is_constant | is_thread_local | maybe_live_out)),
            "shape": _allocation_shapes(rows, starts, is_parameter, number, is_output),
            "address": pa.nulls(found.count, pa.int64()),
        }
    )


def _allocation_shapes(
    rows: ProtoInstructions,
    starts: Positions,
    is_parameter: Mask,
    number: Positions,
    is_output: Mask,
) -> pa.LargeStringArray:
    """The argument that an allocation holds, or else the result, as shapes without layouts."""
    chosen = np.flatnonzero(rows.has_opcode("parameter") & (rows.computation == rows.entry))
    numbers = rows.messages.numbers(PARAMETER)[rows.message_of[chosen]].tolist()
    argument = dict(zip(numbers, rows.shape[chosen].tolist(), strict=True))
    texts: list[str | None] = [None] * len(number)
    result = rows.shapes[int(rows.shape[rows.root[rows.entry]])].without_layout
    for at in np.flatnonzero(is_output).tolist():
        texts[at] = result
    for at in np.flatnonzero(is_parameter).tolist():
        shape = argument.get(int(number[at]))
        if shape is None:
            raise DumpError(
                f"the allocation at byte {starts[at]} holds parameter {number[at]}, which is not"
                " in the module: dump the program again"
            )
        texts[at] = rows.shapes[shape].without_layout
    return pa.array(texts, pa.large_string())


def _values(
    values: Messages,
    starts: Positions,
    rows: ProtoInstructions,
    buffers: _Buffers,
    buffer: Positions,
) -> pa.Table:
    size = pa.array(_within(values, _VALUE_SIZE, starts, LARGEST_SIZE))
    row, index = buffers.row[buffer], buffers.index[buffer]
    # Few sub-shapes are distinct.
    width = max(1, len(buffers.index_texts))
    keys, code = np.unique(rows.shape[row] * width + index, return_inverse=True)
    indices = [tuple(map(int, re.findall(r"-?\d+", text))) for text in buffers.index_texts]
    shapes = [rows.shapes[key // width].at(indices[key % width]) for key in keys.tolist()]
    exists = np.array([shape is not None for shape in shapes] or [True], bool)
    _require(exists[code] if len(code) else exists, starts, "names a sub-shape that is not there")
    texts = pa.array([shape.text for shape in shapes if shape is not None], pa.large_string())
    try:
        sizes = shape_columns(texts)
    except ValueError as error:
        first = int(starts[0])
        raise DumpError(f"a value from byte {first} on has a wrong shape: {error}") from None
    taken = pa.array(code)
    logical = sizes["logical_bytes"].take(taken)
    return pa.table(
        {
            "value_id": pa.array(buffers.ids[buffer], pa.int32()),
            "instruction": rows.names.take(pa.array(row)),
            "shape_index": pa.array(buffers.index_texts, pa.large_string()).take(pa.array(index)),
            "is_phi": pa.array(_merging(rows)[row]),
            "memory_space": pa.array(buffers.color[buffer], pa.int32()),
            "offset_bytes": pa.array(_within(values, _OFFSET, starts, LARGEST_SIZE)),
            "size_bytes": size,
            "logical_bytes": pc.coalesce(logical, size),
            "shape": texts.take(taken),
            "element_type": sizes["element_type"].take(taken),
        }
    )


def _merging(rows: ProtoInstructions) -> Mask:
    """At which instructions a value that is defined there merges several values.

    These are loops, conditionals, and the parameters of a loop's body and condition.
    """
    merging = rows.has_opcode("while", "conditional")
    looped = np.zeros(len(rows.computations), bool)
    caller, called = rows.calls
    looped[called[rows.has_opcode("while")[caller]]] = True
    found: Mask = merging | (rows.has_opcode("parameter") & looped[rows.computation])
    return found


def _output(buffers: _Buffers, rows: ProtoInstructions, buffer: Positions) -> Mask:
    """Which of these buffers is the value of the whole result."""
    wanted = output_value(rows, buffers.row, buffers.index, buffers.index_texts)
    found: Mask = buffer == wanted
    return found
