"""`memhouse ingest`: ingest dumps."""

import os
import socket
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import zip_longest
from pathlib import Path
from time import perf_counter
from typing import Annotated, Any

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
from ..render.examination import print_examination
from ..render.text import print_error, print_note
from ..settings import find_settings

EXAMPLE = "memhouse ingest dumps/2026-10-08 --label branch=main"


def _parse_path(path: str) -> Path:
    try:
        return local_path(path)
    except UsageError as error:
        raise typer.BadParameter(str(error)) from None


class _WithHostDefault(TyperCommand):
    """A command whose `--host` without a value means this machine."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Insert the host's name after a bare `--host`, and parse the arguments."""
        completed: list[str] = []
        for argument, following in zip_longest(args, args[1:], fillvalue="-"):
            completed.append(argument)
            if argument == "--host" and following.startswith("-"):
                completed.append(socket.gethostname())
        return super().parse_args(ctx, completed)


CLASS = _WithHostDefault


def ingest(
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="PATH",
            parser=_parse_path,
            help="Dump folders, XProf sessions, archives (.tar, .tar.gz, .tar.zst) or files.",
        ),
    ],
    db: Db = DEFAULT_DB,
    run: Annotated[
        str | None, typer.Option(metavar="NAME", help="Name of the run [default: from the path].")
    ] = None,
    replace: Replace = False,
    at: At = None,
    host: Annotated[
        str | None,
        typer.Option(
            metavar="[HOST]",
            help="Add the dumps of one host to the run NAME [default: this machine].",
        ),
    ] = None,
    label: Labels = None,
    device_memory: Annotated[
        str | None,
        typer.Option(
            metavar="SIZE",
            help="Memory of the target device, such as 16GiB [default: that in the dump, or of "
            "the TPU].",
        ),
    ] = None,
    jobs: Annotated[
        int,
        typer.Option(
            "--jobs",
            "-j",
            min=1,
            help="Number of reader processes.",
            show_default="the number of CPUs",
        ),
    ] = os.cpu_count() or 1,
    user_code: UserCode = None,
    orders: Annotated[
        bool,
        typer.Option(
            "--orders", help="Also try other instruction orders: 0.06 s per thousand instructions."
        ),
    ] = False,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Show what would be ingested, as `memhouse doctor` does."),
    ] = False,
    wait: Wait = DEFAULT_WAIT,
) -> None:
    """Ingest XLA's memory dumps, each PATH as one run; with --run all are one.

    XLA writes dumps with XLA_FLAGS="--xla_dump_to=DIR --xla_dump_hlo_as_text". A folder's
    sub-folders are its workloads. Of scheduled HLO text alone, sizes are estimated. Ingesting the
    same path again changes nothing; an interrupted ingest is continued. If the dumps of a path have
    changed, both runs are kept: the newer is the run NAME@TIME. With --host each host of a job
    ingests its own part of the run NAME.
    """
    if dry_run:
        readable = [print_examination(path) for path in paths]
        if not all(readable):
            raise typer.Exit(1)
        return
    for option, is_set in {"--replace": replace, "--host": host is not None}.items():
        if is_set and run is None:
            raise typer.BadParameter("requires --run NAME", param_hint=option)
    paths_by_run = _group_by_run(paths, run)
    labels = parse_labels(label or [], find_settings().entry)
    run_at = parse_time(at, "at")
    device_memory_bytes = parse_device_memory(device_memory, "device_memory")

    if not any(map(exists, paths)):
        # A mistyped path must not create an empty warehouse.
        for path in paths:
            print_error(f"{path}: there is no such file or folder")
        raise typer.Exit(1)
    unreadable = False
    with (
        Workers(jobs, user_code or ()) as workers,
        ingesting(db, wait=wait, deletes=replace) as store,
        hint_at_branches(store, labels) as hints,
    ):
        for name, run_paths in paths_by_run.items():
            start = perf_counter()
            with progress_bar(name) as progress:
                summary = ingest_paths(
                    store,
                    *run_paths,
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


def _group_by_run(paths: Sequence[Path], run: str | None) -> dict[str, list[Path]]:
    """Paths by the name of their run: `run`, or a run per path."""
    if run is not None:
        if not run:
            raise typer.BadParameter("the name is empty", param_hint="--run")
        return {run: list(paths)}
    paths_by_run: dict[str, list[Path]] = {}
    for path in paths:
        name = run_name(path)
        if name in paths_by_run:
            raise typer.BadParameter(
                f"two paths have the run name {name!r}: ingest one of them with --run NAME"
            )
        paths_by_run[name] = [path]
    return paths_by_run


@contextmanager
def progress_bar(name: str) -> Iterator[Callable[[int, int], None]]:
    """Show a progress bar if stderr is a terminal; yields update(bytes read, total bytes)."""
    if sys.stderr is None or not sys.stderr.isatty():
        yield lambda read, total: None
        return
    columns = (TextColumn(name), BarColumn(), DownloadColumn(True), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(name, total=None)
        yield lambda read, total: bar.update(task, completed=read, total=total)


def print_summary(summary: Summary, seconds: float) -> None:
    """Print the problems, notes and counts of an ingest."""
    for problem in summary.problems:
        print_error(problem)
    for note in summary.notes:
        print_note(note)
    if summary.dumps:
        print_note(summary_line(summary, seconds))
    print_oom_hint(summary)


def print_oom_hint(summary: Summary) -> None:
    """Print the `memhouse oom` command if the run has out-of-memory dumps or messages."""
    if summary.oom_dumps or summary.oom_reports:
        remedy = command("oom", names=[summary.run_id])
        print_note(f"memory ran out. To see why: {remedy}")


def summary_line(summary: Summary, seconds: float) -> str:
    """Counts of a run's dumps and modules by status, on one line."""
    parts = [counted(summary.dumps, "dump"), counted(summary.new_modules, "new module")]
    statuses = {
        "unchanged": summary.unchanged,
        "partial": summary.partial,
        "failed": summary.failed,
        "without figures": summary.without_figures,
    }
    parts += [f"{count} {status}" for status, count in statuses.items() if count]
    size = human_bytes(summary.read_bytes)
    return f"{one_line(summary.run_id)}: {', '.join(parts)}, {size} in {seconds:.1f} s"
