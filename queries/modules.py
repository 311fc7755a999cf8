"""The modules: programs as they were compiled. A workload is run for its entry programs; all others
are helpers: see the view `_entry_programs`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ..schema.errors import UsageError
from ..schema.readable import human_bytes
from ..schema.store import Store
from .arguments import nearest
from .catalogue import statement
from .result import Rows, counted
from .runs import require_runs, run_names


def modules(store: Store, *, run: str | None = None, workload: str | None = None) -> Rows:
    """The rows of `Warehouse.modules`."""
    found = of_run_and_workload(store, "modules", run, workload)
    return Rows(found, empty=or_no_runs(store, found, "there are no such modules"))


def of_run_and_workload(store: Store, name: str, run: str | None, workload: str | None) -> pa.Table:
    """The rows of a statement, of a run and a workload. Raises UsageError for unknown ones."""
    found = store.rows(statement(name), [run, workload])
    if not found.num_rows:
        require_runs(store, (run, "run"))
        require_workload(store, workload)
    return found


def require_workload(store: Store, workload: str | None) -> None:
    """Raise UsageError if a warehouse that has dumps has none of this workload."""
    if workload is None:
        return
    (dumps,) = store.rows(statement("dumps.counts"), [workload]).to_pylist()
    if dumps["all_dumps"] and not dumps["of_workload"]:
        raise UsageError(f"there is no workload {workload!r}: see `memhouse modules`", "workload")


def or_no_runs(store: Store, found: pa.Table, otherwise: str) -> str:
    """Why there are no rows: a name that was mistyped makes a warehouse without runs."""
    if len(found) or run_names(store):
        return otherwise
    return f"there are no runs yet in {store.name}: ingest dumps first"


def helpers_line(peaks: Collection[int | None], said: Callable[[float], str] = human_bytes) -> str:
    """What helpers of these peaks are, in a line: `47 helpers, at most 103.4 MiB`; empty if none.

    A peak is None for a helper of another run, whose figure is not among those asked for.
    """
    if not peaks:
        return ""
    known = [peak for peak in peaks if peak is not None]
    most = f", at most {said(max(known))}" if known else ""
    return f"{counted(len(peaks), 'helper')}{most}"


def without_helpers(rows: pa.Table) -> tuple[pa.Table, str]:
    """The rows of entry programs by their column `is_entry`, and what the helpers are, in a line.

    The rows have memory_space and peak_bytes; a helper is counted in memory space 0.
    """
    helpers = rows.filter(pc.and_(pc.invert(rows["is_entry"]), pc.equal(rows["memory_space"], 0)))
    return rows.filter(rows["is_entry"]), helpers_line(helpers["peak_bytes"].to_pylist())


# Finds the module that a user means.

_LISTED = 20
# The exactness of a workload's name.
_WORKLOAD = 2
_Row = dict[str, Any]


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
    why: str = ""

    @property
    def caption(self) -> str:
        """Which module it is, in a line, and why it is this one of those that fit."""
        estimated = ", estimated from HLO text" if self.origin == "estimated" else ""
        why = f", {self.why}" if self.why else ""
        return f"{self.workload}/{self.module_name} of run {self.run_id}{estimated}{why}"


def find_module(
    store: Store, module: str | int, run: str | None = None, branch: str | None = None
) -> FoundModule:
    """The one module that the user means by an id, a name, or a part of one.

    If several that fit are one program, on several hosts for example, the newest is taken. A
    workload means the largest program of its newest run. Only runs of `branch` count, if it is
    given. Raises UsageError if no module fits, or several programs do.
    """
    name = str(module)
    found = store.rows(statement("find_module"), [name, run, branch]).to_pylist()
    most = max((row["exactness"] for row in found), default=0)
    fitting = [row for row in found if row["exactness"] == most]
    if not fitting:
        require_runs(store, (run, "run"))
        raise UsageError(f"no module fits {name!r}: {_hint(store, name)}", "module")
    why = ""
    if _are_several(fitting):
        # A workload may have the name that modules of several workloads have.
        of_workload = [row for row in found if row["exactness"] == _WORKLOAD]
        if of_workload:
            fitting, why = _largest(of_workload)
    if _are_several(fitting):
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
        why,
    )


def _are_several(fitting: Sequence[_Row]) -> bool:
    """Whether the rows are of several programs."""
    return len({row["program_id"] or row["module_id"] for row in fitting}) > 1


def _largest(of_workload: Sequence[_Row]) -> tuple[list[_Row], str]:
    """The program with the largest peak among those of the newest run, and why it is taken."""
    newest = [row for row in of_workload if row["is_in_newest_run"]]
    largest = max(newest, key=lambda row: row["peak_bytes"] or 0)
    if len(newest) == 1:
        return [largest], ""
    why = f"the largest of {len(newest)} programs"
    if unknown := sum(row["peak_bytes"] is None for row in newest):
        why += f", {unknown} without figures"
    return [largest], why


def _peak(row: _Row) -> str:
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
