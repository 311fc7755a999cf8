"""Ingests one path as one run: find, read, write as it comes in."""

import re
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath

import sqlalchemy as sa

from ..schema.delete import delete_modules
from ..schema.tables import compiler_flags, dumps, modules
from .discover import Dump, find_dumps, is_wanted
from .names import readable
from .parallel import Readers
from .read_dump import OK, DumpOutcome, FileOutcome, hash64
from .sources import is_file, is_folder, open_source, source_name
from .write import write_dumps, write_run

# Rows wait in memory until so many bytes have come together: a transaction for each small
# module would cost more than reading it.
_BATCH_BYTES = 32 << 20
_ISO_DATE = re.compile(r"(\d{4}-\d{2}-\d{2})(?:[T_ ](\d{2}:?\d{2}(?::?\d{2})?))?(?!\d)")


@dataclass
class Summary:
    """What became of a path. `problems` are what to tell the user, a line each."""

    run_id: str
    dumps: int = 0
    new_modules: int = 0
    failed: int = 0
    partial: int = 0
    unchanged: int = 0
    read_bytes: int = 0
    problems: list[str] = field(default_factory=list)


def run_name(path: Path) -> str:
    """The run a path makes unless the user names it: its folder's or its file's name."""
    return source_name(path)


def ingest(
    engine: sa.Engine,
    path: Path,
    *,
    tool_version: str,
    readers: Readers,
    run_id: str | None = None,
    run_at: datetime | None = None,
    labels: dict[str, str] | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Summary:
    """Ingest the dumps under `path` (a folder, file or archive) as one run.

    A dump whose content is in the warehouse already is pointed to, not stored again; one
    that is there unchanged is left alone. Whatever is wrong with a file is recorded in
    `dump_files` and in the summary's problems, and stops nothing else. `progress` is told
    the bytes done and in all.
    """
    summary = Summary(run_id or run_name(path))
    with ExitStack() as cleanup:
        files = [
            file
            for file in open_source(path, is_wanted, cleanup, summary.problems.append)
            if not _is_warehouse(engine, file.location)
        ]
        found = find_dumps(files, named_file=is_file(path))
        if not found:
            if not summary.problems:
                summary.problems.append(_nothing_found(path))
            return summary
        newest = max(file.modified for dump in found for file in dump.files.values())
        with engine.begin() as connection:
            write_run(
                connection,
                summary.run_id,
                run_at=run_at,
                fallback_at=_date_in(summary.run_id)
                or _date_in(path.name)
                or datetime.fromtimestamp(newest, UTC),
                source=str(readable(PurePosixPath(path))),
                tool_version=tool_version,
                labels=labels or {},
            )
        _read_and_write(engine, summary, path, found, readers, progress)
    return summary


def _is_warehouse(engine: sa.Engine, file: Path) -> bool:
    """Whether this is the warehouse itself: to open and close it would let go of its lock."""
    database = Path(engine.url.database or ":memory:")
    return database.exists() and file.samefile(database)


def _nothing_found(path: Path) -> str:
    if is_file(path):
        return f"{path}: this is no memory dump of XLA: give a dump folder, archive or dump file"
    return (
        f"{path}: there are no memory dumps of XLA here: make some with "
        "XLA_FLAGS='--xla_dump_to=DIR --xla_dump_hlo_as_text'"
    )


def _date_in(name: str) -> datetime | None:
    """The ISO date, with or without a time, in a name; in UTC."""
    for match in _ISO_DATE.finditer(name):
        # What follows a date need be no time: 2026-10-01_8192.
        for text in (f"{match[1]}T{match[2]}", match[1]):
            with suppress(ValueError):
                return datetime.fromisoformat(text).replace(tzinfo=UTC)
    return None


def _read_and_write(
    engine: sa.Engine,
    summary: Summary,
    path: Path,
    found: list[Dump],
    readers: Readers,
    progress: Callable[[int, int], None],
) -> None:
    with engine.connect() as connection:
        complete = set(
            connection.scalars(sa.select(dumps.c.module_id).distinct().where(dumps.c.status == OK))
        )
        stored = set(connection.scalars(sa.select(modules.c.module_id)))
        known_flags = set(connection.scalars(sa.select(compiler_flags.c.flags_id).distinct()))
        there = {
            row.dump_id: row._asdict()
            for row in connection.execute(sa.select(dumps).where(dumps.c.run_id == summary.run_id))
        }
    sizes = [sum(file.size for file in dump.files.values()) for dump in found]
    done, total = 0, sum(sizes)
    batch: list[tuple[dict[str, object], DumpOutcome]] = []
    waiting: dict[int, DumpOutcome] = {}
    new_flags: dict[int, dict[str, str]] = {}

    def write() -> None:
        with engine.begin() as connection:
            delete_modules(connection, sorted(stored.intersection(waiting)))
            replaced = sorted(there.keys() & {row["dump_id"] for row, _ in batch})
            write_dumps(connection, batch, waiting.values(), new_flags, replaced)
        summary.new_modules += len(waiting.keys() - stored)
        stored.update(waiting)
        known_flags.update(new_flags)
        for written in (batch, waiting, new_flags):
            written.clear()

    for outcome, size in zip(readers.read(found, complete), sizes, strict=True):
        row = _dump_row(summary.run_id, outcome)
        _count(summary, path, outcome)
        if there.get(row["dump_id"]) == row and outcome.status == OK:
            summary.unchanged += 1
        else:
            batch.append((row, outcome))
            flags_id = outcome.settings.flags_id
            if flags_id is not None and flags_id not in known_flags:
                new_flags[flags_id] = outcome.settings.flags or {}
            if outcome.module is not None and (
                outcome.module_id not in stored
                # This version reads what the one that stored it could not.
                or (outcome.status == OK and outcome.module_id not in complete)
            ):
                assert outcome.module_id is not None
                waiting[outcome.module_id] = outcome
        done += size
        progress(done, total)
        if sum(o.module.nbytes for o in waiting.values() if o.module) > _BATCH_BYTES:
            write()
    if batch:
        write()


def _dump_row(run_id: str, outcome: DumpOutcome) -> dict[str, object]:
    dump, name = outcome.dump, outcome.dump.name
    device = outcome.settings.device
    return {
        "dump_id": hash64(run_id, dump.workload, dump.stem, dump.target or ""),
        "run_id": run_id,
        "workload": dump.workload,
        "module_name": outcome.module_name,
        "module_number": name.module_number,
        "occurrence": dump.occurrence,
        "platform": name.platform,
        "target": dump.target,
        "compiler": name.compiler,
        "module_id": outcome.module_id,
        "flags_id": outcome.settings.flags_id,
        "device_kind": device.get("device_kind"),
        "device_memory_bytes": device.get("device_memory_bytes"),
        "topology": device.get("topology"),
        "status": outcome.status,
        "oom": dump.oom,
    }


def _count(summary: Summary, path: Path, outcome: DumpOutcome) -> None:
    summary.dumps += 1
    summary.read_bytes += sum(file.bytes or 0 for file in outcome.files)
    summary.failed += outcome.status == "failed"
    summary.partial += outcome.status == "partial"
    summary.problems += [_problem(path, file) for file in outcome.files if file.status != OK]


def _problem(path: Path, file: FileOutcome) -> str:
    where = str(path / file.path if is_folder(path) else path)
    return f"{where if file.line is None else f'{where}:{file.line}'}: {file.message}"
