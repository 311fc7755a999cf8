"""The entry computation's arguments and result: their arrays, names and shardings."""

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Final, NamedTuple

from ...xla.errors import LARGEST_SIZE, DumpError
from ...xla.op_names import read_path
from ...xla.program import EntryShape, ShapeIndex, index_text
from ...xla.shapes import Shape, TupleShape, logical_bytes, padded_bytes, parse_shape
from .lines import excerpt

# One sharding in the list of a tuple's shardings; it may contain one more pair of braces.
_ELEMENT_SHARDING: Final = re.compile(r"\{(?:[^{}]|\{[^{}]*\})*\}")


class EntryParameter(NamedTuple):
    """A parameter of the entry computation.

    Attributes:
        name: the argument's name in the framework.
        sharding: as XLA prints it: `{devices=[2,1]<=[2]}`, or of a tuple `{{…}, {…}}`.
    """

    name: str | None = None
    sharding: str | None = None


def argument_name(op_name: str | None) -> str | None:
    """The name in the op_name of an entry parameter.

    None if the op_name is the path of an operation: then XLA made the parameter itself.
    """
    return None if op_name is None or read_path(op_name).has_program else op_name


def read_entry_shapes(signature: str, parameters: Mapping[int, EntryParameter]) -> list[EntryShape]:
    """The arrays of the arguments, in order, then those of the result.

    Args:
        signature: the header's entry_computation_layout: `(f32[2]{0}, s32[])->f32[2]{0}`.
        parameters: by number; a missing one has neither name nor sharding.
    Raises:
        DumpError: the signature cannot be read, or an array is larger than LARGEST_SIZE.
    """
    arguments, arrow, result = signature.partition(")->")
    try:
        if not arrow:
            raise ValueError("there is no '->'")
        shapes = parse_shape(arguments + ")")
        if not isinstance(shapes, TupleShape):
            raise ValueError("the arguments are not in parentheses")
        entry_shapes = [
            entry_shape
            for number, shape in enumerate(shapes.elements)
            for entry_shape in _argument_arrays(number, shape, parameters.get(number))
        ]
        for index, leaf in _leaves(parse_shape(result), ()):
            entry_shapes.append(_entry_shape(leaf, index))
    except ValueError as error:
        raise DumpError(f"the entry computation's signature is wrong: {error}", 1) from None
    return entry_shapes


def _argument_arrays(
    number: int, shape: Shape, parameter: EntryParameter | None
) -> Iterator[EntryShape]:
    leaves = list(_leaves(shape, ()))
    name, sharding = parameter or EntryParameter()
    shardings = _leaf_shardings(sharding, len(leaves))
    for (index, leaf), leaf_sharding in zip(leaves, shardings, strict=True):
        yield _entry_shape(leaf, index)._replace(
            is_output=False, parameter_number=number, argument_name=name, sharding=leaf_sharding
        )


def _leaf_shardings(sharding: str | None, count: int) -> list[str | None]:
    """The sharding of each of an argument's `count` arrays: a tuple's may be a list of these."""
    if sharding is not None and sharding.startswith("{{"):
        leaves: list[str | None] = list(_ELEMENT_SHARDING.findall(sharding[1:-1]))
        if len(leaves) == count:
            return leaves
    return [sharding] * count


def _entry_shape(array: Shape, index: ShapeIndex) -> EntryShape:
    """An array of the result."""
    text, element_type, logical, padded = _describe(array)
    return EntryShape(
        True, None, index_text(index), None, None, text, element_type, logical, padded
    )


# Cached, because a model's layers have the same shapes.
@lru_cache(maxsize=1000)
def _describe(array: Shape) -> tuple[str, str | None, int | None, int | None]:
    """An array's text, element type, logical bytes and padded bytes.

    The bytes are None for an unbounded array. Raises ValueError for one over LARGEST_SIZE.
    """
    element_type = getattr(array, "element_type", None)
    try:
        logical, padded = logical_bytes(array), padded_bytes(array)
    except ValueError:
        return str(array), element_type, None, None
    if padded > LARGEST_SIZE:
        raise ValueError(f"{excerpt(str(array))} takes over {LARGEST_SIZE} bytes")
    return str(array), element_type, logical, padded


def _leaves(shape: Shape, index: ShapeIndex) -> Iterator[tuple[ShapeIndex, Shape]]:
    """The arrays of a shape with their indices."""
    if not isinstance(shape, TupleShape):
        yield index, shape
        return
    for number, element in enumerate(shape.elements):
        yield from _leaves(element, (*index, number))
