"""The bytes of values, as XLA allocates them on a platform."""

from dataclasses import dataclass
from typing import Final

from .analysis import Dataflow
from .errors import LARGEST_ID, LARGEST_SIZE, DumpError
from .program import Program
from .shapes import ArrayShape, allocated_bytes
from .slots import ShapeTree

CPU, GPU, TPU = "cpu", "gpu", "tpu"

_POINTER_BYTES: Final = {CPU: 8, GPU: 8, TPU: 4}
# 512 on v5e; v5p and v6e round to 32, but the text does not name the device. The difference is
# less than 0.005 % of a peak.
_TPU_TABLE_UNIT: Final = 512


@dataclass
class ValueSizes:
    """Sizes and memory spaces, by value.

    Attributes:
        size_bytes: with padding.
        memory_space: XLA's number of the space.
    """

    size_bytes: list[int]
    memory_space: list[int]


def platform_of(program: Program) -> str:
    """The platform that the program was compiled for: cpu, gpu or tpu; only TPUs tile layouts."""
    if any(":T(" in shape for shape in set(program.shape)):
        return TPU
    return GPU if program.is_gpu else CPU


def value_sizes(flow: Dataflow, platform: str) -> ValueSizes:
    """The bytes and memory space of each value. Raises DumpError for an unbounded shape.

    The size of a tuple is that of its table of pointers, which is in space 0.
    """
    slots, sizes = flow.slots, ValueSizes([], [])
    parts_by_shape: dict[str, list[tuple[int, int]]] = {}
    for slot, row in zip(flow.defined_at, flow.row, strict=True):
        text = slots.program.shape[row]
        parts = parts_by_shape.get(text)
        if parts is None:
            parts = parts_by_shape[text] = _part_sizes(slots.trees[text], platform)
        size, space = parts[slot - slots.start[row]]
        sizes.size_bytes.append(size)
        sizes.memory_space.append(space)
    return sizes


def _part_sizes(tree: ShapeTree, platform: str) -> list[tuple[int, int]]:
    """The bytes and memory space of each part of a shape."""
    try:
        return [
            (_table_bytes(len(children), platform), 0)
            if array is None
            else (array_bytes(array, platform), array.memory_space)
            for array, children in zip(tree.arrays, tree.children, strict=True)
        ]
    except ValueError as error:
        raise DumpError(str(error)) from None


def array_bytes(shape: ArrayShape, platform: str) -> int:
    """An array's bytes as XLA allocates them on the platform.

    Raises ValueError for an unbounded shape, or one beyond all memory.
    """
    size = allocated_bytes(shape, platform == TPU)
    if size > LARGEST_SIZE or shape.memory_space > LARGEST_ID:
        raise ValueError(f"shape {str(shape)[:80]!r} is larger than any memory")
    return size


def _table_bytes(n_elements: int, platform: str) -> int:
    """The bytes of a tuple's table of pointers."""
    table_bytes = n_elements * _POINTER_BYTES[platform]
    if platform == TPU:
        table_bytes = -(-table_bytes // _TPU_TABLE_UNIT) * _TPU_TABLE_UNIT
    return table_bytes
