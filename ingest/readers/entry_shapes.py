"""The entry computation's arguments and result: their arrays, names and shardings."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...schema.arrow import module_rows
from ...xla.errors import DumpError
from ...xla.limits import LARGEST_SIZE
from ...xla.op_names import read_path
from ...xla.shapes import Shape, TupleShape, logical_bytes, padded_bytes, parse_shape
from .instructions import InstructionLines
from .lines import Mask, excerpt, slices

# A tuple's sharding holds those of its arrays, and each may hold one more list in braces.
_BRACED = r"^\{(?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*\}"
_ELEMENT = re.compile(r"\{(?:[^{}]|\{[^{}]*\})*\}")


@dataclass(frozen=True)
class EntryParameter:
    """An argument's name in the framework, and its sharding as XLA prints it."""

    name: str | None = None
    sharding: str | None = None

    def leaf_shardings(self, count: int) -> list[str | None]:
        """The sharding of each of the argument's arrays: a tuple's may be a list of these."""
        if self.sharding is not None and self.sharding.startswith("{{"):
            leaves = _ELEMENT.findall(self.sharding[1:-1])
            if len(leaves) == count:
                return list(leaves)
        return [self.sharding] * count


def read_entry_parameters(
    instructions: InstructionLines, op_names: pa.ChunkedArray, in_entry: Mask
) -> dict[int, EntryParameter]:
    """The entry computation's parameters by number; a line without a number is left out."""
    lines = instructions.lines
    rows = np.flatnonzero(instructions.has_opcode(["parameter"]) & in_entry)
    rest = slices(lines.content, instructions.operands[rows], lines.ends[rows])
    numbers = pc.struct_field(pc.extract_regex(rest, r"^(?P<number>[0-9]{1,9})\)"), "number")
    sharded, starts = instructions.attribute("sharding")
    chosen = np.isin(sharded, rows)
    sharded, starts = sharded[chosen], starts[chosen]
    value = slices(lines.content, starts, lines.ends[sharded])
    texts = pc.struct_field(pc.extract_regex(value, f"(?P<text>{_BRACED})"), "text")
    sharding = dict(zip(sharded.tolist(), texts.to_pylist(), strict=True))
    names = op_names.take(pa.array(rows)).to_pylist()
    return {
        int(number): EntryParameter(argument_name(name), sharding.get(row))
        for row, number, name in zip(rows.tolist(), numbers.to_pylist(), names, strict=True)
        if number is not None
    }


def argument_name(op_name: str | None) -> str | None:
    """The op_name of a parameter, unless XLA made the parameter of what moves one."""
    return None if op_name is None or read_path(op_name).has_program else op_name


def entry_shapes(signature: str, parameters: Mapping[int, EntryParameter]) -> pa.Table:
    """Rows of the warehouse's `entry_shapes` for an entry_computation_layout.

    `parameters` says by number what the text says of the arguments elsewhere. Raises DumpError.
    """
    arguments, arrow, result = signature.partition(")->")
    try:
        if not arrow:
            raise ValueError("there is no '->'")
        shapes = parse_shape(arguments + ")")
        if not isinstance(shapes, TupleShape):
            raise ValueError("the arguments are not in parentheses")
        rows = [
            row
            for number, shape in enumerate(shapes.elements)
            for row in _argument_rows(shape, number, parameters.get(number, EntryParameter()))
        ]
        rows += _rows(parse_shape(result), None)
    except ValueError as error:
        raise DumpError(f"the entry computation's signature is wrong: {error}", 1) from None
    return module_rows("entry_shapes", rows)


def _argument_rows(
    shape: Shape, number: int, parameter: EntryParameter
) -> Iterator[dict[str, object]]:
    rows = list(_rows(shape, number))
    shardings = parameter.leaf_shardings(len(rows))
    for row, sharding in zip(rows, shardings, strict=True):
        yield {**row, "argument_name": parameter.name, "sharding": sharding}


def _rows(shape: Shape, parameter_number: int | None) -> Iterator[dict[str, object]]:
    for index, leaf in _leaves(shape, ()):
        yield {
            "is_output": parameter_number is None,
            "parameter_number": parameter_number,
            "shape_index": "{" + ",".join(map(str, index)) + "}",
            **_described(leaf),
        }


# Cached, because a model's layers have the same shapes.
@lru_cache(maxsize=1000)
def _described(shape: Shape) -> dict[str, object]:
    logical, padded = _sizes(shape)
    return {
        "shape": str(shape),
        "element_type": getattr(shape, "element_type", None),
        "logical_bytes": logical,
        "padded_bytes": padded,
    }


def _leaves(shape: Shape, index: tuple[int, ...]) -> Iterator[tuple[tuple[int, ...], Shape]]:
    if not isinstance(shape, TupleShape):
        yield index, shape
        return
    for number, element in enumerate(shape.elements):
        yield from _leaves(element, (*index, number))


def _sizes(shape: Shape) -> tuple[int | None, int | None]:
    """Logical and padded bytes; None for a shape of unbounded size. Raises ValueError."""
    try:
        logical, padded = logical_bytes(shape), padded_bytes(shape)
    except ValueError:
        return None, None
    if padded > LARGEST_SIZE:
        raise ValueError(f"{excerpt(str(shape))} takes over {LARGEST_SIZE} bytes")
    return logical, padded
