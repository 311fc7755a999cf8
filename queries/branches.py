"""Branches of runs: each has a history of its own, and one of them is the default."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..schema.errors import UsageError
from .catalogue import statement

if TYPE_CHECKING:
    from ..schema.stores.base import Store

# The default branch is the first of these that there is; `` are the runs without a branch.
_DEFAULTS = ("main", "master", "")


@dataclass(frozen=True)
class Branches:
    """The branch that is asked for, and the others, the one with the newest run first."""

    chosen: str
    others: tuple[str, ...]


def choose_branch(store: Store, branch: str | None = None) -> Branches:
    """The branch of this name, else the default one. Raises UsageError if it has no run."""
    there = store.rows(statement("branches"))["branch"].to_pylist()
    if branch is not None and branch not in there:
        named = ", ".join(name for name in there if name) or "no run has the label branch"
        raise UsageError(f"there is no branch {branch!r}: {named}", "branch")
    chosen = default_branch(there, next(iter(there), "")) if branch is None else branch
    return Branches(chosen, tuple(name for name in there if name != chosen))


def default_branch(branches: Collection[str], otherwise: str) -> str:
    """main, else master, else the runs without a branch; if there is none of these, `otherwise`."""
    return next((name for name in _DEFAULTS if name in branches), otherwise)
