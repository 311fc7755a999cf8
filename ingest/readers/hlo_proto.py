"""Reader of `.hlo.pb`: a HloProto, which holds a module and its buffer assignment."""

from typing import Any

import numpy as np
import pyarrow as pa

from ...xla.errors import DumpError
from ...xla.limits import LARGEST_ID
from ...xla.parts import HloAttributes, HloText, Parts
from .attributes import read_once
from .entry_shapes import EntryParameter, argument_name, entry_shapes
from .hlo_text import with_sources
from .lines import Positions
from .proto_assignment import read_proto_assignment
from .proto_attributes import proto_program_columns, read_proto_attributes
from .proto_dimensions import index_text
from .proto_identity import find_module
from .proto_instructions import (
    ProtoInstructions,
    call_table,
    instruction_table,
    operand_table,
    read_computations,
)
from .proto_schema import Columns, checked_texts, damage_located, parse
from .proto_shapes import ShapeReader, sharding_text, tuple_shape

_ALIAS_KINDS = {1: "may-alias", 2: "must-alias"}


def read_hlo_proto(data: bytes | memoryview) -> Parts:
    """Read a HloProto: the module, and the buffer assignment if there is one.

    Raises DumpError, which names the instruction, or the byte of a file that cannot be parsed.
    """
    find_module(data)
    with damage_located(data, "HloProto"):
        proto = parse("HloProto", bytes(data))
        rows = read_computations(proto.hlo_module, data)
        hlo = _hlo(proto.hlo_module, rows)
        assignment = proto.buffer_assignment
        del proto  # It is as large as the file.
        return Parts(hlo=hlo, buffer_assignment=read_proto_assignment(assignment, rows))


def _hlo(module: Any, rows: ProtoInstructions) -> HloText:
    frames = _frames(module.stack_frame_index)
    instructions = instruction_table(rows)
    if not len(frames):
        # Some versions of libtpu drop the frames and keep their numbers, which then mean nothing.
        at = instructions.schema.get_field_index("stack_frame_id")
        numbers = pa.nulls(len(rows), pa.int32())
        instructions = instructions.set_column(at, "stack_frame_id", numbers)
    instructions = with_sources(instructions, frames)
    signature = _signature(module, len(rows.data))
    is_entry = np.zeros(len(rows.computations), bool)
    is_entry[rows.entry] = True
    return HloText(
        header={
            "is_scheduled": module.HasField("schedule"),
            "entry_signature": signature,
            "input_output_alias": ", ".join(map(_alias, module.input_output_alias.entries)) or None,
            "buffer_donor": ", ".join(map(_donor, module.buffer_donor.entries)) or None,
            "num_partitions": _devices(module, "computation_count"),
            "replica_count": _devices(module, "replica_count"),
        },
        computations=pa.table({"computation": rows.computations, "is_entry": is_entry}),
        instructions=pa.table(
            dict(zip(instructions.column_names, instructions.columns, strict=True))
            | proto_program_columns(rows)
        ),
        operands=operand_table(rows),
        calls=call_table(rows),
        stack_frames=frames,
        entry_shapes=_entry_shapes(module, signature, rows, instructions["op_name"]),
        attributes=read_once(_attributes, rows),
    )


def _attributes(rows: ProtoInstructions) -> HloAttributes:
    with damage_located(rows.data, "HloProto"):
        return read_proto_attributes(rows)


def _devices(module: Any, field: str) -> int:
    """The number of replicas or partitions; 1 if the module does not say, or says 0."""
    found: int = getattr(module.device_assignment, field)
    if not 0 <= found <= LARGEST_ID:
        raise DumpError(f"the device assignment has a {field} of {found}: dump the program again")
    return found or 1


def _signature(module: Any, file_bytes: int) -> str | None:
    """The arguments' and the result's shapes; None without them."""
    shape = module.host_program_shape
    if not shape.HasField("result"):
        return None
    reader = ShapeReader(file_bytes)
    arguments = tuple_shape([reader.read(parameter) for parameter in shape.parameters])
    return f"{arguments.text}->{reader.read(shape.result).text}"


def _alias(entry: Any) -> str:
    """An output and its argument: `{0}: (1, {}, may-alias)`."""
    if entry.kind not in _ALIAS_KINDS:
        raise DumpError(f"an argument has an unknown kind of alias {entry.kind}")
    argument = f"{entry.parameter_number}, {index_text(entry.parameter_shape_index)}"
    return f"{index_text(entry.output_shape_index)}: ({argument}, {_ALIAS_KINDS[entry.kind]})"


