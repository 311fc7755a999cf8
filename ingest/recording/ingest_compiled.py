"""Ingests what a recorded command compiled."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from ...schema.stores.base import Store
from ..pipeline import Run, ingest_programs, write_empty
from ..sources.dump_folder import find_dumps, is_wanted
from ..sources.dumped_program import DumpedProgram
from ..sources.files import open_source
from ..workers import Workers
from .recorded import Recorded


def compiled_programs(
    base: Path, cached: Mapping[Path, set[str]], own: Path | None, cleanup: ExitStack
) -> list[DumpedProgram]:
    """The programs that were compiled: not those that came from JAX's cache.

    own: the folder of the user that the links in `base` lead to.
    """
    problems: list[str] = []
    files = open_source(base, is_wanted, cleanup, problems.append, also_in=own)
    return [
        program
        for program in find_dumps(files, lambda file, error: None)
        if program.key.name not in cached.get(base / program.key.workload, ())
    ]


def ingest_compiled(
    recorded: Recorded,
    programs: Sequence[DumpedProgram],
    run: Run,
    store: Store,
    workers: Workers,
    progress: Callable[[int, int], None],
) -> None:
    """Ingest the programs, or else a run without programs, as the night before is not this one.

    A run that the user has not named gets a name of its own.
    """
    number = 1
    while not run.is_named and store.known(run.run_id).run is not None:
        # Another command of this name was started in the same second.
        number += 1
        run = replace(run, run_id=f"{recorded.run_id}_{number}")
    recorded.run_id = run.run_id
    if programs:
        recorded.summary = ingest_programs(store, programs, run, workers, progress)
    else:
        recorded.summary = write_empty(store, run)
