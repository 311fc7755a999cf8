"""XLA's shapes and shardings as protocol buffers, printed as HLO text prints them."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from ...xla.errors import DumpError
from .proto_schema import parse

# XLA's numbers of element types: `PrimitiveType` in xla_data.proto.
_TUPLE, _OPAQUE, _TOKEN, _BUFFER = 13, 14, 17, 34
_ELEMENT_TYPES = {
    **dict(zip(range(1, 6), ("pred", "s8", "s16", "s32", "s64"), strict=True)),
    **dict(zip(range(6, 10), ("u8", "u16", "u32", "u64"), strict=True)),
    **dict(zip(range(10, 15), ("f16", "f32", "f64", "tuple", "opaque"), strict=True)),
    **dict(zip(range(15, 19), ("c64", "bf16", "token", "c128"), strict=True)),
    **dict(zip(range(19, 23), ("f8e5m2", "f8e4m3fn", "s4", "u4"), strict=True)),
    **dict(zip(range(23, 26), ("f8e4m3b11fnuz", "f8e5m2fnuz", "f8e4m3fnuz"), strict=True)),
    **dict(zip(range(26, 30), ("s2", "u2", "f8e4m3", "f8e3m4"), strict=True)),
    **dict(zip(range(30, 34), ("s1", "u1", "f4e2m1fn", "f8e8m0fnu"), strict=True)),
}
_UNBOUNDED = _COMBINE = -(2**63)  # a dimension's `?` and a tile's `*`
_MOST_DEEP = 100  # as of shapes in text
_TEXT_PER_BYTE = 16

_REPLICATED, _MAXIMAL, _SHARDINGS, _OTHER, _MANUAL, _UNKNOWN, _UNREDUCED = range(7)
_WHOLE = {
    _REPLICATED: "replicated",
    _MANUAL: "manual",
    _UNKNOWN: "unknown",
    _UNREDUCED: "unreduced",
}
_SUBGROUPS = {_REPLICATED: "replicated", _MAXIMAL: "maximal", _MANUAL: "manual"}
_SUBGROUPS[_UNREDUCED] = "unreduced"


@dataclass(frozen=True, slots=True)
class ShapeText:
    """A shape as text, with and without layouts; `elements` are a tuple's, None of an array."""

    text: str
    without_layout: str
    elements: tuple["ShapeText", ...] | None = None

    def at(self, index: tuple[int, ...]) -> "ShapeText | None":
        """The sub-shape at a shape index; None if there is none."""
        found = self
        for number in index:
            if found.elements is None or not 0 <= number < len(found.elements):
                return None
            found = found.elements[number]
        return found

    def leaves(self, index: tuple[int, ...] = ()) -> Iterator[tuple[tuple[int, ...], "ShapeText"]]:
        """The sub-shapes that are not tuples, with their indices."""
        if self.elements is None:
            yield index, self
            return
        for number, element in enumerate(self.elements):
            yield from element.leaves((*index, number))


