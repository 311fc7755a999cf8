"""The values of a program with their owners, and the instructions that read them."""

from dataclasses import dataclass
from typing import NamedTuple

from .analysis import Analysis
from .idle import FORWARDING
from .named_program import CONVERTS_OR_RESHAPES, COPIES, NamedProgram
from .owners.find import Owners
from .owners.readers import Readers
from .passes import OPTIMIZER, Pass, Passes
from .values import Values


class Read(NamedTuple):
    """A read of a value.

    Attributes:
        reader: the instruction that reads the value; for a nameless fusion the nearest named one
            inside.
        user: the reader, or the fusion that it belongs to.
        operand_number: that of the user's operand.
        pass_: the reader's pass.
    """

    value: int
    reader: int
    user: int
    operand_number: int
    pass_: Pass


@dataclass
class OwnedValues:
    """The values of a program with their owners and passes: the input of roles and residuals.

    Attributes:
        owners: the owner of each value.
        passes: the pass of each instruction.
        value_pass: by value, its pass; None without an owner.
        reads: the reads of all values by instructions of a known pass.
    """

    analysis: Analysis
    values: Values
    readers: Readers
    owners: Owners
    passes: Passes
    value_pass: list[Pass | None]
    reads: list[Read]

    @property
    def named(self) -> NamedProgram:
        """The program with its op_names."""
        return self.values.named


def find_reads(named: NamedProgram, passes: Passes, readers: Readers) -> list[Read]:
    """The reads of all values by instructions whose pass is known, in order of the uses.

    Copies and instructions that forward a value are no readers, nor are nameless converts and
    reshapes, because they only move data. A reader with a path has that op_name's pass; a nameless
    fusion has the pass of the nearest named instruction inside that reads the value.
    """
    flow, op_name = named.flow, named.op_name
    reads = []
    for value, user, number in zip(flow.use_value, flow.use_row, flow.use_operand, strict=True):
        opcode, has_path = named.program.opcode[user], op_name[user].has_path
        if opcode in FORWARDING or opcode in COPIES:
            continue
        if opcode in CONVERTS_OR_RESHAPES and not has_path:
            continue
        reader = user if has_path else readers.inner_reader(user, number)
        pass_ = passes.by_row[reader]
        if op_name[reader].has_path or pass_ == OPTIMIZER:
            reads.append(Read(value, reader, user, number, pass_))
    return reads
