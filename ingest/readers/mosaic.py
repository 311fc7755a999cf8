"""Reader of a Pallas kernel for TPU: its module of Mosaic, in the backend_config of a custom-call.

A kernel's function takes its grid's indices, arrays of numbers that are there before it starts,
its blocks, and its scratch. `window_params` has an entry for each block, `iteration_bounds` is the
grid, and functions of their own say which block a step works on.
"""

import base64
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import cache
from operator import eq, ge, gt, le, lt, ne
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from ...schema.arrow import module_schema
from ...xla.columns.parts import SPACES
from ...xla.kernels import element_type, tiled_shape
from .mlir_bytecode import Bytecode, Memref, Operation, Signature, Value

# In the JSON of a backend_config: bytecode in base64.
BODY = '"TUzvU'
_BODY = r'"body": ?"(?P<body>TUzvU[A-Za-z0-9+/=]+)"'


class KernelPart(NamedTuple):
    """An array that a kernel keeps on chip.

    kind: prefetched, block, scratch, allocation or semaphore. operand: of a block the operand's
    number, where results count on after the operands; else None.
    """

    kind: str
    space: str | None
    shape: str
    buffers: int
    operand: int | None = None


def kernel_parts(instructions: pa.Array, configs: pa.Array) -> pa.Table:
    """What the kernels of custom-calls keep on chip, by their backend_configs.

    Columns: instruction, part, kind, space, shape, buffers and operand, as in `KernelPart`.
    A kernel that is not understood has no rows.
    """
    found = pc.extract_regex(configs, pattern=_BODY)
    rows = [
        (instruction, number, *part)
        for instruction, body in zip(
            instructions.to_pylist(), pc.struct_field(found, "body").to_pylist(), strict=True
        )
        if body is not None
        for number, part in enumerate(_parts(body))
    ]
    if not rows:
        return _columns().empty_table()
    columns = zip(*rows, strict=True)
    return pa.table(
        [pa.array(column, of.type) for of, column in zip(_columns(), columns, strict=True)],
        _columns(),
    )


@cache
def _columns() -> pa.Schema:
    types = {"instruction": pa.large_string(), "operand": pa.int32()}
    types |= {field.name: field.type for field in module_schema("kernel_parts")}
    names = ("instruction", "part", *KernelPart._fields)
    return pa.schema([(name, types[name]) for name in names])


# Layers that were unrolled have the same kernel.
@cache
def _parts(body: str) -> tuple[KernelPart, ...]:
    try:
        return tuple(_parts_of(Bytecode(base64.b64decode(body)).operations()))
    except (ValueError, LookupError, TypeError, RecursionError):
        return ()


def _parts_of(module: Sequence[Operation]) -> Iterator[KernelPart]:
    """The parts of a kernel. Raises ValueError, LookupError or TypeError for one not understood."""
    functions = {
        str(function.attributes.get("sym_name")): function
        for operation in module
        for function in operation.body
    }
    kernel, *_ = functions.values()
    signature = kernel.attributes["function_type"]
    if not isinstance(signature, Signature):
        raise TypeError("the kernel's function has no type")
    grid = _numbers(kernel.attributes.get("iteration_bounds", ()))
    windows = kernel.attributes.get("window_params", ())
    prefetched = _number(kernel.attributes.get("scalar_prefetch", 0))
    arguments = signature.arguments[len(grid) :]
    dynamic = sum(bound < 0 for bound in grid)
    varying = {axis for axis, bound in enumerate(grid) if bound != 1}
    varying |= set(range(len(grid), len(grid) + prefetched))
    if not isinstance(windows, tuple):
        raise TypeError("the kernel's blocks are no list")
    given = kernel.arguments
    needed = _needed_arrays(kernel, {given[axis] for axis, bound in enumerate(grid) if bound == 1})
    scratch = len(arguments) - _number(kernel.attributes.get("scratch_operands", 0))
    for number, argument in enumerate(arguments):
        window = number - prefetched
        if window < 0:
            yield _part("prefetched", argument)
        elif number >= scratch:
            yield _part("scratch", argument, int(given[len(grid) + number] in needed))
        else:
            # Without a grid the arrays are in VMEM as a whole.
            params = windows[window] if windows else {}
            if not isinstance(params, Mapping):
                raise TypeError("a block has no parameters")
            transform = functions.get(str(params.get("transform_indices")))
            buffers = _buffers(params, transform, varying)
            yield _part("block", argument, buffers, dynamic + number)
    for array, allocated in _allocated(kernel):
        yield _part("allocation", allocated, int(array in needed))


def _part(kind: str, argument: Value, buffers: int = 1, operand: int | None = None) -> KernelPart:
    if not isinstance(argument, Memref):
        raise TypeError("the kernel takes more than arrays")
    space = _space_of(argument)
    if space == "sflag":
        kind, buffers = "semaphore", 1
    element = element_type(argument.element)
    shape = tiled_shape(element, argument.shape) if space == "vmem" else _plain(element, argument)
    return KernelPart(kind, space, shape, buffers, operand)


