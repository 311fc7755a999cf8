"""Disjoint sets of numbers (union-find)."""


class DisjointSets:
    """Disjoint sets of the numbers below `count`, each alone at first."""

    def __init__(self, count: int) -> None:
        # A number's parent is smaller or itself.
        self._parent = list(range(count))

    def join(self, number: int, other: int) -> None:
        """Unite the sets of two numbers."""
        low, high = sorted((self._find(number), self._find(other)))
        self._parent[high] = low

    def _find(self, number: int) -> int:
        parent = self._parent
        while parent[number] != number:
            parent[number] = parent[parent[number]]
            number = parent[number]
        return number

    def smallest_members(self) -> list[int]:
        """By number, the smallest number of its set."""
        parent = self._parent
        for number, smaller in enumerate(parent):
            parent[number] = parent[smaller]
        return parent
