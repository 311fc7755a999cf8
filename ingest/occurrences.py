"""Numbers the dumps of a run that have equal workload, module name and platform, from 1."""

from collections.abc import Mapping, Set
from typing import Any

_Named = tuple[str, str, str | None]


class Occurrences:
    """Gives each dump the lowest number that no dump of its name has.

    `stored`: the rows of the run's dumps; those that are not in `given` keep their numbers.
    """

    def __init__(self, stored: Mapping[int, Mapping[str, Any]], given: Set[int]) -> None:
        self._taken = {
            ((row["workload"], row["module_name"], row["platform"]), row["occurrence"])
            for dump, row in stored.items()
            if dump not in given
        }
        self._last: dict[_Named, int] = {}

    def number(self, workload: str, module_name: str, platform: str | None) -> int:
        """The number of the next dump of this name."""
        named = (workload, module_name, platform)
        number = self._last.get(named, 0) + 1
        while (named, number) in self._taken:
            number += 1
        self._last[named] = number
        return number
