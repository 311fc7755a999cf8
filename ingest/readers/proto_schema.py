"""XLA's messages: the fields that memhouse reads, parsed by the package protobuf.

Many messages of one type are read as columns. Messages that are concatenated merge, so they are
parsed as one message in which every field is repeated: a field is then a list, and no object is
made for each message.
"""

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import DecodeError

from ...xla.errors import DumpError
from .line_columns import Mask, Positions, as_numpy
from .wire import BYTES, fields, varint

# As in XLA's hlo.proto and xla_data.proto and TSL's xplane.proto. Every number, flag or enum is an
# int64, and every text is bytes, which the readers check. `lazy` messages stay bytes until they
# are parsed. Fields that are not here are ignored.
_SCHEMA = """
message HloProto {
  HloModuleProto hlo_module = 1;
  lazy BufferAssignmentProto buffer_assignment = 3;
}
message HloModuleProto {
  repeated HloComputationProto computations = 3;
  ProgramShapeProto host_program_shape = 4;
  int64 entry_computation_id = 6;
  HloScheduleProto schedule = 7;
  HloInputOutputAliasProto input_output_alias = 8;
  repeated lazy OpSharding spmd_parameters_shardings = 14;
  DeviceAssignmentProto device_assignment = 15;
  StackFrameIndexProto stack_frame_index = 17;
  HloBufferDonorProto buffer_donor = 18;
}
message ProgramShapeProto {
  repeated lazy ShapeProto parameters = 1;
  lazy ShapeProto result = 2;
}
message HloScheduleProto {
  repeated SequenceEntry sequences = 1;
}
message SequenceEntry {
  int64 key = 1;
  InstructionSequence value = 2;
}
message InstructionSequence {
  repeated int64 instruction_ids = 1;
}
message HloInputOutputAliasProto {
  repeated AliasEntryProto entries = 1;
}
message AliasEntryProto {
  repeated int64 output_shape_index = 1;
  int64 parameter_number = 2;
  repeated int64 parameter_shape_index = 3;
  int64 kind = 4;
}
message HloBufferDonorProto {
  repeated BufferDonorEntryProto entries = 1;
}
message BufferDonorEntryProto {
  int64 parameter_number = 1;
  repeated int64 parameter_shape_index = 2;
}
message DeviceAssignmentProto {
  int64 replica_count = 1;
  int64 computation_count = 2;
}
message StackFrameIndexProto {
  repeated bytes file_names = 1;
  repeated bytes function_names = 2;
  repeated lazy FileLocation file_locations = 3;
  repeated lazy StackFrame stack_frames = 4;
}
message FileLocation {
  int64 file_name_id = 1;
  int64 function_name_id = 2;
  int64 line = 3;
  int64 column = 4;
  int64 end_line = 5;
  int64 end_column = 6;
}
message StackFrame {
  int64 file_location_id = 1;
  int64 parent_frame_id = 2;
}
message HloComputationProto {
  bytes name = 1;
  repeated lazy HloInstructionProto instructions = 2;
  int64 id = 5;
  int64 root_id = 6;
}
message HloInstructionProto {
  bytes name = 1;
  bytes opcode = 2;
  lazy ShapeProto shape = 3;
  lazy OpMetadata metadata = 7;
  lazy LiteralProto literal = 8;
  int64 parameter_number = 9;
  bytes fusion_kind = 11;
  int64 tuple_index = 13;
  repeated int64 dimensions = 14;
  lazy Window window = 15;
  lazy ConvolutionDimensionNumbers convolution_dimension_numbers = 16;
  repeated lazy SliceDimensions slice_dimensions = 17;
  repeated int64 dynamic_slice_sizes = 20;
  lazy PaddingConfig padding_config = 21;
  bytes custom_call_target = 28;
  lazy DotDimensionNumbers dot_dimension_numbers = 30;
  lazy GatherDimensionNumbers gather_dimension_numbers = 33;
  repeated int64 gather_slice_sizes = 34;
  int64 id = 35;
  repeated int64 operand_ids = 36;
  repeated int64 control_predecessor_ids = 37;
  repeated int64 called_computation_ids = 38;
  lazy OpSharding sharding = 40;
  bytes backend_config = 43;
  lazy ScatterDimensionNumbers scatter_dimension_numbers = 48;
  int64 feature_group_count = 50;
  int64 batch_group_count = 58;
  bytes comparison_direction = 63;
  repeated lazy OutputOperandAliasing output_operand_aliasing = 74;
}
message LiteralProto {
  repeated int64 s32s = 4;
  repeated int64 s64s = 5;
  repeated int64 u32s = 6;
  repeated int64 u64s = 7;
}
message OpMetadata {
  bytes op_name = 2;
  bytes source_file = 3;
  int64 source_line = 4;
  int64 stack_frame_id = 15;
  bytes scheduling_name = 16;
}
message SliceDimensions {
  int64 start = 1;
  int64 limit = 2;
  int64 stride = 3;
}
message PaddingConfig {
  repeated PaddingConfigDimension dimensions = 1;
}
message PaddingConfigDimension {
  int64 edge_padding_low = 1;
  int64 edge_padding_high = 2;
  int64 interior_padding = 3;
}
message Window {
  repeated WindowDimension dimensions = 1;
}
message WindowDimension {
  int64 size = 1;
  int64 stride = 2;
  int64 padding_low = 3;
  int64 padding_high = 4;
  int64 window_dilation = 5;
  int64 base_dilation = 6;
  int64 window_reversal = 7;
}
message ConvolutionDimensionNumbers {
  int64 kernel_input_feature_dimension = 3;
  int64 kernel_output_feature_dimension = 4;
  repeated int64 kernel_spatial_dimensions = 6;
  int64 input_batch_dimension = 7;
  int64 input_feature_dimension = 8;
  int64 output_batch_dimension = 9;
  int64 output_feature_dimension = 10;
  repeated int64 input_spatial_dimensions = 11;
  repeated int64 output_spatial_dimensions = 12;
}
message DotDimensionNumbers {
  repeated int64 lhs_contracting_dimensions = 1;
  repeated int64 rhs_contracting_dimensions = 2;
  repeated int64 lhs_batch_dimensions = 3;
  repeated int64 rhs_batch_dimensions = 4;
}
message GatherDimensionNumbers {
  repeated int64 offset_dims = 1;
  repeated int64 collapsed_slice_dims = 2;
  repeated int64 start_index_map = 3;
  int64 index_vector_dim = 4;
  repeated int64 operand_batching_dims = 5;
  repeated int64 start_indices_batching_dims = 6;
}
message ScatterDimensionNumbers {
  repeated int64 update_window_dims = 1;
  repeated int64 inserted_window_dims = 2;
  repeated int64 scatter_dims_to_operand_dims = 3;
  int64 index_vector_dim = 4;
  repeated int64 input_batching_dims = 5;
  repeated int64 scatter_indices_batching_dims = 6;
}
message OutputOperandAliasing {
  repeated int64 output_shape_index = 1;
  int64 operand_index = 2;
  repeated int64 operand_shape_index = 3;
}
message ShapeProto {
  int64 element_type = 2;
  repeated int64 dimensions = 3;
  repeated lazy ShapeProto tuple_shapes = 4;
  LayoutProto layout = 5;
  repeated int64 is_dynamic_dimension = 6;
}
message LayoutProto {
  repeated int64 minor_to_major = 1;
  repeated TileProto tiles = 6;
  int64 element_size_in_bits = 7;
  int64 memory_space = 8;
  repeated int64 dim_level_types = 9;
  lazy ShapeProto physical_shape = 10;
  int64 index_primitive_type = 11;
  int64 pointer_primitive_type = 12;
  int64 dynamic_shape_metadata_prefix_bytes = 15;
  int64 tail_padding_alignment_in_elements = 16;
  repeated SplitConfigProto split_configs = 17;
}
message TileProto {
  repeated int64 dimensions = 1;
}
message SplitConfigProto {
  int64 dimension = 1;
  repeated int64 split_indices = 2;
}
message OpSharding {
  int64 type = 1;
  repeated int64 tile_assignment_dimensions = 3;
  repeated int64 tile_assignment_devices = 4;
  repeated lazy OpSharding tuple_shardings = 5;
  int64 replicate_on_last_tile_dim = 6;
  repeated int64 last_tile_dims = 8;
  repeated int64 iota_reshape_dims = 9;
  repeated int64 iota_transpose_perm = 10;
  int64 is_shard_group = 11;
  int64 shard_group_id = 12;
  int64 shard_group_type = 13;
  bytes named_sharding = 14;
}
message BufferAssignmentProto {
  repeated lazy LogicalBufferProto logical_buffers = 1;
  repeated lazy BufferAllocationProto buffer_allocations = 3;
}
message LogicalBufferProto {
  int64 id = 1;
  lazy Location defined_at = 3;
  int64 color = 4;
}
message Location {
  bytes instruction_name = 2;
  repeated int64 shape_index = 3;
  int64 instruction_id = 4;
}
message BufferAllocationProto {
  int64 index = 1;
  int64 size = 2;
  int64 is_thread_local = 3;
  int64 is_entry_computation_parameter = 5;
  int64 parameter_number = 6;
  int64 maybe_live_out = 7;
  int64 color = 8;
  repeated lazy Assigned assigned = 9;
  repeated int64 parameter_shape_index = 10;
  int64 is_constant = 12;
}
message Assigned {
  int64 logical_buffer_id = 1;
  int64 offset = 2;
  int64 size = 3;
}
message StatMetadataEntry {
  XStatMetadata value = 2;
}
message XStatMetadata {
  int64 id = 1;
  bytes name = 2;
}
message XStat {
  int64 metadata_id = 1;
  int64 uint64_value = 3;
  int64 int64_value = 4;
  bytes str_value = 5;
  int64 ref_value = 7;
}
"""
_MESSAGE = re.compile(r"message (\w+) \{\n(.*?)\}", re.DOTALL)
_FIELD = re.compile(r"(repeated )?(lazy )?(\w+) (\w+) = (\d+);")
_BATCH = 4096  # messages that are parsed at once, so that they stay in the processor's cache
# The mark before each message of a batch: a field that counts the messages, with the largest
# number that a field can have, and in every column a value that no program has. Python keeps one
# object of each of these two values.
_COUNT = 2**29 - 1
_NUMBER_MARK, _BYTES_MARK = -5, b"\xff"


