"""Reads of values, and the pass that each read belongs to."""

from dataclasses import dataclass

import numpy as np

from ..numbered_program import Ints
from .inner_readers import inner_readers
from .named import Named
from .op_names import Kind
from .passes import OPTIMIZER, Passes
from .touches import HANDS_ON

# Without a name these read only to hand on what they read.
_REARRANGES = ("convert", "reshape", "transpose")


@dataclass(frozen=True)
class Reads:
    """Of each read: the value, the instruction that reads it (also within a fusion), its pass.

    `user` is the instruction of the schedule that reads the value, itself or in its fusion, and
    `operand` the number of its operand.
    """

    value: Ints
    reader: Ints
    user: Ints
    operand: Ints
    pass_: Ints


def find_reads(named: Named, passes: Passes) -> Reads:
    """The reads of all values whose pass is known.

    Instructions that hand a value on do not read it. A reader with an op_name has its pass;
    of a nameless fusion, the pass is that of the first instruction with a name which reads the
    value inside.
    """
    program, flow = named.program, named.dataflow
    nameless = named.names.kind < Kind.JOINED
    skipped = program.opcode.is_one_of(*HANDS_ON, "copy", "copy-start")
    skipped |= nameless & program.opcode.is_one_of(*_REARRANGES)
    use = np.flatnonzero(~skipped[flow.use_instruction])
    user = flow.use_instruction[use]
    reader = user.copy()
    asks = np.flatnonzero(nameless[user])
    reader[asks] = inner_readers(named, user[asks], flow.use_operand[use[asks]])
    found = passes.codes[reader]
    known = ~nameless[reader] | (found == OPTIMIZER)
    return Reads(
        flow.use_value[use[known]],
        reader[known],
        user[known],
        flow.use_operand[use[known]],
        found[known].astype(np.int64),
    )
