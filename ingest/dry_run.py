"""What an ingest of a path would store, and which questions that answers."""

from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

import pyarrow as pa

from ..schema.readable import human_bytes, paragraph, small_table
from ..schema.store import Store, open_file
from ..xla.errors import DumpError
from .formats import Format, OtherFile, other_by_name
from .oom_logs import may_be_log
from .pipeline import ingest
from .sources.dump_folder import format_of, is_wanted
from .sources.files import SourceFile, is_dump_file, open_source
from .sources.xprof_session import is_session_file
from .workers import Workers

_FLAGS = "--xla_dump_to=DIR --xla_dump_hlo_as_text"
_UNKNOWN = "other files"
# What other files are read.
_READ = ("session", "oom-list", "log", "passes", "thunks")
# A question, the column of _ANSWERED that answers it for a program, and why it is not answered.
_QUESTIONS = (
    (
        "what is allocated, and where",
        "has_allocations",
        f"no buffer assignment (*-buffer-assignment.txt): compile with {_FLAGS}",
    ),
    (
        "the peak, and when it is: exactly",
        "has_exact_peak",
        f"no live ranges (*-live-range.txt) of a buffer assignment: compile with {_FLAGS}",
    ),
    (
        "the peak: as an estimate at least",
        "has_peak",
        f"no scheduled HLO text (*after_optimizations.txt): compile with {_FLAGS}",
    ),
    (
        "which Python line owns the bytes",
        "has_text",
        f"no HLO text (*after_optimizations.txt): compile with {_FLAGS}",
    ),
    (
        "which compiler flags differ",
        "has_flags",
        "no *.debug_options or *.flagfile: XLA writes them next to a dump, keep them",
    ),
    (
        "how full the device is",
        "has_device",
        "no *.target_arguments.txt or *.gpu_target_config.pbtxt: XLA writes them for TPU and "
        "GPU, keep them",
    ),
    (
        "what the memory spaces are called",
        "has_space_names",
        "no *-memory-usage-report.txt: XLA writes it next to a text dump since about JAX 0.10",
    ),
    (
        "which compiler pass defined a buffer",
        "has_passes",
        f"no texts between passes: compile with {_FLAGS} --xla_dump_hlo_pass_re=.*, or use "
        "`memhouse record --passes`",
    ),
)
_ANSWERED = """SELECT
        dumps.platform,
        dumps.compiler,
        dumps.oom,
        COALESCE(origin <> 'estimated', FALSE) AS has_allocations,
        has_allocations AND peak_bytes IS NOT NULL AS has_exact_peak,
        peak_bytes IS NOT NULL AS has_peak,
        program_id IS NOT NULL AS has_text,
        flags_id IS NOT NULL AS has_flags,
        device_memory_bytes IS NOT NULL AS has_device,
        space_name IS NOT NULL AS has_space_names,
        dumps.module_id IN (SELECT module_id FROM compiler_passes) AS has_passes
    FROM dumps
    LEFT JOIN modules ON modules.module_id = dumps.module_id
    LEFT JOIN module_memory
        ON module_memory.module_id = dumps.module_id AND module_memory.memory_space = 0
    WHERE dumps.module_id IS NOT NULL"""
_TEXTS = """SELECT COUNT(DISTINCT module_id), COUNT(pipeline) FROM compiler_passes"""


@dataclass(frozen=True)
class Examination:
    """What an ingest of a path would store.

    Attributes:
        programs: the number of programs that can be read.
        platforms: the number of programs by platform.
        compilers: the number of programs by compiler.
        files: what, name, files (a count), size_bytes, ingest (reads or -), example.
        questions: question, answer (yes, no, or the number of programs), why (it is not yes).
        logs: logs, which may have out-of-memory messages.
        hints: notes on the programs.
        problems: what cannot be read.
    """

    path: str
    programs: int
    platforms: dict[str, int]
    compilers: dict[str, int]
    files: pa.Table
    questions: pa.Table
    logs: Sequence[str]
    hints: Sequence[str]
    problems: Sequence[str]

    def _repr_html_(self) -> str:
        files = [
            (row["what"], str(row["files"]), human_bytes(row["size_bytes"]), row["ingest"])
            for row in self.files.to_pylist()
        ]
        questions = [list(map(str, row.values())) for row in self.questions.to_pylist()]
        tables = [
            small_table(
                ("what", "files", "size", "ingest"), files, (False, True, True, False), self.path
            ),
            small_table(self.questions.column_names, questions, [False] * 3),
        ]
        return "\n".join([*tables, *map(paragraph, [*self.problems, *self.hints])])


