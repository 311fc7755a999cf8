"""Instructions whose dimensions the sizes decide, if at all: what could be what."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, permutations
from math import prod

from .atoms import Atoms, Word
from .matching import Pairs, by_size, contractions, embeddings, reorderings

Words = Sequence[Word]


@dataclass(frozen=True)
class OpenLink:
    """Dimensions that have to do with each other, and all ways in which they can be the same."""

    words: Words
    ways: Sequence[Pairs]


def open_links(
    opcode: str, atoms: Atoms, result: Words, operands: Sequence[Words]
) -> list[OpenLink]:
    """The links of one of the opcodes of `OPEN`, from the dimensions that are not 1."""
    first = operands[0]
    if opcode == "broadcast":
        return [OpenLink([*first, *result], embeddings(atoms, first, result))]
    if opcode == "reduce":
        return [OpenLink([*first, *result], embeddings(atoms, result, first))]
    if opcode == "transpose":
        return [OpenLink(*link) for link in reorderings(atoms, first, result)]
    if opcode == "gather":
        return list(_gathered(atoms, first, operands[1], result))
    if opcode == "scatter":
        return list(_gathered(atoms, first, operands[1], operands[-1]))
    return list(_product(opcode, atoms, first, operands[1], result))


OPEN = {"broadcast", "reduce", "transpose", "gather", "scatter", "dot", "convolution"}


def _product(
    opcode: str, atoms: Atoms, left: Words, right: Words, result: Words
) -> Iterator[OpenLink]:
    left_over: list[tuple[Word, int]] = []
    for sides, ways in contractions(atoms, left, right, result):
        words = [word for side in sides for word in side]
        if ways:
            yield OpenLink(words, ways)
        else:
            left_over.extend((word, place) for place, side in enumerate(sides) for word in side)
    # The size of a convolution's window stands on one side alone, and is no other's.
    if opcode == "dot" or len({place for _, place in left_over}) > 1:
        yield OpenLink([word for word, _ in left_over], [])


def _gathered(atoms: Atoms, operand: Words, indices: Words, result: Words) -> Iterator[OpenLink]:
    """A result's dimensions are those of the indices, and some of the operand's."""
    for whole, places, found in by_size(atoms, operand, indices, result):
        if not found:
            continue
        size = prod(atoms.sizes[each] for each in found[0])
        if len(found) > len(whole) + len(places) or len(found) > 3:
            # A part of the operand: its size is the program's own.
            yield OpenLink([*whole, *places, *found] if size > 3 else [], [])
            continue
        used = min(len(places), len(found))
        ways = [
            list(zip(found, order, strict=True))
            for here in combinations(places, used)
            for there in combinations(whole, len(found) - used)
            for order in permutations([*here, *there])
        ]
        # What is left of the operand may be a batch dimension, which is that of the indices too.
        ways += [[*way, (left, one)] for way in ways for left in whole for one in found if used]
        yield OpenLink([*whole, *places, *found], ways)
