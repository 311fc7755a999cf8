"""What a path holds, which questions it answers, and what would answer the others."""

import glob
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

import pyarrow as pa

from ..schema.readable import human_bytes, paragraph, small_table
from ..xla.errors import DumpError
from . import formats
from .formats import Format, OtherFile, Role, other_by_name
from .oom_logs import may_be_log
from .outcomes import MISSING, OK
from .sources.dump_folder import find_dumps, format_of, is_wanted
from .sources.dumped_program import DumpedProgram
from .sources.files import SourceFile, is_dump_file, open_source
from .sources.hlo_protos import HloProtoProgram
from .sources.program import Program
from .sources.xprof_session import find_modules, is_session_file

# The questions that a dump may answer, and which of a program's files answer them.

TEXT = "--xla_dump_to=DIR --xla_dump_hlo_as_text"
# What a format tells, where its role does not say it all.
_TELLS = {
    "live-range": ("assignment", "live ranges"),
    "hlo": ("program", "text"),
    "oom-hlo": ("program", "text"),
    # The binary has no live ranges, but its schedule gives them exactly.
    "hlo-proto": ("program", "assignment"),
}
_OF_ROLE = {
    Role.ASSIGNMENT: ("assignment",),
    Role.PROGRAM: ("program",),
    Role.REPORT: ("space names",),
    Role.FLAGS: ("flags",),
    Role.DEVICE: ("device",),
}
_OF_MODULE = frozenset({"program", "assignment", "schedule"})
_HEADER_BYTES = 512
_LIVE_RANGES = b"\nHloLiveRange (max "

Held = frozenset[str]


def held_by(files: Mapping[Format, SourceFile]) -> Held:
    """What a program's files tell; their beginnings are read only where names do not say it."""
    told = {
        tells
        for format_ in files
        for tells in _TELLS.get(format_.name, _OF_ROLE.get(format_.role, ()))
    }
    for format_, file in files.items():
        # Before about JAX 0.10 one file holds the live ranges too.
        is_document = format_.name == "buffer-assignment" and "live ranges" not in told
        with suppress(DumpError):  # Ingest says what cannot be read.
            if is_document and _LIVE_RANGES in file.read():
                told.add("live ranges")
            if format_.role is Role.BINARY:
                told.add("schedule")
            if format_.role is Role.PROGRAM and "live ranges" not in told:
                is_text = "text" in told
                if not is_text or b", is_scheduled=true" in file.read(_HEADER_BYTES):
                    told.add("schedule")
    return frozenset(told)


def held_by_module(module: HloProtoProgram) -> Held:
    """What a module of a session tells; one from JAX's compilation cache has no assignment."""
    (file,) = module.fingerprint().files
    if file.status != OK:
        return frozenset()
    return _OF_MODULE if file.message is None else _OF_MODULE - {"assignment"}


@dataclass(frozen=True)
class _Question:
    """A question, whether a program's files answer it, and what would."""

    question: str
    is_answered: Callable[[Held], bool]
    why: str


_QUESTIONS = (
    _Question(
        "what is allocated, and where",
        lambda held: "assignment" in held,
        f"no buffer assignment (*-buffer-assignment.txt): compile with {TEXT}",
    ),
    _Question(
        "the peak, and when it is: exactly",
        lambda held: "assignment" in held and bool(held & {"live ranges", "schedule"}),
        f"no live ranges (*-live-range.txt) beside a buffer assignment: compile with {TEXT}",
    ),
    _Question(
        "the peak: as an estimate at least",
        lambda held: (
            bool(held & {"live ranges", "schedule"})
            or ("program" in held and "assignment" not in held)
        ),
        f"no scheduled HLO text (*after_optimizations.txt): compile with {TEXT}",
    ),
    _Question(
        "whose the bytes are, by Python line",
        lambda held: "program" in held,
        f"no HLO text (*after_optimizations.txt): compile with {TEXT}",
    ),
    _Question(
        "which compiler flags differ",
        lambda held: "flags" in held,
        "no *.debug_options or *.flagfile: XLA writes them beside a dump, keep them",
    ),
    _Question(
        "how full the device is",
        lambda held: "device" in held,
        "no *.target_arguments.txt or *.gpu_target_config.pbtxt: XLA writes them for TPU and "
        "GPU, keep them",
    ),
    _Question(
        "what the memory spaces are called",
        lambda held: "space names" in held,
        "no *-memory-usage-report.txt: XLA writes it beside a text dump since about JAX 0.10",
    ),
    _Question(
        "which pass of the compiler made a buffer",
        lambda held: "passes" in held,
        f"no texts between passes: compile with {TEXT} --xla_dump_hlo_pass_re=.*, or use "
        "`memhouse record --passes`",
    ),
)


