"""Finds the module that a user means."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..schema.errors import UsageError
from ..schema.readable import human_bytes
from .arguments import nearest
from .catalogue import statement
from .runs import require_runs

if TYPE_CHECKING:
    from ..schema.stores.base import Store

_LISTED = 20


@dataclass(frozen=True)
class FoundModule:
    """A module, by the latest dump that the user can mean."""

    module_id: int
    dump_id: int
    series_id: int
    run_id: str
    workload: str
    module_name: str
    origin: str | None

    @property
    def caption(self) -> str:
        """Which module it is, in a line."""
        estimated = ", estimated from HLO text" if self.origin == "estimated" else ""
        return f"{self.workload}/{self.module_name} of run {self.run_id}{estimated}"


def find_module(
    store: Store, module: str | int, run: str | None = None, branch: str | None = None
) -> FoundModule:
    """The one module that the user means by an id, a name, or a part of one.

    Several fit that are one program, on several hosts for example, are no doubt: the newest is
    taken. Only runs of `branch` count, if it is given. Raises UsageError if no module fits, or
    several programs do.
    """
    name = str(module)
    found = store.rows(statement("find_module"), [name, run, branch]).to_pylist()
    most = max((row["exactness"] for row in found), default=0)
    fitting = [row for row in found if row["exactness"] == most]
    if not fitting:
        require_runs(store, (run, "run"))
        raise UsageError(f"no module fits {name!r}: {_hint(store, name)}", "module")
    if len({row["program_id"] or row["module_id"] for row in fitting}) > 1:
        # A script's own program is larger than the small ones that JAX compiles beside it.
        fitting.sort(key=lambda row: -(row["peak_bytes"] or 0))
        lines = [
            f"  {row['workload']}/{row['module_name']}"
            f" (number {row['occurrence']}, {_peak(row)}id {row['module_id']})"
            for row in fitting
        ]
        more = [f"  … and {len(lines) - _LISTED} more"] if len(lines) > _LISTED else []
        listed = "\n".join([*lines[:_LISTED], *more])
        raise UsageError(f"several modules fit {name!r}, name one or its id:\n{listed}", "module")
    row = fitting[0]
    return FoundModule(
        row["module_id"],
        row["dump_id"],
        row["series_id"],
        row["run_id"],
        row["workload"],
        row["module_name"],
        row["origin"],
    )


def _peak(row: dict[str, Any]) -> str:
    """The peak in memory space 0; nothing if it is not known."""
    if row["peak_bytes"] is None:
        return ""
    mark = "≈" if row["origin"] == "estimated" else ""
    return f"peak {mark}{human_bytes(row['peak_bytes'])}, "


def _hint(store: Store, name: str) -> str:
    """What to type for a name that no module has: a name much like it, or where names are."""
    known = store.rows("SELECT DISTINCT workload, module_name FROM dumps").to_pylist()
    names = {part for row in known for part in (*row.values(), "/".join(row.values()))}
    return nearest(name, names) or "see `memhouse modules`"
