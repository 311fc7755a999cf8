"""Writes a view or table to a file."""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import pyarrow as pa
from pyarrow import parquet

from ..schema.errors import QueryError, UsageError
from ..schema.metrics import METRICS
from ..schema.private_folder import whole_file
from ..schema.readable import figures_table, quoted
from ..schema.stores.duckdb import Store
from .arguments import metric_column, parse_time
from .encoders import csv_parts, json_parts
from .modules import require_workload
from .questions import WORK
from .result import heading
from .sql import require_harmless

ENDINGS = (".csv", ".json", ".parquet", ".arrow")
# What a wide table has of each metric, by the column of `trends`.
_WIDE = {
    "value": "",
    "previous_value": "_previous",
    "change": "_change",
    "change_ratio": "_change_ratio",
    "best_value": "_best",
}

_NAMES = "workload, module_name, workload || '/' || module_name"
# Series of one name are numbered.
_PROGRAM = """workload || '/' || module_name
    || CASE series_number WHEN 1 THEN '' ELSE ' ' || series_number END"""


@dataclass(frozen=True)
class Exported:
    """A file that was written: its path, and how many rows it has."""

    path: Path
    rows: int

    def _repr_html_(self) -> str:
        size = self.path.stat().st_size if self.path.exists() else None
        return figures_table(str(self.path), [("rows", self.rows), ("size_bytes", size)])


def export(
    store: Store,
    view: str,
    file: str | os.PathLike[str],
    *,
    where: str | None = None,
    since: str | datetime | None = None,
    workload: str | None = None,
    module: str | None = None,
    metric: str | None = None,
    branch: str | None = None,
    memory_space: int | None = None,
    wide: bool = False,
) -> Exported:
    """Write the chosen rows of a view or table to a file, whole or not at all.

    The file's ending tells the format. `where` is SQL; `module` is a workload, a module's name or
    WORKLOAD/NAME. Rows of runs are of the default branch (see the function `run`) unless a `branch`
    is named; `*` is all. With a `memory_space` a view of the main memory is that of all spaces.
    With `wide`, `trends` has a row per run and series, with the columns METRIC, METRIC_previous,
    METRIC_change, METRIC_change_ratio and METRIC_best of each metric. With `wide` and one `metric`
    it is what a spreadsheet draws: a row per run, the oldest first, and a column per program, of
    which helpers are left out unless a `module` is named. Raises UsageError, FileError and
    QueryError.
    """
    path = Path(file)
    if path.suffix not in ENDINGS:
        traces = "; a trace of a module ends in .pftrace"
        raise UsageError(f"{path.name} ends in none of {', '.join(ENDINGS)}{traces}", "file")
    require_place(store, path)
    if wide and view != "trends":
        raise UsageError("only the view trends can be wide", "wide")
    if memory_space is not None and _column_names(store, f"{view}_by_space"):
        view = f"{view}_by_space"
    narrow = {
        "branch": _of_branch(branch),
        "run_at": _at_least(parse_time(since, "since")),
        "workload": f"workload = {quoted(workload)}" if workload is not None else None,
        "module_name": f"{quoted(module)} IN ({_NAMES})" if module is not None else None,
        "metric": f"metric = {quoted(metric_column(metric))}" if metric is not None else None,
        "memory_space": f"memory_space = {memory_space}" if memory_space is not None else None,
    }
    query = _query(store, view, where, narrow, wide)
    require_workload(store, workload)
    try:
        # The user's own `where` is SQL.
        require_harmless(query, store)
        store.ask(f"SELECT * FROM ({query}) LIMIT 0")
    except QueryError as error:
        raise UsageError(str(error), "where" if where else "view") from None
    rows = store.ask(query)
    with whole_file(path) as partial:
        _write(rows, partial, path.suffix)
    return Exported(path, int(rows.num_rows))


def require_place(store: Store, path: Path) -> None:
    """Raises UsageError for a file without a folder, and for one of the warehouse itself."""
    if not path.parent.is_dir():
        raise UsageError(f"there is no folder {path.parent}", "file")
    if store.holds(path):
        raise UsageError(f"{path} is of the warehouse itself: name another file", "file")


def _at_least(since: datetime | None) -> str | None:
    return f"run_at >= {quoted(since.isoformat())}::TIMESTAMP" if since else None


