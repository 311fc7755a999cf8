"""`memhouse publish`: a warehouse's relations as Delta tables, for Spark, Polars and others.

A lake is a folder or a URL with a Delta table for each relation. What belongs to a run is appended:
rows of its dumps, messages and modules, and its rows of views. The row of `runs` is written last,
so that a run whose publishing was interrupted is missing there; the next publish deletes what there
is of it and writes it again. Relations across runs, such as `trends`, are written whole.

All commits are deltalake's. Rows are appended by MERGE with the run or the module as key, which
inserts what the table lacks and fails if another process commits meanwhile: then it is tried again.
"""

import random
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa

from . import arrow
from .errors import MissingPackageError, UsageError, WarehouseError, with_remedy
from .readable import command, figures_table, quoted
from .store import Store
from .tables import INTERNAL, metadata

# Relations whose rows of a run change with other runs, with labels or with later parts.
WHOLE_TABLES = (
    "run_parts",
    "run_labels",
    "journal",
    "dump_series",
    "causes",
    "accepted_changes",
)
WHOLE_VIEWS = (
    "differing_hosts",
    "history",
    "kernel_trends",
    "latest",
    "missing",
    "regressions",
    "run_programs",
    "runs_summary",
    "scope_trends",
    "series",
    "trends",
    "trends_by_space",
)
# Columns that change with other runs or with a label: relations that are appended lack them.
CHANGING_COLUMNS = ("is_latest", "run_seq", "branch", "suite")
# Of an unfinished run these have rows, written before all others: each run has rows in one of them.
_FIRST = ("dumps", "oom_reports")
_PUBLISHED_DUMPS = pa.schema(
    [("run_id", pa.string()), ("dump_id", pa.int64()), ("module_id", pa.int64())]
)
# So many runs are written by one commit of each table: their rows are in memory.
_RUNS_PER_COMMIT = 10
# In the name of a folder deltalake misreads these, or panics.
_UNFIT = re.compile(r"[%\[\]^|\\\x00-\x1f]")
# Of a process that commits at the same time; each pause is up to a second.
_ATTEMPTS = 50
# Delta tables have no unsigned and no larger integers.
_LARGE_INTEGERS = ("HUGEINT", "UHUGEINT", "UBIGINT", "UINTEGER", "USMALLINT", "UTINYINT")


@dataclass
class Published:
    """What a publish added: runs and dumps; `notes` are lines for the user."""

    runs: int = 0
    dumps: int = 0
    notes: list[str] = field(default_factory=list)

    def _repr_html_(self) -> str:
        counts = [(name, value) for name, value in vars(self).items() if isinstance(value, int)]
        return figures_table("published", counts, self.notes)


class PublicView(Protocol):
    """A canned view: what it answers, and its columns with their comments."""

    @property
    def name(self) -> str: ...  # noqa: D102
    @property
    def answers(self) -> str: ...  # noqa: D102
    @property
    def columns(self) -> Mapping[str, str]: ...  # noqa: D102


@dataclass(frozen=True)
class _Relation:
    """A table or view of the warehouse: its columns with their comments."""

    name: str
    comment: str
    columns: Mapping[str, str]


