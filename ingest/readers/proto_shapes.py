"""Shapes and shardings of protocol buffers."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Final

from ...xla.errors import DumpError
from ...xla.shapes import COMBINE, UNBOUNDED, ArrayShape, Shape, TupleShape
from .proto_schema import parse

# XLA's numbers of element types: `PrimitiveType` in xla_data.proto.
_TUPLE: Final = 13
_OPAQUE: Final = 14
_TOKEN: Final = 17
_BUFFER: Final = 34
_ELEMENT_TYPE_NAMES: Final = (
    "pred", "s8", "s16", "s32", "s64", "u8", "u16", "u32", "u64", "f16", "f32", "f64", "tuple",
    "opaque", "c64", "bf16", "token", "c128", "f8e5m2", "f8e4m3fn", "s4", "u4", "f8e4m3b11fnuz",
    "f8e5m2fnuz", "f8e4m3fnuz", "s2", "u2", "f8e4m3", "f8e3m4", "s1", "u1", "f4e2m1fn", "f8e8m0fnu",
)  # fmt: skip
_ELEMENT_TYPES: Final = dict(enumerate(_ELEMENT_TYPE_NAMES, start=1))
_SMALLEST_INT64: Final = -(2**63)  # a dimension's `?` and a tile's `*`
_MAX_DEPTH: Final = 100  # the limit of shapes in text


class ShapeReader:
    """Decodes the shapes of a file, each distinct one once."""

    def __init__(self) -> None:
        self._shapes: dict[bytes, Shape] = {}
        self._arrays: dict[bytes, ArrayShape] = {}

    def read(self, data: bytes) -> Shape:
        """The shape in a ShapeProto. Raises DumpError."""
        shape = self._shapes.get(data)
        if shape is None:
            shape = self._shapes[data] = self._decode(data, 0)
        return shape

    def _decode(self, data: bytes, depth: int) -> Shape:
        """The shape, which is within `depth` other shapes.

        Tuples within tuples are not cached, so that no shape gets deeper than the limit.
        """
        if data in self._arrays:
            return self._arrays[data]
        if depth > _MAX_DEPTH:
            raise DumpError(f"a shape has over {_MAX_DEPTH} nested tuples: the file is damaged")
        message = parse("ShapeProto", data)
        elements = [self._decode(element, depth + 1) for element in message.tuple_shapes]
        if message.element_type == _TUPLE:
            return TupleShape(tuple(elements))
        if message.element_type == _BUFFER:
            if len(elements) != 1 or not isinstance(elements[0], ArrayShape):
                raise DumpError("a buffer type is not of one array: the file is damaged")
            array = replace(elements[0], is_buffer=True)
        else:
            array = self._decode_array(message, depth)
        self._arrays[data] = array
        return array

    def _decode_array(self, message: Any, depth: int) -> ArrayShape:
        number = message.element_type
        element_type = _ELEMENT_TYPES.get(number, f"type{number}")
        sizes = [UNBOUNDED if size == _SMALLEST_INT64 else size for size in message.dimensions]
        dynamic = tuple(
            dimension
            for dimension, is_dynamic in enumerate(message.is_dynamic_dimension[: len(sizes)])
            if is_dynamic and sizes[dimension] != UNBOUNDED
        )
        array = ArrayShape(element_type, tuple(sizes), dynamic)
        if not message.HasField("layout") or number in (_OPAQUE, _TOKEN):
            return array
        return self._with_layout(array, message.layout, depth)

    def _with_layout(self, array: ArrayShape, layout: Any, depth: int) -> ArrayShape:
        if any(layout.dim_level_types):
            raise DumpError("a layout is sparse, which memhouse cannot read")
        splits = [f"({s.dimension}:{_joined(s.split_indices)})" for s in layout.split_configs]
        rest = f"SC{''.join(splits)}" if splits else ""
        if layout.HasField("physical_shape"):
            rest += f"P({self._decode(layout.physical_shape, depth + 1)})"
        prefix_bytes = layout.dynamic_shape_metadata_prefix_bytes
        rest += f"M({prefix_bytes})" if prefix_bytes else ""
        with_layout = replace(
            array,
            minor_to_major=tuple(layout.minor_to_major),
            tiles=tuple(
                tuple(COMBINE if size == _SMALLEST_INT64 else size for size in tile.dimensions)
                for tile in layout.tiles
            ),
            # 0 and 1 both stand for no padding.
            tail_padding=layout.tail_padding_alignment_in_elements or 1,
            element_bits=layout.element_size_in_bits,
            memory_space=layout.memory_space,
            rest=rest,
        )
        # XLA prints no layout for a scalar without properties.
        without_properties = replace(array, minor_to_major=with_layout.minor_to_major)
        if not array.dimensions and with_layout == without_properties:
            return array
        return with_layout


def shape_without_layout(shape: Shape) -> Shape:
    """The shape without its layouts, as XLA prints it for allocations."""
    if isinstance(shape, ArrayShape):
        return replace(shape, minor_to_major=None)
    return TupleShape(tuple([shape_without_layout(element) for element in shape.elements]))


# `OpSharding.Type` in xla_data.proto: maximal is on one device, tuple has one for each element.
_MAXIMAL: Final = 1
_TUPLE_SHARDING: Final = 2
_WHOLE_SHARDINGS: Final = {0: "replicated", 4: "manual", 5: "unknown", 6: "unreduced"}
_SUBGROUPS: Final = {0: "replicated", 1: "maximal", 4: "manual", 6: "unreduced"}


def sharding_text(data: bytes, *, depth: int = 0) -> str | None:
    """An OpSharding as HLO text, such as `{devices=[4,1]<=[4]}`; None if it names mesh axes.

    Raises DumpError.
    """
    if depth > 1:
        raise DumpError("a sharding's tuples are nested: the file is damaged")
    sharding = parse("OpSharding", data)
    if sharding.named_sharding:
        return None
    if sharding.type == _TUPLE_SHARDING:
        elements: list[str] = []
        for number, element in enumerate(sharding.tuple_shardings):
            text = sharding_text(element, depth=depth + 1)
            if text is None:
                return None
            # XLA numbers every fifth element of a long list.
            elements.append(f"/*index={number}*/{text}" if number and number % 5 == 0 else text)
        return f"{{{', '.join(elements)}}}"
    like = "like" if sharding.shard_group_type else "as"
    group = f" shard_{like} {sharding.shard_group_id}" if sharding.is_shard_group else ""
    return f"{{{_sharding_of_array(sharding)}{group}}}"


def _sharding_of_array(sharding: Any) -> str:
    if sharding.type in _WHOLE_SHARDINGS:
        return _WHOLE_SHARDINGS[sharding.type]
    devices = _joined(sharding.tile_assignment_devices)
    if sharding.type == _MAXIMAL:
        return f"maximal device={devices}"
    if sharding.iota_reshape_dims:
        devices = f"<=[{_joined(sharding.iota_reshape_dims)}]"
        # XLA does not print a transposition of one dimension, which changes nothing.
        if len(sharding.iota_transpose_perm) > 1:
            devices += f"T({_joined(sharding.iota_transpose_perm)})"
    text = f"devices=[{_joined(sharding.tile_assignment_dimensions)}]{devices}"
    if sharding.replicate_on_last_tile_dim:
        text += " last_tile_dim_replicate"
    if sharding.last_tile_dims:
        types = [_SUBGROUPS.get(type_, "error_type.") for type_ in sharding.last_tile_dims]
        text += f" last_tile_dims={{{', '.join(types)}}}"
    return text


def _joined(numbers: Iterable[int]) -> str:
    return ",".join(map(str, numbers))
