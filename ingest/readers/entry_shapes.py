"""The arrays of the entry computation's arguments and result, from its signature."""

from collections.abc import Iterator, Mapping
from functools import lru_cache

import pyarrow as pa

from ...schema.arrow import module_rows
from ...xla.errors import DumpError
from ...xla.limits import LARGEST_SIZE
from ...xla.shapes import Shape, TupleShape, logical_bytes, padded_bytes, parse_shape
from .entry_parameters import EntryParameter
from .lines import excerpt


def entry_shapes(signature: str, parameters: Mapping[int, EntryParameter]) -> pa.Table:
    """Rows of the warehouse's `entry_shapes` for an entry_computation_layout.

    `parameters` says by number what the text says of the arguments elsewhere. Raises DumpError.
    """
    arguments, arrow, result = signature.partition(")->")
    try:
        if not arrow:
            raise ValueError("there is no '->'")
        shapes = parse_shape(arguments + ")")
        if not isinstance(shapes, TupleShape):
            raise ValueError("the arguments are not in parentheses")
        rows = [
            row
            for number, shape in enumerate(shapes.elements)
            for row in _argument_rows(shape, number, parameters.get(number, EntryParameter()))
        ]
        rows += _rows(parse_shape(result), None)
    except ValueError as error:
        raise DumpError(f"the entry computation's signature is wrong: {error}", 1) from None
    return module_rows("entry_shapes", rows)


def _argument_rows(
    shape: Shape, number: int, parameter: EntryParameter
) -> Iterator[dict[str, object]]:
    rows = list(_rows(shape, number))
    shardings = parameter.leaf_shardings(len(rows))
    for row, sharding in zip(rows, shardings, strict=True):
        yield {**row, "argument_name": parameter.name, "sharding": sharding}


def _rows(shape: Shape, parameter_number: int | None) -> Iterator[dict[str, object]]:
    for index, leaf in _leaves(shape, ()):
        yield {
            "is_output": parameter_number is None,
            "parameter_number": parameter_number,
            "shape_index": "{" + ",".join(map(str, index)) + "}",
            **_described(leaf),
        }


# Cached, because a model's layers have the same shapes.
@lru_cache(maxsize=1000)
def _described(shape: Shape) -> dict[str, object]:
    logical, padded = _sizes(shape)
    return {
        "shape": str(shape),
        "element_type": getattr(shape, "element_type", None),
        "logical_bytes": logical,
        "padded_bytes": padded,
    }


def _leaves(shape: Shape, index: tuple[int, ...]) -> Iterator[tuple[tuple[int, ...], Shape]]:
    if not isinstance(shape, TupleShape):
        yield index, shape
        return
    for number, element in enumerate(shape.elements):
        yield from _leaves(element, (*index, number))


def _sizes(shape: Shape) -> tuple[int | None, int | None]:
    """Logical and padded bytes; None for a shape of unbounded size. Raises ValueError."""
    try:
        logical, padded = logical_bytes(shape), padded_bytes(shape)
    except ValueError:
        return None, None
    if padded > LARGEST_SIZE:
        raise ValueError(f"{excerpt(str(shape))} takes over {LARGEST_SIZE} bytes")
    return logical, padded
