"""Lists of what the warehouse holds: runs, modules, peaks, fragmentation, tables."""

from typing import Any

import pyarrow as pa

from ..schema.errors import UsageError
from ..schema.stores.base import Store
from .catalogue import View, public_views, statement
from .folding import folded
from .nearest_name import nearest
from .result import Rows


def runs(store: Store) -> Rows:
    """The runs, the oldest first.

    Columns: run, run_at (UTC), branch (the label), hosts (the names), dumps, new_modules,
    incomplete, oom (counts), largest_peak_bytes, workloads, modules (counts), source,
    ingested_at (UTC).
    """
    return Rows(store.rows(statement("runs")), empty="there are no runs yet")


def log(store: Store, limit: int | None = None) -> Rows:
    """The journal, the newest entry first.

    Columns: entry, entered_at (UTC), action, run, host, detail, by_whom, tool_version,
    reader_version.
    """
    return Rows(store.rows(statement("log"), [limit]), empty="nothing has changed it yet")


def run_names(store: Store) -> list[str]:
    """The runs' names, the latest first."""
    return list(store.rows(statement("run_names"))["run_id"].to_pylist())


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


def require_workload(store: Store, workload: str | None) -> None:
    """Raise UsageError if a warehouse that has dumps has none of this workload."""
    if workload is None:
        return
    (dumps,) = store.rows(statement("dumps_of_workload"), [workload]).to_pylist()
    if dumps["all_dumps"] and not dumps["of_workload"]:
        raise UsageError(f"there is no workload {workload!r}: see `memhouse modules`", "workload")


def _chosen(store: Store, name: str, run: str | None, workload: str | None) -> pa.Table:
    """The rows of a statement, of a run and a workload. Raises UsageError for unknown ones."""
    found = store.rows(statement(name), [run, workload])
    if not found.num_rows:
        require_runs(store, (run, "run"))
        require_workload(store, workload)
    return found


def modules(store: Store, run: str | None = None, workload: str | None = None) -> Rows:
    """The modules of each run.

    Columns: run, workload, module, status, peak_bytes, total_bytes (of memory space 0),
    module_id, instructions (a count), platform, device, compiler, occurrence, headroom_bytes.
    Raises UsageError.
    """
    found = _chosen(store, "modules", run, workload)
    return Rows(found, empty=_nothing(store, found, "there are no such modules"))


def peaks(
    store: Store, run: str | None = None, workload: str | None = None, *, fold: bool = False
) -> Rows:
    """Each module's peak in each memory space; without `run` the latest of each series.

    With `fold`, the workloads of equal programs are one row. Columns: workload, module, space
    (its name), peak_bytes, total_bytes, headroom_bytes (of the device's memory, in memory space
    0), run, padding_bytes, peak_instruction, memory_space (its number). Raises UsageError.
    """
    found = _chosen(store, "peaks", run, workload)
    if fold:
        named = folded(found.to_pylist(), _program, lambda row: str(row["workload"]))
        rows = [{**row, "workload": name} for row, name in named]
        found = pa.Table.from_pylist(rows, schema=found.schema)
    shown = found.drop_columns(["platform", "status", "program_id"])
    return Rows(shown, empty=_nothing(store, shown, "there are no such peaks"))


def _nothing(store: Store, found: pa.Table, otherwise: str) -> str:
    """Why there are no rows: a name that was mistyped makes a warehouse without runs."""
    if len(found) or run_names(store):
        return otherwise
    return f"there are no runs yet in {store.name}: ingest dumps first"


def _program(row: dict[str, Any]) -> tuple[object, ...] | None:
    """What the rows of one program share, in one space of one run."""
    if row["program_id"] is None:
        return None
    names = ("run", "module", "platform", "status", "program_id", "memory_space")
    return tuple(row[name] for name in names)


def fragmentation(store: Store, run: str | None = None, workload: str | None = None) -> Rows:
    """What packing wastes of each temp allocation; without `run` the latest of each series.

    Columns: workload, module, space (its number), wasted_bytes, share (wasted_bytes over
    size_bytes), size_bytes, run, fullest_at (an instruction), most_occupied_bytes. Raises
    UsageError.
    """
    found = _chosen(store, "fragmentation", run, workload)
    return Rows(found, empty="there are no temp allocations")


def tables(store: Store) -> Rows:
    """The tables. Columns: table, rows (in a file an estimate), holds."""
    return Rows(store.listed_tables(), empty="there are no tables")


def columns(store: Store, table: str) -> Rows:
    """The columns of a table. Columns: column, type, meaning. Raises UsageError."""
    found = store.listed_columns(table)
    if not found.num_rows:
        raise UsageError(f"there is no table {table}: see `memhouse tables`", "name")
    return Rows(found)


def views() -> Rows:
    """The canned views. Columns: view, answers."""
    rows = [{"view": view.name, "answers": view.answers} for view in public_views().values()]
    return Rows(pa.Table.from_pylist(rows))


def view(name: str) -> View:
    """A canned view. Raises UsageError."""
    canned = public_views()
    if name not in canned:
        raise UsageError(f"there is no view {name}: see `memhouse views`", "name")
    return canned[name]


def view_columns(view: View) -> Rows:
    """The columns of a canned view. Columns: column, meaning."""
    rows = [{"column": column, "meaning": text} for column, text in view.columns.items()]
    return Rows(pa.Table.from_pylist(rows))
