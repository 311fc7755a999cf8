"""The memory on chip of Pallas kernels for TPU: how Mosaic lays out what they hold."""

from collections.abc import Sequence
from functools import cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .columns.program import combined
from .shapes import ArrayShape, TupleShape, has_size, is_shape, padded_bytes, parse_shape

# What the parts of a kernel are.
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
    """An array's shape in VMEM, with the tile that Mosaic gives it, as HLO prints shapes.

    A tile has 128 lanes, and 8 rows or the power of two that few rows fit in; of narrow types at
    least as many as share a word.

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


def placed_parts(parts: pa.Table, operands: pa.Table, instructions: pa.Table) -> pa.Table:
    """The rows of `kernel_parts`: of each block whether it is an input or output, and the bytes.

    `parts` are as in `HloText.kernels`, `operands` and `instructions` as in the warehouse, the
    latter by instruction_id. Of an array that XLA put into VMEM a kernel needs no blocks.
    """
    kernel = parts["instruction_id"].to_numpy().astype(np.int64)
    operators = operands["instruction_id"].to_numpy()
    inputs = np.bincount(operators, minlength=len(instructions))[kernel]
    number = pc.fill_null(parts["operand"], -1).to_numpy()
    is_block = number >= 0
    is_input, is_output = is_block & (number < inputs), is_block & (number >= inputs)
    order = np.argsort(operators, kind="stable")
    first = np.searchsorted(operators, kernel[is_input], sorter=order)
    given = operands["operand_instruction_id"].take(pa.array(order[first + number[is_input]]))
    # A block is of an operand, or of the kernel's own result: an element of it, if it is a tuple.
    array_of = kernel.copy()
    array_of[is_input] = given.to_numpy()
    element = np.where(is_output, number - inputs, 0)
    in_vmem = np.zeros(len(parts), bool)
    shapes = combined(instructions["shape"]).take(pa.array(array_of[is_block])).to_pylist()
    in_vmem[is_block] = [*map(_is_in_vmem, shapes, element[is_block].tolist())]
    buffers = np.where(in_vmem, 0, parts["buffers"].to_numpy())
    kind = np.where(is_input, "input", np.where(is_output, "output", parts["kind"].to_pylist()))
    sizes = [
        _size_bytes(shape) if space in ("vmem", "smem") else None
        for shape, space in zip(parts["shape"].to_pylist(), parts["space"].to_pylist(), strict=True)
    ]
    return pa.table(
        {
            "instruction_id": parts["instruction_id"],
            "part": parts["part"],
            "kind": pa.array(kind, pa.string()),
            "space": parts["space"],
            "shape": parts["shape"],
            "buffers": pa.array(buffers, pa.int32()),
            "size_bytes": pc.multiply(pa.array(sizes, pa.int64()), pa.array(buffers, pa.int64())),
        }
    )


@cache
def _is_in_vmem(text: str | None, element: int) -> bool:
    """Whether an array, or this element of a tuple, lies in VMEM as a whole."""
    shape = parse_shape(text) if text is not None else None
    if isinstance(shape, TupleShape):
        shape = shape.elements[element] if element < len(shape.elements) else None
    return isinstance(shape, ArrayShape) and shape.memory_space == _VMEM


@cache
def _size_bytes(text: str) -> int | None:
    """The bytes with padding; None if the shape does not tell them."""
    shape = parse_shape(text) if is_shape(text) else None
    return padded_bytes(shape) if isinstance(shape, ArrayShape) and has_size(shape) else None
