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
from .lines import Mask, Positions, as_numpy
from .proto_instructions import ProtoInstructions, found_in
from .proto_schema import Columns, parse

_Place = tuple[int, tuple[int, ...]]
_SAME = (
    *("bitcast", "copy", "while", "domain", "opt-barrier", "optimization-barrier"),
    *("add-dependency", "all-reduce-done", "async-update"),
)
_CALLING = ("call", "conditional")
_STARTS = ("all-gather-start", "collective-permute-start")
_DONES = ("all-gather-done", "collective-permute-done", "async-done")


@dataclass(frozen=True)
class _Buffers:
    """The logical buffers: where each is defined, as a row and a code in `index_texts`."""

    ids: Positions
    color: Positions
    row: Positions
    index: Positions
    index_texts: list[str]


def read_proto_assignment(data: bytes, rows: ProtoInstructions) -> BufferAssignment | None:
    """The allocations and values of a BufferAssignmentProto; None of an empty one.

    Raises DumpError.
    """
    assignment = parse("BufferAssignmentProto", data)
    if not assignment.buffer_allocations:
        return None
    buffers = _buffers(list(assignment.logical_buffers), rows)
    allocations = Columns("BufferAllocationProto", list(assignment.buffer_allocations))
    del assignment
    allocation, assigned = allocations.contents("assigned")
    values = Columns("Assigned", assigned.to_pylist())
    order = np.argsort(buffers.ids, kind="stable")
    _require_once(buffers.ids, "two logical buffers have the id")
    index = _within(allocations, "index", LARGEST_ID)
    _require_once(index, "two allocations have the index")
    buffer = found_in(buffers.ids[order], order, values.numbers("logical_buffer_id"))
    for at in allocation[buffer < 0][:1].tolist():
        raise _wrong(f"allocation {index[at]} assigns a value that is not in the file")
    is_output = np.zeros(allocations.count, bool)
    is_output[allocation[buffer == _output_buffer(rows, buffers)]] = True
    return BufferAssignment(
        _allocations(allocations, rows, index, is_output),
        _values(values, rows, buffers, buffer).append_column(
            "allocation_index", pa.array(index[allocation], pa.int32())
        ),
    )


def _buffers(messages: list[bytes], rows: ProtoInstructions) -> _Buffers:
    found = Columns("LogicalBufferProto", messages)
    ids = _within(found, "id", LARGEST_ID)
    owner, defined_at = found.contents("defined_at")
    if len(owner) < found.count:
        buffer = ids[np.argmin(found.has("defined_at"))]
        raise _wrong(f"logical buffer {buffer} does not say where it is defined")
    places = Columns("Location", defined_at.to_pylist())
    instruction_ids = places.numbers("instruction_id")
    row = rows.find(instruction_ids)
    # Older versions name the instruction. An id of 0 is not written: without a name it is the id.
    names = places.texts("instruction_name", "an instruction's name")
    has_name = as_numpy(pc.not_equal(names, ""))
    named = np.flatnonzero((instruction_ids == 0) & has_name)
    if len(named):
        at_name = pc.index_in(names.take(pa.array(named)), value_set=rows.names)
        row[named] = pc.fill_null(at_name, -1).to_numpy()
    for buffer in ids[row < 0][:1].tolist():
        raise _wrong(
            f"logical buffer {buffer} is defined by an instruction that is not in the file"
        )
    encoded = index_texts(places, "shape_index").dictionary_encode()
    return _Buffers(
        ids,
        _within(found, "color", LARGEST_ID),
        row,
        encoded.indices.to_numpy().astype(np.int64),
        encoded.dictionary.to_pylist(),
    )


def _wrong(complaint: str) -> DumpError:
    return DumpError(f"in the buffer assignment {complaint}: dump the program again")


def _require_once(numbers: Positions, complaint: str) -> None:
    """Raise DumpError at a number that is there again."""
    found, counts = np.unique(numbers, return_counts=True)
    for number in found[counts > 1][:1].tolist():
        raise _wrong(f"{complaint} {number}")


def _within(messages: Columns, field: str, most: int) -> Positions:
    """A column of numbers that are neither negative nor over `most`. Raises DumpError."""
    column = messages.numbers(field)
    for number in column[(column < 0) | (column > most)][:1].tolist():
        raise _wrong(f"the {field} {number} is negative or over {most}")
    return column


