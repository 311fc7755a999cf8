"""Follows the ways of all values at once to the origins."""

from dataclasses import dataclass

import numpy as np

from ..numbered_program import NONE, Ints, Mask
from .ways import OWN, Ways


@dataclass(frozen=True)
class Found:
    """Of each value: the instruction that is its origin, or NONE, and the rule.

    `fill` is the value at which the search ended if that is a fill, else NONE.
    """

    origin: Ints
    rule: Ints
    fill: Ints


def search(ways: Ways) -> Found:
    """Follow every value's first way; where it fails, the next one.

    Of the values on a way that fails, the last one that has another way takes it, until no way
    fails or none is left: values nearer to the end know better. Of values that lead to each
    other in a circle, all take their next way.
    """
    start, targets, no_fill = ways.listed()
    numbers = np.arange(ways.count)
    way, last = start[:-1].copy(), start[1:]
    while True:
        ended = way == last
        at = np.minimum(way, max(len(targets) - 1, 0))
        follows = np.where(ended, numbers, targets[at] if len(targets) else numbers)
        end, circles = _followed(follows, ended)
        is_fill = ended[end] & ways.is_fill[end]
        fails = ~is_fill & (circles | (ways.owner[end] == NONE))
        # Who may still choose: with a way or an owner left.
        more = ~ended & ((way + 1 < last) | (ways.owner != NONE))
        chooses = more & fails & ~circles
        picky = more & is_fill & no_fill[at] if len(targets) else np.zeros(ways.count, bool)
        turning = _last_of(follows, chooses | picky, (fails & ~circles) | is_fill)
        turning = np.union1d(turning, _on_circles(follows, circles & ~ended))
        turning = turning[~ended[turning]]
        if not len(turning):
            break
        way[turning] += 1
    origin = np.where(is_fill | circles, NONE, ways.owner[end])
    return Found(origin, _rules(ways, follows, end, ended), np.where(is_fill, end, NONE))


def _followed(follows: Ints, ended: Mask) -> tuple[Ints, Mask]:
    """Where each value's way ends, and which values lead into a circle instead."""
    end = follows
    for _ in range(max(1, len(follows).bit_length())):
        further = end[end]
        if np.array_equal(further, end):
            break
        end = further
    return end, ~ended[end]


def _last_of(follows: Ints, chosen: Mask, starting: Mask) -> Ints:
    """The last chosen value on the way of each value that counts, each once."""
    if not (chosen & starting).any():
        return np.array([], np.int64)
    last = np.where(chosen, np.arange(len(follows)), NONE)
    step = follows
    for _ in range(len(follows).bit_length()):
        later = last[step]
        last = np.where(later != NONE, later, last)
        step = step[step]
    return np.unique(last[starting & (last != NONE)])


def _on_circles(follows: Ints, circles: Mask) -> Ints:
    """The values that lie on a circle, and do not only lead into one."""
    at, step = np.flatnonzero(circles), follows
    for _ in range(len(follows).bit_length() if len(at) else 0):
        at, step = np.unique(step[at]), step[step]
    return at


def _rules(ways: Ways, follows: Ints, end: Ints, ended: Mask) -> Ints:
    """The rule of the first value on each way that is not `own`; else that of the end."""
    rule = np.where(ended, OWN, ways.rule)
    step = follows
    for _ in range(len(follows).bit_length()):
        rule = np.where(rule == OWN, rule[step], rule)
        step = step[step]
    return np.where(rule == OWN, ways.owner_rule[end], rule)
