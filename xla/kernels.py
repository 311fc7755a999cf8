"""On-chip memory of Pallas kernels for TPU: the layouts that Mosaic assigns."""

from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

from .program import Program
from .shapes import ArrayShape, Shape, TupleShape, array_size, parse_shape

# Kinds of the arrays that a kernel keeps on chip.
KINDS = ("input", "output", "scratch", "allocation", "prefetched", "semaphore")

_VMEM = 1
_LANES, _SUBLANES = 128, 8
_BITS = {"i1": "pred", "i2": "s2", "i4": "s4", "i8": "s8", "i16": "s16", "i32": "s32", "i64": "s64"}
_WIDTHS = {"s2": 2, "s4": 4, "s8": 8, "s16": 16, "bf16": 16, "f16": 16}


def element_type(mlir: str) -> str:
    """The name in HLO of an element type of MLIR.

    >>> element_type("i32"), element_type("f8E4M3FN"), element_type("!tpu.dma_semaphore")
    ('s32', 'f8e4m3fn', 'dma_semaphore')
    """
    return _BITS.get(mlir, mlir.rpartition(".")[2].lower())


def tiled_shape(element: str, sizes: Sequence[int | None]) -> str:
    """An array's shape in VMEM with the tile that Mosaic chooses, as HLO prints shapes.

    A tile has 128 lanes and 8 rows, or for fewer rows the next power of two, but at least as many
    rows as elements of a narrow type share a 32-bit word.

    >>> tiled_shape("f32", [64, 1, 256])
    'f32[64,1,256]{2,1,0:T(1,128)}'
    >>> tiled_shape("bf16", [512, 200])
    'bf16[512,200]{1,0:T(8,128)(2,1)}'
    >>> tiled_shape("f32", [1000])
    'f32[1000]{0:T(1024)}'
    """
    order = ",".join(str(axis) for axis in reversed(range(len(sizes))))
    plain = f"{element}[{','.join('?' if size is None else str(size) for size in sizes)}]"
    if not sizes:
        return plain
    width = 8 if element.startswith("f8") else _WIDTHS.get(element, 32)
    packed = 32 // width
    minor = sizes[-1] or 1
    rows = -(-minor // _LANES) if len(sizes) == 1 else sizes[-2] or 1
    height = packed
    while height < min(rows, _SUBLANES):
        height *= 2
    tile = f"({height * _LANES})" if len(sizes) == 1 else f"({height},{_LANES})"
    inner = "" if packed == 1 else f"({packed},1)"
    if len(sizes) == 1 and packed > 1:
        inner = f"({_LANES})({packed},1)"
    if width < 8:
        inner += f"E({width})"
    return f"{plain}{{{order}:T{tile}{inner}}}"


class PlacedPart(NamedTuple):
    """An array that a kernel keeps on chip: a row of `kernel_parts`.

    Attributes:
        buffers: number of copies in VMEM; 0 for a block of an array that XLA put into VMEM itself.
        size_bytes: of all buffers, with padding; None if the shape does not determine it.
    """

    instruction_id: int
    part: int
    kind: str
    space: str | None
    shape: str
    buffers: int
    size_bytes: int | None


def place_kernel_parts(program: Program) -> list[PlacedPart]:
    """The arrays that the kernels of a program keep on chip, with their bytes.

    A block belongs to an operand or, if its number is beyond the operands, to an element of the
    kernel's result.
    """
    rows = []
    for part in program.kernels:
        kind, buffers = part.kind, part.buffers
        if part.operand is not None:
            operands = program.operands[part.row]
            element = part.operand - len(operands)
            kind = "input" if element < 0 else "output"
            array = operands[part.operand] if element < 0 else part.row
            if _is_in_vmem(program.shape[array], max(element, 0)):
                buffers = 0
        size = _size_bytes(part.shape) if part.space in ("vmem", "smem") else None
        total = None if size is None else size * buffers
        rows.append(PlacedPart(part.row, part.part, kind, part.space, part.shape, buffers, total))
    return rows


@cache
def _is_in_vmem(text: str, element: int) -> bool:
    """Whether XLA placed an array, or this element of a tuple, in VMEM."""
    shape: Shape | None = parse_shape(text)
    if isinstance(shape, TupleShape):
        shape = shape.elements[element] if element < len(shape.elements) else None
    return isinstance(shape, ArrayShape) and shape.memory_space == _VMEM


@cache
def _size_bytes(text: str) -> int | None:
    """The bytes with padding; None if the shape does not determine them."""
    try:
        return array_size(text).padded_bytes
    except ValueError:
        return None
