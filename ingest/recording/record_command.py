"""Runs a command so that XLA dumps what it compiles, and ingests that as one run."""

import shlex
import shutil
import socket
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from ...schema import clock
from ...schema.errors import FileError, UsageError, with_remedy
from .child_process import ending_well, run_child
from .command_name import command_name, default_run, script_of
from .dump_flags import own_flags, own_folder, with_dump_flags
from .dumped_files import cached_modules, link_new, remember, tell_processes_apart
from .git_state import ask_git, git_labels
from .interpreter import ask_versions, find_interpreter, version_labels
from .not_compiled import cached_note, why_nothing
from .recorded import NotIngestedError, Recorded

if TYPE_CHECKING:
    from ...schema.stores.base import Store

Opening = Callable[[Mapping[str, str]], AbstractContextManager["Store"]]


def record_command(
    command: Sequence[str],
    opening: Opening,
    environment: Mapping[str, str],
    *,
    tool_version: str,
    jobs: int,
    run_id: str | None = None,
    claimed_at: datetime | None = None,
    labels: Mapping[str, str] | None = None,
    keep: Path | None = None,
    only: str | None = None,
    text: bool = False,
    replaces: bool = False,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Recorded:
    """Run the command with XLA's dump flags in its environment, and ingest what it compiled.

    opening: opens the warehouse, given the run's labels; it is called after the command has ended.
    claimed_at: the date that the user claims, else the run stands where it enters. labels: they
    replace those found out here: git's commit, branch and dirty, the versions of jax and so on,
    host, command and suite. keep: an empty folder for the dumps, which otherwise are removed; only:
    a regular expression of module names; text: dump texts too; replaces: a run `run_id` that holds
    other dumps is replaced. Without a run_id the run is named after the command and the time.
    Raises UsageError before the command runs, CommandError if it cannot be run, and
    NotIngestedError.
    """
    flags = own_flags(environment)
    own = own_folder(flags)
    if own is not None and keep is not None:
        raise UsageError(f"XLA_FLAGS already dumps to {own}, where the dumps stay", "keep")
    name = command_name(command)
    with ending_well(), ExitStack() as cleanup, ExitStack() as removal:
        base = _folder(keep, removal)
        folder = base / name
        folder.mkdir()
        before = {} if own is None else remember(own)
        script = script_of(command)
        at = script.parent if script is not None and script.is_file() else Path.cwd()
        start = clock.now()
        git = cleanup.enter_context(ask_git(at, environment))
        interpreter = find_interpreter(command, environment)
        versions = cleanup.enter_context(ask_versions(interpreter, environment))
        added = with_dump_flags(flags, None if own else folder, only=only, text=text)
        status = run_child(command, {**environment, "XLA_FLAGS": added})
        packages = version_labels(versions.lines())
        found = {
            **git_labels(git.lines()),
            **packages,
            "host": socket.gethostname(),
            "command": shlex.join(command),
            "suite": name,
        }
        recorded = Recorded(
            status, run_id or default_run(name, start), start, {**found, **(labels or {})}
        )
        if own is not None:
            link_new(own, before, folder)
        tell_processes_apart(folder)
        cached = cached_modules(folder)
        asked = packages if interpreter else None
        # These take half a second to import, for which the command need not wait.
        from ..pipeline import Run
        from ..sources.lowered import forget_folder
        from ..workers import Workers
        from .ingest_compiled import compiled_programs, ingest_compiled

        if own is None:
            forget_folder(base)
        is_empty = not any(folder.iterdir())
        programs = [] if is_empty else compiled_programs(base, cached, own, cleanup)
        if programs:
            recorded.notes += cached_note(
                cached, environment, {program.key.platform for program in programs}
            )
        else:
            recorded.notes.append(why_nothing(status, cached, environment, only, asked))
        source = str(own or keep or shlex.join(command))
        run = Run(
            recorded.run_id,
            source,
            tool_version,
            claimed_at,
            recorded.labels,
            is_named=run_id is not None,
            replaces=replaces,
        )
        try:
            with opening(recorded.labels) as store, Workers(jobs) as workers:
                ingest_compiled(recorded, programs, run, store, workers, progress)
        except Exception as error:
            removal.pop_all()
            raise NotIngestedError(recorded, base) from error
    return recorded


def _folder(keep: Path | None, removal: ExitStack) -> Path:
    """The folder to dump to: the one to keep, else one that `removal` removes."""
    if keep is None:
        base = Path(tempfile.mkdtemp(prefix="memhouse-"))
        # What the command left running may still write there.
        removal.callback(shutil.rmtree, base, ignore_errors=True)
        return base
    try:
        keep.mkdir(parents=True, exist_ok=True)
        if any(keep.iterdir()):
            raise UsageError(f"{keep} is not empty: name a new folder", "keep")
    except OSError as error:
        raise FileError(
            f"cannot make {keep}: {with_remedy(error.strerror or str(error))}"
        ) from None
    return keep.absolute()
