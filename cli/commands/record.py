"""`memhouse record`: run a command and ingest the dumps of its compilations."""

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
from ...schema.readable import command as command_line
from ...schema.store import Store
from ..errors import FAILED, report_expected_error
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
from .ingest import print_oom_hint, progress_bar, summary_line

EXAMPLE = "memhouse record --run tonight -- python train.py --steps 100"
# Options after the recorded command's name belong to that command.
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
        str | None, typer.Option(metavar="NAME", help="Name of the run [default: SCRIPT-TIME].")
    ] = None,
    replace: Replace = False,
    at: At = None,
    label: Labels = None,
    keep: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Keep the dumps in DIR, a new folder.")
    ] = None,
    only: Annotated[
        str | None, typer.Option(metavar="REGEX", help="Only modules whose names match.")
    ] = None,
    text: Annotated[bool, typer.Option("--text", help="Also dump HLO text, for --keep.")] = False,
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
    a run without programs is stored, so that the previous run is not taken for this one.

    The exit status is that of the command, or 1 if the command succeeds but a dump cannot be
    ingested. The command is not run, and the status is 2, if the usage is wrong or the run NAME
    already exists, and 1 if the warehouse cannot be opened.
    """
    labels = parse_labels(label or [], find_settings().entry)
    _check(db, run, only, replace=replace)
    claimed_at = parse_time(at, "at")
    claim(claimed_at, run or "")
    hints: list[str] = []
    ingest_start = perf_counter()
    update: Callable[[int, int], None]

    @contextmanager
    def opening(labels: Mapping[str, str]) -> Iterator[Store]:
        nonlocal ingest_start, update
        ingest_start = perf_counter()
        with (
            ingesting(db, wait=wait) as store,
            hint_at_branches(store, labels) as branch_hints,
            progress_bar("ingest") as update,
        ):
            yield store
        hints.extend(branch_hints)

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
            user_code=user_code or (),
            progress=lambda read, total: update(read, total),
        )
    except CommandError as error:
        print_error(str(error))
        raise typer.Exit(error.status) from None
    except NotIngestedError as error:
        raise typer.Exit(_report_not_ingested(error, db, replace=replace)) from error.__cause__
    summary = recorded.summary
    problems = summary.problems if summary else []
    for problem in problems:
        print_error(problem)
    for note in [*recorded.notes, *(summary.notes if summary else []), *hints]:
        print_note(note)
    if summary and summary.dumps:
        print_note(summary_line(summary, perf_counter() - ingest_start))
        print_oom_hint(summary)
    raise typer.Exit(recorded.status or bool(problems))


def _check(db: str, run: str | None, only: str | None, *, replace: bool) -> None:
    """Raise errors of the arguments before the command runs, which may take a day."""
    if run == "":
        raise typer.BadParameter("the name is empty", param_hint="--run")
    if replace and run is None:
        raise typer.BadParameter("requires --run NAME", param_hint="--replace")
    if not db:
        raise WarehouseError("--db or MEMHOUSE_DB is empty: name a warehouse")
    if "://" not in db and not Path(db).parent.is_dir():
        raise WarehouseError(f"cannot create {db}: there is no folder {Path(db).parent}")
    try:
        re.compile(only or "")
    except re.error as error:
        raise typer.BadParameter(
            f"not a regular expression: {error}", param_hint="--only"
        ) from None
    check_warehouse(db, run, replaces=replace)


def _report_not_ingested(error: NotIngestedError, db: str, *, replace: bool) -> int:
    """Print the error and the command that ingests the dumps; return the exit status."""
    assert isinstance(error.__cause__, Exception)
    status = report_expected_error(error.__cause__)
    if status is None:
        traceback.print_exception(error.__cause__)
    recorded = error.recorded
    arguments = ["ingest", "--db", db, "--run", recorded.run_id]
    arguments += ["--replace"] if replace else []
    arguments += ["--at", recorded.start.isoformat(timespec="seconds")]
    for key, value in recorded.labels.items():
        arguments += ["--label", f"{key}={value}"] if value else []
    print_note(f"{error}: {command_line(*arguments, names=[error.folder])}")
    return recorded.status or status or FAILED
