"""The library: opening a warehouse, and what it answers."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, BinaryIO, Self

from .compile.fit import Fit
from .compile.fit_answer import answer
from .compile.fit_axes import Asked, parse_share, target_of
from .compile.fitted import Fitted
from .compile.record_program import record_run, recorded
from .ingest.choose_run import Run
from .ingest.doctor import Examination, examine
from .ingest.oom_logs import read_log_tables
from .ingest.pipeline import Summary, ingest, ingest_programs
from .ingest.sources.compiled import program_of
from .ingest.sources.files import exists, local_path
from .ingest.sources.program import Program
from .ingest.workers import Workers
from .oom.diagnosis import Oom, explain, oom
from .queries.advise import advise as _advise
from .queries.arguments import check_labels, parse_device_memory, parse_size
from .queries.buffers import buffers as _buffers
from .queries.catalogue import open_with_views, stored_views, use_views
from .queries.check import Check, accept
from .queries.check import check as _check
from .queries.diff import diff as _diff
from .queries.donations import donations as _donations
from .queries.export import Exported, export, export_sql
from .queries.fragmentation import fragmentation as _fragmentation
from .queries.kernels import kernels as _kernels
from .queries.label import label
from .queries.log import log as _log
from .queries.modules import modules as _modules
from .queries.own_macros import use_macros
from .queries.owners import owners as _owners
from .queries.passes import passes as _passes
from .queries.peaks import peaks as _peaks
from .queries.prune import prune as _prune
from .queries.questions import asked
from .queries.read_module import ReadModule
from .queries.result import Rows
from .queries.runs import runs as _runs
from .queries.saved import saved as _saved
from .queries.since import since as _since
from .queries.sql import sql
from .queries.tables import tables as _tables
from .queries.timeline import timeline as _timeline
from .queries.trends import trends as _trends
from .queries.verify import verify as _verify
from .report.export_trace import ExportedTrace, export_trace
from .schema.compaction import Compacted
from .schema.errors import UsageError
from .schema.merge import Merged, merge
from .schema.publish import Published, publish
from .schema.store import Store, open_file
from .schema.versions import TOOL_VERSION

# Reports are drawn by bokeh, which is slow to import.
if TYPE_CHECKING:
    from .report.page import Report
    from .report.site import Site


def open(
    db: str | os.PathLike[str] = "memhouse.duckdb",
    *,
    read_only: bool = False,
    macros: Sequence[str | os.PathLike[str]] = (),
) -> Warehouse:
    """Open the warehouse at `db`, a file; make it if it is not there.

    Opened `read_only` it can be read by several processes, but must exist. `macros` are files of
    functions for `sql`, or patterns such as "*.sql". Raises WarehouseError.
    """
    store = open_with_views(os.fspath(db), create=not read_only, read_only=read_only)
    return Warehouse(store, macros=[os.fspath(each) for each in macros])


def doctor(path: str | os.PathLike[str]) -> Examination:
    """What a folder, an archive or a file holds, and which questions it answers.

    Nothing is stored. The result has the tables `files` and `questions`. Raises UsageError.
    """
    if not exists(Path(path)):
        raise UsageError(f"{path}: there is no such file or folder", "path")
    return examine(Path(path))


def read(program: object) -> ReadModule:
    """A module as it was compiled: a value with its figures; nothing is stored.

    `program` is what `jax.jit(f).lower(…).compile()` gives, HLO text, for example
    `compiled.as_text()`, the bytes of an HloProto, or the path of a file that holds either.
    The module's `source` says where the figures come from; without a buffer assignment its
    `origin` is `estimated`. Raises UsageError for anything else, and for a program that cannot
    be read.
    """
    return _held(*program_of(program), "program")


def record(what: Any, /, *args: Any, **kwargs: Any) -> ReadModule:
    """Compile a program of JAX and read what XLA dumps of it; nothing is run or stored.

    `what` is a jitted function, with its arguments or `jax.ShapeDtypeStruct` in their place, or
    a lowered program. JAX's cache on disk is left out, so this always compiles. Raises
    UsageError, and what compiling raises.
    """
    with recorded(what, args, kwargs) as found:
        if found.error is not None:
            found.error.add_note("memhouse: warehouse.record(...) keeps what XLA dumped until then")
            raise found.error
        return _held(found.programs[-1], "dump", "what")


def fit(
    build: Callable[..., Any] | str,
    /,
    *,
    topology: str | Sequence[str] = "cpu",
    memory: str | int | None = None,
    grid: Mapping[str, Sequence[Any]] | None = None,
    budget: int | None = None,
    exact: bool = False,
    reserve: str = "0%",
    timeout: float = 900,
    ram: str | int | None = None,
    jobs: int = 1,
    db: str | os.PathLike[str] = "memhouse.duckdb",
    **keywords: Any,
) -> Fitted:
    """Find the largest batch, or any other size, that fits a device; nothing is run.

    `build` is a function of a file, or its name as in "train.py:build"; another process imports it.
    It is called with the keywords: a `range` is searched, of a list each value is tried, as of
    `grid`, all else is fixed. It returns a jitted function and the tuple of its arguments,
    `jax.ShapeDtypeStruct` for example; if it takes `devices`, these are those of the topology. The
    topology is of TPUs, such as "v5e:2x2", or "cpu" or "cpu:8" with a `memory`, or the file that
    describes a GPU, "h100.pbtxt". Each point is a run in the warehouse `db`, where it is found
    again without a compile. `budget` is the most compiles, `reserve` the share of the memory to
    hold back, `timeout` in seconds and `ram` the limits of one compile, `jobs` how many
    combinations are searched at once; `exact` searches sizes over 1000 to the last step. Raises
    UsageError, and MemhouseError if the file cannot be imported.
    """

    @contextmanager
    def opening() -> Iterator[Store]:
        with open(db) as warehouse:
            yield warehouse._store

    target, function = target_of(build)
    asked = Asked(
        target,
        function,
        {**keywords, **(grid or {})},
        [topology] if isinstance(topology, str) else topology,
        parse_device_memory(memory, "memory"),
        budget,
        exact,
        parse_share(reserve),
        timeout,
        parse_size(ram, "ram"),
        jobs,
    )
    search = Fit(asked, opening, tool_version=TOOL_VERSION)
    search.run()
    return Fitted(asked.name, *answer(asked, search.points), problems=search.problems)


def _held(program: Program, source: str, argument: str) -> ReadModule:
    """One program in a warehouse of its own, in memory. Raises UsageError."""
    store = open_file("duckdb:///:memory:", create=True)
    try:
        use_views(store)
        with Workers(1) as workers:
            run = Run("memory", "memory", TOOL_VERSION)
            summary = ingest_programs(store, [program], run, workers)
        if summary.problems:
            raise UsageError(summary.problems[0], argument)
        module = ReadModule(store, source, summary.notes)
        if module.origin is None and summary.notes:
            raise UsageError(summary.notes[0], argument)
        return module
    except BaseException:
        store.close()
        raise


def read_oom(log: str | os.PathLike[str] | BinaryIO, store: Store | None = None) -> Oom:
    """Why memory ran out, by the messages in a log: a path or an open binary file.

    Nothing is stored. With a store, the dumps of the modules in it tell more. Raises UsageError
    for a log that cannot be read.
    """
    name, tables = read_log_tables(log)
    return explain(store, tables["oom_reports"], tables["oom_buffers"], name)


class Warehouse:
    """An open warehouse; close it, or use it in a `with` statement.

    A method raises UsageError for an argument that is wrong. Where a `module` is asked for,
    it is a workload, a module's name, WORKLOAD/NAME, a unique part of one, or a module's id.
    """

    advise = asked(_advise)
    buffers = asked(_buffers)
    check = asked(_check)
    diff = asked(_diff)
    donations = asked(_donations)
    fragmentation = asked(_fragmentation)
    kernels = asked(_kernels)
    log = asked(_log)
    modules = asked(_modules)
    owners = asked(_owners)
    passes = asked(_passes)
    peaks = asked(_peaks)
    prune = asked(_prune)
    runs = asked(_runs)
    saved = asked(_saved)
    since = asked(_since)
    tables = asked(_tables)
    timeline = asked(_timeline)
    trends = asked(_trends)
    verify = asked(_verify)

    def __init__(self, store: Store, *, macros: Sequence[str] = ()) -> None:
        self._store = store
        self.macros = macros
        self._has_macros = False

    def ingest(
        self,
        *paths: str | os.PathLike[str],
        run: str | None = None,
        replace: bool = False,
        at: datetime | None = None,
        labels: Mapping[str, str] | None = None,
        device_memory: str | int | None = None,
        host: str | None = None,
        mine: Sequence[str] = (),
        orders: bool = False,
        jobs: int = 1,
    ) -> Summary:
        """Ingest the dumps under a path, or with `run` under several, as one run.

        If the path's run holds other dumps, the new ones become the run NAME@TIME: the summary's
        run_id. A `run` that holds other dumps is refused, unless `replace`: then the summary's
        `replaced` is what was dropped. `at`, or else a date in the run's name, orders the run among
        others; without one it stands where it enters. `at` with no time zone is UTC. With a `host`
        the dumps are its part of the run, to which other hosts add theirs. `device_memory` is that
        of the device compiled for, in bytes or as in 16GiB, where the dumps do not say it. `mine`
        are patterns of files that are your code, and no library's, wherever they lie. With `orders`
        other orders of the instructions are tried, for the metrics `order_bytes` and
        `order_bound_bytes`, which takes longer than all else. What is wrong
        with single files is in the summary's problems, and in `dump_files`. `jobs` is how
        many processes read: a script that asks for more than one does its work under `if __name__
        == "__main__":`, since each process may import the script again. Raises UsageError for a
        path that is empty or a URL: dumps are read from this machine.
        """
        given = [local_path(path) for path in paths]
        with Workers(jobs, mine) as workers:
            return ingest(
                self._store,
                *given,
                tool_version=TOOL_VERSION,
                workers=workers,
                run_id=run,
                run_at=at,
                labels=check_labels(labels),
                replaces=replace,
                device_memory_bytes=parse_device_memory(device_memory, "device_memory"),
                host=host,
                orders=orders,
            )

    def record(
        self,
        what: Any,
        /,
        *args: Any,
        run: str | None = None,
        labels: Mapping[str, str] | None = None,
        **kwargs: Any,
    ) -> Summary:
        """Compile a program of JAX and store what XLA dumps of it as a run; nothing is run.

        `what` is a jitted function, with its arguments or `jax.ShapeDtypeStruct` in their
        place, or a lowered program. The run is named after the module, and NAME@TIME once the
        program has changed; a `run` that is named receives the program beside what it holds.
        If compiling fails, what XLA dumped until then is stored before the error is raised.
        """
        return record_run(
            self._store,
            what,
            args,
            kwargs,
            tool_version=TOOL_VERSION,
            run_id=run,
            labels=check_labels(labels),
        )

    def label(self, *runs: str, labels: Mapping[str, str | None] | None = None) -> Rows:
        """Set labels of runs, and remove those that are None or empty; the runs' labels then."""
        return label(self._store, runs, check_labels(labels))

    def sql(
        self,
        query: str,
        parameters: Sequence[object] = (),
        *,
        write: bool = False,
        files: bool = False,
    ) -> Rows:
        """Run a query; `$1` and so on in it are the parameters.

        It is one SELECT of the warehouse's tables and views. With `write` its statements may change
        the warehouse, all of it or nothing; with `files` they may open files, and do all else that
        DuckDB can. Raises QueryError, also for what it may not do.
        """
        self._use_macros()
        return sql(self._store, query, parameters, write=write, files=files)

    def _use_macros(self) -> None:
        """Let queries call the functions of `macros`."""
        if not self._has_macros:
            use_macros(self._store, self.macros)
            self._has_macros = True

    def oom(
        self, run: str | None = None, *, log: str | os.PathLike[str] | BinaryIO | None = None
    ) -> Oom:
        """Why memory ran out in a run, else in the latest in which it did, or by a log.

        The log is not stored; `ingest` stores it.
        """
        return oom(self._store, run) if log is None else read_oom(log, self._store)

    def accept(self, check: Check, reason: str) -> Check:
        """Let the growth that a check found pass for good; what is said of the run then."""
        return accept(self._store, check, reason)

    def merge(self, *files: str | os.PathLike[str]) -> Merged:
        """Add the runs of other warehouse files, all of them or nothing: how many were added.

        The order of the files makes no difference; what the warehouse has is not added again.
        Raises WarehouseError for a file that cannot be read, or that contradicts the warehouse.
        """
        return merge(self._store, [Path(file) for file in files])

    def publish(
        self, url: str, *, again: Sequence[str] = (), across_runs: bool = True
    ) -> Published:
        """Write the runs that a lake lacks: a Delta table for each table and each view.

        `url` is a folder, or a URL such as s3://bucket/memhouse. Runs in `again`, which have
        changed since they were published, are published again. Relations `across_runs`, such as
        trends, are written whole, if the warehouse has all runs of the lake. Raises WarehouseError,
        and MissingPackageError without `memhouse[lake]`.
        """
        return publish(
            self._store, url, stored_views(self._store), again=again, across_runs=across_runs
        )

    def compact(self) -> Compacted:
        """Make the file as small as it can be: `before_bytes` and `after_bytes`; all rows stay.

        Raises WarehouseError, for example if this process has other connections to the file.
        """
        return self._store.compact()

    def export(
        self,
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
        """Write a view or table to a .csv, .json, .parquet or .arrow file.

        `where` is SQL; rows are of the default branch unless a `branch` is named, `*` for all.
        With `append`, `file` is a folder whose files, one a metric, get the rows of `trends` that
        they lack; with `wide` files of a row a run and a column a program too. Raises FileError.
        """
        return export(
            self._store,
            view,
            file,
            where=where,
            since=since,
            workload=workload,
            module=module,
            metric=metric,
            branch=branch,
            memory_space=memory_space,
            append=append,
            wide=wide,
        )

    def export_sql(self, query: str, file: str | os.PathLike[str]) -> Exported:
        """Write the rows of a query, as `sql` runs it, to a file of one of these formats.

        Raises QueryError and FileError.
        """
        self._use_macros()
        return export_sql(self._store, query, file)

    def export_trace(
        self, module: str | int, file: str | os.PathLike[str], *, run: str | None = None
    ) -> ExportedTrace:
        """Write a module as a trace that Perfetto shows: its values over time, and counters.

        Raises FileError, and MissingPackageError without perfetto.
        """
        return export_trace(self._store, module, file, run)

    def report(self, module: str | int, *, run: str | None = None, memory_space: int = 0) -> Report:
        """A module as charts and tables: `.save(path)` writes a page, a notebook shows it.

        `.charts()` are the charts one by one; `chart.model` is bokeh's.
        """
        from .report.module_report import module_report

        return module_report(self._store, module, run, memory_space)

    def report_history(
        self,
        workload: str | None = None,
        *,
        since: str | datetime | None = None,
        branch: str | None = None,
        memory_space: int = 0,
    ) -> Report:
        """The report of all series of a branch over its runs, or of those of a workload.

        Each step has its cause, and what it changed.
        """
        from .report.history_report import history_report

        return history_report(self._store, workload, since, memory_space, branch=branch)

    def report_diff(self, a: str, b: str, *, workload: str | None = None) -> Report:
        """The report of what differs from A to B, two runs or two modules."""
        from .report.diff_report import diff_report

        return diff_report(self._store, a, b, workload)

    def report_site(self, folder: str | os.PathLike[str]) -> Site:
        """Write the history and a page a series to a folder, or what changed of them since.

        Raises FileError.
        """
        from .report.site import write_site

        return write_site(self._store, folder)

    def close(self) -> None:
        """Let go of the database file, which is compacted first if that gains much and is quick."""
        self._store.tidy()
        self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()
