"""Ingests one path as one run: finds the programs, reads them and writes each batch."""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath

from ..schema import arrow
from ..schema.stores.base import Batch, Known, Store
from .batches import Batches
from .outcomes import FAILED, OK, PARTIAL
from .read_program import ProgramOutcome
from .sources.dump_folder import find_dumps, is_wanted
from .sources.files import SourceFile, is_file, open_source, source_name
from .sources.names import readable
from .sources.program import Program
from .workers import Workers

_ISO_DATE = re.compile(r"(\d{4}-\d{2}-\d{2})(?:[T_ ](\d{2}:?\d{2}(?::?\d{2})?))?(?!\d)")


@dataclass
class Summary:
    """The outcome of an ingest.

    `problems` and `notes` are messages for the user, one line each; a note is not a failure.
    """

    run_id: str
    dumps: int = 0
    new_modules: int = 0
    failed: int = 0
    partial: int = 0
    unchanged: int = 0
    read_bytes: int = 0
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Run:
    """The run that the programs become.

    run_at: when the programs were compiled, if the user says so; otherwise a date in the
    name of the run or of the source, otherwise the time of the newest program.
    """

    run_id: str
    source: str
    tool_version: str
    run_at: datetime | None = None
    labels: Mapping[str, str] = field(default_factory=dict)


def run_name(path: Path) -> str:
    """The default name of a path's run: the name of the folder or file."""
    return source_name(path)


def ingest(
    store: Store,
    path: Path,
    *,
    tool_version: str,
    workers: Workers,
    run_id: str | None = None,
    run_at: datetime | None = None,
    labels: Mapping[str, str] | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Summary:
    """Ingest the dumps under `path` (a folder, file or archive) as one run.

    `progress` receives the bytes done and the total. An error in a file is recorded in
    `dump_files` and in the summary's problems; ingest continues. Raises WarehouseError.
    """
    problems: list[str] = []
    name = run_id or run_name(path)
    with ExitStack() as cleanup:
        files = open_source(path, is_wanted, cleanup, problems.append)
        found = find_dumps(
            _but_warehouse(files, store),
            lambda file, why: problems.append(f"{_shown(path, str(file.path))}: {why}"),
            named_file=is_file(path),
        )
        if not found:
            return Summary(name, problems=problems or [_nothing_found(path)])
        source = str(readable(PurePosixPath(path)))
        run = Run(name, source, tool_version, run_at, labels or {})
        summary = ingest_programs(
            store, found, run, workers, progress, shown=lambda file: _shown(path, file)
        )
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
    written. `shown` turns a file of the source into the path to show. Raises WarehouseError.
    """
    summary = Summary(run.run_id)
    if store.is_new:
        # The workers read the first programs while the store is created.
        outcomes = workers.read(programs, frozenset())
        known = store.known(run.run_id)
    else:
        known = store.known(run.run_id)
        outcomes = workers.read(programs, known.complete)
    _write_run(store, run, known, max(program.modified for program in programs))
    batches = Batches(store, run.run_id, known)
    done, total = 0, sum(program.size_bytes for program in programs)
    for outcome, occurrence in zip(outcomes, _occurrences(programs), strict=True):
        _count(summary, outcome, shown)
        summary.unchanged += not batches.add(outcome, occurrence)
        done += outcome.size_bytes
        progress(done, total)
    batches.write()
    summary.new_modules = batches.new_modules
    return summary


def _write_run(store: Store, run: Run, known: Known, newest: float) -> None:
    """Add the run, or update `run_at` and labels of a stored run with those given."""
    row = dict(known.run) if known.run is not None else None
    if row is None:
        row = {
            "run_id": run.run_id,
            "run_at": run.run_at
            or _date_in(run.run_id)
            or _date_in(PurePosixPath(run.source).name)
            or datetime.fromtimestamp(newest, UTC),
            "ingested_at": datetime.now(UTC),
            "source": run.source,
            "tool_version": run.tool_version,
        }
    elif run.run_at is not None:
        row["run_at"] = run.run_at
    labels = {**known.labels, **run.labels}
    if row == known.run and labels == known.labels:
        return
    label_rows = [
        {"run_id": run.run_id, "key": key, "value": value} for key, value in labels.items()
    ]
    tables = {"runs": arrow.rows("runs", [row]), "run_labels": arrow.rows("run_labels", label_rows)}
    store.write(Batch(tables, runs=[run.run_id] if known.run is not None else []))


def _occurrences(programs: Sequence[Program]) -> Iterator[int]:
    """Each program's number, from 1, among those of equal workload, name and platform."""
    seen: Counter[tuple[str, str, str | None]] = Counter()
    for program in programs:
        key = (program.key.workload, program.key.module_name, program.key.platform)
        seen[key] += 1
        yield seen[key]


def _but_warehouse(files: Iterator[SourceFile], store: Store) -> Iterator[SourceFile]:
    """All files except the warehouse: opening and closing it would release its lock."""
    for file in files:
        try:
            status = file.location.stat()
        except OSError:  # The file has vanished; reading it reports this.
            yield file
            continue
        if not store.owns(status):
            yield file


def _nothing_found(path: Path) -> str:
    if is_file(path):
        return f"{path}: this is not a memory dump of XLA: give a dump folder, archive or dump file"
    return (
        f"{path}: there are no memory dumps of XLA here: make some with "
        "XLA_FLAGS='--xla_dump_to=DIR --xla_dump_hlo_as_text'"
    )


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


def _shown(path: Path, file: str) -> str:
    """The path to show for a file: below a folder or archive `path`, or `path` itself."""
    return str(path if file == readable(PurePosixPath(path.name)).as_posix() else path / file)