def _donor(entry: Any) -> str:
    """An argument whose memory may be reused: `(1, {})`."""
    return f"({entry.parameter_number}, {index_text(entry.parameter_shape_index)})"


def _entry_shapes(
    module: Any, signature: str | None, rows: ProtoInstructions, op_names: pa.ChunkedArray
) -> pa.Table | None:
    """The arguments' and the result's arrays; None without a signature. Raises DumpError."""
    arguments = _entry_parameters(module, rows, op_names)
    if signature is None:
        return None
    try:
        return entry_shapes(signature, arguments)
    except DumpError as error:
        # A binary has no lines.
        raise DumpError(str(error)) from None


def _entry_parameters(
    module: Any, rows: ProtoInstructions, op_names: pa.ChunkedArray
) -> dict[int, EntryParameter]:
    """What the arguments are called and how they are sharded, by number. Raises DumpError."""
    chosen = np.flatnonzero(rows.has_opcode("parameter") & (rows.computation == rows.entry))
    numbers = rows.messages.numbers("parameter_number")[rows.message_of[chosen]].tolist()
    # The newest libtpu says it of the module alone.
    shardings = _own_shardings(rows, dict(zip(chosen.tolist(), numbers, strict=True))) or dict(
        enumerate(module.spmd_parameters_shardings)
    )
    texts = {sharding: sharding_text(sharding) for sharding in set(shardings.values())}
    names = op_names.take(pa.array(chosen)).to_pylist()
    return {
        number: EntryParameter(
            argument_name(name), texts[shardings[number]] if number in shardings else None
        )
        for number, name in zip(numbers, names, strict=True)
    }


def _own_shardings(rows: ProtoInstructions, number_of_row: dict[int, int]) -> dict[int, bytes]:
    """The shardings that the parameters themselves have, by number."""
    message, found = rows.messages.contents("sharding")
    row_of = rows.row_of[message]
    return {
        number_of_row[row]: found[at].as_py()
        for at, row in enumerate(row_of.tolist())
        if row in number_of_row
    }


def _frames(index: Any) -> pa.Table:
    """The Python frames that instructions come from, in order of their ids. Raises DumpError."""
    files, functions = (
        checked_texts(pa.array(list(names), pa.large_binary()), "a stack frame's name")
        for names in (index.file_names, index.function_names)
    )
    location_rows = Columns("FileLocation", list(index.file_locations))
    frames = Columns("StackFrame", list(index.stack_frames))
    location, parent = (_ids(frames, name) for name in ("file_location_id", "parent_frame_id"))
    # Numbers count from 1, and 0 stands for none.
    wrong = (location == 0) | (location > location_rows.count)
    if wrong.any():
        raise DumpError(
            f"the stack frame {np.argmax(wrong) + 1} has no file location: dump the program again"
        )

    def column(field: str) -> Positions:
        return _ids(location_rows, field)[location - 1]

    return pa.table(
        {
            "stack_frame_id": pa.array(np.arange(1, frames.count + 1), pa.int32()),
            "parent_frame_id": _or_null(parent),
            "file": _named(files, column("file_name_id")),
            "function": _named(functions, column("function_name_id")),
            "line": pa.array(column("line"), pa.int32()),
            "end_line": _or_null(column("end_line")),
            "column_start": _or_null(column("column")),
            "column_end": _or_null(column("end_column")),
        }
    )


def _ids(frames: Columns, field: str) -> Positions:
    """A column of numbers of frames or of their locations. Raises DumpError."""
    numbers = frames.numbers(field)
    wrong = (numbers < 0) | (numbers > LARGEST_ID)
    if wrong.any():
        raise DumpError(
            f"the {field} of stack frame {np.argmax(wrong) + 1} is negative or over {LARGEST_ID}"
        )
    return numbers


def _or_null(numbers: Positions) -> pa.Array:
    return pa.array(numbers, pa.int32(), mask=numbers == 0)


def _named(names: pa.LargeStringArray, numbers: Positions) -> pa.Array:
    known = (numbers > 0) & (numbers <= len(names))
    return names.take(pa.array(np.where(known, numbers - 1, 0), mask=~known))
