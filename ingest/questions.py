"""The questions that a dump may answer, and which of a program's files answer them."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

import pyarrow as pa

from .errors import DumpError
from .formats import Format, Role
from .outcomes import OK
from .sources.files import SourceFile
from .sources.hlo_protos import HloProtoProgram

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
        lambda held: bool(held & {"live ranges", "schedule"}),
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
