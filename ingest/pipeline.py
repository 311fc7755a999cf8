"""Ingests the paths of one run: finds the programs, reads them and writes each batch."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from ..schema import arrow, ids
from ..schema.errors import UsageError
from ..schema.small_table import figures_table
from ..schema.stores.base import Batch, Deleted, Store
from .again import until_unchanged
from .batches import Batches
from .choose_run import Chosen, choose_run, later_name
from .given_paths import GivenPaths
from .named_dates import date_in
from .occurrences import Occurrences
from .oom_logs import OomLogs
from .oom_rows import has_other_messages, write_reports
from .outcomes import FAILED, OK, PARTIAL
from .read_program import ProgramOutcome
from .sources.files import Given, source_name
from .sources.program import Program
from .sources.session_names import named_after
from .what_to_tell import some_of, what_was_replaced
from .workers import Reading


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


@dataclass(frozen=True)
class Run:
    """The run that the programs become.

    run_at: when the programs were compiled, if the user says so; otherwise a date in the
    name of the run, otherwise `named_at`, a date in the name of the source, otherwise the time
    of the newest program. labels: an empty one is removed. is_named: the user named the run, so
    its programs become no other run; replaces: a run of this name that holds other dumps is
    replaced; adds: the programs join those that the run holds; device_memory_bytes: of the
    device compiled for, if the user says so.
    """

    run_id: str
    source: str
    tool_version: str
    run_at: datetime | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    named_at: datetime | None = None
    is_named: bool = False
    replaces: bool = False
    adds: bool = False
    device_memory_bytes: int | None = None


def run_name(path: Given) -> str:
    """The default name of a path's run: the name of the folder, file or session."""
    return source_name(named_after(path))


