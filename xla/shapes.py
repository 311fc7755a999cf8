"""XLA's shapes: their text, and their bytes with and without tile padding.

`bf16[4,8,513]{2,1,0:T(8,128)(2,1)S(1)}` is an array: element type, dimensions and layout. The
layout is the order of the dimensions from minor to major and, after the colon, properties such
as tiles (T) and the memory space (S). `(f32[2]{0}, token[])` is a tuple.
"""

import re
from dataclasses import dataclass, replace
from functools import lru_cache
from math import prod
from typing import NamedTuple, TypeAlias

from .errors import DumpError

COMBINE = -1  # a tile's `*`: the dimension joins the next more minor one before tiling
UNBOUNDED = -1  # a dimension's `?`: its size is unknown at compile time

# Bytes of one element if the layout has no E(bits). XLA then stores even a 2-bit or 4-bit
# element in its own byte; compilers that pack such elements always print E(bits).
# A token carries no data, and an opaque value's bytes belong to its owner.
ELEMENT_BYTES = {
    **dict.fromkeys(("token", "opaque"), 0),
    **dict.fromkeys(("pred", "s1", "u1", "s2", "u2", "s4", "u4", "s8", "u8"), 1),
    **dict.fromkeys(("f4e2m1fn", "f8e3m4", "f8e4m3", "f8e4m3b11fnuz", "f8e4m3fn"), 1),
    **dict.fromkeys(("f8e4m3fnuz", "f8e5m2", "f8e5m2fnuz", "f8e8m0fnu"), 1),
    **dict.fromkeys(("s16", "u16", "f16", "bf16"), 2),
    **dict.fromkeys(("s32", "u32", "f32"), 4),
    **dict.fromkeys(("s64", "u64", "f64", "c64"), 8),
    "c128": 16,
}


@dataclass(frozen=True, slots=True)
class ArrayShape:
    """An array, token or opaque value; `str()` prints it as XLA does.

    An `element_type` that is not in ELEMENT_BYTES is a newer XLA's; only E(bits) gives its size.
    Layout properties require `minor_to_major`; their defaults are not printed.
    """

    element_type: str
    dimensions: tuple[int, ...] = ()  # the bound of a dynamic one, or UNBOUNDED
    dynamic: tuple[int, ...] = ()  # positions of the dimensions with a bound, ascending
    minor_to_major: tuple[int, ...] | None = None  # None: printed without a layout
    tiles: tuple[tuple[int, ...], ...] = ()  # T(…)(…); a tile's dimension may be COMBINE
    tail_padding: int = 1  # L(n): padded at its end to a multiple of n elements
    element_bits: int = 0  # E(n): elements are packed, n bits each; 0: whole bytes
    memory_space: int = 0  # S(n); 0 is the device's main memory
    rest: str = ""  # SC(…)(…) split configs, P(…) physical shape, M(n) prefix, as printed
    is_buffer: bool = False  # b(…): a mutable buffer of this array

    def __str__(self) -> str:
        sizes = ["?" if size == UNBOUNDED else str(size) for size in self.dimensions]
        for i in self.dynamic:
            sizes[i] = "<=" + sizes[i]
        text = f"{self.element_type}[{','.join(sizes)}]{self._layout_text()}"
        return f"b({text})" if self.is_buffer else text

    def _layout_text(self) -> str:
        if self.minor_to_major is None:
            return ""
        tiles = "".join(map(_tile_text, self.tiles))
        properties = "".join(
            (
                f"T{tiles}" if tiles else "",
                f"L({self.tail_padding})" if self.tail_padding != 1 else "",
                f"E({self.element_bits})" if self.element_bits else "",
                f"S({self.memory_space})" if self.memory_space else "",
                self.rest,
            )
        )
        order = ",".join(map(str, self.minor_to_major))
        return f"{{{order}:{properties}}}" if properties else f"{{{order}}}"


@dataclass(frozen=True, slots=True)
class TupleShape:
    """A tuple of shapes; `str()` prints it as XLA does, every fifth element numbered."""

    elements: tuple["Shape", ...] = ()

    def __str__(self) -> str:
        texts = [
            f"/*index={i}*/{element}" if i and i % 5 == 0 else str(element)
            for i, element in enumerate(self.elements)
        ]
        return f"({', '.join(texts)})"


Shape: TypeAlias = ArrayShape | TupleShape


def _tile_text(tile: tuple[int, ...]) -> str:
    return f"({','.join('*' if size == COMBINE else str(size) for size in tile)})"


