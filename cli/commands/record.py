"""`memhouse record`: what a command compiles, into the warehouse."""

import os
import re
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from typing import Annotated

import typer

from ... import __version__
from ...compile.record import CommandError, NotIngestedError, check_warehouse, record_command
from ...ingest.choose_run import claim
from ...queries.arguments import parse_time
from ...queries.label import hint_at_branches
from ...schema.errors import WarehouseError
from ...schema.readable import command as to_paste
from ...schema.store import Store
from ..errors import FAILED, told
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
from .ingest import oom_hints, progress_bar, summary_line

EXAMPLE = "memhouse record --run tonight -- python train.py --steps 100"
# What follows the recorded command's name is for that command.
CONTEXT = {"allow_interspersed_args": False}
OPTIONS = "[OPTIONS] --"


def record(
    command: Annotated[
        list[str],
        typer.Argument(
            metavar="COMMAND", help="The command to run, with its arguments.", show_default=False
        ),
    ],
    db: Db = DEFAULT_DB,
    run: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Name the run; else it is SCRIPT-TIME."),
    ] = None,
    replace: Replace = False,
    at: At = None,
    label: Labels = None,
    keep: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Keep the dumps in DIR, a new folder."),
    ] = None,
    only: Annotated[
        str | None,
        typer.Option(metavar="REGEX", help="Only the modules whose names match."),
    ] = None,
    text: Annotated[bool, typer.Option("--text", help="Dump texts too, for --keep.")] = False,
    passes: Annotated[
        bool,
        typer.Option(
            "--passes", help="Also dump the program between the compiler's passes, see `passes`."
        ),
    ] = False,
    user_code: UserCode = None,
    wait: Wait = DEFAULT_WAIT,
) -> None:
    """Run a command and ingest what XLA compiles in it, as one run.

    The command runs with dump flags added to its XLA_FLAGS: JAX, PyTorch/XLA and TensorFlow
    read them. Its input, output and signals are passed through. The run has the labels commit,
    branch, dirty, host, command, suite, and jax, jaxlib, libtpu and so on. If nothing is compiled,
    it is a run without programs, because the run before is not this one.

    The exit status is that of the command. It is 1 if the command succeeds, but its dumps are
    not ingested whole. The command does not run, and the status is 2, if the usage is wrong or
    the run NAME is there already; and 1 if the warehouse cannot be opened.
    """
    labels = parse_labels(label or [], find_settings().entry)
    _check(db, run, only, replace=replace)

    claimed_at = parse_time(at, "at")
    claim(claimed_at, run or "")

    hints: list[str] = []
    begun = perf_counter()
    progress: Callable[[int, int], None]

    @contextmanager
    def opening(labels: Mapping[str, str]) -> Iterator[Store]:
        nonlocal begun, progress
        begun = perf_counter()
        with (
            ingesting(db, wait=wait) as store,
            hint_at_branches(store, labels) as found,
            progress_bar("ingest") as progress,
        ):
            yield store
        hints.extend(found)

    try:
        recorded = record_command(
            command,
            opening,
            os.environ,
            tool_version=__version__,
            jobs=os.cpu_count() or 1,
            run_id=run,
            claimed_at=claimed_at,
            labels=labels,
            keep=keep,
            only=only,
            text=text,
            passes=passes,
            replaces=replace,
            mine=user_code or (),
            progress=lambda done, total: progress(done, total),
        )
    except CommandError as error:
        print_error(str(error))
        raise typer.Exit(error.status) from None
    except NotIngestedError as error:
        raise typer.Exit(_not_ingested(error, db, replace=replace)) from error.__cause__
    problems = recorded.summary.problems if recorded.summary else []
    for problem in problems:
        print_error(problem)
    for note in [*recorded.notes, *(recorded.summary.notes if recorded.summary else []), *hints]:
        print_note(note)
    if recorded.summary and recorded.summary.dumps:
        print_note(summary_line(recorded.summary, perf_counter() - begun))
        for hint in oom_hints(recorded.summary):
            print_note(hint)
    raise typer.Exit(recorded.status or bool(problems))


def _check(db: str, run: str | None, only: str | None, *, replace: bool) -> None:
    """What can be wrong is told before the command runs, which may take a day."""
    if run == "":
        raise typer.BadParameter("it is empty: name the run", param_hint="--run")
    if replace and run is None:
        raise typer.BadParameter("it needs --run NAME: name the run", param_hint="--replace")
    if not db:
        raise WarehouseError("--db or MEMHOUSE_DB is empty: name the warehouse")
    if "://" not in db and not Path(db).parent.is_dir():
        raise WarehouseError(f"cannot make {db}: there is no folder {Path(db).parent}")
    try:
        re.compile(only or "")
    except re.error as error:
        raise typer.BadParameter(
            f"not a regular expression: {error}", param_hint="--only"
        ) from None

    check_warehouse(db, run, replaces=replace)


def _not_ingested(error: NotIngestedError, db: str, *, replace: bool) -> int:
    """Tell why not, and how to ingest what was kept; the exit status."""
    assert isinstance(error.__cause__, Exception)
    status = told(error.__cause__)
    if status is None:
        traceback.print_exception(error.__cause__)
    recorded = error.recorded
    again = ["ingest", "--db", db, "--run", recorded.run_id]
    again += ["--replace"] if replace else []
    again += ["--at", recorded.start.isoformat(timespec="seconds")]
    for key, value in recorded.labels.items():
        again += ["--label", f"{key}={value}"] if value else []
    print_note(f"{error}: {to_paste(*again, names=[error.folder])}")
    return recorded.status or status or FAILED
