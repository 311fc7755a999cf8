"""A night of several hosts is one run: each host ingests its part of it by itself."""

import shutil

import pytest

import memhouse
from memhouse.schema.errors import UsageError

from ..support.dumps import DUMPS

FIRST, SECOND = (DUMPS / "cpu" / name for name in ("jax-0.9.0", "jax-0.10.2"))
PARTS = "SELECT host FROM run_parts ORDER BY host"
DUMPED = """SELECT workload, host, COUNT(*) AS dumps FROM dumps
    GROUP BY workload, host ORDER BY workload"""
# A file of which much is free is compacted when it is closed.
JOURNAL = "SELECT action, run_id, host FROM journal WHERE action <> 'compact' ORDER BY entry"


def put(db, path, host, **options):
    with memhouse.open(db) as warehouse:
        return warehouse.ingest(path, run="night", host=host, **options)


def ask(db, query):
    with memhouse.open(db, read_only=True) as warehouse:
        return [tuple(row.values()) for row in warehouse.sql(query).arrow().to_pylist()]


def count(folder):
    """How many programs a sample has."""
    return len({path.name.split(".")[0] for path in folder.glob("module_*")})


def test_each_host_adds_or_replaces_its_part(db):
    first, second = count(FIRST), count(SECOND)
    for host in ("b", "a"):
        assert put(db, FIRST, host).problems == []
    assert ask(db, PARTS) == [("a",), ("b",)]
    before = ask(db, DUMPED)
    assert before == [("a", "a", first), ("b", "b", first)]
    told = [("ingest", "night", "b"), ("ingest", "night", "a")]
    assert ask(db, JOURNAL) == told
    # Again, nothing changes: there is no entry either.
    assert put(db, FIRST, "b").unchanged == first
    with memhouse.open(db, read_only=True) as warehouse:
        assert warehouse.runs().arrow()["hosts"].to_pylist() == ["a, b"]
    # Other dumps of a host are refused, or replace its part alone.
    with pytest.raises(UsageError, match=r"'night'.* a,"):
        put(db, SECOND, "a")
    assert (ask(db, DUMPED), ask(db, JOURNAL)) == (before, told)
    assert put(db, SECOND, "a", replace=True).replaced.dumps == first
    assert ask(db, DUMPED) == [("a", "a", second), ("b", "b", first)]
    assert ask(db, PARTS) == [("a",), ("b",)]
    assert ask(db, JOURNAL)[-1] == ("replace", "night", "a")
    # A run is of hosts or of none: a forgotten --host would make a part that no host names.
    with pytest.raises(UsageError, match="--host"):
        put(db, SECOND, None)
    # Without a host the whole run is replaced.
    put(db, SECOND, None, replace=True)
    assert ask(db, PARTS) == [(None,)]
    assert ask(db, DUMPED) == [(".", None, second)]
    with pytest.raises(UsageError, match="--host"):
        put(db, FIRST, "a")
    with memhouse.open(db, read_only=True) as warehouse:
        assert len(warehouse.verify().rows) == 0


def test_a_host_is_one_word_of_a_run(tmp_path):
    with memhouse.open(tmp_path / "file.duckdb") as warehouse:
        for host in ("", ".", "..", "a/b"):
            with pytest.raises(UsageError, match=repr(host)):
                warehouse.ingest(FIRST, run="night", host=host)
        with pytest.raises(UsageError):
            warehouse.ingest(FIRST, host="a")
        assert len(warehouse.runs()) == 0


def test_a_folder_without_programs_is_a_run(db, tmp_path):
    """Nothing was compiled in that night, which is not the night before."""
    (tmp_path / "night").mkdir()
    (tmp_path / "host").mkdir()
    with memhouse.open(db) as warehouse:
        summary = warehouse.ingest(tmp_path / "night")
        assert (summary.run_id, summary.dumps) == ("night", 0)
        assert any("'night'" in note for note in summary.notes)
        # Again, nothing changes; and a path that is not there is no run.
        warehouse.ingest(tmp_path / "night")
        assert warehouse.ingest(tmp_path / "gone").problems
        warehouse.ingest(tmp_path / "host", run="hosts", host="a")
        for run, host in (("night", "a"), ("hosts", None)):
            with pytest.raises(UsageError, match="--host"):
                warehouse.ingest(FIRST, run=run, host=host)
    assert ask(db, "SELECT run_id, host FROM run_parts ORDER BY 1") == [
        *(("hosts", "a"), ("night", None))
    ]
    assert ask(db, JOURNAL) == [("ingest", "night", None), ("ingest", "hosts", "a")]


def test_the_folder_of_a_whole_night_leaves_the_parts_of_hosts(db, tmp_path):
    shutil.copytree(FIRST, tmp_path / "night" / "a")
    put(db, FIRST, "a")
    with memhouse.open(db) as warehouse:
        assert warehouse.ingest(tmp_path / "night").run_id == "night"
    query = "SELECT DISTINCT run_id, host FROM dumps ORDER BY ALL"
    assert ask(db, query) == [("night", "a")]


def test_hosts_that_differ_from_most_are_told(db, tmp_path):
    """In what, and the rest once for all hosts."""
    for host in "abcdefg":
        shutil.copytree(FIRST, tmp_path / host / "train")
    train = {host: tmp_path / host / "train" for host in "abcdefg"}
    mixed = "module_*.jit_mixed.*"
    shutil.copytree(SECOND, tmp_path / "a" / "eval")
    for file in train["c"].glob(mixed):
        file.unlink()
    (text,) = train["d"].glob(f"{mixed}after_optimizations.txt")
    assert "stack_frame_id=3" in text.read_text()
    text.write_text(text.read_text().replace("stack_frame_id=3", "stack_frame_id=2"))
    (text,) = train["e"].glob(f"{mixed}after_optimizations.txt")
    assert "multiply(" in text.read_text()
    text.write_text(text.read_text().replace("multiply(", "add("))
    for file in train["f"].glob(mixed):
        file.write_bytes(b"")
    for host in train:
        put(db, tmp_path / host, host)
    told = """SELECT host, workload, module_name, differs_in, usual_host, peak_bytes IS NULL
        FROM differing_hosts ORDER BY host, module_name"""
    extra = ask(db, "SELECT module_name FROM dumps WHERE workload = 'a/eval' ORDER BY 1")
    assert ask(db, told) == [
        *(("a", "eval", name, "only here", "a", False) for (name,) in extra),
        ("c", "train", "jit_mixed", "missing", "a", True),
        ("d", "train", "jit_mixed", "text", "a", False),
        ("e", "train", "jit_mixed", "program", "a", False),
        ("f", "train", "jit_mixed", "status", "a", True),
    ]
    folded = """SELECT workload, hosts, differing FROM run_programs
        WHERE module_name = 'jit_mixed' ORDER BY workload"""
    assert ask(db, folded) == [("eval", 1, 1), ("train", 6, 4)]
