"""Ingests one path as one run: find, read, write as it comes in."""

import os
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from .read_dump import FAILED, OK, PARTIAL, DumpOutcome, FileOutcome
from .sources.dump_folder import find_dumps, is_wanted
from .sources.files import SourceFile, is_file, open_source, source_name
from .sources.names import readable
from .workers import Readers

if TYPE_CHECKING:
    import sqlalchemy as sa

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
    warehouse: "Callable[[], sa.Engine]",
    path: Path,
    *,
    tool_version: str,
    readers: Readers,
    is_new: bool = False,
    run_id: str | None = None,
    run_at: datetime | None = None,
    labels: dict[str, str] | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Summary:
    """Ingest the dumps under `path` (a folder, file or archive) as one run.

    A dump whose content is in the warehouse already is pointed to, not stored again; one
    that is there unchanged is left alone. Whatever is wrong with a file is recorded in
    `dump_files` and in the summary's problems, and stops nothing else. `progress` is told
    the bytes done and in all. A warehouse that `is_new` is opened while the dumps are read.
    """
    summary = Summary(run_id or run_name(path))
    with ExitStack() as cleanup:
        files = list(open_source(path, is_wanted, cleanup, summary.problems.append))
        if not is_new:
            files = list(_but_warehouse(files, warehouse()))
        found = find_dumps(
            files,
            lambda file, why: summary.problems.append(f"{_shown(path, str(file.path))}: {why}"),
            named_file=is_file(path),
        )
        if not found:
            if not summary.problems:
                summary.problems.append(_nothing_found(path))
            return summary
        outcomes = readers.read(found, frozenset()) if is_new else None
        # SQLAlchemy and DuckDB take as long to import as a large dump takes to read.
        from .batches import Batches
        from .write import write_run

        engine = warehouse()
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
        batches = Batches(engine, summary.run_id)
        done, total = 0, sum(dump.size_bytes for dump in found)
        for outcome in outcomes or readers.read(found, batches.complete):
            _count(summary, path, outcome)
            if not batches.add(outcome):
                summary.unchanged += 1
            done += outcome.dump.size_bytes
            progress(done, total)
        batches.write()
        summary.new_modules = batches.new_modules
    return summary


def _but_warehouse(files: list[SourceFile], engine: "sa.Engine") -> Iterator[SourceFile]:
    """All files but the warehouse itself: to open and close it would let go of its lock."""
    database = Path(engine.url.database or ":memory:")
    own = database.stat() if database.exists() else None
    for file in files:
        if own is None or not os.path.samestat(file.location.stat(), own):
            yield file


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


def _count(summary: Summary, path: Path, outcome: DumpOutcome) -> None:
    summary.dumps += 1
    summary.read_bytes += sum(file.bytes or 0 for file in outcome.files)
    summary.failed += outcome.status == FAILED
    summary.partial += outcome.status == PARTIAL
    summary.problems += [_problem(path, file) for file in outcome.files if file.status != OK]


def _problem(path: Path, file: FileOutcome) -> str:
    where = _shown(path, file.path)
    return f"{where if file.line is None else f'{where}:{file.line}'}: {file.message}"


def _shown(path: Path, file: str) -> str:
    """Where a file lies that was found under a path, in a folder or archive, or is the path."""
    return str(path if file == readable(PurePosixPath(path.name)).as_posix() else path / file)
