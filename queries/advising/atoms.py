"""Sizes that must be the same, and sizes that are products of others."""

from collections.abc import Iterable

# The atoms that a size is the product of, the major first; a size of 1 has none.
Word = tuple[int, ...]


class Atoms:
    """Atoms by number. An atom is one of several that are the same, or a product of others.

    Where two sizes have to do with each other, but not how, their link is lost.
    """

    def __init__(self) -> None:
        self.sizes: list[int] = []
        self._parent: list[int] = []
        self._parts: dict[int, Word] = {}
        self._lost: list[list[Word]] = []

    def new(self, size: int) -> Word:
        """A size of which nothing is known yet."""
        if size == 1:
            return ()
        self.sizes.append(size)
        self._parent.append(len(self._parent))
        return (len(self._parent) - 1,)

    def leaves(self, word: Iterable[int]) -> Word:
        """The word in atoms that are not products."""
        found: list[int] = []
        for atom in word:
            root = self._root(atom)
            parts = self._parts.get(root)
            if parts is None:
                found.append(root)
            else:
                found.extend(self.leaves(parts))
        return tuple(found)

    def equate(self, one: Iterable[int], other: Iterable[int]) -> None:
        """Let two words be the same size; what does not fit is a lost link."""
        ones, others = list(self.leaves(one))[::-1], list(self.leaves(other))[::-1]
        while ones and others:
            a, b = ones.pop(), others.pop()
            if a == b:
                continue
            if self.sizes[a] == self.sizes[b]:
                self._parent[self._root(a)] = self._root(b)
                # The union may have changed what the rest consists of.
                ones, others = (list(self.leaves(rest[::-1]))[::-1] for rest in (ones, others))
                continue
            if self.sizes[a] < self.sizes[b]:
                a, b, ones, others = b, a, others, ones
            if self.sizes[a] % self.sizes[b] or a in self.leaves((b,)):
                self.lose([(a, *ones), (b, *others)])
                return
            rest = self.new(self.sizes[a] // self.sizes[b])
            self._parts[a] = (b, *rest)
            ones, others = (list(self.leaves(more[::-1]))[::-1] for more in (ones, others))
            ones.extend(rest)
        if ones or others:
            self.lose([ones, others])

    def lose(self, words: Iterable[Iterable[int]]) -> None:
        """Note that these words have to do with each other; each is a size of its own."""
        self._lost.append([tuple(word) for word in words])

    def suspects(self, changed: set[int]) -> set[int]:
        """The atoms that may change with these, because a link is lost.

        A word that has a changed atom changes already, so its other atoms are above suspicion.
        """
        links = [[set(self.leaves(word)) for word in link] for link in self._lost]
        links = [link for link in links if len(set(map(frozenset, link))) > 1]
        found, reached = set[int](), changed
        while reached:
            found |= reached
            reached = {
                atom
                for link in links
                if any(word & reached for word in link)
                for word in link
                if not word & changed
                for atom in word
            } - found
        return found - changed

    def _root(self, atom: int) -> int:
        while self._parent[atom] != atom:
            self._parent[atom] = self._parent[self._parent[atom]]
            atom = self._parent[atom]
        return atom