class Lake:
    """A folder or URL with a Delta table for each relation. Methods raise WarehouseError."""

    def __init__(self, url: str) -> None:
        try:
            import deltalake
        except ImportError:
            raise MissingPackageError(
                "publish needs deltalake: pip install 'memhouse[lake]'"
            ) from None
        self._deltalake: Any = deltalake
        self.url = url.rstrip("/")
        if "://" not in url:
            _refuse_other_folder(Path(url))
            self.url = Path(url).absolute().as_uri()

    def has(self, name: str) -> bool:
        """Whether the lake has a table of this name."""
        with _errors(self.url):
            return bool(self._deltalake.DeltaTable.is_deltatable(f"{self.url}/{name}"))

    def rows(self, name: str, columns: Sequence[str]) -> list[dict[str, Any]]:
        """The columns of a relation, no rows if the lake has no such table."""
        if not self.has(name):
            return []
        with _errors(self.url):
            return list(self._table(name).to_pyarrow_table(columns=list(columns)).to_pylist())

    def append(self, relation: _Relation, rows: pa.Table, key: str) -> None:
        """Append the rows whose key the table lacks; the table is made if it is missing."""

        def commit() -> None:
            table = self._made(relation, rows.schema)
            if len(rows):
                merger = table.merge(rows, f'target."{key}" = source."{key}"', "source", "target")
                merger.when_not_matched_insert_all().execute()

        self._until_alone(commit)

    def overwrite(self, relation: _Relation, rows: pa.Table) -> None:
        """Replace all rows of the table; the table is made if it is missing."""

        def commit() -> None:
            table = self._made(relation, rows.schema)
            # Two commits with this mark at a time are a conflict, also in an empty table.
            mark = self._deltalake.Transaction("memhouse", table.version())
            properties = self._deltalake.CommitProperties(app_transactions=[mark])
            self._deltalake.write_deltalake(
                table, rows, mode="overwrite", commit_properties=properties
            )

        self._until_alone(commit)

    def delete(self, name: str, condition: str) -> None:
        """Delete rows of a relation, if the lake has it."""
        if self.has(name):
            self._until_alone(lambda: self._table(name).delete(condition))

    def compact(self, name: str) -> None:
        """Write the small files of a table as few large ones."""
        self._until_alone(lambda: self._table(name).optimize.compact())

    def vacuum(self, name: str) -> None:
        """Delete files that left the table longer ago than deltalake's default, a week."""
        self._until_alone(lambda: self._table(name).vacuum(dry_run=False))

    def _table(self, name: str) -> Any:
        return self._deltalake.DeltaTable(f"{self.url}/{name}")

    def _made(self, relation: _Relation, schema: pa.Schema) -> Any:
        """The table. Raises WarehouseError if it has other columns."""
        commented = pa.schema(
            column.with_metadata({"comment": relation.columns.get(column.name) or ""})
            for column in schema
        )
        table = self._deltalake.DeltaTable.create(
            f"{self.url}/{relation.name}", commented, mode="ignore", description=relation.comment
        )
        stored = [column.name for column in table.schema().fields]
        if stored != schema.names:
            raise WarehouseError(
                f"{self.url} was published by another version of memhouse, with other columns of "
                f"{relation.name}: name another place"
            )
        return table

    def _until_alone(self, commit: Callable[[], object]) -> None:
        """Commit, and try again while other processes commit to the same table."""
        from deltalake.exceptions import CommitFailedError

        with _errors(self.url):
            for _ in range(_ATTEMPTS):
                try:
                    commit()
                    return
                except CommitFailedError:
                    time.sleep(random.random())
            commit()


def publish(
    store: Store,
    url: str,
    views: Mapping[str, PublicView],
    *,
    again: Sequence[str] = (),
    across_runs: bool = True,
    compact: bool = False,
    vacuum: bool = False,
    report: Callable[[str], None] = lambda name: None,
) -> Published:
    """Write the runs that the lake lacks, and the relations across runs.

    Args:
        views: the public views by name.
        again: runs whose rows in the lake are deleted first.
        across_runs: whether relations across runs are written.
        report: gets the name of each relation before it is written.
    Raises:
        WarehouseError: the lake cannot be written, or has other columns.
        UsageError: a run in `again` is not in the warehouse.
        MissingPackageError: deltalake is not installed.
    """
    runs = [row[0] for row in store.connection.sql(_RUNS).fetchall()]
    for run in again:
        if run not in runs:
            raise UsageError(f"run {run!r} is not in the warehouse", "again")
    lake = Lake(url)
    tables = _tables()
    appended_views = [
        _relation(view.name, view.answers, view.columns)
        for view in views.values()
        if view.name not in WHOLE_VIEWS
    ]
    for run in again:
        _delete_run(lake, run, tables, appended_views)
    published_runs = _published_runs(lake)
    new_runs = [run for run in runs if run not in published_runs]
    for run in _unfinished_runs(lake, published_runs) & set(new_runs):
        _delete_run(lake, run, tables, appended_views)
    published = Published(len(new_runs), notes=_changed_runs(store, lake, published_runs))
    for start in range(0, max(len(new_runs), 1), _RUNS_PER_COMMIT):
        chunk = new_runs[start : start + _RUNS_PER_COMMIT]
        published.dumps += _append_runs(store, lake, tables, appended_views, chunk, report)
    # Only a warehouse with all runs of the lake can tell how they follow each other.
    lacking = published_runs - set(runs)
    if across_runs and not lacking:
        whole = [tables[name] for name in WHOLE_TABLES]
        whole += [_relation(name, views[name].answers, views[name].columns) for name in WHOLE_VIEWS]
        for relation in whole:
            report(relation.name)
            lake.overwrite(relation, _rows(store, relation, ""))
    report("runs")
    condition = f"WHERE run_id IN ({', '.join(map(quoted, new_runs)) or 'NULL'})"
    lake.append(tables["runs"], _rows(store, tables["runs"], condition), "run_id")
    # Another process may have published meanwhile.
    if across_runs and (lacking := _published_runs(lake) - set(runs)):
        published.notes.append(_not_whole(lacking))
    for name in filter(lake.has, [*tables, *views]):
        if compact:
            lake.compact(name)
        if vacuum:
            lake.vacuum(name)
    return published


