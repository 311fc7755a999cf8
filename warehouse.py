"""The library: opening a warehouse, and what it answers."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, BinaryIO, Self

from .advice.advice import Advice
from .advice.advise import advise
from .compile.fit import Fit
from .compile.fit_answer import answer
from .compile.fit_axes import Asked, parse_share, target_of
from .compile.fitted import Fitted
from .compile.record_program import record_run, recorded
from .ingest.choose_run import Run
from .ingest.dry_run import Examination, examine
from .ingest.oom_logs import read_log_tables
from .ingest.pipeline import Summary, ingest, ingest_programs
from .ingest.sources.compiled import program_of
from .ingest.sources.files import exists, local_path
from .ingest.sources.program import Program
from .ingest.workers import Workers
from .oom.diagnosis import Oom, explain, oom
from .queries.arguments import check_labels, parse_device_memory, parse_size
from .queries.buffers import buffers
from .queries.catalogue import open_with_views, stored_views, use_views
from .queries.check import Check, accept, check
from .queries.diff import BUFFER, Diff, diff
from .queries.donations import donations
from .queries.export import Exported, export, export_sql
from .queries.fragmentation import fragmentation
from .queries.kernels import kernels
from .queries.label import label
from .queries.log import log
from .queries.modules import modules
from .queries.own_macros import use_macros
from .queries.owners import Roles, owners
from .queries.passes import passes
from .queries.peaks import peaks
from .queries.prune import prune
from .queries.read_module import ReadModule
from .queries.result import Rows
from .queries.runs import runs
from .queries.saved import saved
from .queries.since import Since, since
from .queries.sql import sql
from .queries.tables import tables
from .queries.timeline import timeline
from .queries.trends import Trends, trends
from .queries.verify import Verification, verify
from .report.cell_charts import with_steps, with_timeline, with_treemap, with_waterfall
from .report.export_trace import ExportedTrace, export_trace
from .schema.compaction import Compacted
from .schema.errors import UsageError
from .schema.merge import Merged, merge
from .schema.publish import Published, publish
from .schema.store import Deleted, Store, open_file
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
            yield warehouse.store

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

    def __init__(self, store: Store, *, macros: Sequence[str] = ()) -> None:
        self.store = store
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
        user_code: Sequence[str] = (),
        orders: bool = False,
        jobs: int = 1,
    ) -> Summary:
        """Ingest the dumps under a path, or with `run` under several, as one run.

        If the path's run already has other dumps, the new ones become the run NAME@TIME, the
        `run_id` of the summary. Problems with single files are in the summary's `problems`, and in
        `dump_files`.

        Args:
            run: the run's name; one that has other dumps is refused unless `replace`.
            at: when the run was compiled, which orders the runs; UTC unless it has a zone. Default:
                a date in the run's name; otherwise the run is ordered by when it is ingested.
            device_memory: of the device, in bytes or as in 16GiB, where the dumps lack it.
            host: the dumps are this host's part of the run, to which other hosts add theirs.
            user_code: patterns of files that are your code, and no library's.
            orders: also try other instruction orders, for the metrics `order_bytes` and
                `order_bound_bytes`; slow.
            jobs: the number of processes that read. Above one, a script must do its work under
                `if __name__ == "__main__":`, because each process may import it.

        Raises:
            UsageError: the path is empty, or a URL.
        """
        given = [local_path(path) for path in paths]
        with Workers(jobs, user_code) as workers:
            return ingest(
                self.store,
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

        If compiling fails, what XLA dumped until then is stored before the error is raised.

        Args:
            what: a jitted function, with its arguments or `jax.ShapeDtypeStruct` in their place, or
                a lowered program.
            run: a run that also receives this program. Default: the module's name, and NAME@TIME
                once the program has changed.
        """
        return record_run(
            self.store,
            what,
            args,
            kwargs,
            tool_version=TOOL_VERSION,
            run_id=run,
            labels=check_labels(labels),
        )

    def label(self, *runs: str, labels: Mapping[str, str | None] | None = None) -> Rows:
        """Set labels of runs, and remove those that are None or empty; the runs' labels then."""
        return label(self.store, runs, check_labels(labels))

    # What can be asked of a module.

    def runs(self, *, label: Sequence[str] | str = ()) -> Rows:
        """List the runs, the oldest first.

        Args:
            label: only runs with this label: KEY=VALUE or KEY; several must all match.

        Columns: run, run_at (UTC), branch (the label), hosts (names), dumps, new_modules,
        incomplete, oom (counts), largest_peak_bytes, workloads, modules (counts), source,
        ingested_at (UTC).
        """
        return runs(self.store, label=label)

    def modules(self, *, run: str | None = None, workload: str | None = None) -> Rows:
        """List the modules of each run.

        Columns: run, workload, module, status, peak_bytes, total_bytes (of the main memory),
        module_id, instructions (a count), platform, device, compiler, occurrence, is_entry (false:
        an auxiliary program), headroom_bytes.
        """
        return modules(self.store, run=run, workload=workload)

    def peaks(
        self, *, run: str | None = None, workload: str | None = None, fold: bool = False
    ) -> Rows:
        """The peak of each program in each memory space, the largest first.

        Args:
            run: only this run; default: the latest run of each series.
            fold: show equal programs of several workloads as one row, count auxiliary programs in
                `left_out`, and omit peak_upper_bytes if all programs are scheduled.

        Columns: workload, module, space (name), peak_bytes, peak_upper_bytes (of HLO text without a
        schedule: the peak in the worse of two orders; peak_bytes is that of the better one),
        total_bytes, headroom_bytes (of the device's main memory), run, padding_bytes,
        peak_instruction, memory_space (number), is_entry (false: an auxiliary program).
        """
        return peaks(self.store, run=run, workload=workload, fold=fold)

    def owners(
        self,
        module: str | int,
        *,
        run: str | None = None,
        by: str | None = None,
        memory_space: int = 0,
        schedule_time: int | None = None,
        callers: int = 0,
        roles: Roles | None = None,
        unfold: bool = False,
        limit: int | None = None,
    ) -> Rows:
        """Who owns a module's memory at its peak or at a schedule time, the largest first.

        Args:
            by: source (default), innermost, scope, op, dtype, pass, category or role.
            callers: the number of Python frames that call each line, in the column called_by.
            roles: user-defined roles, {"kv cache": "cache*"} or a TOML file; implies by="role".
            unfold: show repeated layers one by one.
            limit: the maximum number of rows; the remainder is one row.

        Columns: counted_bytes (add up to the occupied bytes), share (of these, 0 to 1), buffers (a
        count), the owner (source, scope, operation, element_type, pass, category or role), via (the
        library line of most of its bytes), called_by, categories, is_guess (the origin of the
        buffers is inferred). An owner has a row per stack of callers, and another one for guesses.
        """
        rows = owners(
            self.store,
            module,
            run=run,
            by=by,
            memory_space=memory_space,
            schedule_time=schedule_time,
            callers=callers,
            roles=roles,
            unfold=unfold,
            limit=limit,
        )
        return with_treemap(rows, self.store, module, run, memory_space, schedule_time)

    def buffers(
        self,
        module: str | int,
        *,
        run: str | None = None,
        memory_space: int = 0,
        schedule_time: int | None = None,
        callers: int = 0,
        limit: int | None = None,
    ) -> Rows:
        """The buffers that fill a module's memory at its peak or at a schedule time.

        The largest is first; beyond `limit` the remainder is one row.

        Columns: counted_bytes (add up to the occupied bytes), share (of these, 0 to 1), shape,
        source (file:line), called_by (with `callers`: that many Python frames), op_name, category,
        role, pass, value (the defining instruction), padding_bytes, start_time, end_time,
        last_use_time, layout, is_guess (the origin is inferred).
        """
        return buffers(
            self.store,
            module,
            run=run,
            memory_space=memory_space,
            schedule_time=schedule_time,
            callers=callers,
            limit=limit,
        )

    def timeline(self, module: str | int, *, run: str | None = None, memory_space: int = 0) -> Rows:
        """How full a module's memory is over its schedule.

        Columns: start_time, end_time (schedule positions, both inclusive), occupied_bytes,
        live_bytes, instruction, op_name.
        """
        rows = timeline(self.store, module, run=run, memory_space=memory_space)
        return with_timeline(rows, self.store, module, run, memory_space)

    def saved(
        self,
        module: str | int,
        *,
        run: str | None = None,
        memory_space: int = 0,
        limit: int | None = None,
    ) -> Rows:
        """What the forward pass saves for the backward pass, by line and shape.

        Columns: size_bytes (of all layers), tensors (a count), layers (over which each is stacked),
        shape, source (the line that defines it), operation, read_by (the line of its first read in
        the backward pass), at_peak_bytes (the part of size_bytes that is live at the peak).
        """
        return saved(self.store, module, run=run, memory_space=memory_space, limit=limit)

    def donations(
        self,
        module: str | int,
        *,
        run: str | None = None,
        memory_space: int = 0,
        limit: int | None = None,
    ) -> Rows:
        """Arguments that could be donated, and donations without effect.

        Columns: saving_bound_bytes (an upper bound), finding (not donated, read later, copied or
        unused), argument (its name), shape, instruction (defines the output, reads the argument
        later, or copies it), output (the part of the result), paired_by (shape or bytes),
        parameter_number.
        """
        return donations(self.store, module, run=run, memory_space=memory_space, limit=limit)

    def kernels(
        self,
        module: str | int | None = None,
        *,
        run: str | None = None,
        workload: str | None = None,
    ) -> Rows:
        """The on-chip memory of kernels, and its limit; equal kernels are one row.

        Columns: workload, kernel, count (of equal kernels), space (name), scoped_bytes (of each;
        null if the dump lacks it), is_lower_bound (scoped_bytes is a lower bound), limit_bytes,
        headroom_bytes, source (a line; null if there are several), share (scoped_bytes over
        limit_bytes), block_bytes, scratch_bytes, smem_bytes (in addition to scoped_bytes), module,
        run, limit_from, op_name, opcode, first_instruction, memory_space (number). With a `module`
        the rows lack its workload, name and run.
        """
        return kernels(self.store, module, run=run, workload=workload)

    def passes(
        self,
        module: str | int,
        *,
        run: str | None = None,
        buffers: bool = False,
        every: bool = False,
    ) -> Rows:
        """The compiler passes that changed a program's memory, in order.

        Needs the texts between the passes: see `memhouse record --passes`.

        Args:
            buffers: instead, a row for each large buffer of the peak, the largest first.
            every: also the steps that leave the estimated peak unchanged.

        Columns: step (XLA's number of the text), pipeline, compiler_pass, estimated_peak_bytes,
        change_bytes, change_instructions, what (the changed large buffer). With `buffers`:
        size_bytes, instruction, source, made_by (the pass that defined it), compiler_passes (those
        that changed it), is_certain (false: the instruction before a pass is inferred), shape,
        op_name.
        """
        return passes(self.store, module, run=run, buffers=buffers, every=every)

    def fragmentation(self, *, run: str | None = None, workload: str | None = None) -> Rows:
        """What packing wastes of each temp allocation, in descending order.

        Columns: workload, module, space (number), wasted_bytes, share (wasted_bytes over
        size_bytes), size_bytes, run, fullest_at (an instruction), most_occupied_bytes.
        """
        return fragmentation(self.store, run=run, workload=workload)

    def advise(
        self,
        module: str | int,
        *,
        run: str | None = None,
        target_saving: str | int | None = None,
        memory_space: int = 0,
    ) -> Advice:
        """What to change in a program, and the peak reduction of each change.

        A size is the difference of two replays of the program, with and without the change. Its
        grade is exact, expected (within a tolerance), between (two sizes), at most, or estimated
        (the dump is HLO text alone); a fact promises no saving.

        Args:
            target_saving: bytes or a size such as "2GiB": choose what to recompute to save it.

        Columns: saving_bytes (null of a fact), low_bytes, high_bytes, reserved_low_bytes and
        reserved_high_bytes (the reduction of what XLA reserves), ranked_by (the metric that
        ranks the finding), grade, tolerance, finding (its kind), title, source, write, why,
        value_ids, alone_bytes.

        Raises:
            UsageError: also if the dump has no live ranges, which a replay needs.
        """
        return advise(
            self.store, module, run=run, target_saving=target_saving, memory_space=memory_space
        )

    # What changed from run to run.

    def trends(
        self,
        *,
        workload: str | None = None,
        branch: str | None = None,
        since: str | datetime | None = None,
        memory_space: int = 0,
        metric: str = "peak",
        fold: bool = True,
    ) -> Trends:
        """How a metric of each program changed from run to run, and the causes.

        Args:
            branch: default: main, master, or the runs without a branch.
            since: only runs since this time, in UTC.
            metric: peak, total, temp and so on, or flops.
            fold: show equal programs of several workloads as one series, and count auxiliary
                programs.

        Columns: see `Trends`.
        """
        trend = trends(
            self.store,
            workload=workload,
            branch=branch,
            since=since,
            memory_space=memory_space,
            metric=metric,
            fold=fold,
        )
        return with_steps(trend, self.store, workload, since, memory_space, metric)

    def since(
        self,
        module: str | int,
        *,
        branch: str | None = None,
        memory_space: int = 0,
        metric: str = "peak",
        tolerance: str | None = None,
    ) -> Since:
        """The run in which a module's memory last changed, and the cause.

        Args:
            tolerance: the deviation within a level, such as 0.5% or 1MiB; default: 0.2 % and at
                least 64 KiB.

        Columns: see `Since`; a row per level, the runs between two changes.
        """
        return since(
            self.store,
            module,
            branch=branch,
            memory_space=memory_space,
            metric=metric,
            tolerance=tolerance,
        )

    def diff(self, a: str, b: str, *, workload: str | None = None, by: str = BUFFER) -> Diff:
        """What grew or shrank from A to B, two runs or two modules, and the causes.

        The changes add up to the change of the peak; those below 0.1 % in total are one row.

        Args:
            by: buffer, or a kind of owner to sum the changes by.

        Columns: see `Diff`.
        """
        return with_waterfall(diff(self.store, a, b, workload=workload, by=by), self.store)

    def check(
        self,
        run: str | None = None,
        *,
        baseline: str | None = None,
        best: bool = False,
        max_growth: Sequence[str] | None = None,
        limits: str | os.PathLike[str] | None = None,
        metric: str | None = None,
        memory_space: int = 0,
        require_baseline: bool = False,
        module: str | None = None,
    ) -> Check:
        """Whether a run's memory is within its limits.

        A program is compared with its last values before the run, and with the lowest since the
        last accepted growth; on a branch, with the newest run of main. Auxiliary programs are not
        checked.

        Args:
            run: default: the run that was ingested last.
            baseline: a run, or branch=NAME for the newest run of a branch.
            best: compare with the lowest value of all time.
            max_growth: 2%, 64MiB and so on, of which each must hold; default: 1%.
            limits: a TOML file of rules, see docs/check.md.
            metric: default: reserved, and peak where reserved is not known.
            require_baseline: fail each program that has no values before the run.
            module: check this module only, also if it is auxiliary; a workload means its largest.

        Columns: see `Check`; `outcome` is pass, fail or not judged.
        """
        return check(
            self.store,
            run,
            baseline=baseline,
            best=best,
            max_growth=max_growth,
            limits=limits,
            metric=metric,
            memory_space=memory_space,
            require_baseline=require_baseline,
            module=module,
        )

    def log(self, *, limit: int | None = None) -> Rows:
        """What changed the warehouse, the newest first.

        Columns: entry, entered_at (UTC), action, run, host, detail, user_name, tool_version,
        reader_version.
        """
        return log(self.store, limit=limit)

    # The warehouse itself.

    def tables(self, table: str | None = None) -> Rows:
        """List the tables, or the columns of one.

        Columns: table, rows (an estimate), holds. Of one table: column, type, meaning.
        """
        return tables(self.store, table)

    def verify(self) -> Verification:
        """Compare every module with the totals in its dump, and list the violations.

        Columns: see `Verification`.
        """
        return verify(self.store)

    def prune(
        self, runs: Sequence[str] = (), *, keep: str | None = None, dry_run: bool = False
    ) -> Deleted:
        """Drop runs, and the modules that no other run refers to.

        Args:
            runs: names of runs to drop.
            keep: instead, drop all runs older than this: 12h, 90d, 8w, 2y.
            dry_run: only report what would be dropped.

        Raises:
            UsageError: nothing is dropped.
        """
        return prune(self.store, runs, keep=keep, dry_run=dry_run)

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
        return sql(self.store, query, parameters, write=write, files=files)

    def _use_macros(self) -> None:
        """Let queries call the functions of `macros`."""
        if not self._has_macros:
            use_macros(self.store, self.macros)
            self._has_macros = True

    def oom(
        self, run: str | None = None, *, log: str | os.PathLike[str] | BinaryIO | None = None
    ) -> Oom:
        """Why memory ran out in a run, else in the latest in which it did, or by a log.

        The log is not stored; `ingest` stores it.
        """
        return oom(self.store, run) if log is None else read_oom(log, self.store)

    def accept(self, check: Check, reason: str) -> Check:
        """Let the growth that a check found pass for good; what is said of the run then."""
        return accept(self.store, check, reason)

    def merge(self, *files: str | os.PathLike[str]) -> Merged:
        """Add the runs of other warehouse files, all of them or nothing: how many were added.

        The order of the files makes no difference; what the warehouse has is not added again.
        Raises WarehouseError for a file that cannot be read, or that contradicts the warehouse.
        """
        return merge(self.store, [Path(file) for file in files])

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
            self.store, url, stored_views(self.store), again=again, across_runs=across_runs
        )

    def compact(self) -> Compacted:
        """Make the file as small as it can be: `before_bytes` and `after_bytes`; all rows stay.

        Raises WarehouseError, for example if this process has other connections to the file.
        """
        return self.store.compact()

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
            self.store,
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
        return export_sql(self.store, query, file)

    def export_trace(
        self, module: str | int, file: str | os.PathLike[str], *, run: str | None = None
    ) -> ExportedTrace:
        """Write a module as a trace that Perfetto shows: its values over time, and counters.

        Raises FileError, and MissingPackageError without perfetto.
        """
        return export_trace(self.store, module, file, run)

    def report(self, module: str | int, *, run: str | None = None, memory_space: int = 0) -> Report:
        """A module as charts and tables: `.save(path)` writes a page, a notebook shows it.

        `.charts()` are the charts one by one; `chart.model` is bokeh's.
        """
        from .report.module_report import module_report

        return module_report(self.store, module, run, memory_space)

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

        return history_report(self.store, workload, since, memory_space, branch=branch)

    def report_diff(self, a: str, b: str, *, workload: str | None = None) -> Report:
        """The report of what differs from A to B, two runs or two modules."""
        from .report.diff_report import diff_report

        return diff_report(self.store, a, b, workload)

    def report_site(self, folder: str | os.PathLike[str]) -> Site:
        """Write the history and a page a series to a folder, or what changed of them since.

        Raises FileError.
        """
        from .report.site import write_site

        return write_site(self.store, folder)

    def close(self) -> None:
        """Let go of the database file, which is compacted first if that gains much and is quick."""
        self.store.tidy()
        self.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()