class ShapeReader:
    """Reads a file's shapes; equal bytes are read once, because programs repeat few shapes."""

    def __init__(self, file_bytes: int) -> None:
        self._known: dict[bytes, ShapeText] = {}
        # Each level of nested tuples repeats the text of the levels within.
        self._room = _TEXT_PER_BYTE * file_bytes

    def read(self, data: bytes, depth: int = 0) -> ShapeText:
        """The shape that a ShapeProto says. Raises DumpError."""
        found = self._known.get(data)
        if found is None:
            found = self._known[data] = self._read(parse("ShapeProto", data), depth)
            self._room -= len(found.text)
            if self._room < 0:
                raise DumpError("the tuples in a shape nest too deep: the file is damaged")
        return found

    def _read(self, shape: Any, depth: int) -> ShapeText:
        if depth > _MOST_DEEP:
            raise DumpError(f"a shape has over {_MOST_DEEP} nested tuples: the file is damaged")
        elements = [self.read(element, depth + 1) for element in shape.tuple_shapes]
        if shape.element_type == _TUPLE:
            return tuple_shape(elements)
        if shape.element_type == _BUFFER:
            if len(elements) != 1:
                raise DumpError("a buffer type is not of one array: the file is damaged")
            (of,) = elements
            return ShapeText(f"b({of.text})", f"b({of.without_layout})")
        name = _ELEMENT_TYPES.get(shape.element_type, f"type{shape.element_type}")
        sizes, dynamic = shape.dimensions, shape.is_dynamic_dimension
        texts = [_size_text(size, i < len(dynamic) and dynamic[i]) for i, size in enumerate(sizes)]
        plain = f"{name}[{','.join(texts)}]"
        if not shape.HasField("layout") or shape.element_type in (_OPAQUE, _TOKEN):
            return ShapeText(plain, plain)
        return ShapeText(plain + self._layout(shape.layout, bool(sizes), depth), plain)

    def _layout(self, layout: Any, has_dimensions: bool, depth: int) -> str:
        """A layout in braces; of a scalar without properties nothing."""
        if any(layout.dim_level_types):
            raise DumpError("a layout is sparse, which memhouse cannot read")
        tiles = "".join(f"({','.join(map(_tile_text, t.dimensions))})" for t in layout.tiles)
        tail, bits = layout.tail_padding_alignment_in_elements, layout.element_size_in_bits
        index, pointer = layout.index_primitive_type, layout.pointer_primitive_type
        space, prefix = layout.memory_space, layout.dynamic_shape_metadata_prefix_bytes
        splits = "".join(
            f"({split.dimension}:{','.join(map(str, split.split_indices))})"
            for split in layout.split_configs
        )
        physical = ""
        if layout.HasField("physical_shape"):
            physical = self.read(layout.physical_shape, depth + 1).text
        properties = "".join(
            (
                f"T{tiles}" if tiles else "",
                f"L({tail})" if tail not in (0, 1) else "",
                f"#({_ELEMENT_TYPES.get(index, index)})" if index else "",
                f"*({_ELEMENT_TYPES.get(pointer, pointer)})" if pointer else "",
                f"E({bits})" if bits else "",
                f"S({space})" if space else "",
                f"SC{splits}" if splits else "",
                f"P({physical})" if physical else "",
                f"M({prefix})" if prefix else "",
            )
        )
        if not properties and not has_dimensions:
            return ""
        minor_to_major = ",".join(map(str, layout.minor_to_major))
        return f"{{{minor_to_major}:{properties}}}" if properties else f"{{{minor_to_major}}}"


def tuple_shape(elements: list[ShapeText]) -> ShapeText:
    """The tuple of some shapes: every fifth element is numbered."""
    return ShapeText(
        f"({numbered_list([element.text for element in elements])})",
        f"({numbered_list([element.without_layout for element in elements])})",
        tuple(elements),
    )


def numbered_list(texts: list[str]) -> str:
    """Texts with commas between them; every fifth is numbered, as XLA does in long lists."""
    return ", ".join(
        f"/*index={place}*/{text}" if place and place % 5 == 0 else text
        for place, text in enumerate(texts)
    )


def _size_text(size: int, is_dynamic: int) -> str:
    if size == _UNBOUNDED:
        return "?"
    return f"<={size}" if is_dynamic else str(size)


def _tile_text(size: int) -> str:
    return "*" if size == _COMBINE else str(size)


def sharding_text(data: bytes, *, depth: int = 0) -> str | None:
    """An OpSharding as text, such as `{devices=[4,1]<=[4]}`; None if it names mesh axes.

    Raises DumpError.
    """
    if depth > 1:
        raise DumpError("a sharding's tuples are nested: the file is damaged")
    sharding = parse("OpSharding", data)
    if sharding.named_sharding:
        return None
    if sharding.type == _SHARDINGS:
        elements = [sharding_text(e, depth=depth + 1) for e in sharding.tuple_shardings]
        texts = [text for text in elements if text is not None]
        return f"{{{numbered_list(texts)}}}" if len(texts) == len(elements) else None
    like = "like" if sharding.shard_group_type else "as"
    group = f" shard_{like} {sharding.shard_group_id}" if sharding.is_shard_group else ""
    return f"{{{_leaf(sharding)}{group}}}"


def _leaf(sharding: Any) -> str:
    if sharding.type in _WHOLE:
        return _WHOLE[sharding.type]
    devices = _joined(sharding.tile_assignment_devices)
    if sharding.type == _MAXIMAL:
        return f"maximal device={devices}"
    reshape, transpose = sharding.iota_reshape_dims, sharding.iota_transpose_perm
    if reshape:
        devices = f"<=[{_joined(reshape)}]"
        # XLA does not print a transposition of one dimension, which changes nothing.
        if len(transpose) > 1:
            devices += f"T({_joined(transpose)})"
    text = f"devices=[{_joined(sharding.tile_assignment_dimensions)}]{devices}"
    if sharding.replicate_on_last_tile_dim:
        text += " last_tile_dim_replicate"
    if sharding.last_tile_dims:
        types = [_SUBGROUPS.get(type_, "error_type.") for type_ in sharding.last_tile_dims]
        text += f" last_tile_dims={{{', '.join(types)}}}"
    return text


def _joined(values: Iterable[int]) -> str:
    return ",".join(map(str, values))