def answers(programs: Sequence[Held]) -> pa.Table:
    """A row per question: question; answer, yes, no, or of how many programs; why not."""
    return _table(_answer(question, programs) for question in _QUESTIONS)


def _answer(question: _Question, programs: Sequence[Held]) -> dict[str, str | None]:
    answered = sum(map(question.is_answered, programs))
    every = answered == len(programs) > 0
    answer = "yes" if every else f"{answered} of {len(programs)}" if answered else "no"
    return {
        "question": question.question,
        "answer": answer,
        "why": None if every else question.why,
    }


def _table(rows: Iterable[dict[str, str | None]]) -> pa.Table:
    schema = pa.schema({name: pa.string() for name in ("question", "answer", "why")})
    return pa.Table.from_pylist(list(rows), schema)


# What a path holds, which questions it answers, and what would answer the others.
#
# Names come first. Of contents, only the beginning of what ingest would open is read.

_UNKNOWN = "other files"
_FILES = ("what", "files", "size", "ingest")
# The other files that ingest reads.
_READ = ("session", "oom-list", "log", "passes", "thunks")
_MAKE = "make some with XLA_FLAGS='--xla_dump_to=DIR --xla_dump_hlo_as_text'"
_WHOLE = (
    "give the folder with all files of the program, with *after_optimizations.txt and "
    "*after_optimizations-buffer-assignment.txt among them"
)
_MODULE = re.compile(r"^module_\d+\.[^.]+\.")


