"""`memhouse ingest`: dumps into the warehouse."""

import os
import socket
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import zip_longest
from pathlib import Path
from time import perf_counter
from typing import Annotated, Any, TypeVar

import typer
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn
from typer.core import TyperCommand

from ... import __version__
from ...ingest.pipeline import Summary, run_name
from ...ingest.pipeline import ingest as ingest_paths
from ...ingest.sources.files import exists, local_path
from ...ingest.workers import Workers
from ...queries.arguments import parse_device_memory, parse_time
from ...queries.label import hint_at_branches
from ...queries.result import counted
from ...schema.errors import UsageError
from ...schema.readable import command, human_bytes, one_line
from ..opening import ingesting
from ..parameters import (
    DEFAULT_DB,
    DEFAULT_WAIT,
    At,
    Db,
    Labels,
    Replace,
    UserCode,
    Wait,
    parse_labels,
)
from ..render.text import print_error, print_note
from ..settings import find_settings

EXAMPLE = "memhouse ingest dumps/2026-10-08 --label branch=main"
_P = TypeVar("_P", bound=Path)


def _given(path: str) -> Path:
    try:
        return local_path(path)
    except UsageError as error:
        raise typer.BadParameter(str(error)) from None


class _NamesThisHost(TyperCommand):
    """`--host` without a name is this machine's."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments, after the name was added."""
        named: list[str] = []
        for argument, following in zip_longest(args, args[1:], fillvalue="-"):
            named.append(argument)
            if argument == "--host" and following.startswith("-"):
                named.append(socket.gethostname())
        return super().parse_args(ctx, named)


CLASS = _NamesThisHost


def ingest(
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="PATH",
            parser=_given,
            help="Dump folders, XProf sessions, archives (.tar, .tar.gz, .tar.zst) or files.",
        ),
    ],
    db: Db = DEFAULT_DB,
    run: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Name the run; else it is named after the path."),
    ] = None,
    replace: Replace = False,
    at: At = None,
    host: Annotated[
        str | None,
        typer.Option(
            metavar="[HOST]",
            help="Add to the run NAME the part of one host, by default of this machine.",
        ),
    ] = None,
    label: Labels = None,
    device_memory: Annotated[
        str | None,
        typer.Option(
            metavar="SIZE",
            help="The memory of the device compiled for, such as 16GiB; "
            "else as dumped, or as known of the TPU.",
        ),
    ] = None,
    jobs: Annotated[
        int,
        typer.Option(
            "--jobs",
            "-j",
            min=1,
            help="Number of processes that read.",
            show_default="the number of CPUs",
        ),
    ] = os.cpu_count() or 1,
    user_code: UserCode = None,
    orders: Annotated[
        bool,
        typer.Option(
            "--orders",
            help="Also try other orders of the instructions: 0.06 s for each thousand.",
        ),
    ] = False,
    wait: Wait = DEFAULT_WAIT,
) -> None:
    """Ingest XLA's memory dumps, each PATH as one run; with --run all are one.

    Make dumps with XLA_FLAGS="--xla_dump_to=DIR --xla_dump_hlo_as_text". A folder's
    sub-folders are its workloads. Scheduled HLO text alone gives estimates. Ingesting the
    same path again changes nothing; after an ingest that was cut short it goes on from there.
    If its dumps have changed, both nights are kept: the newer is the run NAME@TIME.
    With --host the hosts of a job ingest by themselves, each its part of the run NAME.
    """
    for option, is_given in {"--replace": replace, "--host": host is not None}.items():
        if is_given and run is None:
            raise typer.BadParameter("it needs --run NAME: name the run", param_hint=option)
    named = named_paths(paths, run)
    labels = parse_labels(label or [], find_settings().entry)

    run_at = parse_time(at, "at")
    device_memory_bytes = parse_device_memory(device_memory, "device_memory")

    if not any(map(exists, paths)):
        # A mistyped path must not leave an empty warehouse behind.
        for path in paths:
            print_error(f"{path}: there is no such file or folder")
        raise typer.Exit(1)
    unreadable = False
    with (
        Workers(jobs, user_code or ()) as workers,
        ingesting(db, wait=wait, deletes=replace) as store,
        hint_at_branches(store, labels) as hints,
    ):
        for name, of_run in named.items():
            start = perf_counter()
            with progress_bar(name) as progress:
                summary = ingest_paths(
                    store,
                    *of_run,
                    tool_version=__version__,
                    workers=workers,
                    run_id=run,
                    run_at=run_at,
                    labels=labels,
                    replaces=replace,
                    device_memory_bytes=device_memory_bytes,
                    host=host,
                    orders=orders,
                    progress=progress,
                )
            print_summary(summary, perf_counter() - start)
            unreadable |= bool(summary.problems)
    for hint in hints:
        print_note(hint)
    if unreadable:
        raise typer.Exit(1)


def named_paths(paths: Sequence[_P], run: str | None) -> dict[str, list[_P]]:
    """The paths of each run, by its name."""
    if run is not None:
        if not run:
            raise typer.BadParameter("it is empty: name the run", param_hint="--run")
        return {run: list(paths)}
    named: dict[str, list[_P]] = {}
    for path in paths:
        named.setdefault(run_name(path), []).append(path)
    for name, same in named.items():
        if len(same) > 1:
            raise typer.BadParameter(
                f"two of these paths would both be the run {name!r}: ingest one with --run NAME"
            )
    return named


# How an ingest goes on, and what became of it: on stderr.


@contextmanager
def progress_bar(name: str) -> Iterator[Callable[[int, int], None]]:
    """A progress bar over the bytes, on a terminal; elsewhere nothing."""
    if sys.stderr is None or not sys.stderr.isatty():
        yield lambda done, total: None
        return

    columns = (TextColumn(name), BarColumn(), DownloadColumn(True), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(name, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def print_summary(summary: Summary, seconds: float) -> None:
    """What became of a run's dumps, and what to ask next."""
    for problem in summary.problems:
        print_error(problem)
    for note in summary.notes:
        print_note(note)
    if summary.dumps:
        print_note(summary_line(summary, seconds))
    for hint in oom_hints(summary):
        print_note(hint)


def oom_hints(summary: Summary) -> list[str]:
    """What tells why memory ran out, if it did."""
    if not summary.oom_dumps and not summary.oom_reports:
        return []
    return [f"memory ran out: {command('oom', names=[summary.run_id])} says why"]


def summary_line(summary: Summary, seconds: float) -> str:
    """What became of a path, in a line."""
    parts = [counted(summary.dumps, "dump"), counted(summary.new_modules, "new module")]
    for number, what in (
        (summary.unchanged, "unchanged"),
        (summary.partial, "partial"),
        (summary.failed, "failed"),
        (summary.without_figures, "without figures"),
    ):
        parts += [f"{number} {what}"] if number else []
    size = human_bytes(summary.read_bytes)
    return f"{one_line(summary.run_id)}: {', '.join(parts)}, {size} in {seconds:.1f} s"
