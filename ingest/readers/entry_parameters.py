"""Reader of the entry computation's parameters: what arguments are called and how sharded."""

import re
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...xla.op_names import read_path
from .instructions import InstructionLines
from .lines import Mask, slices

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
