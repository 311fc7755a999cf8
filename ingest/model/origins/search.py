"""Follows the ways of all values at once to the origins."""

from dataclasses import dataclass

import numpy as np

from ..numbered_program import NONE, Ints, Mask
from .ways import OPERAND, OWN, WEAK, Ways


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
    other in a circle, the loops take their next way: what enters.
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
        # Who may still choose: with a way or an owner left, or who must not end at a fill.
        picks = no_fill[at] if len(targets) else np.zeros(ways.count, bool)
        other = ~ended & ((way + 1 < last) | (ways.owner != NONE))
        more = other | (~ended & picks)
        chooses = other & fails & ~circles
        picky = more & is_fill & picks
        turning = _last_of(follows, chooses | picky, (fails & ~circles) | is_fill)
        rank = np.where(more, np.where(ways.is_loop, 0, 1), 2)
        turning = np.union1d(turning, _leaving(follows, circles, rank))
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


def _leaving(follows: Ints, circles: Mask, rank: Ints) -> Ints:
    """Of the values that lie on each circle those of the lowest rank."""
    at, step = np.flatnonzero(circles), follows
    lowest = rank.copy()
    for _ in range(len(follows).bit_length() if len(at) else 0):
        # In the end only what lies on a circle is left, and all of a circle knows its lowest.
        at = np.unique(step[at])
        lowest = np.minimum(lowest, lowest[step])
        step = step[step]
    found: Ints = at[rank[at] == lowest[at]]
    return found


def _rules(ways: Ways, follows: Ints, end: Ints, ended: Mask) -> Ints:
    """The rule of the first value on each way that is not `own`; else that of the end.

    A guess stays a guess, wherever on the way it was made.
    """
    rule = np.where(ended, OWN, ways.rule)
    guessed = ~ended & (ways.rule == OPERAND)
    step = follows
    for _ in range(len(follows).bit_length()):
        rule = np.where(rule == OWN, rule[step], rule)
        guessed |= guessed[step]
        step = step[step]
    rule = np.where(rule == OWN, ways.owner_rule[end], rule)
    rule = np.where(guessed, OPERAND, rule)
    return np.where(ways.owner_rule[end] == WEAK, WEAK, rule)
