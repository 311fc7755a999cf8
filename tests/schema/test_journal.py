"""The journal: an entry for each change, in the change's own transaction or commit."""

import shutil
from contextlib import suppress
from datetime import UTC, datetime

import pytest

import memhouse
from memhouse.schema.journal import numbered
from memhouse.schema.lake import meanwhile
from memhouse.schema.stores import duckdb_rows
from memhouse.schema.versions import READER_VERSION

from ..support.clock import at
from ..support.dumps import DATA, DUMPS

NOW = datetime(2026, 11, 3, 5, 12, 9, tzinfo=UTC)
OTHER = DUMPS / "cpu/jax-0.9.0"
LOG = DATA / "oom/jax0.10.2-args.txt"


def accept(warehouse):
    warehouse.accept(warehouse.check("two"), "we know")


def compact(warehouse):
    warehouse.prune(["two"])
    warehouse.compact()


# What is done, and what the journal tells of it: the action, the run and the host.
CHANGES = {
    "ingest": (lambda w: w.ingest(OTHER, run="new"), [("ingest", "new", None)]),
    "part": (lambda w: w.ingest(OTHER, run="new", host="a"), [("ingest", "new", "a")]),
    "message": (lambda w: w.ingest(LOG, run="one"), [("ingest", "one", None)]),
    "replace": (lambda w: w.ingest(OTHER, run="one", replace=True), [("replace", "one", None)]),
    "label": (lambda w: w.label("one", labels={"by": "me"}), [("label", "one", None)]),
    "accept": (accept, [("accept", "two", None)]),
    "prune": (
        lambda w: w.prune(["one", "two"]),
        [("prune", "one", None), ("prune", "two", None)],
    ),
    "compact": (compact, [("prune", "two", None), ("compact", None, None)]),
}
OF_A_FILE = {"sql": (lambda w: w._store.change("DELETE FROM run_labels"), [("sql", None, None)])}


@pytest.fixture(scope="module")
def made(tmp_path_factory, nights):
    """Two nights, of which the second has grown: a file, and a lake of it. Only read them."""
    folder = tmp_path_factory.mktemp("journal")
    with memhouse.open(folder / "file.duckdb") as warehouse:
        for run, night in (("one", "2026-10-01"), ("two", "2026-10-05")):
            warehouse.ingest(nights / night / "llama-cpu", run=run, labels={"branch": "main"})
    with suppress(ImportError):
        import memhouse.lake as lakes

        lakes.import_file(lakes.init(folder / "lake"), folder / "file.duckdb")
    return folder


@pytest.fixture(
    params=[
        *(("file.duckdb", name) for name in CHANGES | OF_A_FILE),
        *(("lake", name) for name in CHANGES),
    ],
    ids="-".join,
)
def case(request, made, tmp_path):
    """A warehouse to change, what is done to it, and what the journal tells then."""
    kind, name = request.param
    if kind == "lake":
        pytest.importorskip("deltalake")
    copy = shutil.copytree if kind == "lake" else shutil.copy
    return copy(made / kind, tmp_path / kind), *(CHANGES | OF_A_FILE)[name]


def ask(place, query):
    with memhouse.open(place, read_only=True) as warehouse:
        return [tuple(row.values()) for row in warehouse.sql(query).arrow().to_pylist()]


def entered(place):
    return ask(place, "SELECT * FROM journal ORDER BY entry")


def test_a_change_is_entered_once_and_nothing_that_was_entered_changes(case):
    place, change, told = case
    before = entered(place)
    with at(NOW), memhouse.open(place) as warehouse:
        change(warehouse)
    after = entered(place)
    assert after[: len(before)] == before
    new = after[len(before) :]
    found = [(action, run, host) for _, _, action, run, host, *_ in new]
    # A file of which much is free is compacted when it is closed.
    assert found in (told, [*told, ("compact", None, None)])
    assert [number for number, *_ in after] == list(range(1, len(after) + 1))
    for _, entered_at, _, _, _, detail, tool, reader, _ in new:
        assert (entered_at, tool, reader) == (NOW, memhouse.__version__, READER_VERSION)
        assert detail
    with memhouse.open(place, read_only=True) as warehouse:
        assert warehouse.log().arrow()["entry"].to_pylist() == [row[0] for row in after][::-1]


def stored(place):
    """What the changes above change."""
    return {
        table: ask(place, f"SELECT * FROM {table} ORDER BY ALL")
        for table in ("runs", "run_parts", "run_labels", "dumps", "oom_reports", "accepted_changes")
    }


class FullError(Exception):
    """The journal takes no entry."""


def test_what_cannot_be_entered_is_not_done(case, monkeypatch):
    place, change, _ = case
    before = stored(place), entered(place)

    def fail(*_):
        raise FullError

    for module in (duckdb_rows, meanwhile):
        assert module.numbered is numbered
        monkeypatch.setattr(module, "numbered", fail)
    with memhouse.open(place) as warehouse, pytest.raises(FullError):
        change(warehouse)
    monkeypatch.undo()
    assert (stored(place), entered(place)) == before


def test_an_import_is_entered_for_each_run(made):
    pytest.importorskip("deltalake")
    told = ask(made / "lake", "SELECT action, run_id FROM journal ORDER BY entry")
    assert told == [("import", "one"), ("import", "two")]
    memhouse.lake.import_file(made / "lake", made / "file.duckdb")
    assert len(entered(made / "lake")) == 2