def index_texts(messages: Columns, field: str) -> pa.LargeStringArray:
    """A field with a shape index as text, of all messages: `{1,0}`."""
    owner, numbers = messages.lists(field)
    count = np.bincount(owner, minlength=messages.count)
    bounds = np.concatenate([[0], np.cumsum(count)])
    texts = pa.array(numbers).cast(pa.large_string())
    joined = pc.binary_join(
        pa.LargeListArray.from_arrays(pa.array(bounds), texts), pa.scalar(",", pa.large_string())
    )
    brackets = [pa.scalar(text, pa.large_string()) for text in ("{", "}", "")]
    return pc.binary_join_element_wise(brackets[0], joined, *brackets[1:])


def _allocations(
    found: Columns, rows: ProtoInstructions, index: Positions, is_output: Mask
) -> pa.Table:
    is_parameter = found.numbers("is_entry_computation_parameter") != 0
    is_constant = found.numbers("is_constant") != 0
    is_thread_local = found.numbers("is_thread_local") != 0
    maybe_live_out = found.numbers("maybe_live_out") != 0
    number = _within(found, "parameter_number", LARGEST_ID)
    return pa.table(
        {
            "allocation_index": pa.array(index, pa.int32()),
            "memory_space": pa.array(_within(found, "color", LARGEST_ID), pa.int32()),
            "size_bytes": pa.array(_within(found, "size", LARGEST_SIZE)),
            "is_parameter": pa.array(is_parameter),
            "parameter_number": pa.array(number, pa.int32(), mask=~is_parameter),
            "parameter_shape_index": pc.if_else(
                pa.array(is_parameter), index_texts(found, "parameter_shape_index"), None
            ),
            "is_output": pa.array(is_output),
            "is_constant": pa.array(is_constant),
            "is_thread_local": pa.array(is_thread_local),
            "maybe_live_out": pa.array(maybe_live_out),
            "is_temp": pa.array(~(is_parameter | is_constant | is_thread_local | maybe_live_out)),
            "shape": _allocation_shapes(rows, is_parameter, number, is_output),
            "address": pa.nulls(found.count, pa.int64()),
        }
    )


def _allocation_shapes(
    rows: ProtoInstructions, is_parameter: Mask, number: Positions, is_output: Mask
) -> pa.LargeStringArray:
    """The argument that an allocation holds, or else the result, as shapes without layouts."""
    chosen = np.flatnonzero(rows.has_opcode("parameter") & (rows.computation == rows.entry))
    numbers = rows.messages.numbers("parameter_number")[rows.message_of[chosen]].tolist()
    argument = dict(zip(numbers, rows.shape[chosen].tolist(), strict=True))
    texts: list[str | None] = [None] * len(number)
    result = rows.shapes[int(rows.shape[rows.root[rows.entry]])].without_layout
    for at in np.flatnonzero(is_output).tolist():
        texts[at] = result
    for at in np.flatnonzero(is_parameter).tolist():
        shape = argument.get(int(number[at]))
        if shape is None:
            raise _wrong(f"an allocation holds parameter {number[at]}, which is not in the module")
        texts[at] = rows.shapes[shape].without_layout
    return pa.array(texts, pa.large_string())


