"""How many elements and bytes an array of HLO text has, without what a layout adds."""

import math
import re

from .plain_text import Shape

BITS = re.compile(r"(\d+)")


def size(shape: Shape) -> float:
    """The bytes of a shape's elements, without what a layout adds."""
    if isinstance(shape, tuple):
        return sum(size(part) for part in shape)
    kind, _, rest = shape.partition("[")
    return elements(rest.partition("]")[0]) * bits(kind) / 8


def elements(dimensions: str) -> int:
    """How many elements the dimensions `8,1024` hold; a bounded one (`<=8`) counts in full."""
    return math.prod(int(number.lstrip("<= ")) for number in dimensions.split(",") if number)


def bits(kind: str) -> int:
    """The bits of an element type: `pred` and tokens have none in their name."""
    found = BITS.search(kind)
    if kind.startswith("c") and found:
        return int(found[1])
    return int(found[1]) if found else 8 * (kind == "pred")
