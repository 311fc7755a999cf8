"""Reader of a Pallas kernel for TPU: its Mosaic module in the backend_config of a custom call.

The arguments of a kernel's function are its grid's indices, prefetched scalars, its blocks, and
its scratch. The attribute `window_params` has an entry for each block, `iteration_bounds` is the
grid, and a function for each block computes which part of the array a step works on.
"""

import base64
import re
from collections.abc import Callable, Mapping, Sequence, Set
from functools import lru_cache
from math import prod
from operator import eq, ge, gt, le, lt, ne
from typing import Final, NamedTuple

from ...xla.kernels import element_type, tiled_shape
from .mlir_bytecode import Memref, Operation, Value, read_bytecode

# In the JSON of a backend_config: bytecode in base64.
_BODY: Final = re.compile(r'"body": ?"(TUzvU[A-Za-z0-9+/=]+)"')
# Mosaic's names of memory spaces that are our names, too.
_SPACES: Final = frozenset(("hbm", "host", "vmem", "smem", "cmem"))
_LOADS: Final = ("load", "vector_load", "strided_load")
_STORES: Final = ("store", "vector_store", "strided_store")
_COMPARISONS: Final[dict[Value, Callable[[int, int], bool]]] = {
    0: eq, 1: ne, 2: lt, 3: le, 4: gt, 5: ge,
}  # fmt: skip


class KernelArray(NamedTuple):
    """An array that a kernel keeps on chip.

    Attributes:
        kind: prefetched, block, scratch, allocation or semaphore.
        space: the memory space; None for an array that stays where XLA allocated it.
        buffers: 2 for a block that is copied while the kernel computes, 0 for an array that needs
            no memory, otherwise 1.
        operand: the number of the operand that a block is part of, where results count on after
            the operands; None for other kinds.
    """

    kind: str
    space: str | None
    shape: str
    buffers: int = 1
    operand: int | None = None


def kernel_arrays(config: str) -> tuple[KernelArray, ...]:
    """The arrays that the kernel in a backend_config keeps on chip.

    Empty without a kernel, and for one that is damaged or not understood.
    """
    body = _BODY.search(config) if '"TUzvU' in config else None
    return () if body is None else _arrays_of_body(body[1])


# Unrolled layers have the same kernel.
@lru_cache(maxsize=1000)
def _arrays_of_body(body: str) -> tuple[KernelArray, ...]:
    try:
        module = read_bytecode(base64.b64decode(body))
        functions = {
            str(function.attributes.get("sym_name")): function
            for operation in module
            for function in operation.body
        }
        kernel, *_ = functions.values()
        return tuple(_arrays_of_kernel(kernel, functions))
    except (ValueError, LookupError, TypeError, RecursionError):
        return ()


def _arrays_of_kernel(kernel: Operation, functions: Mapping[str, Operation]) -> list[KernelArray]:
    """The arguments of a kernel's function and the arrays that it allocates.

    Raises ValueError, LookupError or TypeError for a kernel that is not understood.
    """
    argument_types = kernel.attributes["function_type"]
    windows = kernel.attributes.get("window_params", ())
    if not isinstance(argument_types, tuple) or not isinstance(windows, tuple):
        raise TypeError("the kernel's function has no type or no list of blocks")
    grid = _integers(kernel.attributes.get("iteration_bounds", ()))
    prefetched = _integer(kernel.attributes.get("scalar_prefetch", 0))
    types = argument_types[len(grid) :]
    first_scratch = len(types) - _integer(kernel.attributes.get("scratch_operands", 0))
    # The arguments of a block's function that differ between steps: indices and scalars.
    varying = {axis for axis, bound in enumerate(grid) if bound != 1}
    varying |= set(range(len(grid), len(grid) + min(prefetched, len(types))))
    # The bounds of a dynamic grid are the first operands.
    first_operand = sum(bound < 0 for bound in grid)
    constant_indices = {kernel.arguments[axis] for axis, bound in enumerate(grid) if bound == 1}
    in_memory = _arrays_in_memory(kernel, constant_indices)
    arrays: list[KernelArray] = []
    for number, type_ in enumerate(types):
        if number < prefetched:
            arrays.append(_array("prefetched", type_))
        elif number >= first_scratch:
            value = kernel.arguments[len(grid) + number]
            arrays.append(_array("scratch", type_, int(value in in_memory)))
        else:
            # Without a grid the whole arrays are in VMEM.
            window = windows[number - prefetched] if windows else {}
            if not isinstance(window, Mapping):
                raise TypeError("a block has no parameters")
            index_function = functions.get(str(window.get("transform_indices")))
            buffers = _block_buffers(window, index_function, varying)
            arrays.append(_array("block", type_, buffers, first_operand + number))
    for value, type_ in _allocations(kernel):
        arrays.append(_array("allocation", type_, int(value in in_memory)))
    return arrays