def _space_of(array: Memref) -> str | None:
    """The memory space of SPACES; None of an array that stays where XLA has it."""
    name = array.space.partition("<")[2].partition(">")[0]
    if name in ("", "any"):
        return None
    if name == "semaphore_mem":
        return "sflag"
    return name if name in SPACES else "other"


def _plain(element: str, array: Memref) -> str:
    return f"{element}[{','.join('?' if size is None else str(size) for size in array.shape)}]"


def _buffers(params: Mapping[str, Value], transform: Operation | None, varying: set[int]) -> int:
    """How many buffers a block has: two, to copy the next one while it computes.

    One, if it asks for one, or if all steps work on the same block.
    """
    mode = str(params.get("pipeline_mode", ""))
    if "synchronous" in mode or transform is None:
        return 1
    depends = {argument: at in varying for at, argument in enumerate(transform.arguments)}
    for operation in transform.walk():
        if operation is not transform:
            # A load from prefetched numbers depends on its place; a return has no results.
            is_varying = any(depends.get(operand, True) for operand in operation.operands)
            depends |= dict.fromkeys(operation.results, is_varying)
    returned = [inner for inner in transform.body if inner.name.endswith("return")]
    if not any(depends.get(operand, True) for inner in returned for operand in inner.operands):
        return 1
    return 2


def _allocated(operation: Operation) -> list[tuple[int, Value]]:
    """The arrays that an operation's body allocates, with their numbers: those there at once.

    Of regions beside each other, which may share memory, those of the region that has the most.
    """
    arrays: list[tuple[int, Value]] = []
    largest: list[tuple[int, Value]] = []
    for inner in operation.body:
        if inner.name.rpartition(".")[2] in ("alloca", "sem_alloc"):
            arrays += zip(inner.results, inner.types, strict=True)
        else:
            within = _allocated(inner)
            if _elements(within) > _elements(largest):
                largest = within
    return arrays + largest


def _elements(arrays: Sequence[tuple[int, Value]]) -> int:
    total = 0
    for _, array in arrays:
        if isinstance(array, Memref):
            size = 1
            for dimension in array.shape:
                size *= dimension or 0
            total += size
    return total


# Scratch that each step writes before it reads it, for example a sum over a grid of one step,
# Mosaic keeps in registers, so that it takes no VMEM. Not so in loops and under conditions.


def _needed_arrays(kernel: Operation, single: Set[int]) -> set[int]:
    """The numbers of the arrays that a kernel reads before it writes them, or hands on.

    single: the numbers of the grid's indices that are always 0.
    """
    scan = _Scan(live=_live_values(kernel), known=dict.fromkeys(single, 0))
    scan.read(kernel.body)
    return scan.needed


def _live_values(kernel: Operation) -> set[int]:
    """The values that something with an effect depends on. Mosaic loads what is not used."""
    live: set[int] = set()
    for operation in reversed([*kernel.walk()]):
        if not operation.results or operation.body or not live.isdisjoint(operation.results):
            live.update(operation.operands)
    return live


@dataclass
class _Scan:
    """A pass over a kernel's operations.

    known: values that are the same number in each step; written: arrays that are written by now;
    needed: those that are read before, or in a loop or under a condition, or handed on.
    """

    live: Set[int]
    known: dict[int, int]
    written: set[int] = field(default_factory=set)
    needed: set[int] = field(default_factory=set)

    def read(self, operations: Sequence[Operation]) -> None:
        """Take operations that each step runs, in their order."""
        for operation in operations:
            name = operation.name.rpartition(".")[2]
            operands = operation.operands
            if name == "if" and (taken := self.known.get(operands[0])) is not None:
                self.read(operation.regions[0 if taken else -1])
            elif operation.body:
                for inner in operation.walk():
                    self.needed.update(inner.operands)
            elif name in _STORES:
                self.written.add(operands[1])
            elif name not in _LOADS:
                self.needed.update(operands)
                self._fold(operation, name)
            elif not self.live.isdisjoint(operation.results) and operands[0] not in self.written:
                self.needed.add(operands[0])

    def _fold(self, operation: Operation, name: str) -> None:
        """Note the result of an operation on numbers that are known."""
        value = operation.attributes.get("value")
        given = [self.known.get(operand) for operand in operation.operands]
        if name == "constant" and isinstance(value, int):
            self.known[operation.results[0]] = value
        elif name == "cmpi":
            compare = _COMPARISONS.get(_number(operation.attributes["predicate"]))
            left, right = given
            if compare is not None and left is not None and right is not None:
                self.known[operation.results[0]] = int(compare(left, right))
        elif name in ("extui", "index_cast"):
            (same,) = given
            if same is not None:
                self.known[operation.results[0]] = same


_LOADS = ("load", "vector_load", "strided_load")
_STORES = ("store", "vector_store", "strided_store")
_COMPARISONS: dict[int, Callable[[int, int], bool]] = {0: eq, 1: ne, 2: lt, 3: le, 4: gt, 5: ge}


def _number(value: Value) -> int:
    if not isinstance(value, int):
        raise TypeError("a number of the kernel is none")
    return value


def _numbers(value: Value) -> tuple[int, ...]:
    if not isinstance(value, tuple):
        raise TypeError("a list of the kernel is none")
    return tuple(map(_number, value))