def _values(
    values: Columns, rows: ProtoInstructions, buffers: _Buffers, buffer: Positions
) -> pa.Table:
    size = pa.array(_within(values, "size", LARGEST_SIZE))
    row, index = buffers.row[buffer], buffers.index[buffer]
    # Few sub-shapes are distinct.
    width = max(1, len(buffers.index_texts))
    keys, code = np.unique(rows.shape[row] * width + index, return_inverse=True)
    indices = [tuple(map(int, re.findall(r"-?\d+", text))) for text in buffers.index_texts]
    shapes = [rows.shapes[key // width].at(indices[key % width]) for key in keys.tolist()]
    if None in shapes:
        value = buffers.ids[buffer[np.argmax(code == shapes.index(None))]]
        raise _wrong(f"value {value} names a sub-shape that its instruction does not have")
    texts = pa.array([shape.text for shape in shapes if shape is not None], pa.large_string())
    try:
        sizes = shape_columns(texts)
    except ValueError as error:
        raise _wrong(f"a value has a wrong shape, {error}") from None
    taken = pa.array(code)
    logical = sizes["logical_bytes"].take(taken)
    return pa.table(
        {
            "value_id": pa.array(buffers.ids[buffer], pa.int32()),
            "instruction": rows.names.take(pa.array(row)),
            "shape_index": pa.array(buffers.index_texts, pa.large_string()).take(pa.array(index)),
            "is_phi": pa.array(_merging(rows)[row]),
            "memory_space": pa.array(buffers.color[buffer], pa.int32()),
            "offset_bytes": pa.array(_within(values, "offset", LARGEST_SIZE)),
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


def _output_buffer(rows: ProtoInstructions, buffers: _Buffers) -> int:
    """The place of the entry's result among the logical buffers: where the root points to.

    Raises DumpError if the root leads to no buffer.
    """
    codes = {text: code for code, text in enumerate(buffers.index_texts)}
    place: _Place = (int(rows.root[rows.entry]), ())
    # Each step leads to an instruction that runs before, or into or out of a computation.
    for _ in range(2 * len(rows)):
        code = codes.get("{" + ",".join(map(str, place[1])) + "}", -1)
        here = np.flatnonzero((buffers.row == place[0]) & (buffers.index == code))
        if len(here):
            return int(here[0])
        further = _forwarded(rows, *place)
        if further is None:
            break
        place = further
    raise _wrong(f"the result {rows.names[int(rows.root[rows.entry])]} has no value")


def _forwarded(rows: ProtoInstructions, row: int, index: tuple[int, ...]) -> _Place | None:
    """Where the value at a place comes from; None if from nowhere that is known."""
    opcode = rows.opcodes[row].as_py()
    operands, calls = _items(rows.operands, row), _items(rows.calls, row)
    if opcode == "parameter":
        return _argument(rows, row, index)
    if opcode in _CALLING and calls:
        return int(rows.root[calls[0]]), index
    if not operands:
        return None
    if opcode == "get-tuple-element":
        number = int(rows.messages.numbers("tuple_index")[rows.message_of[row]])
        return operands[0], (number, *index)
    if opcode in _SAME:
        return operands[0], index
    if opcode in _DONES:
        return operands[0], (1, *index)
    if opcode in ("copy-done", "recv-done"):
        return operands[0], (0, *index)
    if opcode == "tuple" and index and 0 <= index[0] < len(operands):
        return operands[index[0]], index[1:]
    if opcode == "copy-start" and index[:1] == (1,):
        return operands[0], index[1:]
    if opcode in _STARTS and index[:1] == (0,):
        return _of_operands(operands, index[1:], in_tuple=len(operands) > 1)
    if opcode == "async-start" and index[:1] == (0,):
        return _of_operands(operands, index[1:], in_tuple=True)
    if opcode == "async-start" and index[:1] == (1,) and calls:
        return int(rows.root[calls[0]]), index[1:]
    return None


def _of_operands(operands: list[int], index: tuple[int, ...], *, in_tuple: bool) -> _Place | None:
    if not in_tuple:
        return operands[0], index
    if index and 0 <= index[0] < len(operands):
        return operands[index[0]], index[1:]
    return None


def _argument(rows: ProtoInstructions, row: int, index: tuple[int, ...]) -> _Place | None:
    """What the first caller of a parameter's computation passes for it."""
    caller, called = rows.calls
    at = np.flatnonzero(called == rows.computation[row])
    if not len(at):
        return None
    call = int(caller[at[0]])
    operands = _items(rows.operands, call)
    opcode = rows.opcodes[call].as_py()
    number = int(rows.messages.numbers("parameter_number")[rows.message_of[row]])
    if opcode == "while":
        return call, index
    if opcode == "conditional":
        number = int(at[0] - np.searchsorted(caller, call)) + 1
    return (operands[number], index) if 0 <= number < len(operands) else None


def _items(listed: tuple[Positions, Positions], row: int) -> list[int]:
    """What one row lists."""
    owner, items = listed
    start, stop = np.searchsorted(owner, [row, row + 1]).tolist()
    found: list[int] = items[start:stop].tolist()
    return found