def ingest(
    store: Store,
    *paths: Given,
    tool_version: str,
    workers: Reading,
    run_id: str | None = None,
    run_at: datetime | None = None,
    labels: Mapping[str, str] | None = None,
    replaces: bool = False,
    device_memory_bytes: int | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Summary:
    """Ingest the dumps under `paths` (folders, files or archives) as one run.

    Several paths need a `run_id`. If the path's run holds other dumps, these become the run
    NAME@TIME; a `run_id` that holds other dumps is refused, unless `replaces`: see
    `choose_run`. `progress` receives the bytes done and the total. An error in a file is
    recorded in `dump_files` and in the summary's problems; ingest continues. Raises
    WarehouseError and UsageError.
    """
    given = GivenPaths(paths)
    if run_id is None and (replaces or len(paths) > 1):
        raise UsageError(
            "name the run to replace" if replaces else "name the run of several paths", "run"
        )
    problems: list[str] = []
    name = run_id or run_name(paths[0])
    with ExitStack() as cleanup:
        archives = workers.archives(paths, problems.append)
        listed = given.programs(store, cleanup, problems.append, archives)
        found = workers.prepared(listed)
        notes = [
            f"{given.shown(str(file.path))}: no out-of-memory message of XLA"
            for file in given.logs.empty
            if len(paths) > 1
        ]
        if not found and not given.logs.found:
            return Summary(name, problems=[*problems, *notes])
        run = Run(
            name,
            given.source,
            tool_version,
            run_at,
            labels or {},
            named_at=next(filter(None, map(date_in, given.names)), None),
            is_named=run_id is not None,
            replaces=replaces,
            device_memory_bytes=device_memory_bytes,
        )
        if found:
            summary = ingest_programs(store, found, run, workers, progress, shown=given.shown)
        else:
            summary = Summary(name)
        if given.logs.found:
            until_unchanged(lambda: _write_logs(store, run, given.logs, summary, alone=not found))
        summary.problems[:0] = problems
        summary.notes += notes
        return summary


def ingest_programs(
    store: Store,
    programs: Sequence[Program],
    run: Run,
    workers: Reading,
    progress: Callable[[int, int], None] = lambda done, total: None,
    shown: Callable[[str], str] = str,
) -> Summary:
    """Ingest at least one program from any source as one run.

    A stored module is not stored again: the new dump refers to it. An unchanged dump is not
    written. `shown` turns a file of the source into the path to show. Begins again if another
    process changed the run meanwhile. Raises WarehouseError, and UsageError if the run is named
    and holds other dumps.
    """
    return until_unchanged(lambda: _ingest_programs(store, programs, run, workers, progress, shown))


def _ingest_programs(
    store: Store,
    programs: Sequence[Program],
    run: Run,
    workers: Reading,
    progress: Callable[[int, int], None],
    shown: Callable[[str], str],
) -> Summary:
    # The workers read the first programs while the store is created.
    begun = workers.read(programs, frozenset()) if store.is_new else None
    chosen = choose_run(
        store,
        programs,
        run.run_id,
        run.source,
        is_named=run.is_named,
        replaces=run.replaces,
        adds=run.adds,
    )
    outcomes = begun or workers.read(chosen.programs, chosen.known.complete)
    summary = Summary(chosen.run_id, notes=[] if chosen.note is None else [chosen.note])
    with ExitStack() as block:
        before = chosen.known.run
        if chosen.replaces:
            summary.replaced = block.enter_context(store.replacing(chosen.run_id))
            chosen = replace(chosen, known=replace(chosen.known, dumps={}, files={}))
        batches = Batches(
            store,
            chosen.run_id,
            chosen.known,
            _occurrences(chosen),
            _run_batch(run, chosen),
            chosen.kept,
            run.device_memory_bytes,
            workers.files_of,
            joins=run.adds,
        )
        done, total = 0, sum(program.size_bytes for program in programs)
        for outcome in outcomes:
            if outcome.left_out is not None:
                summary.left_out.setdefault(outcome.left_out, []).append(outcome.module_name)
            else:
                _count(summary, outcome, shown)
                summary.unchanged += not batches.add(outcome)
            done += outcome.size_bytes
            progress(done, total)
        if summary.dumps:
            batches.write()
        elif chosen.replaces:
            why = next(iter(summary.left_out))
            raise UsageError(f"run {chosen.run_id!r} stays as it is, nothing replaces it: {why}")
    summary.new_modules = batches.new_modules
    for why, names in summary.left_out.items():
        # Without any other program this is why the run is empty.
        (summary.notes if summary.dumps else summary.problems).append(f"{some_of(names)}: {why}")
    if summary.replaced is not None and before is not None:
        summary.notes.insert(0, what_was_replaced(summary.replaced, before["source"]))
    return summary


def _write_logs(store: Store, run: Run, logs: OomLogs, summary: Summary, *, alone: bool) -> None:
    """Write the messages of logs to the run of their dumps; `alone`, to a run of their own."""
    batch = None
    if alone:
        summary.run_id = _run_of_logs(store, run, logs)
        chosen = Chosen(summary.run_id, store.known(summary.run_id), ())
        batch = _run_batch(run, chosen, logs.modified)
    summary.oom_reports = write_reports(store, summary.run_id, logs.found, batch)


def _run_of_logs(store: Store, run: Run, logs: OomLogs) -> str:
    """The run of logs without dumps: another one if the run has other messages of these logs."""
    if run.replaces:
        raise UsageError("a log alone replaces no dumps: leave --replace out", "run")
    if not has_other_messages(store, run.run_id, logs.reports):
        return run.run_id
    if run.is_named:
        raise UsageError(
            f"run {run.run_id!r} holds other messages of {run.source}: name another run", "run"
        )
    newest = datetime.fromtimestamp(logs.modified, UTC)
    taken = {night["run_id"] for night in store.nights(run.run_id)}
    return later_name(run.run_id, newest, taken)


def _occurrences(chosen: Chosen) -> Occurrences:
    """The numbers of the programs; dumps that stay as they are stored keep theirs."""
    given = {ids.dump_id(chosen.run_id, *program.key.in_run) for program in chosen.programs}
    return Occurrences(chosen.known.dumps, given - chosen.kept)


def _run_batch(run: Run, chosen: Chosen, modified: float = 0.0) -> Batch | None:
    """The run's row and labels if they change: those of a stored run that are given anew.

    `modified` is the time of a run without programs.
    """
    known = chosen.known
    row = dict(known.run or {})
    if known.run is None or chosen.replaces:
        times = (program.modified for program in chosen.programs)
        newest = datetime.fromtimestamp(max(times, default=modified), UTC)
        row |= {
            "run_id": chosen.run_id,
            "run_at": run.run_at or chosen.run_at or date_in(run.run_id) or run.named_at or newest,
            "run_seq": row.get("run_seq", known.next_run_seq),
            "ingested_at": datetime.now(UTC),
            "source": run.source,
            "tool_version": run.tool_version,
        }
    else:
        if run.run_at is not None:
            row["run_at"] = run.run_at
        if chosen.has_new_dumps:
            # The new source holds the stored dumps too: otherwise this would be another night.
            row["source"] = run.source
    labels = {key: value for key, value in {**known.labels, **run.labels}.items() if value}
    if row == known.run and labels == known.labels:
        return None
    label_rows = [
        {"run_id": chosen.run_id, "key": key, "value": value} for key, value in labels.items()
    ]
    tables = {"runs": arrow.rows("runs", [row]), "run_labels": arrow.rows("run_labels", label_rows)}
    return Batch(tables, runs=[chosen.run_id] if known.run is not None else [])


def _count(summary: Summary, outcome: ProgramOutcome, shown: Callable[[str], str]) -> None:
    summary.dumps += 1
    summary.read_bytes += sum(file.bytes or 0 for file in outcome.files)
    summary.failed += outcome.status == FAILED
    summary.partial += outcome.status == PARTIAL
    summary.oom_dumps += outcome.oom
    for file in outcome.files:
        if file.message is not None:
            line = "" if file.line is None else f":{file.line}"
            said = summary.notes if file.status == OK else summary.problems
            said.append(f"{shown(file.path)}{line}: {file.message}")