def _array(kind: str, type_: Value, buffers: int = 1, operand: int | None = None) -> KernelArray:
    if not isinstance(type_, Memref):
        raise TypeError("an argument of the kernel is no array")
    space = _memory_space(type_)
    if space == "sflag":
        kind, buffers = "semaphore", 1
    element = element_type(type_.element)
    if space == "vmem":
        shape = tiled_shape(element, type_.shape)
    else:
        shape = f"{element}[{','.join(['?' if s is None else str(s) for s in type_.shape])}]"
    return KernelArray(kind, space, shape, buffers, operand)


def _memory_space(array: Memref) -> str | None:
    """The memory space of `#tpu.memory_space<vmem>`; None if XLA's allocation is used."""
    name = array.space.partition("<")[2].partition(">")[0]
    if name in ("", "any"):
        return None
    if name == "semaphore_mem":
        return "sflag"
    return name if name in _SPACES else "other"


def _block_buffers(
    window: Mapping[str, Value], index_function: Operation | None, varying: Set[int]
) -> int:
    """The number of a block's buffers: two, to copy the next block during the computation.

    One if the kernel asks for it, or if all steps work on the same part of the array.

    Args:
        index_function: computes the part that a step works on.
        varying: its arguments, by number, that differ between steps.
    """
    if "synchronous" in str(window.get("pipeline_mode", "")) or index_function is None:
        return 1
    is_varying = {value: n in varying for n, value in enumerate(index_function.arguments)}
    for operation in index_function.walk():
        if operation is not index_function:
            # A load from prefetched scalars varies with its index.
            result = any(is_varying.get(operand, True) for operand in operation.operands)
            is_varying |= dict.fromkeys(operation.results, result)
            if operation.name.endswith("return") and result:
                return 2
    return 1


def _allocations(operation: Operation) -> list[tuple[int, Value]]:
    """The values and types of the arrays that an operation's body allocates at the same time.

    Nested regions of one body may share memory: only the one with the most elements counts.
    """
    arrays: list[tuple[int, Value]] = []
    largest: list[tuple[int, Value]] = []
    for inner in operation.body:
        if inner.name.rpartition(".")[2] in ("alloca", "sem_alloc"):
            arrays += zip(inner.results, inner.types, strict=True)
        else:
            nested = _allocations(inner)
            if _element_count(nested) > _element_count(largest):
                largest = nested
    return arrays + largest


def _element_count(arrays: Sequence[tuple[int, Value]]) -> int:
    return sum(
        [
            prod([size or 0 for size in type_.shape])
            for _, type_ in arrays
            if isinstance(type_, Memref)
        ]
    )


def _arrays_in_memory(kernel: Operation, constant_indices: Set[int]) -> set[int]:
    """The arrays that a kernel reads before it writes them, or passes to another operation.

    Mosaic keeps scratch in registers if each step writes it before reading it, for example a sum
    over a grid of one step. In a loop or under a condition it does not.

    Args:
        constant_indices: the grid's indices that are always 0.
    """
    # Mosaic drops loads whose results have no effect.
    live: set[int] = set()
    for operation in reversed([*kernel.walk()]):
        if not operation.results or operation.body or not live.isdisjoint(operation.results):
            live.update(operation.operands)
    in_memory: set[int] = set()
    written: set[int] = set()
    constants = dict.fromkeys(constant_indices, 0)
    operations = list(reversed(kernel.body))
    while operations:
        operation = operations.pop()
        name = operation.name.rpartition(".")[2]
        operands = operation.operands
        condition = constants.get(operands[0]) if name == "if" else None
        if condition is not None:
            operations += reversed(operation.regions[0 if condition else -1])
        elif operation.body:
            for inner in operation.walk():
                in_memory.update(inner.operands)
        elif name in _STORES:
            written.add(operands[1])
        elif name not in _LOADS:
            in_memory.update(operands)
            result = _folded(operation, name, constants)
            if result is not None:
                constants[operation.results[0]] = result
        elif not live.isdisjoint(operation.results) and operands[0] not in written:
            in_memory.add(operands[0])
    return in_memory


def _folded(operation: Operation, name: str, constants: Mapping[int, int]) -> int | None:
    """The result of an operation on constants; None if it is not known."""
    operands = [constants.get(operand) for operand in operation.operands]
    match name, operands:
        case "constant", _:
            value = operation.attributes.get("value")
            return value if isinstance(value, int) else None
        case "cmpi", [int(left), int(right)]:
            compare = _COMPARISONS.get(_integer(operation.attributes["predicate"]))
            return None if compare is None else int(compare(left, right))
        case (("extui" | "index_cast"), [int(value)]):
            return value
    return None


def _integer(value: Value) -> int:
    if not isinstance(value, int):
        raise TypeError("a number of the kernel is none")
    return value


def _integers(value: Value) -> tuple[int, ...]:
    if not isinstance(value, tuple):
        raise TypeError("a list of the kernel is none")
    return tuple(map(_integer, value))