@dataclass(frozen=True)
class Examination:
    """What lies under a path.

    programs: how many ingest would find; platforms and compilers: of these, with their counts;
    files: what, name, files, size_bytes, ingest (whether it reads them), example; questions:
    question, answer, why; logs: the logs, which may say that memory ran out; hints: what else to
    say; problems: what cannot be read.
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
        asked = [list(map(str, row.values())) for row in self.questions.to_pylist()]
        shown = [
            small_table(_FILES, files, (False, True, True, False), str(self.path)),
            small_table(self.questions.column_names, asked, [False] * 3),
        ]
        return "\n".join([*shown, *map(paragraph, [*self.problems, *self.hints])])


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
        """Count a file, of a kind that is not known if it is None."""
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


def examine(path: Path) -> Examination:
    """Say what a folder, an archive or a file holds. What cannot be read is in `problems`."""
    kinds = _Kinds()
    problems: list[str] = []

    def passed_over(file: PurePosixPath, size: int) -> None:
        kinds.add(file, size, other_by_name(file.name))

    is_one = is_dump_file(path)
    with ExitStack() as cleanup:
        wanted = _anything if is_one else _is_read
        files = list(open_source(path, wanted, cleanup, problems.append, passed_over))
        for file in files:
            kinds.add(PurePosixPath(file.path), file.size, _kind(file, is_one, problems))
        sessions = [file for file in files if is_session_file(file.name)]
        ran = find_modules(
            sessions, lambda file, why: problems.append(f"{file.path}: {why}"), cleanup
        )
        # `_kind` has told what cannot be read.
        rest = [file for file in files if not is_session_file(file.name)]
        dumps, cached = _compiled(
            find_dumps(rest, lambda file, why: None, named_file=is_one), problems
        )
        hints = [*_of_memory(sum(dump.oom for dump in dumps)), *_of_cache(cached)]
        hints += _of_passes(dumps)
        held = [
            *(held_by(dump.files) | ({"passes"} if dump.passes else set()) for dump in dumps),
            *map(held_by_module, ran),
        ]
    programs: list[Program] = [*dumps, *ran]
    keys = [program.key for program in programs]
    return Examination(
        str(path),
        len(programs),
        dict(Counter(key.platform for key in keys if key.platform is not None)),
        dict(Counter(key.compiler for key in keys if key.compiler is not None)),
        kinds.table(),
        answers(held),
        [str(path if is_one else path / file.path) for file in files if may_be_log(file.name)],
        hints,
        problems,
    )


def _kind(file: SourceFile, is_one: bool, problems: list[str]) -> Format | OtherFile | None:
    """What a file holds, as ingest sees it."""
    try:
        known = format_of(file, is_named=is_one)
    except DumpError as error:
        problems.append(f"{file.path}: {error}")
        known = None
    return known.format if known is not None else other_by_name(file.name)


def _of_memory(programs: int) -> list[str]:
    many = "1 program" if programs == 1 else f"{programs} programs"
    return [f"{many} ran out of memory while being compiled"] if programs else []


def _of_passes(dumps: Sequence[DumpedProgram]) -> list[str]:
    """What `memhouse passes` would answer."""
    dumped = [dump for dump in dumps if dump.passes]
    if not dumped:
        return []
    texts = [file for dump in dumped for _, file in dump.passes]
    many = "1 program has" if len(dumped) == 1 else f"{len(dumped)} programs have"
    size = human_bytes(sum(file.size for file in texts))
    return [
        f"{many} {len(texts):,} texts between the compiler's passes ({size}): after ingest "
        "`memhouse passes MODULE` tells which pass moved the memory and made each large buffer"
    ]


def _compiled(dumps: list[DumpedProgram], problems: list[str]) -> tuple[list[DumpedProgram], int]:
    """The dumps that ingest stores, and how many others come from the compilation cache.

    Of a file that is alone only its content tells, so it is read as ingest reads it.
    """
    compiled, cached = [], 0
    for dump in dumps:
        if len(formats.MAKES_A_DUMP.intersection(dump.files)) == 1:
            found = dump.fingerprint()
            cached += found.left_out is not None
            parts = dump.read(found) if found.left_out is None else None
            problems += [
                f"{file.path}: {file.message}"
                for file in found.files
                if file.status not in (OK, MISSING)
            ]
            if parts is None:
                continue
        compiled.append(dump)
    return compiled, cached


def _of_cache(programs: int) -> list[str]:
    if not programs:
        return []
    many = "1 program comes" if programs == 1 else f"{programs} programs come"
    return [
        f"{many} from JAX's persistent compilation cache, which holds no buffer "
        "assignment: compile again with JAX_ENABLE_COMPILATION_CACHE=false"
    ]


def nothing_found(path: Path) -> str:
    """Why ingest finds nothing under a path, and what to do: one line, told by names alone."""
    _, why = nothing_among(path)
    return why


def nothing_among(path: Path) -> tuple[int, str]:
    """How many files there are under a path where ingest finds nothing, and why it does not.

    No file is opened but archives: one of the files may be the warehouse.
    """
    if is_dump_file(path):
        return 1, f"{path}: {_no_dump(path)}"
    kinds: Counter[str] = Counter()
    instead: dict[str, str] = {}
    count = 0

    def passed_over(file: PurePosixPath, size: int) -> None:
        nonlocal count
        count += 1
        known, other = formats.by_name(file.name), other_by_name(file.name)
        if known is not None:
            kinds[known.format.title] += 1
            instead[known.format.title] = _WHOLE
        elif other is not None:
            kinds[other.title] += 1
            instead[other.title] = other.instead

    with ExitStack() as cleanup:
        for _ in open_source(path, lambda name: False, cleanup, lambda why: None, passed_over):
            pass
    nothing = f"{path}: there are no memory dumps of XLA here"
    if not count:
        return 0, f"{nothing}, and nothing else: {_MAKE}"
    if not kinds:
        return count, f"{nothing}: {_MAKE}"
    found = kinds.most_common()
    listed = ", ".join(f"{title} ({counted})" for title, counted in found[:3])
    more = ", …" if len(found) > 3 else ""
    return count, f"{nothing}, but {listed}{more}: {instead[found[0][0]]}"


def _no_dump(path: Path) -> str:
    """Why one file makes no dump, and which to give in its place."""
    known, other = formats.by_name(path.name), other_by_name(path.name)
    if known is not None:
        return f"{known.format} alone makes no dump: {_WHOLE}"
    if other is None or other.name == "log":
        return (
            "this is not a memory dump of XLA, nor a log with an out-of-memory message: give a "
            "dump folder, archive or dump file, or such a log"
        )
    holds = f"this holds {other.title}, which is no memory dump"
    if isinstance(path, Path) and (match := _MODULE.match(path.name)) is not None:
        beside = sorted(
            file.name
            for file in path.parent.glob(f"{glob.escape(match[0])}*")
            if (found := formats.by_name(file.name)) and found.format in formats.MAKES_A_DUMP
        )
        if beside:
            return f"{holds}: give {path.with_name(beside[-1])}, or the whole folder"
    return f"{holds}: {other.instead}"


def _anything(name: str) -> bool:
    return True


def _is_read(name: str) -> bool:
    return is_wanted(name) or is_session_file(name) or may_be_log(name)