class Field(NamedTuple):
    """A field of a message: `int64`, `bytes` or the type of a message."""

    name: str
    number: int
    type: str
    is_repeated: bool
    is_lazy: bool


class UnparsableError(DumpError):
    """Bytes that are no message of their type; `damage_located` says where they are damaged."""


@cache
def schema() -> dict[str, dict[int, Field]]:
    """The fields of each type of message, by their numbers."""
    return {
        name: {
            int(number): Field(field, int(number), type_, bool(repeated), bool(lazy))
            for repeated, lazy, type_, field, number in _FIELD.findall(body)
        }
        for name, body in _MESSAGE.findall(_SCHEMA)
    }


@cache
def _classes() -> dict[str, Any]:
    """The class of each type of message, and as `TYPEColumns` that of a batch of them."""
    kinds = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name="memhouse.proto", package="memhouse")
    for name, known in schema().items():
        message, columns = file.message_type.add(name=name), file.message_type.add()
        columns.name = f"{name}Columns"
        columns.field.add(
            name="count", number=_COUNT, label=kinds.LABEL_REPEATED, type=kinds.TYPE_BOOL
        )
        for field in known.values():
            added = message.field.add(name=field.name, number=field.number)
            added.label = kinds.LABEL_REPEATED if field.is_repeated else kinds.LABEL_OPTIONAL
            plain = kinds.TYPE_INT64 if field.type == "int64" else kinds.TYPE_BYTES
            if field.type in schema() and not field.is_lazy:
                added.type, added.type_name = kinds.TYPE_MESSAGE, f".memhouse.{field.type}"
            else:
                added.type = plain
            columns.field.add(
                name=field.name, number=field.number, label=kinds.LABEL_REPEATED, type=plain
            )
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(file.SerializeToString())
    return {
        message.name: message_factory.GetMessageClass(
            pool.FindMessageTypeByName(f"memhouse.{message.name}")
        )
        for message in file.message_type
    }


