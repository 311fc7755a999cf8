"""XLA's shapes as protocol buffers, printed as HLO text prints them."""

from collections.abc import Iterator
from dataclasses import dataclass

from ...xla.errors import DumpError
from .wire_scalar import Field, content, fields, number_of, numbers

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

# Fields of ShapeProto and of LayoutProto.
_TYPE, _DIMENSIONS, _ELEMENTS, _LAYOUT, _DYNAMIC = 2, 3, 4, 5, 6
_ORDER, _TILES, _BITS, _SPACE, _LEVELS, _PHYSICAL, _INDICES, _POINTERS = 1, 6, 7, 8, 9, 10, 11, 12
_PREFIX, _TAIL, _SPLITS = 15, 16, 17


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

    def __init__(self, data: bytes | memoryview) -> None:
        self._data = data
        self._known: dict[bytes, ShapeText] = {}
        # Each level of nested tuples repeats the text of the levels within.
        self._room = _TEXT_PER_BYTE * len(data)

    def read(self, start: int, end: int, depth: int = 0) -> ShapeText:
        """The shape between two bytes of the file. Raises DumpError."""
        key = bytes(self._data[start:end])
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._read(start, end, depth)
            self._room -= len(found.text)
            if self._room < 0:
                raise DumpError(f"the tuples in the shape at byte {start} nest too deep")
        return found

    def _read(self, start: int, end: int, depth: int) -> ShapeText:
        if depth > _MOST_DEEP:
            raise DumpError(f"over {_MOST_DEEP} nested tuples at byte {start}")
        element_type = 0
        sizes: list[int] = []
        dynamic: list[int] = []
        elements: list[ShapeText] = []
        layout: Field | None = None
        for field in fields(self._data, start, end):
            number = field[0]
            if number == _TYPE:
                element_type = number_of(field)
            elif number == _DIMENSIONS:
                sizes += numbers(self._data, field)
            elif number == _DYNAMIC:
                dynamic += numbers(self._data, field)
            elif number in (_ELEMENTS, _LAYOUT):
                first, stop = content(field)
                if number == _LAYOUT:
                    layout = field
                else:
                    elements.append(self.read(first, stop, depth + 1))
        if element_type == _TUPLE:
            return tuple_shape(elements)
        if element_type == _BUFFER:
            if len(elements) != 1:
                raise DumpError(f"the buffer type at byte {start} is not of one array")
            (of,) = elements
            return ShapeText(f"b({of.text})", f"b({of.without_layout})")
        name = _ELEMENT_TYPES.get(element_type, f"type{element_type}")
        texts = [_size_text(size, i < len(dynamic) and dynamic[i]) for i, size in enumerate(sizes)]
        plain = f"{name}[{','.join(texts)}]"
        if layout is None or element_type in (_OPAQUE, _TOKEN):
            return ShapeText(plain, plain)
        return ShapeText(plain + self._layout(*content(layout), bool(sizes), depth), plain)

    def _layout(self, start: int, end: int, has_dimensions: bool, depth: int) -> str:
        """A layout in braces; of a scalar without properties nothing."""
        data = self._data
        order: list[int] = []
        tiles = splits = physical = ""
        of = dict.fromkeys((_BITS, _SPACE, _INDICES, _POINTERS, _PREFIX, _TAIL), 0)
        for field in fields(data, start, end):
            number = field[0]
            if number == _ORDER:
                order += numbers(data, field)
            elif number == _TILES:
                tiles += f"({','.join(map(_tile_text, _numbers_of(data, field, 1)))})"
            elif number == _LEVELS and any(numbers(data, field)):
                raise DumpError(f"the layout at byte {start} is sparse, which memhouse cannot read")
            elif number == _SPLITS:
                (dimension,) = _numbers_of(data, field, 1) or [0]
                splits += f"({dimension}:{','.join(map(str, _numbers_of(data, field, 2)))})"
            elif number == _PHYSICAL:
                physical = self.read(*content(field), depth + 1).text
            elif number in of:
                of[number] = number_of(field)
        types = {n: f"({_ELEMENT_TYPES.get(of[n], of[n])})" for n in (_INDICES, _POINTERS) if of[n]}
        properties = "".join(
            (
                f"T{tiles}" if tiles else "",
                f"L({of[_TAIL]})" if of[_TAIL] not in (0, 1) else "",
                f"#{types[_INDICES]}" if _INDICES in types else "",
                f"*{types[_POINTERS]}" if _POINTERS in types else "",
                f"E({of[_BITS]})" if of[_BITS] else "",
                f"S({of[_SPACE]})" if of[_SPACE] else "",
                f"SC{splits}" if splits else "",
                f"P({physical})" if physical else "",
                f"M({of[_PREFIX]})" if of[_PREFIX] else "",
            )
        )
        if not properties and not has_dimensions:
            return ""
        minor_to_major = ",".join(map(str, order))
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


def _numbers_of(data: bytes | memoryview, field: Field, wanted: int) -> list[int]:
    """The numbers of one field of a small message."""
    return [
        value
        for inner in fields(data, *content(field))
        if inner[0] == wanted
        for value in numbers(data, inner)
    ]


def _size_text(size: int, is_dynamic: int) -> str:
    if size == _UNBOUNDED:
        return "?"
    return f"<={size}" if is_dynamic else str(size)


def _tile_text(size: int) -> str:
    return "*" if size == _COMBINE else str(size)
