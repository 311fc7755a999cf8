"""`memhouse doctor`: what in a folder is what, and what it lacks; or how things stand here."""

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer

from ... import __version__
from ...compile.record import ask_versions, find_interpreter, own_flags, version_labels
from ...ingest.dry_run import examine
from ...ingest.nothing_found import nothing_found
from ...ingest.sources.files import exists
from ...queries.peaks import peaks as all_peaks
from ...queries.result import counted
from ...queries.runs import runs as all_runs
from ...schema.errors import WarehouseBusyError, WarehouseError
from ...schema.readable import command, human_bytes, one_line
from ...schema.store import Store
from ..errors import FAILED
from ..opening import reading
from ..parameters import DEFAULT_DB
from ..render.text import (
    print_commands,
    print_error,
    print_note,
    print_prose,
    print_rows,
    print_text,
)
from ..settings import find_settings

EXAMPLE = "memhouse doctor dumps/2026-10-08"


def doctor(
    path: Annotated[
        Path | None,
        typer.Argument(
            metavar="PATH",
            help="A dump folder, an archive or a file; else the environment and the warehouse.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Show what PATH contains, which questions it answers, and what is missing.

    Nothing is stored. The exit status is 1 if there is no program and no log. Without PATH it says
    what would be recorded here, which memhouse.toml holds, and what the warehouse has.
    """
    if path is None:
        _look_around()
        return

    if not exists(path):
        print_error(f"{path}: there is no such file or folder")
        raise typer.Exit(FAILED)
    found = examine(path)
    for problem in found.problems:
        print_error(problem)
    if len(found.files):
        print_rows(
            found.files.select(["what", "files", "size_bytes", "ingest"]), "table", has_format=False
        )
    if found.programs:
        platforms = [f"{name} {number}" for name, number in found.platforms.items()]
        compilers = [f"libtpu cl_{name}" for name in found.compilers]
        of = ", ".join([*platforms, *compilers])
        programs = counted(found.programs, "program")
        print_text(f"\n{programs}: {of}\n" if of else f"\n{programs}\n")
        print_rows(found.questions, "table", has_format=False)
    for hint in found.hints:
        print_note(hint)
    if found.logs and not found.programs:
        print_note(
            f"{command('oom', names=found.logs[:1])} says why memory ran out, if the log tells"
        )
    elif not found.programs:
        if not found.problems:
            print_error(nothing_found(path))
        raise typer.Exit(FAILED)


def _look_around() -> None:
    """Print how things stand: this machine's packages and flags, and the warehouse."""

    for line in _environment(os.environ):
        print_prose(line)
    print_prose(_settings())
    print_text("")
    show_first_steps()


def _settings() -> str:
    """Which file sets options here, and to what."""
    settings = find_settings()
    if settings.file is None:
        return "There is no memhouse.toml in this folder or above it: no option is set."
    given = settings.defaults | ({"entry": list(settings.entry)} if settings.entry else {})
    told = [
        f"{name} {', '.join(value) if isinstance(value, list) else value}"
        for name, value in given.items()
    ]
    return f"{settings.file} sets {'; '.join(told) or 'nothing'}."


def _environment(environment: Mapping[str, str]) -> Iterator[str]:
    """What the environment says of recording: a sentence a line."""
    yield f"memhouse {__version__}"
    python = find_interpreter(["python"], environment)
    with ask_versions(python, environment) as asked:
        packages = version_labels(asked.lines())
    if packages:
        yield f"`python` has {', '.join(f'{name} {v}' for name, v in packages.items())}."
    elif python is None:
        yield "There is no `python` in PATH: `memhouse record` needs the command that it runs."
    else:
        yield "`python` has none of jax, torch_xla and tensorflow: nothing would be compiled."
    if flags := own_flags(environment):
        yield f"XLA_FLAGS is {flags}"
    else:
        yield "XLA_FLAGS is not set: `memhouse record` adds what dumps need by itself."
    if cache := environment.get("JAX_COMPILATION_CACHE_DIR"):
        yield (
            f"JAX_COMPILATION_CACHE_DIR is {cache}: a program that JAX takes from there is not"
            " compiled, and leaves no dump."
        )


# `memhouse` alone: what the warehouse holds, and what to type.

_FILL = (
    ("memhouse demo", "five commands on real dumps"),
    ("memhouse record -- python train.py", "run it, and keep what XLA compiles"),
    ("memhouse ingest DUMPS", "dumps that are already there"),
)
_ASK = (
    ("peaks", (), "what each module needs"),
    ("owners", ("MODULE",), "which lines of Python own it"),
    ("trends", (), "what grew, when and why"),
    ("advise", ("MODULE",), "what to change first"),
)
_ALL = "`memhouse --help` lists all commands."


def show_first_steps() -> None:
    """Print what the warehouse that is set, or this folder's, holds, and commands that fit."""
    db = os.environ.get("MEMHOUSE_DB") or find_settings().db or DEFAULT_DB
    commands: Sequence[tuple[str, str]] = _FILL
    if "://" not in db and not Path(db).exists():
        print_prose(f"There is no warehouse at {db} yet. Type one of these:")
    else:
        try:
            with reading(db) as store:
                held, largest = _held(store)
            if largest is not None:
                commands = [
                    (command(asked, names=[largest] * len(names)), said)
                    for asked, names, said in _ASK
                ]
        except WarehouseError as error:
            held = [str(error)]
            if isinstance(error, WarehouseBusyError):
                commands = [(command(asked, names=names), said) for asked, names, said in _ASK]
        for line in held:
            print_prose(line)
    print_text("")
    print_commands(commands)
    print_text(f"\n{_ALL}")


def _held(store: Store) -> tuple[list[str], str | None]:
    """What a warehouse holds, in lines, and the module of the largest peak, as it is typed."""
    runs = all_runs(store).table.to_pylist()
    if not runs:
        return [f"{store.name} holds no runs yet. Type one of these:"], None
    found = [f"{store.name}: {counted(len(runs), 'run')}, the newest {one_line(runs[-1]['run'])}."]
    peaks = all_peaks(store).table.to_pylist()
    if not peaks or peaks[0]["peak_bytes"] is None:
        return found, None
    largest = peaks[0]
    mark = "≈" if largest["origin"] == "estimated" else ""
    name = one_line(f"{largest['workload']}/{largest['module']}")
    found.append(
        f"The largest peak now: {mark}{human_bytes(largest['peak_bytes'])}, {name} "
        f"of run {one_line(largest['run'])}."
    )
    return found, name