def parse(type_: str, data: bytes) -> Any:
    """The message of this type. Raises UnparsableError."""
    try:
        return _classes()[type_].FromString(data)
    except DecodeError:
        raise UnparsableError(f"a {type_} is damaged: dump the program again") from None


@contextmanager
def damage_located(data: bytes | memoryview, type_: str) -> Iterator[None]:
    """Let an UnparsableError name the byte at which a message of this type is damaged."""
    try:
        yield
    except UnparsableError:
        _walk(data, 0, len(data), type_)
        raise


def _walk(data: bytes | memoryview, start: int, end: int, type_: str) -> None:
    """Raise DumpError, which names the byte, at the first field that does not fit."""
    known = schema()[type_]
    for number, kind, first, stop in fields(data, start, end):
        of = known.get(number)
        if of is None or kind != BYTES:
            continue
        if of.type in schema():
            _walk(data, first, stop, of.type)
        while of.type == "int64" and first < stop:
            _, first = varint(data, first, stop)


class Columns:
    """The fields of `count` messages of one type, which count from 0.

    Methods take the name of a field. The last value of a field that is not repeated counts.
    """

    def __init__(self, type_: str, messages: Iterable[bytes]) -> None:
        """Read the messages. Raises UnparsableError."""
        self.count = 0
        self._chunks: dict[str, list[tuple[Positions, Any]]] = {}
        messages = iter(messages)
        while (batch := list(islice(messages, _BATCH))) or not self._chunks:
            for field, (message, values) in _between_marks(type_, batch).items():
                self._chunks.setdefault(field, []).append((message + self.count, values))
            self.count += len(batch)

    def lists(self, field: str) -> tuple[Positions, Positions]:
        """A field of numbers: each number's message, and the number."""
        message, numbers = zip(*self._chunks[field], strict=True)
        return np.concatenate(message), np.concatenate(numbers)

    def contents(self, field: str) -> tuple[Positions, pa.LargeBinaryArray]:
        """A field of texts or messages: each one's message, and its bytes."""
        message, values = zip(*self._chunks[field], strict=True)
        return np.concatenate(message), pa.concat_arrays(values)

    def numbers(self, field: str) -> Positions:
        """A number of all messages; 0 where it is left out."""
        message, values = self.lists(field)
        column = np.zeros(self.count, np.int64)
        column[message] = values
        return column

    def has(self, field: str) -> Mask:
        """Which messages have a field."""
        column = np.zeros(self.count, bool)
        column[np.concatenate([message for message, _ in self._chunks[field]])] = True
        return column

    def texts(self, field: str, what: str) -> pa.LargeStringArray:
        """A text of all messages; empty where it is left out. Raises DumpError."""
        message, values = self.contents(field)
        texts = checked_texts(values, what)
        if len(message) == self.count:
            return texts
        at = np.full(self.count, -1)
        at[message] = np.arange(len(message))
        return pc.fill_null(texts.take(pa.array(at, mask=at < 0)), "")