def examine(path: Path) -> Examination:
    """Ingest a folder, an archive or a file into a warehouse in memory, and describe the result."""
    kinds, logs = _files(path)
    store = open_file("duckdb:///:memory:", create=True)
    try:
        with Workers(1) as workers:
            summary = ingest(store, path, tool_version="", workers=workers)
        programs = store.rows(_ANSWERED).to_pylist()
        hints = [*_hints(store, programs), *(summary.notes if programs else ())]
    finally:
        store.close()
    return Examination(
        str(path),
        len(programs),
        dict(Counter(row["platform"] for row in programs if row["platform"] is not None)),
        dict(Counter(row["compiler"] for row in programs if row["compiler"] is not None)),
        kinds.table(),
        _answers(programs),
        logs,
        hints,
        summary.problems,
    )


def _answers(programs: Sequence[dict[str, Any]]) -> pa.Table:
    """A row per question: question, answer, why."""
    rows = []
    for question, column, why in _QUESTIONS:
        answered = sum(row[column] for row in programs)
        is_answered = answered == len(programs) > 0
        answer = "yes" if is_answered else f"{answered} of {len(programs)}" if answered else "no"
        row = {"question": question, "answer": answer, "why": None if is_answered else why}
        rows.append(row)
    schema = pa.schema({name: pa.string() for name in ("question", "answer", "why")})
    return pa.Table.from_pylist(rows, schema)


def _hints(store: Store, programs: Sequence[dict[str, Any]]) -> list[str]:
    """Programs that ran out of memory, and texts between compiler passes."""
    hints = []
    if oom := sum(row["oom"] for row in programs):
        hints.append(f"{_counted(oom)} ran out of memory while being compiled")
    (row,) = store.rows(_TEXTS).to_pylist()
    modules, texts = row.values()
    if modules:
        hints.append(
            f"{_counted(modules)} with {texts:,} texts between compiler passes: `memhouse passes"
            " MODULE` shows which pass changed the memory and defined each large buffer"
        )
    return hints


def _counted(programs: int) -> str:
    return "1 program" if programs == 1 else f"{programs} programs"


def _files(path: Path) -> tuple["_Kinds", list[str]]:
    """The files under a path by kind, and the logs among them."""
    kinds, logs = _Kinds(), []
    is_file = is_dump_file(path)

    def skipped(file: PurePosixPath, size: int) -> None:
        kinds.add(file, size, other_by_name(file.name))

    with ExitStack() as cleanup:
        wanted = (lambda name: True) if is_file else _is_read
        for file in open_source(path, wanted, cleanup, lambda why: None, skipped):
            kinds.add(PurePosixPath(file.path), file.size, _kind(file, is_file))
            if may_be_log(file.name):
                logs.append(str(path if is_file else path / file.path))
    return kinds, logs


def _what(kind: Format | OtherFile) -> str:
    # Two formats may hold the same.
    return f"{kind.title} (*{kind.ending})" if isinstance(kind, Format) else kind.title


@dataclass
class _Kinds:
    """Counts files by kind, with the first of each as an example."""

    counts: Counter[str] = field(default_factory=Counter)
    sizes: Counter[str] = field(default_factory=Counter)
    what: dict[str, str] = field(default_factory=dict)
    is_read: dict[str, bool] = field(default_factory=dict)
    example: dict[str, str] = field(default_factory=dict)

    def add(self, path: PurePosixPath, size: int, kind: Format | OtherFile | None) -> None:
        """Count a file; its kind is None if unknown."""
        name = "other" if kind is None else kind.name
        self.counts[name] += 1
        self.sizes[name] += size
        if name not in self.what:
            self.what[name] = _UNKNOWN if kind is None else _what(kind)
            self.is_read[name] = isinstance(kind, Format) or name in _READ
            self.example[name] = path.as_posix()

    def table(self) -> pa.Table:
        """What is read first, then by size."""
        names = sorted(self.counts, key=lambda name: (not self.is_read[name], -self.sizes[name]))
        return pa.table(
            {
                "what": pa.array([self.what[name] for name in names], pa.string()),
                "name": pa.array(names, pa.string()),
                "files": pa.array([self.counts[name] for name in names], pa.int64()),
                "size_bytes": pa.array([self.sizes[name] for name in names], pa.int64()),
                "ingest": pa.array(["reads" if self.is_read[name] else "-" for name in names]),
                "example": pa.array([self.example[name] for name in names], pa.string()),
            }
        )


def _kind(file: SourceFile, is_named: bool) -> Format | OtherFile | None:
    """The kind of a file as ingest recognises it."""
    try:
        known = format_of(file, is_named=is_named)
    except DumpError:
        known = None
    return known.format if known is not None else other_by_name(file.name)


def _is_read(name: str) -> bool:
    return is_wanted(name) or is_session_file(name) or may_be_log(name)