# XLA's sizes are 64-bit, and the limit on digits keeps hostile numbers cheap. A tile's
# dimension is never 0, and `*` needs a more minor dimension to join. P(…) holds a shape, whose
# parentheses nest at most twice (a tile within a tuple).
_INT = r"[0-9]{1,19}"
_DIMENSION = rf"(?:<={_INT}|{_INT}|\?)"
_POSITIVE = r"[1-9][0-9]{0,18}"
_TILE = rf"\((?:(?:\*|{_POSITIVE}),)*+{_POSITIVE}\)"
_ARRAY = re.compile(
    rf"""
    (b\()?
    ([a-z][a-z0-9]*) \[ ((?:{_DIMENSION}(?:,{_DIMENSION})*+)?) \]
    (?: \{{ ((?:{_INT}(?:,{_INT})*+)?)
        (?: :
            (?: T ((?:{_TILE})++) )?
            (?: L \( ({_POSITIVE}) \) )?
            (?: E \( ({_INT}) \) )?
            (?: S \( ({_INT}) \) )?
            (   (?: SC (?: \( [0-9:,]+ \) )++ )?
                (?: P \( (?: [^()] | \( (?: [^()] | \([^()]*+\) )*+ \) )*+ \) )?
                (?: M \( {_INT} \) )?
            )
        )?
    \}} )?
    (?(1) \) )
    """,
    re.VERBOSE,
)
_NEXT = re.compile(r"\)|,\s*(?:/\*index=[0-9]+\*/)?")

# The form of most element types: a newer XLA may have more of them.
_NEWER_TYPE = re.compile(r"[a-z]{1,3}[0-9][a-z0-9]*")

# Real shapes nest about three deep. The limit keeps a hostile text from exhausting the stack,
# here and in code that later walks, prints or compares the shape.
_MAX_DEPTH = 100


@lru_cache(maxsize=2048)
def parse_shape(text: str) -> Shape:
    """Parse `text` as one shape; cached, because a program repeats few shapes.

    Raises ValueError with the position and the text there.
    """
    shape, end = _parse(text, 0, 0)
    if end != len(text):
        raise _error(text, end, "the end of the shape")
    return shape


def _parse(text: str, start: int, depth: int) -> tuple[Shape, int]:
    """Parse the shape at `start`; returns the shape and its end."""
    if not text.startswith("(", start):
        return _parse_array(text, start)
    if text.startswith(")", start + 1):
        return TupleShape(), start + 2
    if depth == _MAX_DEPTH:
        raise _error(text, start, f"at most {_MAX_DEPTH} nested tuples")
    elements: list[Shape] = []
    end = start + 1
    while True:
        element, end = _parse(text, end, depth + 1)
        elements.append(element)
        after = _NEXT.match(text, end)
        if after is None:
            raise _error(text, end, "',' or ')' in a tuple")
        end = after.end()
        if after[0] == ")":
            return TupleShape(tuple(elements)), end


def _parse_array(text: str, start: int) -> tuple[ArrayShape, int]:
    match = _ARRAY.match(text, start)
    if match is None:
        raise _error(text, start, "a shape such as f32[2,3]{1,0}")
    buffer, element_type, sizes, order, tiles, tail, bits, space, rest = match.groups()
    if element_type not in ELEMENT_BYTES and not _NEWER_TYPE.fullmatch(element_type):
        raise _error(text, match.start(2), "an element type of XLA")
    dimensions, dynamic = _read_dimensions(sizes)
    minor_to_major = None
    if order is not None:
        minor_to_major = _read_ints(order)
        if sorted(minor_to_major) != list(range(len(dimensions))):
            raise _error(text, match.start(4), f"each of {len(dimensions)} dimensions once")
    elif text.startswith("{", match.end()):
        # The layout is optional, so the match ends before an invalid layout.
        raise _error(text, match.end(), "a layout such as {1,0:T(8,128)S(1)}")
    shape = ArrayShape(
        element_type,
        dimensions,
        dynamic,
        minor_to_major,
        _read_tiles(tiles) if tiles else (),
        int(tail) if tail else 1,
        int(bits) if bits else 0,
        int(space) if space else 0,
        rest or "",
        buffer is not None,
    )
    return shape, match.end()


