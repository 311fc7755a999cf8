"""`memhouse doctor`: describe a dump, or the environment and the warehouse."""

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer

from ... import __version__
from ...compile.record import ask_versions, find_interpreter, own_flags, version_labels
from ...queries.result import counted
from ...schema.errors import WarehouseBusyError, WarehouseError
from ...schema.readable import command, human_bytes, one_line
from ...warehouse import Warehouse
from ..errors import FAILED
from ..opening import open_warehouse
from ..parameters import DEFAULT_DB
from ..render.examination import print_examination
from ..render.text import (
    print_commands,
    print_prose,
    print_text,
)
from ..settings import find_settings

EXAMPLE = "memhouse doctor dumps/2026-10-08"
_FILL = (
    ("memhouse demo", "five commands on real dumps"),
    ("memhouse record -- python train.py", "run it, and ingest what XLA compiles"),
    ("memhouse ingest DUMPS", "ingest existing dumps"),
)


def doctor(
    path: Annotated[
        Path | None,
        typer.Argument(
            metavar="PATH",
            help="A dump folder, an archive or a file [default: environment and warehouse].",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Show what PATH contains, which questions it answers, and what is missing.

    Nothing is stored. Exit status 1 if there is no program and no log. Without PATH, show the
    packages and flags that `memhouse record` would use, the settings, and the warehouse's runs.
    """
    if path is None:
        _print_environment()
        return
    if not print_examination(path):
        raise typer.Exit(FAILED)


def _print_environment() -> None:
    """Print the packages, flags and settings in effect, and the contents of the warehouse."""
    for sentence in (*_recording_environment(os.environ), _settings_sentence()):
        print_prose(sentence)
    print_text("")
    show_first_steps()


def _settings_sentence() -> str:
    """A sentence with the path and the values of memhouse.toml."""
    settings = find_settings()
    if settings.file is None:
        return "There is no memhouse.toml in this folder or above it."
    names = ("db", "user_code", "entry", "limits", "macros")
    values = {name: value for name in names if (value := getattr(settings, name))}
    texts = [
        f"{name} {', '.join(value) if isinstance(value, tuple) else value}"
        for name, value in values.items()
    ]
    return f"{settings.file} sets {'; '.join(texts) or 'nothing'}."


def _recording_environment(environment: Mapping[str, str]) -> Iterator[str]:
    """Sentences on the packages, XLA flags and compilation cache that `record` would use."""
    yield f"memhouse {__version__}"
    python = find_interpreter(["python"], environment)
    with ask_versions(python, environment) as versions:
        packages = version_labels(versions.lines())
    if packages:
        yield f"`python` has {', '.join(f'{name} {v}' for name, v in packages.items())}."
    elif python is None:
        yield "There is no `python` in PATH: `memhouse record` needs the command that it runs."
    else:
        yield "`python` has none of jax, torch_xla and tensorflow: nothing would be compiled."
    if flags := own_flags(environment):
        yield f"XLA_FLAGS is {flags}"
    else:
        yield "XLA_FLAGS is not set: `memhouse record` adds the flags that write dumps."
    if cache := environment.get("JAX_COMPILATION_CACHE_DIR"):
        yield (
            f"JAX_COMPILATION_CACHE_DIR is {cache}: a program that JAX loads from this cache is not"
            " compiled, and has no dump."
        )


def show_first_steps() -> None:
    """Print a summary of the default warehouse, and commands to try next."""
    db = os.environ.get("MEMHOUSE_DB") or find_settings().db or DEFAULT_DB
    commands: Sequence[tuple[str, str]] = _FILL
    if "://" not in db and not Path(db).exists():
        lines = [f"There is no warehouse at {db} yet. Type one of these:"]
    else:
        try:
            with open_warehouse(db) as warehouse:
                lines, module = _summarize(warehouse)
            if module is not None:
                commands = _ask_commands(module)
        except WarehouseError as error:
            lines = [str(error)]
            if isinstance(error, WarehouseBusyError):
                commands = _ask_commands("MODULE")
    for line in lines:
        print_prose(line)
    print_text("")
    print_commands(commands)
    print_text("\n`memhouse --help` lists all commands.")


def _ask_commands(module: str) -> list[tuple[str, str]]:
    """Commands that query a warehouse, with their purpose."""
    return [
        (command("peaks"), "peak of each module"),
        (command("owners", names=[module]), "source lines that own its memory"),
        (command("trends"), "growth by run, and its causes"),
        (command("advise", names=[module]), "changes that reduce its peak"),
    ]


def _summarize(warehouse: Warehouse) -> tuple[list[str], str | None]:
    """Lines on the runs and the largest peak of a warehouse, and the name of that module."""
    db = warehouse.store.name
    runs = warehouse.runs().table.to_pylist()
    if not runs:
        return [f"{db} has no runs yet. Type one of these:"], None
    lines = [f"{db}: {counted(len(runs), 'run')}, the newest {one_line(runs[-1]['run'])}."]
    peaks = warehouse.peaks().table.to_pylist()
    if not peaks or peaks[0]["peak_bytes"] is None:
        return lines, None
    largest = peaks[0]
    mark = "≈" if largest["origin"] == "estimated" else ""
    name = one_line(f"{largest['workload']}/{largest['module']}")
    lines.append(
        f"The largest peak now: {mark}{human_bytes(largest['peak_bytes'])}, {name} "
        f"of run {one_line(largest['run'])}."
    )
    return lines, name