def _of_branch(branch: str | None) -> str | None:
    """The condition for rows of a branch; of the default branch if it is None."""
    if branch == "*":
        return None
    if branch is not None:
        return f"branch = {quoted(branch)}"
    newest = "(SELECT branch FROM runs_summary WHERE run_id = run(-1))"
    return f"branch IS NOT DISTINCT FROM {newest}"


def _column_names(store: Store, view: str) -> list[str]:
    query = """SELECT column_name FROM duckdb_columns()
        WHERE table_name = $1 AND schema_name = 'main' AND NOT internal"""
    return list(store.rows(query, [view])["column_name"].to_pylist())


def _query(
    store: Store, view: str, where: str | None, narrow: Mapping[str, str | None], wide: bool
) -> str:
    """The rows asked for. A view of modules is narrowed by the dumps of these modules.

    `narrow` are conditions by the column that a view must have for it, or its dumps.
    """
    columns = _column_names(store, view)
    if not columns:
        raise UsageError(f"there is no view or table {view}: see `memhouse views`", "view")
    conditions = [f"({where})"] if where else []
    for column, condition in narrow.items():
        if condition is None:
            continue
        # What does not say it itself is chosen by the dumps or the run it belongs to.
        key = next((name for name in ("dump_id", "run_id", "module_id") if name in columns), None)
        if column in columns and (column != "module_name" or "workload" in columns):
            conditions.append(condition)
        elif column == "branch":
            # A table of all runs, or of none.
            continue
        elif key is None or column not in ("run_at", "workload", "module_name"):
            raise UsageError(f"{view} has no {column} to choose by")
        else:
            chosen = f"SELECT {key} FROM dumps INNER JOIN runs USING (run_id) WHERE {condition}"
            conditions.append(f"{key} IN ({chosen})")
    if wide and narrow["metric"]:
        return _by_program(store, view, conditions, narrow)
    clause = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    name = view.replace('"', '""')
    source = f"({_wide(view, columns)})" if wide else f'"{name}"'
    # In the same order every night, so that two exports can be compared line by line.
    return f"SELECT * FROM {source}{clause} ORDER BY ALL"


def _wide(view: str, columns: list[str]) -> str:
    """`trends`, or `trends_by_space`, with the metrics side by side."""
    keys = [name for name in columns if name not in ("metric", "unit") and name not in _WIDE]
    values = [
        f"MAX({column}) FILTER (metric = '{metric}') AS {metric}{ending}"
        for metric in (*METRICS, WORK)
        for column, ending in _WIDE.items()
    ]
    return f"SELECT {', '.join([*keys, *values])} FROM {view} GROUP BY ALL"


def _by_program(
    store: Store, view: str, conditions: list[str], narrow: Mapping[str, str | None]
) -> str:
    """One metric of `trends`: a row per run, a column per program, named for a reader."""
    rows = f"SELECT *, {_PROGRAM} AS program FROM {view} WHERE {' AND '.join(conditions)}"
    shown = "TRUE" if narrow["module_name"] else "BOOL_OR(is_entry)"
    programs = store.ask(
        f"SELECT program, ANY_VALUE(metric)::VARCHAR AS metric FROM ({rows})"
        f" GROUP BY program HAVING {shown} ORDER BY program"
    )
    if not programs.num_rows:
        raise UsageError("trends has no such program: see `memhouse trends --all`", "module")
    columns = ['run_at AS "time (UTC)"', "run_id AS run"]
    for program, metric in zip(*programs.to_pydict().values(), strict=True):
        name = f"{program} {heading(metric)} (bytes)".replace('"', '""')
        columns.append(f'MAX(value) FILTER (program = {quoted(program)}) AS "{name}"')
    return f"SELECT {', '.join(columns)} FROM ({rows}) GROUP BY run_at, run_id ORDER BY ALL"


def _write(rows: pa.Table, file: Path, ending: str) -> None:
    match ending:
        case ".csv":
            _write_text(csv_parts(rows), file)
        case ".json":
            _write_text(json_parts(rows), file)
        case ".parquet":
            parquet.write_table(rows, file, compression="zstd")
        case _:
            with pa.OSFile(os.fspath(file), "wb") as sink, pa.ipc.new_file(sink, rows.schema) as to:
                to.write_table(rows)


def _write_text(parts: Iterable[str], file: Path) -> None:
    with file.open("w", encoding="utf-8", newline="") as sink:
        sink.writelines(parts)
