"""Made-up runs and dumps as rows of a warehouse, and the history that the warehouse tells."""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

from memhouse.schema import arrow
from memhouse.schema.journal import entries, entry
from memhouse.schema.store import Batch, Store, open_file

from ..schema.plain_history import GRADES, Dump, Histories, Link, Run

_INGESTED = datetime(2027, 1, 1, tzinfo=UTC)
_LARGE_SCHEDULE, _TINY_SCHEDULE = 50, 49


@contextmanager
def in_memory() -> Iterator[Store]:
    """A warehouse in memory."""
    store = open_file(":memory:", create=True)
    try:
        yield store
    finally:
        store.close()


def write_run(store: Store, run: Run, dumps: Sequence[Dump]) -> Run:
    """Write a run as ingest does; the run with the run_seq that it got."""
    run = replace(run, run_seq=store.known(run.run_id).next_run_seq)
    store.write(Batch(_run_tables(run) | _entered(run)))
    write_dumps(store, dumps)
    return run


def write_dumps(store: Store, dumps: Sequence[Dump]) -> None:
    """Write new dumps of one run."""
    if dumps:
        known = store.known(dumps[0].run_id).modules
        store.write(Batch(_dump_tables(dumps, known)))


def write_at_once(store: Store, runs: Iterable[Run], dumps: Iterable[Dump]) -> None:
    """Write all runs in one transaction, each with the run_seq that it has."""
    tables = [_run_tables(run) | _entered(run) for run in runs]
    merged = {name: pa.concat_tables(table[name] for table in tables) for name in tables[0]}
    store.write(Batch(merged | _dump_tables(list(dumps), frozenset())))


def change_run(store: Store, run: Run) -> None:
    """Give a stored run another time."""
    store.write(Batch(_run_tables(run), runs=[run.run_id]))


def change_dump(store: Store, dump: Dump) -> None:
    """Write a stored dump again, with what it holds now."""
    known = store.known(dump.run_id).modules
    store.write(Batch(_dump_tables([dump], known), dumps=[dump.dump_id]))


def _run_tables(run: Run) -> dict[str, Any]:
    row = {
        "run_id": run.run_id,
        "run_at": run.run_at,
        "run_seq": run.run_seq,
        "ingested_at": _INGESTED,
        "source": run.run_id,
        "tool_version": "test",
    }
    labels = {"branch": run.branch, "suite": run.suite}
    return {
        "runs": arrow.rows("runs", [row]),
        "run_labels": arrow.rows(
            "run_labels",
            [
                {"run_id": run.run_id, "key": key, "value": value}
                for key, value in labels.items()
                if value
            ],
        ),
    }


def _entered(run: Run) -> dict[str, Any]:
    part = {"run_id": run.run_id, "host": None, "source": run.run_id, "entered_at": _INGESTED}
    told = entries(entry("ingest", "made", run.run_id))
    return {"run_parts": arrow.rows("run_parts", [part]), **told}


def _dump_tables(dumps: Sequence[Dump], known: frozenset[int]) -> dict[str, Any]:
    modules = {_module_id(dump): dump for dump in dumps}
    modules = {id_: dump for id_, dump in modules.items() if id_ and id_ not in known}
    return {
        "dumps": arrow.rows(
            "dumps",
            [
                {
                    "dump_id": dump.dump_id,
                    "run_id": dump.run_id,
                    "workload": dump.workload,
                    "module_name": dump.module_name,
                    "module_number": 3 * dump.place,
                    "occurrence": dump.place,
                    "platform": dump.platform,
                    "module_id": _module_id(dump),
                    "status": "ok" if _module_id(dump) else "failed",
                    "oom": False,
                }
                for dump in dumps
            ],
        ),
        "modules": arrow.rows(
            "modules",
            [
                {
                    "module_id": module_id,
                    "module_name": dump.module_name,
                    "program_id": _number(dump.program),
                    "skeleton_id": _number(dump.skeleton),
                    "entry_signature": dump.signature,
                    "schedule_length": _TINY_SCHEDULE if dump.is_tiny else _LARGE_SCHEDULE,
                    "origin": "estimated" if GRADES.get(dump.origin) else dump.origin,
                    "grade": GRADES.get(dump.origin),
                }
                for module_id, dump in modules.items()
            ],
        ),
        "module_memory": arrow.rows(
            "module_memory",
            [
                {
                    "module_id": module_id,
                    "memory_space": 0,
                    "total_bytes": dump.total_bytes,
                    "peak_bytes": dump.total_bytes or 1,
                }
                for module_id, dump in modules.items()
                if dump.origin is not None
            ],
        ),
    }


def _module_id(dump: Dump) -> int | None:
    """The content's id: the same for dumps that differ in nothing else than where they are."""
    content = (dump.program, dump.signature, dump.skeleton, dump.total_bytes, dump.origin)
    if content == (None,) * len(content):
        return None
    return _number(repr((dump.module_name, *content, dump.is_tiny)))


def _number(key: int | str | None) -> int | None:
    if key is None:
        return None
    return int.from_bytes(hashlib.sha256(str(key).encode()).digest()[:8], "big") >> 1


def stored_histories(store: Store) -> Histories:
    """What `internal.history`, `gone` and `lineages` say, in the oracle's words."""

    def rows(query: str) -> list[tuple[Any, ...]]:
        return list(store.connection.sql(query).fetchall())

    # A series is named after its first dump.
    series = {
        series_id: tuple(name)
        for series_id, *name in rows(
            """SELECT series_id, branch, suite, workload, module_name, platform, series_number
            FROM internal.history INNER JOIN dumps USING (dump_id)
            INNER JOIN internal.lineages USING (run_id)
            WHERE chain_index = 1"""
        )
    }
    assert len(set(series.values())) == len(series)
    links = {
        dump_id: Link(series[series_id], *link)
        for dump_id, series_id, *link in rows(
            """SELECT dump_id, series_id, chain_index, previous_dump_id, compared_dump_id,
                matched_by, missed_runs, is_new, is_last FROM internal.history"""
        )
    }
    gone = rows("SELECT run_id, series_id, last_dump_id FROM internal.gone")
    lineages = rows(
        "SELECT run_id, branch, suite, run_number, previous_run_id FROM internal.lineages"
    )
    assert len(links) == len(rows("SELECT dump_id FROM dump_series"))
    return Histories(
        links,
        {(run_id, series[series_id], last) for run_id, series_id, last in gone},
        {run_id: (branch, suite, *rest) for run_id, branch, suite, *rest in lineages},
    )
