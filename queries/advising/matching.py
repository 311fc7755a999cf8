"""Which dimensions of an instruction's operands are which of its result, by their sizes alone."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import permutations, product
from math import prod

from .atoms import Atoms, Word

Pairs = list[tuple[Word, Word]]

# Instructions of more ways than this are not followed.
_MOST = 200
_MOST_OF_A_SIZE = 3


def settle(atoms: Atoms, words: Sequence[Word], ways: Sequence[Pairs]) -> bool:
    """Equate what is the same in every way that the sizes allow; whether one way is left."""
    if not ways:
        return False
    numbers = [atoms.closure(way, words) for way in ways]
    first: dict[tuple[int, ...], Word] = {}
    for word, *key in zip(words, *numbers, strict=True):
        if tuple(key) in first:
            atoms.equate(first[tuple(key)], word)
        else:
            first[tuple(key)] = word
    return all(each == numbers[0] for each in numbers)


def embeddings(atoms: Atoms, few: Sequence[Word], many: Sequence[Word]) -> list[Pairs]:
    """The ways to find each of the few, in their order, among the many."""
    sizes = [_size(atoms, each) for each in many]
    ways: list[tuple[Pairs, int]] = [([], 0)]
    for word in few:
        size = _size(atoms, word)
        ways = [
            ([*pairs, (word, many[at])], at + 1)
            for pairs, start in ways
            for at in range(start, len(many))
            if sizes[at] == size
        ]
        if len(ways) > _MOST:
            return []
    return [pairs for pairs, _ in ways]


def reorderings(
    atoms: Atoms, ones: Sequence[Word], others: Sequence[Word]
) -> Iterator[tuple[list[Word], list[Pairs]]]:
    """The words of each size, and the ways to match those of one side with the other's."""
    for here, there in by_size(atoms, ones, others):
        ways = [
            list(zip(here, order, strict=True))
            for order in permutations(there)
            if len(here) == len(there) <= _MOST_OF_A_SIZE
        ]
        yield [*here, *there], ways


def contractions(
    atoms: Atoms, left: Sequence[Word], right: Sequence[Word], result: Sequence[Word]
) -> Iterator[tuple[tuple[list[Word], ...], list[Pairs]]]:
    """The words of each size on each side, and the ways in which they are the same.

    Each dimension of a product stands on two or on all three sides.
    """
    for sides in by_size(atoms, left, right, result):
        yield sides, list(_partitions(*sides))


def _partitions(
    left: Sequence[Word], right: Sequence[Word], result: Sequence[Word]
) -> Iterator[Pairs]:
    counts = (len(left), len(right), len(result))
    if max(counts) > _MOST_OF_A_SIZE:
        return
    for triples in range(min(counts) + 1):
        a, b, c = (count - triples for count in counts)
        both, odd = divmod(a + b - c, 2)
        if odd or both < 0 or both > min(a, b):
            continue
        shared = triples + both
        for ls, rs, os in product(permutations(left), permutations(right), permutations(result)):
            yield [
                *zip(ls[:triples], os[:triples], strict=True),
                *zip(ls[:shared], rs[:shared], strict=True),
                *zip([*ls[shared:], *rs[shared:]], os[triples:], strict=True),
            ]


def by_size(atoms: Atoms, *sides: Sequence[Word]) -> Iterator[tuple[list[Word], ...]]:
    """The words of each size, side by side."""
    by_size: dict[int, tuple[list[Word], ...]] = defaultdict(lambda: tuple([] for _ in sides))
    for place, side in enumerate(sides):
        for word in side:
            by_size[_size(atoms, word)][place].append(word)
    by_size.pop(1, None)
    yield from by_size.values()


def _size(atoms: Atoms, word: Word) -> int:
    return prod(atoms.sizes[atom] for atom in word)