def _between_marks(type_: str, batch: list[bytes]) -> dict[str, tuple[Positions, Any]]:
    """The columns of a batch, by field: the message of each value, and the values."""
    parsed = parse(f"{type_}Columns", _mark(type_).join((b"", *batch)))
    # A message that is cut short takes a part of the mark behind it.
    if len(parsed.count) != len(batch):
        raise UnparsableError(f"a {type_} is damaged: dump the program again")
    return {
        field.name: _without_marks(getattr(parsed, field.name), field, len(batch))
        for field in schema()[type_].values()
    }


def _without_marks(column: Any, field: Field, count: int) -> tuple[Positions, Any]:
    """A column of `count` messages without the marks: the message of each value, and the values."""
    values: Any
    is_mark: Mask
    if len(column) == count:
        column = ()  # no message has the field
    if field.type == "int64":
        values = np.fromiter(column, np.int64, len(column))
        is_mark = values == _NUMBER_MARK
    else:
        texts = list(column)
        if len(texts) == 2 * count == 2 * texts[::2].count(_BYTES_MARK):
            # Each message has it once.
            return np.arange(count), pa.array(texts[1::2], pa.large_binary())
        values = pa.array(texts, pa.large_binary())
        is_mark = as_numpy(pc.equal(values, pa.scalar(_BYTES_MARK, pa.large_binary())))
    if len(column) and np.count_nonzero(is_mark) != count:
        raise UnparsableError(f"a field {field.name} is damaged: dump the program again")
    is_chosen = ~is_mark
    if not field.is_repeated:
        is_chosen[:-1] &= is_mark[1:]
    message = np.cumsum(is_mark)[is_chosen] - 1
    is_number = field.type == "int64"
    return message, values[is_chosen] if is_number else values.filter(pa.array(is_chosen))


@cache
def _mark(type_: str) -> bytes:
    """What stands before a message in the columns of its type."""
    mark = _classes()[f"{type_}Columns"](count=[True])
    for field in schema()[type_].values():
        getattr(mark, field.name).append(_NUMBER_MARK if field.type == "int64" else _BYTES_MARK)
    return bytes(mark.SerializeToString())


def distinct(values: pa.LargeBinaryArray) -> tuple[Positions, list[bytes]]:
    """The code of each value, and the bytes of each code."""
    encoded = values.dictionary_encode()
    return encoded.indices.to_numpy().astype(np.int64), encoded.dictionary.to_pylist()


def checked_texts(values: pa.LargeBinaryArray, what: str) -> pa.LargeStringArray:
    """The texts, if all are UTF-8. Raises DumpError, which shows the first other."""
    try:
        return values.cast(pa.large_string())
    except pa.ArrowInvalid:
        for text in values.to_pylist():
            try:
                text.decode()
            except UnicodeDecodeError:
                raise DumpError(
                    f"{what} is not UTF-8, {text[:80]!r}: the file is damaged, dump it again"
                ) from None
        raise
