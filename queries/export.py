"""Writes rows to files: those of a view or table, of a query, and trends to a folder."""

import os
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import pyarrow as pa
from pyarrow import parquet

from ..schema.errors import QueryError, UsageError
from ..schema.metrics import WORK
from ..schema.private_folder import whole_file
from ..schema.readable import figures_table, quoted
from ..schema.store import Store
from .arguments import metric_column, parse_time
from .catalogue import statement
from .encoders import csv_parts, json_parts
from .modules import require_workload
from .sql import require_harmless, sql
from .trend_files import append_rows

ENDINGS = (".csv", ".json", ".parquet", ".arrow")

_NAMES = "workload, module_name, workload || '/' || module_name"


@dataclass(frozen=True)
class Exported:
    """A file or folder that was written: its path, the rows written, warnings about the query."""

    path: Path
    rows: int
    warnings: tuple[str, ...] = ()

    def _repr_html_(self) -> str:
        size = self.path.stat().st_size if self.path.is_file() else None
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
    append: bool = False,
    wide: bool = False,
) -> Exported:
    """Write the chosen rows of a view or table to a file, whole or not at all.

    The file's ending selects the format. `where` is SQL; `module` is a workload, a module's name or
    WORKLOAD/NAME; `metric` is one, several with commas, or `all`. Rows of runs are of the default
    branch (see the function `run`) unless a `branch` is named; `*` is all. With a `memory_space` a
    view of the main memory is that of all spaces.

    With `append` `file` is a folder with a file a metric, `peak.csv` and so on, each of which gets
    the rows of `trends` that it lacks, and of a run that lacks a program one without a value.
    Helpers are left out unless a `module` is named. With `wide` it has `peak_wide.csv` too, a row a
    run and a column a program. Raises UsageError, FileError and QueryError.
    """
    path = Path(file)
    (_require_folder if append else _require_ending)(path)
    require_place(store, path)
    if append and view != "trends":
        raise UsageError(f"only trends are appended: write {view} to a file", "append")
    if wide and not append:
        raise UsageError("goes with --append", "wide")
    if append or (memory_space is not None and _comments(store, f"{view}_by_space")):
        view = f"{view}_by_space"
    comments = _comments(store, view)
    if not comments:
        raise UsageError(f"there is no view or table {view}: see `memhouse views`", "view")
    narrow = {
        "branch": _of_branch(branch),
        "run_at": _at_least(parse_time(since, "since")),
        "workload": f"workload = {quoted(workload)}" if workload is not None else None,
        "module_name": f"{quoted(module)} IN ({_NAMES})" if module is not None else None,
        "metric": _of_metrics(metric),
        "memory_space": f"memory_space = {memory_space}" if memory_space is not None else None,
    }
    conditions = _conditions(view, comments, where, narrow)
    name = view.replace('"', '""')
    # In the same order every night, so that two exports can be compared line by line.
    source, order = f'"{name}"', "ALL"
    if append:
        source = f"({statement('export')})"
        order = "metric, run_at, run_id, workload, module_name, number"
        conditions += ["is_shown"] if module is None else []
        conditions += ["memory_space = 0"] if memory_space is None else []
    clause = " AND ".join(conditions or ["TRUE"])
    query = f"SELECT * FROM {source} WHERE {clause} ORDER BY {order}"
    require_workload(store, workload)
    try:
        # The user's own `where` is SQL.
        require_harmless(query, store)
        store.ask(f"SELECT * FROM ({query}) LIMIT 0")
    except QueryError as error:
        raise UsageError(str(error), "where" if where else "view") from None
    rows = store.ask(query)
    if append:
        if module is not None and not rows.num_rows:
            raise UsageError("trends has no such program: see `memhouse trends --all`", "module")
        return Exported(path, append_rows(path, rows.to_pylist(), wide=wide))
    return _written(path, rows, comments)


def export_sql(store: Store, query: str, file: str | os.PathLike[str]) -> Exported:
    """Write the rows of a query to a file, whose ending selects the format.

    The query is confined as one of `sql` is. Raises UsageError, FileError and QueryError.
    """
    path = Path(file)
    _require_ending(path)
    require_place(store, path)
    rows = sql(store, query)
    return _written(path, rows.table, {}, rows.warnings)


def _require_ending(path: Path) -> None:
    if path.suffix not in ENDINGS:
        others = "a trace of a module ends in .pftrace, and trends go to a folder with --append"
        raise UsageError(f"{path.name} ends in none of {', '.join(ENDINGS)}; {others}", "file")


def _require_folder(path: Path) -> None:
    if path.suffix in ENDINGS or (path.exists() and not path.is_dir()):
        raise UsageError(f"{path} is no folder: --append writes files into one", "file")


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


def _of_metrics(metric: str | None) -> str | None:
    if metric in (None, "all"):
        return None
    names = ", ".join(quoted(metric_column(name.strip(), WORK)) for name in metric.split(","))
    return f"metric IN ({names})"


def _comments(store: Store, view: str) -> dict[str, str]:
    """The columns of a view or table with their comments; none if there is no such relation."""
    query = """SELECT column_name, comment FROM duckdb_columns()
        WHERE table_name = $1 AND schema_name = 'main' AND NOT internal"""
    columns = store.rows(query, [view]).to_pylist()
    return {column["column_name"]: column["comment"] or "" for column in columns}


def _conditions(
    view: str, columns: Collection[str], where: str | None, narrow: Mapping[str, str | None]
) -> list[str]:
    """The conditions for the rows asked for.

    `narrow` are conditions by the column that a view must have for it, or its dumps: a view of
    modules is narrowed by the dumps of these modules.
    """
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
    return conditions


def _written(
    path: Path, rows: pa.Table, comments: Mapping[str, str], warnings: tuple[str, ...] = ()
) -> Exported:
    with whole_file(path) as partial:
        match path.suffix:
            case ".csv":
                _write_text(csv_parts(rows), partial)
            case ".json":
                _write_text(json_parts(rows), partial)
            case ending:
                _write_typed(_described(rows, comments), partial, ending)
    return Exported(path, int(rows.num_rows), warnings)


def _described(rows: pa.Table, comments: Mapping[str, str]) -> pa.Table:
    """The rows with the columns' comments as metadata, and with times of the zone UTC."""
    fields = []
    for field in rows.schema:
        if pa.types.is_timestamp(field.type) and field.type.tz is None:
            field = field.with_type(pa.timestamp(field.type.unit, "UTC"))
        comment = comments.get(field.name)
        fields.append(field.with_metadata({"comment": comment}) if comment else field)
    return rows.cast(pa.schema(fields))


def _write_typed(rows: pa.Table, file: Path, ending: str) -> None:
    if ending == ".parquet":
        parquet.write_table(rows, file, compression="zstd")
    else:
        with pa.OSFile(os.fspath(file), "wb") as sink, pa.ipc.new_file(sink, rows.schema) as to:
            to.write_table(rows)


def _write_text(parts: Iterable[str], file: Path) -> None:
    with file.open("w", encoding="utf-8", newline="") as sink:
        sink.writelines(parts)
