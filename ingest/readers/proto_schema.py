"""XLA's protocol buffers: the fields that memhouse reads, parsed by the package protobuf."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, Final

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import DecodeError

from ...xla.errors import LARGEST_ID, DumpError

# From XLA's hlo.proto and xla_data.proto and TSL's xplane.proto; protobuf keeps other fields as
# unknown ones. Every number, flag and enum is an int64. Strings are bytes, because protobuf
# returns a string that is not UTF-8 as bytes. A `lazy` message stays bytes: few of them are
# distinct in a file, so the readers parse each distinct one once.
_SCHEMA = """
message HloProto { HloModuleProto hlo_module = 1; BufferAssignmentProto buffer_assignment = 3; }
message HloModuleProto {
  bytes name = 1; repeated HloComputationProto computations = 3;
  ProgramShapeProto host_program_shape = 4; int64 id = 5; int64 entry_computation_id = 6;
  HloScheduleProto schedule = 7; HloInputOutputAliasProto input_output_alias = 8;
  repeated lazy OpSharding spmd_parameters_shardings = 14;
  DeviceAssignmentProto device_assignment = 15; StackFrameIndexProto stack_frame_index = 17;
  HloBufferDonorProto buffer_donor = 18; FrontendAttributes frontend_attributes = 19;
}
message ProgramShapeProto { repeated lazy ShapeProto parameters = 1; lazy ShapeProto result = 2; }
message HloScheduleProto { map<int64, InstructionSequence> sequences = 1; }
message InstructionSequence { repeated int64 instruction_ids = 1; }
message HloInputOutputAliasProto { repeated AliasEntryProto entries = 1; }
message AliasEntryProto {
  repeated int64 output_shape_index = 1; int64 parameter_number = 2;
  repeated int64 parameter_shape_index = 3; int64 kind = 4;
}
message HloBufferDonorProto { repeated BufferDonorEntryProto entries = 1; }
message BufferDonorEntryProto {
  int64 parameter_number = 1; repeated int64 parameter_shape_index = 2;
}
message FrontendAttributes { map<string, bytes> map = 1; }
message DeviceAssignmentProto { int64 replica_count = 1; int64 computation_count = 2; }
message StackFrameIndexProto {
  repeated bytes file_names = 1; repeated bytes function_names = 2;
  repeated FileLocation file_locations = 3; repeated StackFrame stack_frames = 4;
}
message FileLocation {
  int64 file_name_id = 1; int64 function_name_id = 2; int64 line = 3; int64 column = 4;
  int64 end_line = 5; int64 end_column = 6;
}
message StackFrame { int64 file_location_id = 1; int64 parent_frame_id = 2; }
message HloComputationProto {
  bytes name = 1; repeated HloInstructionProto instructions = 2; int64 id = 5; int64 root_id = 6;
}
message HloInstructionProto {
  bytes name = 1; bytes opcode = 2; lazy ShapeProto shape = 3; lazy OpMetadata metadata = 7;
  lazy LiteralProto literal = 8; int64 parameter_number = 9; bytes fusion_kind = 11;
  int64 tuple_index = 13; repeated int64 dimensions = 14; lazy Window window = 15;
  lazy ConvolutionDimensionNumbers convolution_dimension_numbers = 16;
  repeated lazy SliceDimensions slice_dimensions = 17; repeated int64 dynamic_slice_sizes = 20;
  lazy PaddingConfig padding_config = 21; bytes custom_call_target = 28;
  lazy DotDimensionNumbers dot_dimension_numbers = 30;
  lazy GatherDimensionNumbers gather_dimension_numbers = 33;
  repeated int64 gather_slice_sizes = 34; int64 id = 35; repeated int64 operand_ids = 36;
  repeated int64 control_predecessor_ids = 37; repeated int64 called_computation_ids = 38;
  lazy OpSharding sharding = 40; bytes backend_config = 43;
  lazy ScatterDimensionNumbers scatter_dimension_numbers = 48; int64 feature_group_count = 50;
  int64 batch_group_count = 58; bytes comparison_direction = 63;
  FrontendAttributes frontend_attributes = 68;
  repeated lazy OutputOperandAliasing output_operand_aliasing = 74;
}
message LiteralProto {
  repeated int64 s32s = 4; repeated int64 s64s = 5; repeated int64 u32s = 6;
  repeated int64 u64s = 7;
}
message OpMetadata {
  bytes op_name = 2; bytes source_file = 3; int64 source_line = 4; int64 stack_frame_id = 15;
  bytes scheduling_name = 16;
}
message SliceDimensions { int64 start = 1; int64 limit = 2; int64 stride = 3; }
message PaddingConfig { repeated PaddingConfigDimension dimensions = 1; }
message PaddingConfigDimension {
  int64 edge_padding_low = 1; int64 edge_padding_high = 2; int64 interior_padding = 3;
}
message Window { repeated WindowDimension dimensions = 1; }
message WindowDimension {
  int64 size = 1; int64 stride = 2; int64 padding_low = 3; int64 padding_high = 4;
  int64 window_dilation = 5; int64 base_dilation = 6; int64 window_reversal = 7;
}
message ConvolutionDimensionNumbers {
  int64 kernel_input_feature_dimension = 3; int64 kernel_output_feature_dimension = 4;
  repeated int64 kernel_spatial_dimensions = 6; int64 input_batch_dimension = 7;
  int64 input_feature_dimension = 8; int64 output_batch_dimension = 9;
  int64 output_feature_dimension = 10; repeated int64 input_spatial_dimensions = 11;
  repeated int64 output_spatial_dimensions = 12;
}
message DotDimensionNumbers {
  repeated int64 lhs_contracting_dimensions = 1; repeated int64 rhs_contracting_dimensions = 2;
  repeated int64 lhs_batch_dimensions = 3; repeated int64 rhs_batch_dimensions = 4;
}
message GatherDimensionNumbers {
  repeated int64 offset_dims = 1; repeated int64 collapsed_slice_dims = 2;
  repeated int64 start_index_map = 3; int64 index_vector_dim = 4;
  repeated int64 operand_batching_dims = 5; repeated int64 start_indices_batching_dims = 6;
}
message ScatterDimensionNumbers {
  repeated int64 update_window_dims = 1; repeated int64 inserted_window_dims = 2;
  repeated int64 scatter_dims_to_operand_dims = 3; int64 index_vector_dim = 4;
  repeated int64 input_batching_dims = 5; repeated int64 scatter_indices_batching_dims = 6;
}
message OutputOperandAliasing {
  repeated int64 output_shape_index = 1; int64 operand_index = 2;
  repeated int64 operand_shape_index = 3;
}
message ShapeProto {
  int64 element_type = 2; repeated int64 dimensions = 3; repeated lazy ShapeProto tuple_shapes = 4;
  LayoutProto layout = 5; repeated int64 is_dynamic_dimension = 6;
}
message LayoutProto {
  repeated int64 minor_to_major = 1; repeated TileProto tiles = 6; int64 element_size_in_bits = 7;
  int64 memory_space = 8; repeated int64 dim_level_types = 9; lazy ShapeProto physical_shape = 10;
  int64 dynamic_shape_metadata_prefix_bytes = 15; int64 tail_padding_alignment_in_elements = 16;
  repeated SplitConfigProto split_configs = 17;
}
message TileProto { repeated int64 dimensions = 1; }
message SplitConfigProto { int64 dimension = 1; repeated int64 split_indices = 2; }
message OpSharding {
  int64 type = 1; repeated int64 tile_assignment_dimensions = 3;
  repeated int64 tile_assignment_devices = 4; repeated lazy OpSharding tuple_shardings = 5;
  int64 replicate_on_last_tile_dim = 6; repeated int64 last_tile_dims = 8;
  repeated int64 iota_reshape_dims = 9; repeated int64 iota_transpose_perm = 10;
  int64 is_shard_group = 11; int64 shard_group_id = 12; int64 shard_group_type = 13;
  bytes named_sharding = 14;
}
message BufferAssignmentProto {
  repeated LogicalBufferProto logical_buffers = 1;
  repeated BufferAllocationProto buffer_allocations = 3;
}
message LogicalBufferProto { int64 id = 1; Location defined_at = 3; int64 color = 4; }
message Location {
  bytes instruction_name = 2; repeated int64 shape_index = 3; int64 instruction_id = 4;
}
message BufferAllocationProto {
  int64 index = 1; int64 size = 2; int64 is_thread_local = 3;
  int64 is_entry_computation_parameter = 5; int64 parameter_number = 6;
  int64 maybe_live_out = 7; int64 color = 8; repeated Assigned assigned = 9;
  repeated int64 parameter_shape_index = 10; int64 is_constant = 12;
}
message Assigned { int64 logical_buffer_id = 1; int64 offset = 2; int64 size = 3; }
message StatMetadataEntry { XStatMetadata value = 2; }
message XStatMetadata { int64 id = 1; bytes name = 2; }
message XStat {
  int64 metadata_id = 1; int64 uint64_value = 3; int64 int64_value = 4; bytes str_value = 5;
  int64 ref_value = 7;
}
"""
_MESSAGE: Final = re.compile(r"^message (\w+) \{(.*?)\}", re.DOTALL | re.MULTILINE)
_FIELD: Final = re.compile(r"(repeated )?(lazy )?(?:map<(\w+), (\w+)>|(\w+)) (\w+) = (\d+);")
_KINDS: Final = descriptor_pb2.FieldDescriptorProto
_SCALARS: Final = {
    "int64": _KINDS.TYPE_INT64,
    "bytes": _KINDS.TYPE_BYTES,
    "string": _KINDS.TYPE_STRING,
}


@cache
def _classes() -> dict[str, Any]:
    """The class of each message."""
    file = descriptor_pb2.FileDescriptorProto(name="memhouse.proto", package="memhouse")
    for name, body in _MESSAGE.findall(_SCHEMA):
        message = file.message_type.add(name=name)
        for repeated, lazy, key, value, type_, field, number in _FIELD.findall(body):
            if key:
                # A map is a list of messages that are declared within the message.
                entry = message.nested_type.add(name=f"{field.capitalize()}Entry")
                entry.options.map_entry = True
                _add_field(entry, "key", 1, key)
                _add_field(entry, "value", 2, value)
                type_ = f"{name}.{entry.name}"
            added = _add_field(message, field, int(number), "bytes" if lazy else type_)
            if repeated or key:
                added.label = _KINDS.LABEL_REPEATED
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(file.SerializeToString())
    return {
        message.name: message_factory.GetMessageClass(
            pool.FindMessageTypeByName(f"memhouse.{message.name}")
        )
        for message in file.message_type
    }


def _add_field(
    message: descriptor_pb2.DescriptorProto, name: str, number: int, type_: str
) -> descriptor_pb2.FieldDescriptorProto:
    added = message.field.add(name=name, number=number, label=_KINDS.LABEL_OPTIONAL)
    added.type = _SCALARS.get(type_, _KINDS.TYPE_MESSAGE)
    if added.type == _KINDS.TYPE_MESSAGE:
        added.type_name = f".memhouse.{type_}"
    return added


def parse(type_: str, data: bytes | memoryview) -> Any:
    """The message of this type. Raises protobuf's DecodeError, see `damage_as_dump_error`."""
    return _classes()[type_].FromString(data)


def checked_number(message: Any, field: str, owner: str, largest: int = LARGEST_ID) -> int:
    """A number of a message. Raises DumpError, which names the owner, if it is out of range."""
    number: int = getattr(message, field)
    if not 0 <= number <= largest:
        raise DumpError(
            f"{owner}: the {field} {number} is negative or over {largest}: dump the program again"
        )
    return number


@contextmanager
def damage_as_dump_error() -> Iterator[None]:
    """Raise DumpError for bytes that cannot be parsed, and for a text that is not UTF-8."""
    try:
        yield
    except DecodeError:
        raise DumpError(
            "the file is cut short or damaged, or not a protocol buffer: dump the program again"
        ) from None
    except UnicodeDecodeError as error:
        text = error.object[:80]
        raise DumpError(
            f"a text is not UTF-8, {text!r}: the file is damaged, dump it again"
        ) from None