def _read_dimensions(text: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the sizes, and the positions of the sizes that are bounds."""
    if "<" not in text and "?" not in text:
        return _read_ints(text), ()
    sizes = text.split(",")
    dynamic = tuple(i for i, size in enumerate(sizes) if size.startswith("<="))
    return tuple(UNBOUNDED if s == "?" else int(s.removeprefix("<=")) for s in sizes), dynamic


def _read_ints(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split(","))) if text else ()


def _read_tiles(text: str) -> tuple[tuple[int, ...], ...]:
    return tuple(
        tuple(COMBINE if size == "*" else int(size) for size in tile.split(","))
        for tile in text[1:-1].split(")(")
    )


def _error(text: str, position: int, expected: str) -> DumpError:
    actual = repr(text[position : position + 20]) if position < len(text) else "the end"
    return DumpError(
        f"shape {shorten(text)}: expected {expected} at position {position}, found {actual}"
    )


def shorten(text: str) -> str:
    """A shape's text for a message, quoted and truncated."""
    return repr(text if len(text) <= 80 else text[:77] + "...")


_TPU_UNIT = 1024  # elements that a TPU rounds an array without tiles up to
_TPU_PACKED_SPACE = 2  # there it does not


def logical_bytes(shape: Shape) -> int:
    """Return the bytes of the shape's elements alone, without padding.

    A dynamic dimension counts as its bound. A tuple's bytes are the sum over its leaves, but a
    tuple's value in a dump is only its index table. Raises ValueError if a dimension is
    unbounded or the element type is not known.
    """
    if isinstance(shape, TupleShape):
        return sum(map(logical_bytes, shape.elements))
    return _element_bytes(shape, prod(_bounded(shape)))


def padded_bytes(shape: Shape) -> int:
    """Return the bytes of the shape in its layout, padded to its tiles.

    This is the array's size in the dumps, with the exceptions of `allocated_bytes`.
    Dynamic dimensions, tuples and errors are as in `logical_bytes`.
    """
    if isinstance(shape, TupleShape):
        return sum(map(padded_bytes, shape.elements))
    sizes = list(_bounded(shape))
    if shape.minor_to_major is not None:
        sizes = [sizes[i] for i in reversed(shape.minor_to_major)]
    for tile in shape.tiles:
        _apply_tile(sizes, tile)
    return _element_bytes(shape, _round_up(prod(sizes), shape.tail_padding))


def allocated_bytes(shape: ArrayShape, is_tpu: bool) -> int:
    """Return an array's bytes as XLA allocates them.

    Only a TPU pads to tiles, and not in its packed space. A TPU rounds an array without tiles up,
    which the shape does not show. Errors are as in `logical_bytes`.
    """
    is_padded = is_tpu and shape.memory_space != _TPU_PACKED_SPACE
    size = padded_bytes(shape if is_padded else replace(shape, tiles=()))
    if not is_padded or shape.tiles or not size:
        return size
    elements = prod(shape.dimensions)
    return size * _round_up(elements, _TPU_UNIT) // elements


def _bounded(shape: ArrayShape) -> tuple[int, ...]:
    if UNBOUNDED in shape.dimensions:
        raise ValueError(f"shape {shorten(str(shape))} is unbounded and has no size")
    return shape.dimensions


def _apply_tile(sizes: list[int], tile: tuple[int, ...]) -> None:
    """Replace the last sizes (major to minor) in place by the numbers of tiles, then the tile."""
    sizes[:0] = [1] * (len(tile) - len(sizes))
    grid, inner, combined = [], [], 1
    for size, tile_size in zip(sizes[-len(tile) :], tile, strict=True):
        combined *= size
        if tile_size != COMBINE:
            grid.append(-(-combined // tile_size))
            inner.append(tile_size)
            combined = 1
    sizes[-len(tile) :] = grid + inner


def _element_bytes(shape: ArrayShape, elements: int) -> int:
    if shape.element_bits:
        return _round_up(elements * shape.element_bits, 8) // 8
    if shape.element_type not in ELEMENT_BYTES:
        raise ValueError(
            f"shape {shorten(str(shape))}: the size of element type "
            f"{shape.element_type!r} is not known"
        )
    return elements * ELEMENT_BYTES[shape.element_type]


def has_size(shape: ArrayShape) -> bool:
    """Whether the shape alone determines the array's bytes."""
    known = shape.element_type in ELEMENT_BYTES or shape.element_bits > 0
    return known and UNBOUNDED not in shape.dimensions


def _round_up(number: int, multiple: int) -> int:
    return -(-number // multiple) * multiple


_INT64_MAX = 2**63 - 1


class ArraySize(NamedTuple):
    """The element type and the bytes of an array, without and with tile padding.

    The bytes are None if the array is unbounded or its element type is not known; all are None
    for a tuple, which has no element type, and whose value is only an index table.
    """

    element_type: str | None
    logical_bytes: int | None
    padded_bytes: int | None


# A program has few distinct shapes, each many times.
@lru_cache(maxsize=10_000)
def array_size(text: str) -> ArraySize:
    """The size of a shape's text; one that starts with `(` counts as a tuple, unparsed.

    Raises ValueError for a text that is not a shape, and for more bytes than 64 bits can count.
    """
    shape = None if text.startswith("(") else parse_shape(text)
    if not isinstance(shape, ArrayShape):
        return ArraySize(None, None, None)
    if not has_size(shape):
        return ArraySize(shape.element_type, None, None)
    logical, padded = logical_bytes(shape), padded_bytes(shape)
    if padded > _INT64_MAX:
        raise DumpError(f"shape {shorten(str(shape))} has more bytes than 64 bits can count")
    return ArraySize(shape.element_type, logical, padded)
