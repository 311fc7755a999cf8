"""Keeps packages that no command needs out of the command's process.

pyarrow imports pandas and numpy wherever they are installed, only to recognise their objects,
and each takes longer than a short command. The library does not do this: a notebook needs both.
"""

import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType

# Commands of which no part computes in numpy.
_WITHOUT_NUMPY = ("modules", "peaks", "runs", "sql")
# Bokeh asks whether pandas is there in a way that a refusal breaks.
_WITH_ALL = ("report", "fit")


class _Unneeded:
    """A finder that says these packages are not installed, which pyarrow and DuckDB accept."""

    def __init__(self, packages: Sequence[str]) -> None:
        self._packages = packages

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name in self._packages:
            raise ModuleNotFoundError(f"this memhouse command works without {name}", name=name)
        return None


def keep_out_unneeded(arguments: Sequence[str]) -> None:
    """Refuse packages to this process and to those it forks, but not to programs it starts."""
    if arguments and arguments[0] in _WITH_ALL:
        return
    packages = ["pandas"]
    if arguments and arguments[0] in _WITHOUT_NUMPY:
        packages.append("numpy")
    sys.meta_path.insert(0, _Unneeded(packages))
