"""The origin of each value: the instruction whose result the value holds."""

from dataclasses import dataclass

import numpy as np

from ..numbered_program import NONE, Ints
from .inner_readers import first_readers
from .named import Named
from .search import search
from .steps import Steps
from .ways import BECOMES, FUSED, MOVED, OWN, READ, WEAK

_MOVES = ("copy", "copy-start")


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
    is_weak = (own == NONE) & (rule[found.fill[ends]] == WEAK)
    rule[ends] = np.where((rule[ends] == OWN) | is_weak, late, rule[ends])
    return Origins(row, np.where(row == NONE, NONE, rule))


def _fill_in(steps: Steps, row: Ints, rule: Ints, becomes: Ints) -> None:
    """The fills: what the buffer becomes, else what the name says, else what reads the fill."""
    named, values, fusions = steps.named, steps.values, steps.fusions
    fills = np.flatnonzero(steps.is_fill)
    made = values.row[fills]
    name, how = _fill_names(steps, fills)
    moves = named.program.opcode.is_one_of(*_MOVES)[made]
    for answer, reported in (
        (becomes[fills], BECOMES),
        (np.where(moves, NONE, name[fills]), how[fills]),
        (_behind(steps, name)[fills], MOVED),
        (np.where(named.owns[made], made, NONE), OWN),
    ):
        _answer(row, rule, fills, answer, reported)
    if (row[fills] == NONE).any():
        _answer(row, rule, fills, first_readers(values, fusions, fills), READ)
    _answer(row, rule, fills, np.where(named.has_weak_name[made], made, NONE), WEAK)


def _fill_names(steps: Steps, fills: Ints) -> tuple[Ints, Ints]:
    """What the name of each fill says, in a fusion first what is inside; and the rule.

    A copy has the name of what reads it, and a constant that of any of its readers.
    """
    named, values = steps.named, steps.values
    row = values.row[fills]
    fused = named.inner_root[row] != NONE
    inner = row.copy()
    inner[fused] = steps.fusions.computing[steps.fusions.root_of(values, fills[fused])]
    is_constant = named.program.opcode.is_one_of("constant")
    inner = np.where(named.owns[inner] & ~(is_constant[inner] & fused), inner, row)
    nameless = ~named.owns[inner] | named.program.opcode.is_one_of(*_MOVES)[row]
    name = np.full(len(values.row), NONE)
    name[fills] = np.where(nameless, NONE, inner)
    how = np.full(len(values.row), OWN)
    how[fills[(inner != row) & ~(named.owns[row] & values.is_single[fills])]] = FUSED
    return name, how


def _behind(steps: Steps, name: Ints) -> Ints:
    """The first name on the way from each fill to what it repeats, the constant not counted."""
    is_constant = steps.named.program.opcode.is_one_of("constant")[steps.values.row]
    found, step = np.where(is_constant, NONE, name), steps.repeats
    for _ in range(len(step).bit_length()):
        found = np.where(found == NONE, found[step], found)
        step = step[step]
    return found


def _answer(row: Ints, rule: Ints, values: Ints, answer: Ints, reported: Ints | int) -> None:
    """Take an answer for the values that have none yet."""
    takes = (row[values] == NONE) & (answer != NONE)
    row[values[takes]] = answer[takes]
    rule[values[takes]] = reported if isinstance(reported, int) else reported[takes]


def _becomes(alias_set: Ints, row: Ints) -> Ints:
    """The first origin that is known within each value's alias set."""
    known = np.flatnonzero(row != NONE)[::-1]
    first = np.full(len(row), NONE)
    first[alias_set[known]] = row[known]
    found: Ints = first[alias_set]
    return found
