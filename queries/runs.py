"""The runs: nights, commits, hosts. Each branch of runs has a history of its own."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from ..schema.errors import UsageError
from ..schema.store import Store
from .arguments import nearest
from .catalogue import statement
from .result import Rows


def runs(store: Store, *, label: Sequence[str] | str = ()) -> Rows:
    """The rows of `Warehouse.runs`."""
    asked = list(dict.fromkeys([label] if isinstance(label, str) else label))
    empty = f"no run has the label {' and '.join(asked)}" if asked else "there are no runs yet"
    return Rows(store.rows(statement("runs.listed"), [asked]), empty=empty)


def run_names(store: Store) -> list[str]:
    """The runs' names, the latest first."""
    return list(store.rows(statement("runs.names"))["run_id"].to_pylist())


def require_runs(store: Store, *named: tuple[str | None, str | None]) -> list[str]:
    """The runs' names, the latest first; `named` are runs that must be among them.

    Each is a run, or None, with the argument that names it. Raises UsageError.
    """
    known = run_names(store)
    for run, argument in named:
        if run is not None and run not in known:
            hint = nearest(run, known) or "see `memhouse runs`"
            raise UsageError(f"there is no run {run!r}: {hint}", argument)
    return known


# Branches of runs: each has a history of its own, and one of them is the default.

# The default branch is the first of these that there is; `` are the runs without a branch.
_DEFAULTS = ("main", "master", "")


@dataclass(frozen=True)
class Branches:
    """The branch that is asked for, and the others, the one with the newest run first."""

    chosen: str
    others: tuple[str, ...]


def choose_branch(store: Store, branch: str | None = None) -> Branches:
    """The branch of this name, else the default one. Raises UsageError if it has no run."""
    there = store.rows(statement("runs.branches"))["branch"].to_pylist()
    if branch is not None and branch not in there:
        named = ", ".join(name for name in there if name) or "no run has the label branch"
        raise UsageError(f"there is no branch {branch!r}: {named}", "branch")
    chosen = default_branch(there, next(iter(there), "")) if branch is None else branch
    return Branches(chosen, tuple(name for name in there if name != chosen))


def default_branch(branches: Collection[str], otherwise: str) -> str:
    """main, else master, else the runs without a branch; if there is none of these, `otherwise`."""
    return next((name for name in _DEFAULTS if name in branches), otherwise)
