"""Phis, the merged values of loops and conditionals, and which of them are other values."""

import numpy as np

from ...schema.address_space.runs import followed
from ..errors import DumpError
from .numbered_program import NONE, Ints


def resolve_phis(source: Ints, phi: Ints, phi_input: Ints) -> Ints:
    """Replace each phi that merges only one value by that value, until none is left.

    `source` is the slot whose value each slot holds; (phi, phi_input) are pairs of slots,
    sorted by phi. A phi is another value in two cases:

    - its inputs, resolved and without the phi itself, are one value;
    - only one value that is not a phi reaches the phi, through any number of phis.

    Resolving one phi can leave another phi with one input: nested loops take a round each.
    """
    for _ in range(len(phi) + 1):
        open_ = source[phi] == phi  # a resolved phi is not a value any more
        phi, phi_input = phi[open_], phi_input[open_]
        if not len(phi):
            return source
        merged = source[phi_input]
        heads = np.flatnonzero(np.concatenate([[True], phi[1:] != phi[:-1]]))
        least = np.minimum.reduceat(np.where(merged == phi, len(source), merged), heads)
        most = np.maximum.reduceat(np.where(merged == phi, NONE, merged), heads)
        single = least == most
        if not single.any():
            least, most = _reaching(merged, phi, heads, len(source))
            single = least == most
        if not single.any():
            return source
        source[phi[heads[single]]] = least[single]
        source = followed(source)
    raise DumpError("the loops of the text feed each other in circles")


def _reaching(merged: Ints, phi: Ints, heads: Ints, count: int) -> tuple[Ints, Ints]:
    """The first and the last of the values that reach each phi and are not phis themselves.

    A phi passes on what reaches the phi. The passes go over the phis in the order of the text
    and back, so that few passes suffice for loops that follow each other or nest.
    """
    phis = phi[heads].tolist()
    stops = np.append(heads[1:], len(phi)).tolist()
    inputs = merged.tolist()
    bounds = dict.fromkeys(phis, (count, NONE))
    order = list(zip(phis, heads.tolist(), stops, strict=True))
    changed = True
    while changed:
        changed = False
        for number, start, stop in order:
            least, most = bounds[number]
            for value in inputs[start:stop]:
                low, high = bounds.get(value, (value, value))
                least, most = min(least, low), max(most, high)
            if (least, most) != bounds[number]:
                bounds[number] = least, most
                changed = True
        order.reverse()
    found = np.array([bounds[number] for number in phis], np.int64).reshape(-1, 2)
    return found[:, 0], found[:, 1]
