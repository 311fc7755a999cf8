"""The journal: an entry for each change, in the change's own transaction."""

import shutil
from datetime import datetime

import pytest

import memhouse
from memhouse.schema import table_rows
from memhouse.schema.versions import READER_VERSION

from ..support.clock import at
from ..support.dumps import DATA, DUMPS

NOW = datetime(2026, 11, 3, 5, 12, 9)
OTHER = DUMPS / "cpu/jax-0.9.0"
LOG = DATA / "oom/jax0.10.2-args.txt"


def accept(warehouse):
    warehouse.accept(warehouse.check("two"), "we know")


# What is done, one after the other, and what the journal tells of it: the action, run and host.
CHANGES = {
    "sql": (lambda w: w.store.change("DELETE FROM run_labels"), [("sql", None, None)]),
    "accept": (accept, [("accept", "two", None)]),
    "ingest": (lambda w: w.ingest(OTHER, run="new"), [("ingest", "new", None)]),
    "part": (lambda w: w.ingest(OTHER, run="hosts", host="a"), [("ingest", "hosts", "a")]),
    "message": (lambda w: w.ingest(LOG, run="one"), [("ingest", "one", None)]),
    "label": (lambda w: w.label("one", labels={"by": "me"}), [("label", "one", None)]),
    "replace": (lambda w: w.ingest(OTHER, run="one", replace=True), [("replace", "one", None)]),
    "prune": (
        lambda w: w.prune(["one", "two"]),
        [("prune", "one", None), ("prune", "two", None)],
    ),
    "compact": (lambda w: w.compact(), [("compact", None, None)]),
}


@pytest.fixture(scope="module")
def made(tmp_path_factory, nights):
    """A warehouse of two nights, of which the second has grown. Only read it."""
    db = tmp_path_factory.mktemp("journal") / "made.duckdb"
    with memhouse.open(db) as warehouse:
        for run, night in (("one", "2026-10-01"), ("two", "2026-10-05")):
            warehouse.ingest(nights / night / "llama-cpu", run=run, labels={"branch": "main"})
    return db


def state(db):
    """The rows of the journal, in order, and of what the changes change."""
    tables = ("runs", "run_parts", "run_labels", "dumps", "oom_reports", "accepted_changes")
    with memhouse.open(db, read_only=True) as warehouse:
        return [
            [tuple(row.values()) for row in warehouse.sql(query).arrow().to_pylist()]
            for query in (
                "SELECT * FROM journal ORDER BY entry",
                *(f"FROM {table} ORDER BY ALL" for table in tables),
            )
        ]


class FullError(Exception):
    """The journal takes no entry."""


def fail(*_):
    raise FullError


@pytest.mark.slow
def test_each_change_is_entered_once_or_not_done_and_no_entry_changes(made, db, monkeypatch):
    shutil.copy(made, db)
    after = state(db)
    for name, (change, told) in CHANGES.items():
        before = after
        with monkeypatch.context() as patched:
            patched.setattr(table_rows, "numbered", fail)
            with memhouse.open(db) as warehouse, pytest.raises(FullError):
                change(warehouse)
        assert state(db) == before, name
        with at(NOW), memhouse.open(db) as warehouse:
            change(warehouse)
        after = state(db)
        assert after[0][: len(before[0])] == before[0], name
        new = after[0][len(before[0]) :]
        found = sorted((action, run, host) for _, _, action, run, host, *_ in new)
        # A file of which much is free is compacted when it is closed.
        assert found in (told, [("compact", None, None), *told]), name
        assert [number for number, *_ in after[0]] == list(range(1, len(after[0]) + 1)), name
        for _, entered_at, _, _, _, detail, tool, reader, _ in new:
            assert (entered_at, tool, reader) == (NOW, memhouse.__version__, READER_VERSION)
            assert detail
    with memhouse.open(db, read_only=True) as warehouse:
        assert warehouse.log().arrow()["entry"].to_pylist() == [row[0] for row in after[0]][::-1]
