"""The paths that a user gives for one run, and the programs under them."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import chain
from pathlib import Path, PurePosixPath
from typing import Any

from ..schema import arrow, clock, ids
from ..schema.errors import UsageError
from ..schema.journal import entries, entry
from ..schema.readable import figures_table
from ..schema.store import Batch, Deleted, Store
from ..xla.errors import DumpError
from .choose_run import (
    Chosen,
    Occurrences,
    Run,
    choose_run,
    claim,
    file_time,
    later_name,
    nights_of,
    refuse_mixed_parts,
)
from .module_rows import opcode_counts
from .nothing_found import nothing_among
from .oom_logs import OomLogs, has_other_messages, may_be_log, write_reports
from .orders import add_orders, modules_without_orders
from .outcomes import FAILED, OK, PARTIAL, some_of, what_was_replaced
from .read_program import ProgramOutcome
from .sources.dump_folder import find_dumps, is_wanted
from .sources.files import (
    SourceFile,
    is_archive,
    is_dump_file,
    is_file,
    open_source,
    readable,
    source_name,
)
from .sources.program import Program
from .sources.xprof_session import find_modules, is_session_file, named_after
from .workers import Workers
from .writer import Writer


class GivenPaths:
    """One path, whose folders are the workloads, or several that are workloads themselves.

    Of several paths, a folder or archive is the workload of its name, and its own folders are
    workloads within it. Dump files are one dump if their names say so, wherever they are. All
    workloads are within that of the host, if one is named. `empty` has the folders and archives
    that were read and hold no program and no message, once the programs were asked for; `others`
    those of them that hold other files.
    """

    def __init__(self, paths: Sequence[Path], host: str | None = None) -> None:
        self.logs = OomLogs()
        self.empty: list[Path] = []
        self.others: list[Path] = []
        self._outer = outer = PurePosixPath(host or "")
        self._paths = {outer / (_name_of(path) if len(paths) > 1 else ""): path for path in paths}
        if not paths:
            raise UsageError("name a folder, an archive or a file", "paths")
        if len(self._paths) < len(paths):
            raise UsageError(
                "two of these paths have one name, so their dumps could not be told apart: "
                "give the folder that holds them, or rename one"
            )

    @property
    def source(self) -> str:
        """The paths as given, as one text."""
        return ", ".join(map(_shown, self._paths.values()))

    def programs(
        self, store: Store, cleanup: ExitStack, refuse: Callable[[str], None]
    ) -> list[Program]:
        """The programs, in order; `refuse` receives what is wrong with a path or a file.

        The files exist until `cleanup` ends. A path without programs is refused, unless it has
        messages that memory ran out: `logs` has these then.
        """
        found: list[Program] = []
        single: list[Iterator[SourceFile]] = []
        of_sessions: list[SourceFile] = []
        for name, path in self._paths.items():
            problems: list[str] = []
            is_single = len(self._paths) > 1 and is_dump_file(path)
            within = self._outer if is_single else name
            opened = open_source(
                path,
                is_read,
                cleanup,
                problems.append,
                within=within.as_posix() if within.name else "",
                # Opening and closing the warehouse would release its lock.
                is_left_out=store.owns,
            )
            files = _set_aside(opened, of_sessions)
            if is_single:
                single.append(self.logs.but_logs(files, self._refusing(refuse), is_named=True))
                continue
            before = len(of_sessions), len(self.logs.found)
            refusing = self._refusing(problems.append)
            rest = self.logs.but_logs(files, refusing, is_named=is_dump_file(path))
            here = find_dumps(rest, refusing, named_file=is_file(path))
            found += here
            has_some = here or (len(of_sessions), len(self.logs.found)) != before
            if not has_some and not problems:
                files_there, why = nothing_among(path)
                problems.append(why)
                if not is_file(path) or is_archive(path.name):
                    self.empty.append(path)
                    self.others += [path] * bool(files_there)
            for problem in problems:
                refuse(problem)
        if single:
            files = chain.from_iterable(single)
            found += find_dumps(files, self._refusing(refuse), named_file=True)
        found += find_modules(of_sessions, self._refusing(refuse), cleanup)
        return found

    def _refusing(self, refuse: Callable[[str], None]) -> Callable[[SourceFile, DumpError], None]:
        return lambda file, why: refuse(f"{self.shown(file.path)}: {why}")

    def shown(self, file: str) -> str:
        """The path to show for a file of a program."""
        inner = PurePosixPath(file)
        for name, path in self._paths.items():
            if inner.is_relative_to(name):
                inner = inner.relative_to(name)
                # What is in a file that the user named stands below the file's name.
                own = readable(path.name)
                is_inside = is_file(path) and inner.is_relative_to(own)
                return str(path / (inner.relative_to(own) if is_inside else inner))
        return file


def _shown(path: Path) -> str:
    return readable(str(path))


def _name_of(path: Path) -> PurePosixPath:
    """What tells a path from the others of a run."""
    return PurePosixPath(readable(path.name if is_dump_file(path) else source_name(path)))


def is_read(name: str) -> bool:
    """Whether ingest reads a file of this name."""
    return is_wanted(name) or is_session_file(name) or may_be_log(name)


def _set_aside(files: Iterator[SourceFile], of_sessions: list[SourceFile]) -> Iterator[SourceFile]:
    """All files but those of XProf's sessions, which go to the list."""
    for file in files:
        if is_session_file(file.name):
            of_sessions.append(file)
        else:
            yield file


