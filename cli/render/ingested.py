"""How an ingest goes on, and what became of it: on stderr."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ...schema.readable import command
from .text import print_error, print_note

if TYPE_CHECKING:
    from ...ingest.pipeline import Summary


@contextmanager
def progress_bar(name: str) -> Iterator[Callable[[int, int], None]]:
    """A progress bar over the bytes, on a terminal; elsewhere nothing."""
    if sys.stderr is None or not sys.stderr.isatty():
        yield lambda done, total: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn(name), BarColumn(), DownloadColumn(True), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(name, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def print_summary(summary: "Summary", seconds: float) -> None:
    """What became of a run's dumps, and what to ask next."""
    for problem in summary.problems:
        print_error(problem)
    for note in summary.notes:
        print_note(note)
    if summary.dumps:
        print_note(summary_line(summary, seconds))
    for hint in oom_hints(summary):
        print_note(hint)


def oom_hints(summary: "Summary") -> list[str]:
    """What tells why memory ran out, if it did."""
    if not summary.oom_dumps and not summary.oom_reports:
        return []
    return [f"memory ran out: {command('oom', names=[summary.run_id])} says why"]


def summary_line(summary: "Summary", seconds: float) -> str:
    """What became of a path, in a line."""
    from ...queries.result import counted
    from ...schema.readable import human_bytes, one_line

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