def _delete_run(
    lake: Lake, run: str, tables: Mapping[str, _Relation], views: Sequence[_Relation]
) -> None:
    """Delete the run's rows of all relations that are appended.

    Those of `runs` go first, so that it is unfinished, and those of _FIRST last, which say so.
    """
    rows = lake.rows("dumps", ["run_id", "dump_id"])
    dump_ids = ", ".join(str(row["dump_id"]) for row in rows if row["run_id"] == run) or "NULL"
    between = [relation for name, relation in tables.items() if name not in ("runs", *_FIRST)]
    for relation in (tables["runs"], *between, *views, *(tables[name] for name in _FIRST)):
        if relation.name in WHOLE_TABLES:
            continue
        if "run_id" in relation.columns:
            lake.delete(relation.name, f"run_id = {quoted(run)}")
        elif "dump_id" in relation.columns:
            lake.delete(relation.name, f"dump_id IN ({dump_ids})")


def _append_runs(
    store: Store,
    lake: Lake,
    tables: Mapping[str, _Relation],
    views: Sequence[_Relation],
    runs: Sequence[str],
    report: Callable[[str], None],
) -> int:
    """Append all rows of these runs but those of `runs`; the number of their dumps."""
    named = f"({', '.join(map(quoted, runs)) or 'NULL'})"
    of_runs = f"WHERE run_id IN {named}"
    known_modules = {row["module_id"] for row in lake.rows("modules", ["module_id"])}
    query = f"SELECT DISTINCT module_id FROM dumps {of_runs} AND module_id IS NOT NULL"
    modules = {row[0] for row in store.connection.sql(query).fetchall()} - known_modules
    of_modules = f"WHERE module_id IN ({', '.join(map(str, sorted(modules))) or 'NULL'})"
    # The table of modules says which of them the lake has: it comes after their other rows.
    between = [name for name in tables if name not in ("runs", "modules", *_FIRST, *WHOLE_TABLES)]
    for name in (*_FIRST, *between, "modules"):
        relation = tables[name]
        report(name)
        if name in ("compiler_flags", "file_sets"):
            key = "flags_id" if name == "compiler_flags" else "files_id"
            condition = f"WHERE {key} IN (SELECT {key} FROM dumps {of_runs})"
        elif "run_id" in relation.columns:
            key, condition = "run_id", of_runs
        else:
            key, condition = "module_id", of_modules
        lake.append(relation, _rows(store, relation, condition), key)
    for view in views:
        report(view.name)
        condition = of_runs
        if "run_id" not in view.columns:
            condition = f"WHERE dump_id IN (SELECT dump_id FROM dumps {of_runs})"
        key = "run_id" if "run_id" in view.columns else "dump_id"
        lake.append(view, _rows(store, view, condition), key)
    ((dumps,),) = store.connection.sql(f"SELECT COUNT(*) FROM dumps {of_runs}").fetchall()
    return int(dumps)


