"""Records a program of JAX: compiles it, and ingests what XLA dumps of it."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ..ingest.choose_run import Run
from ..ingest.pipeline import Summary, ingest_programs
from ..ingest.sources.compiled import to_lowered
from ..ingest.sources.lowered import Dumped, compile_and_dump
from ..ingest.workers import Workers
from ..schema.errors import UsageError
from ..schema.store import Store

_SOURCE = "memhouse.record"


@contextmanager
def recorded(what: Any, arguments: tuple[Any, ...], named: dict[str, Any]) -> Iterator[Dumped]:
    """What XLA dumps of a jitted function with its arguments, or of a lowered one.

    The dump is there until the `with` statement ends. Raises UsageError.
    """
    lowered = to_lowered(what, arguments, named)
    with TemporaryDirectory(prefix="memhouse-") as folder:
        found = compile_and_dump(lowered, Path(folder))
        if not found.programs:
            if found.error is not None:
                raise found.error
            raise UsageError(
                "; ".join(["XLA dumped nothing of this program", *found.problems]), "what"
            )
        yield found


def record_run(
    store: Store,
    what: Any,
    arguments: tuple[Any, ...],
    named: dict[str, Any],
    *,
    tool_version: str,
    run_id: str | None = None,
    labels: Mapping[str, str] | None = None,
) -> Summary:
    """Store a program as a run, which is named after it; with `run_id`, add it to that run.

    If compiling fails, for lack of memory for example, what XLA dumped until then is stored,
    and then the compiler's error is raised, with a note that names the run.
    """
    with recorded(what, arguments, named) as found, Workers(1) as workers:
        run = Run(
            run_id or found.programs[0].key.module_name,
            _SOURCE,
            tool_version,
            labels=labels or {},
            is_named=run_id is not None,
            adds=run_id is not None,
        )
        summary = ingest_programs(store, found.programs, run, workers)
    summary.problems[:0] = found.problems
    if found.error is not None:
        found.error.add_note(f"memhouse: what XLA dumped until then is run {summary.run_id}")
        raise found.error
    return summary