# Ingests the paths of one run: finds the programs, reads them and writes each batch.


@dataclass
class Summary:
    """The outcome of an ingest.

    run_id: the run that the dumps are in, which may be a later night NAME@TIME; oom_dumps: of
    how many dumps XLA ran out of memory; oom_reports: how many messages that memory ran out the
    run has; replaced: what was dropped to replace a run; left_out: the modules that are no dumps
    of the run, by the reason; problems, notes: lines for the user; a note is not a failure.
    """

    run_id: str
    dumps: int = 0
    new_modules: int = 0
    failed: int = 0
    partial: int = 0
    unchanged: int = 0
    without_figures: int = 0
    read_bytes: int = 0
    oom_dumps: int = 0
    oom_reports: int = 0
    replaced: Deleted | None = None
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    left_out: dict[str, list[str]] = field(default_factory=dict)

    def _repr_html_(self) -> str:
        counts = [each for each in vars(self).items() if isinstance(each[1], int)]
        return figures_table(self.run_id, counts, [*self.problems, *self.notes])


def run_name(path: Path) -> str:
    """The default name of a path's run: the name of the folder, file or session."""
    return source_name(named_after(path))


def ingest(
    store: Store,
    *paths: Path,
    tool_version: str,
    workers: Workers,
    run_id: str | None = None,
    run_at: datetime | None = None,
    labels: Mapping[str, str] | None = None,
    replaces: bool = False,
    device_memory_bytes: int | None = None,
    host: str | None = None,
    source: str | None = None,
    orders: bool = False,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Summary:
    """Ingest the dumps under `paths` (folders, files or archives) as one run.

    Several paths need a `run_id`. If the path's run holds other dumps, these become the run
    NAME@TIME; a `run_id` that holds other dumps is refused, unless `replaces`: see `choose_run`.
    With a `host`, they are its part of the run `run_id`, which other hosts add to. `source` names
    where they come from, if the paths do not last. Folders without
    a program are a run as well: nothing was compiled. If they hold other files, they may be named
    by mistake, and are a run only if it has a name or claims a time. `progress` receives the bytes
    done and the total. An error in a file is recorded in `dump_files` and in the summary's
    problems; ingest continues. Raises WarehouseError and UsageError.
    """
    given = GivenPaths(paths, host)
    if run_id is None and (replaces or len(paths) > 1 or host is not None):
        what = "to replace" if replaces else "of several paths" if len(paths) > 1 else "of the host"
        raise UsageError(f"name the run {what}", "run")
    if host is not None and (host in ("", ".", "..") or "/" in host):
        raise UsageError(f"{host!r} is no name of a host: it is one word without /", "host")
    problems: list[str] = []
    name = run_id or run_name(paths[0])
    claimed = claim(run_at, name)
    is_meant = run_id is not None or claimed is not None
    with ExitStack() as cleanup:
        found = given.programs(store, cleanup, problems.append)
        notes = [
            f"{given.shown(file.path)}: no out-of-memory message of XLA"
            for file in given.logs.empty
            if len(paths) > 1
        ]
        if not found and not given.logs.found and len(given.empty) < len(paths):
            return Summary(name, problems=[*problems, *notes])
        if not (found or given.logs.found or is_meant) and given.others:
            notes.append(f"no run {name!r} is stored: --run {name} would store it without programs")
            return Summary(name, problems=problems, notes=notes)
        run = Run(
            name,
            source or given.source,
            tool_version,
            run_at,
            labels or {},
            is_named=run_id is not None,
            replaces=replaces,
            host=host,
            device_memory_bytes=device_memory_bytes,
            orders=orders,
        )
        if found:
            summary = ingest_programs(store, found, run, workers, progress, shown=given.shown)
        elif given.logs.found:
            summary = Summary(name)
        else:
            summary = write_empty(store, run)
        if given.logs.found:
            _write_logs(store, run, given.logs, summary, alone=not found)
        summary.problems[:0] = problems
        summary.notes += notes
        return summary


def ingest_programs(
    store: Store,
    programs: Sequence[Program],
    run: Run,
    workers: Workers,
    progress: Callable[[int, int], None] = lambda done, total: None,
    shown: Callable[[str], str] = str,
) -> Summary:
    """Ingest at least one program from any source as one run.

    A stored module is not stored again: the new dump refers to it. An unchanged dump is not
    written. `shown` turns a file of the source into the path to show. Raises WarehouseError, and
    UsageError if the run is named and holds other dumps.
    """
    chosen = choose_run(store, programs, run)
    if run.orders:
        lacking = modules_without_orders(store)
        known = chosen.known
        known = replace(known, complete=known.complete - lacking, outdated=known.outdated | lacking)
        chosen = replace(chosen, known=known)
    outcomes = workers.read(programs, chosen.known.complete, chosen.fingerprints)
    summary = Summary(chosen.run_id, notes=[] if chosen.note is None else [chosen.note])
    with ExitStack() as block:
        before = chosen.known.run
        if chosen.replaces:
            summary.replaced = block.enter_context(store.replacing(chosen.run_id, run.host))
            known = replace(chosen.known, dumps={}, files={}, hosts=frozenset())
            chosen = replace(chosen, known=known)
        given = {ids.dump_id(chosen.run_id, *program.key.in_run) for program in programs}
        writer = Writer(
            store,
            chosen.run_id,
            chosen.known,
            # Dumps that stay as they are stored keep their numbers.
            Occurrences(chosen.known.dumps, given - chosen.kept),
            _run_batch(run, chosen, max(program.modified for program in programs)),
            chosen.kept,
            run.device_memory_bytes,
            host=run.host,
            entry=_entry(run, chosen),
        )
        assumed: Counter[str] = Counter()
        with_assumed = 0
        done, total = 0, sum(program.size_bytes for program in programs)
        for outcome in outcomes:
            if outcome.left_out is not None:
                summary.left_out.setdefault(outcome.left_out, []).append(outcome.module_name)
            else:
                if run.orders and outcome.module is not None:
                    add_orders(outcome.module, outcome.key.platform)
                _count(summary, outcome, shown)
                assumed.update(outcome.assumed)
                with_assumed += bool(outcome.assumed)
                summary.unchanged += not writer.add(outcome)
            done += outcome.size_bytes
            progress(done, total)
        if summary.dumps:
            writer.write()
        elif chosen.replaces:
            why = next(iter(summary.left_out))
            raise UsageError(f"run {chosen.run_id!r} stays as it is, nothing replaces it: {why}")
    summary.new_modules = writer.new_modules
    if writer.read_again:
        summary.notes.append(
            f"{writer.read_again} module{'s' * (writer.read_again != 1)} read again: "
            + ("for their orders, or because " if run.orders else "")
            + "an older memhouse had read them, and figures may differ"
        )
    if with_assumed:
        summary.notes.append(
            f"{with_assumed} program{'s' * (with_assumed != 1)} with assumed rules, so that what is"
            f" worked out is an estimate: {opcode_counts(assumed)}"
        )
    for why, names in summary.left_out.items():
        # Without any other program this is why the run is empty.
        (summary.notes if summary.dumps else summary.problems).append(f"{some_of(names)}: {why}")
    if summary.replaced is not None and before is not None:
        summary.notes.insert(0, what_was_replaced(summary.replaced, before["source"]))
    return summary


def write_empty(store: Store, run: Run) -> Summary:
    """Write a run without programs, unless the last night of its name is one already.

    Raises UsageError.
    """
    run_id = run.run_id
    known = store.known(run_id)
    if run.is_named:
        refuse_mixed_parts(run_id, known, run.host)
    nights = [] if run.is_named else store.nights(run_id)
    if nights:
        run_id = nights[0]["run_id"]
        known = store.known(run_id)
        if known.dumps:
            run_id = later_name(run.run_id, clock.now(), {night["run_id"] for night in nights})
            known = store.known(run_id)
    if any(row["host"] == run.host for row in known.dumps.values()):
        return Summary(run_id, notes=[f"run {run_id!r} stays as it is"])
    chosen = Chosen(run_id, known, ())
    if batch := _run_batch(run, chosen):
        store.write(replace(batch, tables={**batch.tables, **entries(_entry(run, chosen))}))
    return Summary(run_id, notes=[f"run {run_id!r} has no programs: nothing was compiled"])


def _entry(run: Run, chosen: Chosen) -> dict[str, Any]:
    """What is entered of an ingest."""
    action = "replace" if chosen.replaces else "ingest"
    count = len(chosen.programs)
    detail = f"{count} program{'s' * (count != 1)} of {run.source}"
    return entry(action, detail, chosen.run_id, run.host, run.tool_version)


def _write_logs(store: Store, run: Run, logs: OomLogs, summary: Summary, *, alone: bool) -> None:
    """Write the messages of logs to the run of their dumps; `alone`, to a run of their own."""
    batch = None
    if alone:
        summary.run_id = _run_of_logs(store, run, logs)
        chosen = Chosen(summary.run_id, store.known(summary.run_id), ())
        batch = _run_batch(run, chosen, logs.modified)
    told = entry("ingest", f"messages of {run.source}", summary.run_id, run.host, run.tool_version)
    summary.oom_reports = write_reports(store, summary.run_id, logs.found, batch, told)


def _run_of_logs(store: Store, run: Run, logs: OomLogs) -> str:
    """The run of logs without dumps: another one if the run has other messages of these logs."""
    if run.replaces:
        raise UsageError("a log alone replaces no dumps: leave --replace out", "run")
    nights = [] if run.is_named else [n["run_id"] for n in nights_of(store, run.run_id)]
    run_id: str
    for run_id in nights or [run.run_id]:
        if not has_other_messages(store, run_id, logs.reports):
            return run_id
    if run.is_named:
        raise UsageError(
            f"run {run.run_id!r} holds other messages of {run.source}: name another run", "run"
        )
    taken = {night["run_id"] for night in store.nights(run.run_id)}
    return later_name(run.run_id, clock.now(), taken)


def _run_batch(run: Run, chosen: Chosen, modified: float | None = None) -> Batch | None:
    """The rows of the run, its part and its labels if they change: a stored run's given anew.

    `modified` is the time of the newest file, in seconds since 1970.
    """
    known, now = chosen.known, clock.now()
    row = dict(known.run or {})
    is_new = known.run is None or (chosen.replaces and run.host is None)
    if is_new:
        claimed_at = claim(run.claimed_at, run.run_id)
        row |= {
            "run_id": chosen.run_id,
            "run_at": claimed_at or now,
            "run_seq": row.get("run_seq", known.next_run_seq),
            "ingested_at": now,
            "source": run.source,
            "tool_version": run.tool_version,
            "claimed_at": claimed_at,
            "compiled_at": None if modified is None else file_time(modified),
        }
    else:
        if run.claimed_at is not None:
            row["run_at"] = row["claimed_at"] = claim(run.claimed_at, run.run_id)
        if chosen.has_new_dumps and run.host is None:
            # The new source holds the stored dumps too: otherwise this would be another night.
            row["source"] = run.source
    labels = {key: value for key, value in {**known.labels, **run.labels}.items() if value}
    tables = {}
    if is_new or run.host not in known.hosts:
        part = {
            "run_id": chosen.run_id,
            "host": run.host,
            "source": run.source,
            "entered_at": now,
        }
        tables["run_parts"] = arrow.rows("run_parts", [part])
    if row == known.run and labels == known.labels:
        return Batch(tables) if tables else None
    label_rows = [
        {"run_id": chosen.run_id, "key": key, "value": value} for key, value in labels.items()
    ]
    tables["runs"] = arrow.rows("runs", [row])
    tables["run_labels"] = arrow.rows("run_labels", label_rows)
    return Batch(tables, runs=[chosen.run_id] if known.run is not None else [])


def _count(summary: Summary, outcome: ProgramOutcome, shown: Callable[[str], str]) -> None:
    summary.dumps += 1
    summary.read_bytes += sum(file.bytes or 0 for file in outcome.files)
    summary.failed += outcome.status == FAILED
    summary.partial += outcome.status == PARTIAL
    summary.oom_dumps += outcome.oom
    summary.without_figures += outcome.lacks_figures
    for file in outcome.files:
        if file.message is not None:
            line = "" if file.line is None else f":{file.line}"
            said = summary.notes if file.status == OK else summary.problems
            said.append(f"{shown(file.path)}{line}: {file.message}")