def _tables() -> dict[str, _Relation]:
    """The tables by name, with the columns that users read."""
    return {
        table.name: _relation(
            table.name,
            table.comment,
            {name: table.columns[name].comment or "" for name in arrow.schema(table.name).names},
        )
        for table in metadata.tables.values()
        if table.schema != INTERNAL
    }


def _relation(name: str, comment: str | None, columns: Mapping[str, str]) -> _Relation:
    """A relation without the columns that change, where its rows are appended."""
    if name not in (*WHOLE_TABLES, *WHOLE_VIEWS):
        columns = {key: text for key, text in columns.items() if key not in CHANGING_COLUMNS}
    return _Relation(name, comment or "", columns)


def _rows(store: Store, relation: _Relation, condition: str) -> pa.Table:
    """Rows of a relation with types that Delta tables have."""
    described = store.connection.sql(f'DESCRIBE "{relation.name}"').fetchall()
    types = {name: type_ for name, type_, *_ in described}
    selected = ", ".join(_selected(name, types[name]) for name in relation.columns)
    query = f'SELECT {selected} FROM "{relation.name}" {condition}'
    return store.connection.sql(query).to_arrow_table()


def _selected(column: str, type_: str) -> str:
    if type_.startswith("ENUM("):
        return f'CAST("{column}" AS VARCHAR) AS "{column}"'
    if type_ in _LARGE_INTEGERS:
        return f'CAST("{column}" AS BIGINT) AS "{column}"'
    return f'"{column}"'


def _published_runs(lake: Lake) -> set[str]:
    return {row["run_id"] for row in lake.rows("runs", ["run_id"])}


def _unfinished_runs(lake: Lake, published: set[str]) -> set[str]:
    """The runs of which the lake has rows, but none in `runs`: a publish was interrupted."""
    return {row["run_id"] for name in _FIRST for row in lake.rows(name, ["run_id"])} - published


def _changed_runs(store: Store, lake: Lake, published: set[str]) -> list[str]:
    """A note for each published run that has other dumps in the warehouse by now."""
    rows = lake.rows("dumps", ["run_id", "dump_id", "module_id"])
    store.connection.register("published_dumps", pa.Table.from_pylist(rows, _PUBLISHED_DUMPS))
    try:
        changed = [row[0] for row in store.connection.sql(_CHANGED).fetchall()]
    finally:
        store.connection.unregister("published_dumps")
    return [
        f"run {run!r} has changed since it was published, and stays as it was: "
        f"`{command('publish', lake.url, '--again', run)}` publishes it again"
        for run in changed
        if run in published
    ]


def _not_whole(lacking: set[str]) -> str:
    return (
        f"the lake has {len(lacking)} run{'s' * (len(lacking) != 1)} that this warehouse lacks: "
        f"trends and other relations across runs need a publish from a file with all "
        "(`memhouse merge`)"
    )


def _refuse_other_folder(folder: Path) -> None:
    """Raise WarehouseError if the folder holds something else than Delta tables."""
    if unfit := _UNFIT.search(str(folder.absolute())):
        raise WarehouseError(
            f"deltalake takes no {unfit[0]!r} in a folder's name: name another than {str(folder)!r}"
        )
    if folder.is_file():
        raise WarehouseError(f"{folder} is a file: name a folder or a URL")
    if folder.is_dir() and any(folder.iterdir()) and not any(folder.glob("*/_delta_log")):
        raise WarehouseError(f"{folder} holds other files: name a new or empty folder, or a URL")


@contextmanager
def _errors(url: str) -> Iterator[None]:
    """Raise errors of deltalake and of the file system as WarehouseError."""
    from deltalake.exceptions import DeltaError

    try:
        yield
    except (DeltaError, OSError) as error:
        message = " ".join(str(error).split())
        raise WarehouseError(f"cannot publish to {url}: {with_remedy(message)}") from error


_RUNS = "SELECT run_id FROM runs ORDER BY run_at, run_seq"
_CHANGED = """SELECT DISTINCT run_id FROM (
    (SELECT run_id, dump_id, module_id FROM dumps EXCEPT FROM published_dumps)
    UNION ALL
    (FROM published_dumps EXCEPT SELECT run_id, dump_id, module_id FROM dumps)
)
WHERE run_id IN (SELECT run_id FROM runs)
ORDER BY run_id"""
