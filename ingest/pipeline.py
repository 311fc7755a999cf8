"""Ingests the paths of one run: finds the programs, reads them and writes each batch."""

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from ..schema import arrow, ids
from ..schema.errors import UsageError
from ..schema.stores.base import Batch, Deleted, Store
from .batches import Batches
from .choose_run import Chosen, choose_run
from .given_paths import GivenPaths
from .occurrences import Occurrences
from .outcomes import FAILED, OK, PARTIAL
from .read_program import ProgramOutcome
from .sources.files import source_name
from .sources.program import Program
from .workers import Workers

_ISO_DATE = re.compile(r"(\d{4}-\d{2}-\d{2})(?:[T_ ](\d{2}:?\d{2}(?::?\d{2})?))?(?!\d)")


@dataclass
class Summary:
    """The outcome of an ingest.

    run_id: the run that the dumps are in, which may be a later night NAME@TIME; replaced: what
    was dropped to replace a run. `problems` and `notes` are messages for the user, one line
    each; a note is not a failure.
    """

    run_id: str
    dumps: int = 0
    new_modules: int = 0
    failed: int = 0
    partial: int = 0
    unchanged: int = 0
    read_bytes: int = 0
    replaced: Deleted | None = None
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Run:
    """The run that the programs become.

    run_at: when the programs were compiled, if the user says so; otherwise a date in the
    name of the run, otherwise `named_at`, a date in the name of the source, otherwise the time
    of the newest program. labels: an empty one is removed. is_named: the user named the run, so
    its programs become no other run; replaces: a run of this name that holds other dumps is
    replaced.
    """

    run_id: str
    source: str
    tool_version: str
    run_at: datetime | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    named_at: datetime | None = None
    is_named: bool = False
    replaces: bool = False


def run_name(path: Path) -> str:
    """The default name of a path's run: the name of the folder or file."""
    return source_name(path)


def ingest(
    store: Store,
    *paths: Path,
    tool_version: str,
    workers: Workers,
    run_id: str | None = None,
    run_at: datetime | None = None,
    labels: Mapping[str, str] | None = None,
    replaces: bool = False,
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
        found = given.programs(store, cleanup, problems.append)
        if not found:
            return Summary(name, problems=problems)
        run = Run(
            name,
            given.source,
            tool_version,
            run_at,
            labels or {},
            named_at=next(filter(None, map(_date_in, given.names)), None),
            is_named=run_id is not None,
            replaces=replaces,
        )
        summary = ingest_programs(store, found, run, workers, progress, shown=given.shown)
        summary.problems[:0] = problems
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
    written. `shown` turns a file of the source into the path to show. Raises WarehouseError,
    and UsageError if the run is named and holds other dumps.
    """
    # The workers read the first programs while the store is created.
    begun = workers.read(programs, frozenset()) if store.is_new else None
    chosen = choose_run(
        store, programs, run.run_id, run.source, is_named=run.is_named, replaces=run.replaces
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
        )
        done, total = 0, sum(program.size_bytes for program in programs)
        for outcome in outcomes:
            _count(summary, outcome, shown)
            summary.unchanged += not batches.add(outcome)
            done += outcome.size_bytes
            progress(done, total)
        batches.write()
    summary.new_modules = batches.new_modules
    if summary.replaced is not None and before is not None:
        summary.notes.insert(0, _what_was_replaced(summary.replaced, before["source"]))
    return summary


def _occurrences(chosen: Chosen) -> Occurrences:
    """The numbers of the programs; dumps that stay as they are stored keep theirs."""
    given = {ids.dump_id(chosen.run_id, *program.key.in_run) for program in chosen.programs}
    return Occurrences(chosen.known.dumps, given - chosen.kept)


def _run_batch(run: Run, chosen: Chosen) -> Batch | None:
    """The run's row and labels if they change: those of a stored run that are given anew."""
    known = chosen.known
    row = dict(known.run or {})
    if known.run is None or chosen.replaces:
        newest = datetime.fromtimestamp(max(p.modified for p in chosen.programs), UTC)
        row |= {
            "run_id": chosen.run_id,
            "run_at": run.run_at or chosen.run_at or _date_in(run.run_id) or run.named_at or newest,
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


def _what_was_replaced(replaced: Deleted, source: str) -> str:
    (run_id,) = replaced.run_ids
    dropped = " and ".join(
        f"{number} {what}" if number == 1 else f"{number} {what}s"
        for number, what in ((replaced.dumps, "dump"), (replaced.modules, "module"))
    )
    return f"replaced run {run_id}: {dropped} of {source} dropped"


def _date_in(name: str) -> datetime | None:
    """The ISO date in a name, with or without a time, in UTC."""
    for match in _ISO_DATE.finditer(name):
        # The digits after a date may not be a time: 2026-10-01_8192.
        for text in (f"{match[1]}T{match[2]}", match[1]):
            with suppress(ValueError):
                return datetime.fromisoformat(text).replace(tzinfo=UTC)
    return None


def _count(summary: Summary, outcome: ProgramOutcome, shown: Callable[[str], str]) -> None:
    summary.dumps += 1
    summary.read_bytes += sum(file.bytes or 0 for file in outcome.files)
    summary.failed += outcome.status == FAILED
    summary.partial += outcome.status == PARTIAL
    for file in outcome.files:
        if file.status == OK and file.message is not None:
            summary.notes.append(f"{shown(file.path)}: {file.message}")
        if file.status != OK:
            line = "" if file.line is None else f":{file.line}"
            summary.problems.append(f"{shown(file.path)}{line}: {file.message}")
