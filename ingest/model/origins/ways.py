"""Where to look for a value's origin: at most a few other values, in an order."""

from dataclasses import dataclass, field

import numpy as np

from ....schema.address_space.runs import starts_of
from ..numbered_program import NONE, Ints, Mask

# How an origin was found. The first that applies on the way is reported, `own` least of all.
RULES = (
    "argument",
    "own",
    "moved",
    "loop",
    "fused",
    "becomes",
    "read",
    "operand",
    "weak",
)
ARGUMENT, OWN, MOVED, LOOP, FUSED, BECOMES, READ, OPERAND, WEAK = range(len(RULES))


@dataclass
class Ways:
    """Of each value: the values that may tell its origin, and what it says itself.

    A value either ends the search, or has ways: values to follow, the first one first. A way
    fails if it ends without an origin, if it leads back, or if it ends at a fill and `no_fill`
    says so. After the last way `owner` stands in, with `owner_rule`, if there is one. `rule` is
    reported for what a way finds. `is_loop` marks what loops carry. Of a value without ways,
    `owner` is the origin; a fill without ways ends the search open.
    """

    count: int
    rule: Ints = field(init=False)
    owner: Ints = field(init=False)
    owner_rule: Ints = field(init=False)
    is_fill: Mask = field(init=False)
    is_loop: Mask = field(init=False)
    _values: list[Ints] = field(default_factory=list)
    _targets: list[Ints] = field(default_factory=list)
    _no_fill: list[Mask] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.rule = np.full(self.count, OWN, np.int8)
        self.owner = np.full(self.count, NONE)
        self.owner_rule = np.full(self.count, OWN, np.int8)
        self.is_fill = np.zeros(self.count, bool)
        self.is_loop = np.zeros(self.count, bool)

    def own(self, values: Ints, rows: Ints, rule: Ints | int) -> None:
        """Let instructions be what values fall back on."""
        self.owner[values] = rows
        self.owner_rule[values] = rule

    def follow(self, values: Ints, targets: Ints, *, no_fill: bool = False) -> None:
        """Add a way to each of these values, after the ways that it has."""
        there = targets != NONE
        values, targets = values[there], targets[there]
        self._values.append(values)
        self._targets.append(targets)
        self._no_fill.append(np.full(len(values), no_fill))

    def listed(self) -> tuple[Ints, Ints, Mask]:
        """All ways by value and order: where each value's ways start, targets, no_fill."""
        values = np.concatenate([*self._values, np.array([], np.int64)])
        order = np.argsort(values, kind="stable")
        counts = np.bincount(values, minlength=self.count)
        targets = np.concatenate([*self._targets, np.array([], np.int64)])[order]
        no_fill = np.concatenate([*self._no_fill, np.array([], bool)])[order]
        return starts_of(counts), targets, no_fill
