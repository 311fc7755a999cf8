"""`memhouse doctor`: what in a folder is what, and what it lacks; or how things stand here."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated

import typer

from ...queries.result import counted
from ...schema.readable import command
from ..options import find_settings
from ..render.text import print_error, print_note, print_prose, print_rows, print_text

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
    """Say what in PATH is what, which questions it answers, and what would answer the others.

    Nothing is stored. The exit status is 1 if there is no program and no log. Without PATH it says
    what would be recorded here, which memhouse.toml holds, and what the warehouse has.
    """
    if path is None:
        _look_around()
        return
    from ...ingest.doctor import examine, nothing_found
    from ...ingest.sources.files import exists
    from ..errors import FAILED

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
    from ..first_steps import show_first_steps

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
    from ... import __version__
    from ...ingest.record import ask_versions, find_interpreter, own_flags, version_labels

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
