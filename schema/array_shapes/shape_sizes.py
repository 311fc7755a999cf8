"""The sizes of XLA's shapes in bytes, with and without tile padding."""

from dataclasses import replace
from math import prod

import pyarrow as pa
import pyarrow.compute as pc

from .shapes import (
    COMBINE,
    ELEMENT_BYTES,
    UNBOUNDED,
    ArrayShape,
    Shape,
    TupleShape,
    parse_shape,
    shorten,
)

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
    """Replace the most minor of `sizes` by a grid of tiles, followed by the tile."""
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
    """Whether the shape alone tells the array's bytes."""
    known = shape.element_type in ELEMENT_BYTES or shape.element_bits > 0
    return known and UNBOUNDED not in shape.dimensions


def _round_up(number: int, multiple: int) -> int:
    return -(-number // multiple) * multiple


_INT64_MAX = 2**63 - 1
_COLUMNS = pa.schema(
    {"element_type": pa.string(), "logical_bytes": pa.int64(), "padded_bytes": pa.int64()}
)


def shape_columns(shapes: pa.Array | pa.ChunkedArray) -> pa.Table:
    """Return `element_type`, `logical_bytes` and `padded_bytes` of a column of shape texts.

    A row is null for a null and for a tuple, because a tuple has no element type and its value
    is only an index table. The bytes are null for an unbounded array and for an element type
    that is not known. A text that begins with `(` counts as a tuple, unparsed. Raises
    ValueError for a text that is not a shape.
    """
    # Programs repeat few shapes many times, so only distinct texts are parsed.
    distinct = pc.unique(shapes)
    rows = [_row(text) for text in distinct.to_pylist()]
    return pa.Table.from_pylist(rows, _COLUMNS).take(pc.index_in(shapes, value_set=distinct))


def _row(text: str | None) -> dict[str, str | int]:
    shape = None if text is None or text.startswith("(") else parse_shape(text)
    if not isinstance(shape, ArrayShape):
        return {}
    if not has_size(shape):
        return {"element_type": shape.element_type}
    logical, padded = logical_bytes(shape), padded_bytes(shape)
    if padded > _INT64_MAX:
        raise ValueError(f"shape {shorten(str(shape))} has more bytes than 64 bits can count")
    return dict(zip(_COLUMNS.names, (shape.element_type, logical, padded), strict=True))
