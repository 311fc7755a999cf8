"""How many bytes a value occupies, told from its shape and the platform alone."""

from dataclasses import dataclass

import numpy as np
import pyarrow.compute as pc

from ...schema.array_shapes.shape_sizes import allocated_bytes
from ...schema.array_shapes.shapes import ArrayShape
from ..errors import DumpError
from ..limits import LARGEST_ID, LARGEST_SIZE
from .dataflow import Dataflow
from .numbered_program import Ints
from .parts import HloText
from .slots import Slots

CPU, GPU, TPU = "cpu", "gpu", "tpu"

_POINTER_BYTES = {CPU: 8, GPU: 8, TPU: 4}
# 512 on v5e; v5p and v6e round to 32, which the text does not tell. It is less than
# 0.005 % of a peak.
_TPU_TABLE_UNIT = 512


@dataclass(frozen=True)
class Sizes:
    """Of each value: its bytes with padding, and its memory space."""

    size: Ints
    space: Ints


def platform_of(hlo: HloText) -> str:
    """The platform that the text was compiled for: tiled layouts tell a TPU."""
    shapes = pc.unique(hlo.instructions["shape"])
    if pc.any(pc.match_substring(shapes, ":T(")).as_py():
        return TPU
    return GPU if hlo.attributes().is_gpu else CPU


def value_sizes(dataflow: Dataflow, platform: str) -> Sizes:
    """What each value occupies. Raises DumpError for an unbounded shape, which has no size.

    A tuple's size is its table of pointers, which lies in space 0.
    """
    slots = dataflow.slots
    at = dataflow.defined_at
    array = slots.array[at]
    is_array = array >= 0
    arrays = slots.trees.arrays
    try:
        bytes_of = np.array([array_bytes(shape, platform) for shape in arrays] or [0], np.int64)
    except ValueError as error:
        raise DumpError(str(error)) from None
    space_of = np.array([shape.memory_space for shape in arrays] or [0], np.int64)
    table = _table_bytes(slots, at, platform)
    return Sizes(np.where(is_array, bytes_of[array], table), np.where(is_array, space_of[array], 0))


def array_bytes(shape: ArrayShape, platform: str) -> int:
    """An array's bytes as XLA allocates them on the platform.

    Raises ValueError for an unbounded shape, or one beyond all memory.
    """
    size = allocated_bytes(shape, platform == TPU)
    if size > LARGEST_SIZE or shape.memory_space > LARGEST_ID:
        raise ValueError(f"shape {str(shape)[:80]!r} is larger than any memory")
    return size


def _table_bytes(slots: Slots, at: Ints, platform: str) -> Ints:
    """The bytes of a tuple's table of pointers."""
    table = slots.element_count(at) * _POINTER_BYTES[platform]
    if platform == TPU:
        table = -(-table // _TPU_TABLE_UNIT) * _TPU_TABLE_UNIT
    return table
