"""Sharing that the text itself records: `aliasing_operands` of the newest TPU compilers.

The compiler writes down which operands and results of an instruction may share memory. This
is exact where rules only guess, in VMEM above all.
"""

import re
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from ...schema.address_space.runs import joined, starts_of
from .numbered_program import Ints, Mask, NumberedProgram
from .slots import Slots

_LIST = re.compile(r'"indices":\[(?P<indices>[^\]]*)\]')
_NUMBER = re.compile(r"\d{1,9}")


@dataclass(frozen=True)
class Recorded:
    """What the text records: `is_known` marks the instructions of which it says anything.

    `pairs` are the slots of an operand and of a result that share, as one number each.
    """

    is_known: Mask
    pairs: Ints
    width: int

    def shares(self, operand_slot: Ints, result: Ints) -> Mask:
        """Whether the text records that these operands and results share."""
        found: Mask = np.isin(operand_slot * self.width + result, self.pairs)
        return found


def recorded_sharing(texts: pa.Table, program: NumberedProgram, slots: Slots) -> Recorded:
    """What `HloAttributes.aliasing_operands` records of the instructions that have slots."""
    rows = texts["row"].to_numpy()
    has_slots = slots.count[rows] > 0
    rows = rows[has_slots]
    lists = texts["lists"].combine_chunks().filter(pa.array(has_slots))
    is_known = np.zeros(len(program), bool)
    is_known[rows] = True
    code = lists.indices.to_numpy()
    pairs = [np.array([], np.int64)]
    for number, text in enumerate(lists.dictionary.to_pylist()):
        if not text:
            continue
        saying = rows[code == number]
        leaf, start, operands = _leaves(program, slots, saying)
        for found in _LIST.finditer(text):
            members = [int(index) for index in _NUMBER.findall(found["indices"])]
            pairs += _pairs(members, leaf, start, operands, len(slots))
    return Recorded(is_known, np.concatenate(pairs), len(slots))


def _leaves(program: NumberedProgram, slots: Slots, rows: Ints) -> tuple[Ints, Ints, Ints]:
    """The leaf slots of each instruction's operands, then of its result.

    Returns them in one array, where each instruction's start (and the end of the last), and
    how many are operands'.
    """
    counts = program.operand_count[rows]
    at = joined(program.operand_start[rows], counts)
    owner = np.concatenate([np.repeat(np.arange(len(rows)), counts), np.arange(len(rows))])
    shown = np.concatenate([program.operands[at], rows])
    is_result = np.arange(len(owner)) >= len(at)
    order = np.lexsort((np.arange(len(owner)), is_result, owner))
    owner, shown, is_result = owner[order], shown[order], is_result[order]
    leaf = joined(slots.start[shown], slots.count[shown])
    of = np.repeat(owner, slots.count[shown])
    result = np.repeat(is_result, slots.count[shown])
    kept = slots.is_leaf[leaf]
    leaf, of, result = leaf[kept], of[kept], result[kept]
    return (
        leaf,
        starts_of(np.bincount(of, minlength=len(rows))),
        np.bincount(of[~result], minlength=len(rows)),
    )


def _pairs(members: list[int], leaf: Ints, start: Ints, operands: Ints, width: int) -> list[Ints]:
    """The pairs of an operand and a result among the members of one list, for all rows."""
    found = []
    for one in members:
        for other in members:
            fits = (one < operands) & (other >= operands) & (start[:-1] + other < start[1:])
            begin = start[:-1][fits]
            found.append(leaf[begin + one] * width + leaf[begin + other])
    return found
