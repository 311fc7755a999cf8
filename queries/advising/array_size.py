"""The dimensions and the number of elements of an array, by its shape's text."""

from math import prod

from ...xla.shapes import ArrayShape, parse_shape


def dimensions(shape: str) -> tuple[int, ...]:
    """The dimensions of an array; of a tuple, those of its first array."""
    parsed = parse_shape(shape)
    while not isinstance(parsed, ArrayShape):
        if not parsed.elements:
            return ()
        parsed = parsed.elements[0]
    return parsed.dimensions


def elements(shape: str) -> int:
    """The number of elements of an array."""
    return prod(dimensions(shape))
