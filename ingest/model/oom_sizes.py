"""Sizes as XLA prints them in messages: rounded, and exact where the whole shape is there."""

import re
from dataclasses import dataclass

from ...schema.array_shapes.shape_sizes import logical_bytes, padded_bytes
from ...schema.array_shapes.shapes import ArrayShape, parse_shape

# `22.00G`, `16.0K`, `512B` and, of GPUs, `6.00MiB`.
SIZE = r"(?:\d{1,9}(?:\.\d{1,3})?[KMGTPE](?![A-Za-z])|\d{1,18}B(?![A-Za-z]))"
SIZE_GPU = r"(?:\d{1,9}(?:\.\d{1,3})?(?:[KMGTPE]iB|B))"
_SIZE = re.compile(r"(?P<number>\d+(?:\.(?P<digits>\d+))?)(?P<unit>[KMGTPE]?)(?:iB|B)?")
_UNITS = {unit: 1024**power for power, unit in enumerate(("", "K", "M", "G", "T", "P", "E"))}


@dataclass(frozen=True)
class PrintedSize:
    """A printed size: its bytes, and by how many bytes it may be rounded, 0 if exact."""

    size_bytes: int
    rounding: float = 0.0

    def agrees(self, size_bytes: float, rounding: float = 0.0) -> bool:
        """Whether the printed size may stand for these bytes."""
        return abs(self.size_bytes - size_bytes) <= self.rounding + rounding + 1


def parse_size(text: str) -> PrintedSize:
    """Parse a text that matches SIZE or SIZE_GPU."""
    match = _SIZE.fullmatch(text)
    assert match is not None, text
    unit = _UNITS[match["unit"]]
    if unit == 1:
        return PrintedSize(int(float(match["number"])))
    rounding = unit * 10.0 ** -len(match["digits"] or "") / 2
    return PrintedSize(round(float(match["number"]) * unit), rounding)


def shape_sizes(text: str) -> tuple[str, int, int] | None:
    """Element type, logical and padded bytes of a whole array shape, else None."""
    try:
        shape = parse_shape(text)
        if isinstance(shape, ArrayShape):
            return shape.element_type, logical_bytes(shape), padded_bytes(shape)
    except ValueError:
        pass
    return None
