"""The origin of each value: the instruction whose result the value holds."""

from dataclasses import dataclass

import numpy as np

from ..numbered_program import NONE, Ints
from .inner_readers import first_readers
from .named import Named
from .search import search
from .steps import Steps
from .ways import BECOMES, OWN, READ, WEAK


@dataclass(frozen=True)
class Origins:
    """Of each value: `row`, the instruction that is its origin, and `rule`, a number of RULES.

    Both are NONE where nothing says what the value is.
    """

    row: Ints
    rule: Ints


def find_origins(named: Named, alias_set: Ints) -> Origins:
    """Work out the origin of every array; a tuple's table has none.

    `alias_set` is the smallest number of the values that must share memory with each value.
    """
    steps = Steps(named)
    found = search(steps.ways)
    row, rule = found.origin.copy(), found.rule.astype(np.int64)
    becomes = _becomes(alias_set, row)
    _fill_in(steps, row, rule, becomes)
    # What leads to a fill is what its own buffer becomes, else what the fill is.
    ends = np.flatnonzero((found.fill != NONE) & ~steps.is_fill)
    own = becomes[ends]
    row[ends] = np.where(own != NONE, own, row[found.fill[ends]])
    late = np.where(own != NONE, BECOMES, rule[found.fill[ends]])
    rule[ends] = np.where(rule[ends] == OWN, late, rule[ends])
    return Origins(row, np.where(row == NONE, NONE, rule))


def _fill_in(steps: Steps, row: Ints, rule: Ints, becomes: Ints) -> None:
    """The fills: what the buffer becomes, else what the name says, else what reads the fill."""
    named, values, fusions = steps.named, steps.values, steps.fusions
    fills = np.flatnonzero(steps.is_fill)
    made = values.row[fills]
    inner = made.copy()
    fused = named.inner_root[made] != NONE
    inner[fused] = fusions.root_of(values, fills[fused])
    for answer, name in (
        (becomes[fills], BECOMES),
        (np.where(named.owns[inner], inner, NONE), OWN),
        (np.where(named.owns[made], made, NONE), OWN),
    ):
        _answer(row, rule, fills, answer, name)
    open_ = row[fills] == NONE
    _answer(row, rule, fills[open_], first_readers(values, fusions, fills[open_]), READ)
    _answer(row, rule, fills, np.where(named.has_weak_name[made], made, NONE), WEAK)


def _answer(row: Ints, rule: Ints, values: Ints, answer: Ints, name: int) -> None:
    """Take an answer for the values that have none yet."""
    takes = (row[values] == NONE) & (answer != NONE)
    row[values[takes]], rule[values[takes]] = answer[takes], name


def _becomes(alias_set: Ints, row: Ints) -> Ints:
    """The first origin that is known within each value's alias set."""
    known = np.flatnonzero(row != NONE)[::-1]
    first = np.full(len(row), NONE)
    first[alias_set[known]] = row[known]
    found: Ints = first[alias_set]
    return found
