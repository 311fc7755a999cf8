"""Who reads a buffer first: the instruction with a name, in fusions too."""

import numpy as np

from ....schema.address_space.runs import joined
from ..numbered_program import NONE, Ints
from .fusions import Fusions
from .named import Named
from .values import Values


def first_readers(values: Values, fusions: Fusions, asked: Ints) -> Ints:
    """The first instruction with a strong name that reads each of these values, or NONE.

    Copies of a value count as the value.
    """
    named = values.named
    flow = named.dataflow
    use = np.flatnonzero(np.isin(flow.use_value, asked))
    use = use[np.lexsort((flow.use_operand[use], flow.use_instruction[use], flow.use_value[use]))]
    reader = inner_readers(named, flow.use_instruction[use], flow.use_operand[use])
    # What moves a buffer has the name of the reader behind.
    moves = named.program.opcode.is_one_of("bitcast", "copy", "copy-start")
    reader = np.where(named.owns[reader] & ~moves[flow.use_instruction[use]], reader, NONE)
    first = np.full(len(flow), NONE)
    good = np.flatnonzero(reader != NONE)[::-1]
    first[flow.use_value[use[good]]] = reader[good]
    copies = values.of("copy", "copy-start", "convert", "reshape", "transpose")
    source = values.operand(copies, 0)
    copies, source = copies[source != NONE], source[source != NONE]
    while True:
        further = np.flatnonzero((first[source] == NONE) & (first[copies] != NONE))
        if not len(further):
            break
        first[source[further[::-1]]] = first[copies[further[::-1]]]
    found: Ints = first[asked]
    return found


def inner_readers(named: Named, users: Ints, operands: Ints) -> Ints:
    """Which instruction reads an operand: the user, or the first with a name in a fusion.

    `users` are instructions, `operands` the numbers of their operands. Within a fusion, the
    readers of the parameter that the operand comes in as, through nameless ones.
    """
    program = named.program
    found = users.copy()
    fused = np.flatnonzero(program.opcode.is_one_of("fusion")[users])
    if not len(fused):
        return found
    callee = program.callee(users[fused], "calls")
    parameter = program.parameter_of(callee, operands[fused], users[fused])
    pairs, back = np.unique(parameter, return_inverse=True)
    start, readers = _readers(named)
    nearest = np.full(len(pairs), NONE)
    query, rows = np.arange(len(pairs)), pairs
    while len(query):
        counts = start[rows + 1] - start[rows]
        query = np.repeat(query, counts)
        rows = readers[joined(start[rows], counts)]
        hit = named.owns[rows]
        first, at = np.unique(query[hit], return_index=True)
        nearest[first] = rows[hit][at]
        left = nearest[query] == NONE
        both = np.unique(query[left] * len(program) + rows[left])
        query, rows = np.divmod(both, len(program))
    hit = nearest[back]
    found[fused] = np.where(hit != NONE, hit, users[fused])
    return found


def _readers(named: Named) -> tuple[Ints, Ints]:
    """Of each fused instruction the fused ones that read it, by text order: starts, readers."""
    program = named.program
    at = np.flatnonzero(named.is_fused[program.operand_row])
    operand, reader = program.operands[at], program.operand_row[at]
    order = np.lexsort((reader, operand))
    start = np.searchsorted(operand[order], np.arange(len(program) + 1))
    return start, reader[order]
