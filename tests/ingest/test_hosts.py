"""A night of several hosts is one run: each host ingests its part of it by itself."""

import shutil

import pytest

import memhouse
import memhouse.lake
from memhouse.schema.errors import UsageError

from ..support.dumps import DUMPS

FIRST, SECOND = (DUMPS / "cpu" / name for name in ("jax-0.9.0", "jax-0.10.2"))
PARTS = "SELECT host FROM run_parts ORDER BY host"
DUMPED = """SELECT workload, host, COUNT(*) AS dumps FROM dumps
    GROUP BY workload, host ORDER BY workload"""
# A file of which much is free is compacted when it is closed.
JOURNAL = "SELECT action, run_id, host FROM journal WHERE action <> 'compact' ORDER BY entry"


@pytest.fixture(params=["file", "lake"])
def place(request, tmp_path):
    """A warehouse of either kind."""
    if request.param == "file":
        return tmp_path / "hosts.duckdb"
    pytest.importorskip("deltalake")
    return memhouse.lake.init(tmp_path / "lake")


def put(place, path, host, **options):
    with memhouse.open(place) as warehouse:
        return warehouse.ingest(path, run="night", host=host, **options)


def ask(place, query):
    with memhouse.open(place, read_only=True) as warehouse:
        return [tuple(row.values()) for row in warehouse.sql(query).arrow().to_pylist()]


def count(folder):
    """How many programs a sample has."""
    return len({path.name.split(".")[0] for path in folder.glob("module_*")})


def test_each_host_adds_its_part(place):
    for host in ("b", "a"):
        assert put(place, FIRST, host).problems == []
    number = count(FIRST)
    assert ask(place, PARTS) == [("a",), ("b",)]
    assert ask(place, DUMPED) == [("a", "a", number), ("b", "b", number)]
    told = [("ingest", "night", "b"), ("ingest", "night", "a")]
    assert ask(place, JOURNAL) == told
    # Again, nothing changes: there is no entry either.
    assert put(place, FIRST, "b").unchanged == number
    assert ask(place, JOURNAL) == told
    with memhouse.open(place, read_only=True) as warehouse:
        ((hosts,),) = [
            row.values() for row in warehouse.runs().arrow().select(["hosts"]).to_pylist()
        ]
    assert hosts == "a, b"


def test_other_dumps_of_a_host_are_refused_or_replace_its_part_alone(place):
    for host in ("a", "b"):
        put(place, FIRST, host)
    before = ask(place, DUMPED)
    with pytest.raises(UsageError, match="run 'night' holds other dumps of host a, of "):
        put(place, SECOND, "a")
    assert ask(place, DUMPED) == before
    summary = put(place, SECOND, "a", replace=True)
    assert summary.replaced.dumps == count(FIRST)
    assert ask(place, DUMPED) == [("a", "a", count(SECOND)), ("b", "b", count(FIRST))]
    assert ask(place, PARTS) == [("a",), ("b",)]
    assert ask(place, JOURNAL)[-1] == ("replace", "night", "a")
    with memhouse.open(place, read_only=True) as warehouse:
        assert len(warehouse.verify().rows) == 0


def test_without_a_host_the_whole_run_is_replaced(place):
    for host in ("a", "b"):
        put(place, FIRST, host)
    with memhouse.open(place) as warehouse:
        warehouse.ingest(SECOND, run="night", replace=True)
    assert ask(place, PARTS) == [("",)]
    assert ask(place, DUMPED) == [(".", None, count(SECOND))]


@pytest.mark.parametrize("host", ["", ".", "..", "a/b"])
def test_a_host_is_one_word(place, host):
    with pytest.raises(UsageError, match="is no name of a host"):
        put(place, FIRST, host)


def test_a_host_needs_a_run(place):
    with memhouse.open(place) as warehouse, pytest.raises(UsageError, match="name the run of the"):
        warehouse.ingest(FIRST, host="a")


def test_a_folder_without_programs_is_a_run(place, tmp_path):
    """Nothing was compiled in that night, which is not the night before."""
    (tmp_path / "night").mkdir()
    (tmp_path / "host").mkdir()
    with memhouse.open(place) as warehouse:
        summary = warehouse.ingest(tmp_path / "night")
        assert (summary.run_id, summary.dumps) == ("night", 0)
        assert "run 'night' has no programs: nothing was compiled" in summary.notes
    assert ask(place, "SELECT run_id FROM runs") == [("night",)]
    # Again, nothing changes.
    with memhouse.open(place) as warehouse:
        warehouse.ingest(tmp_path / "night")
        warehouse.ingest(tmp_path / "host", run="hosts", host="a")
    assert ask(place, "SELECT run_id, host FROM run_parts ORDER BY 1") == [
        *(("hosts", "a"), ("night", ""))
    ]
    assert ask(place, JOURNAL) == [("ingest", "night", None), ("ingest", "hosts", "a")]


@pytest.mark.parametrize(("first", "second"), [(None, "a"), ("a", None)])
def test_a_run_is_of_hosts_or_of_none(place, tmp_path, first, second):
    """A forgotten --host would make what it ingests a part that no host names."""
    (tmp_path / "empty").mkdir()
    put(place, FIRST, first)
    before = ask(place, DUMPED)
    for path in (FIRST, SECOND, tmp_path / "empty"):
        with pytest.raises(UsageError, match="--host"):
            put(place, path, second)
    assert ask(place, DUMPED) == before


def test_a_path_that_is_not_there_is_no_run(place, tmp_path):
    with memhouse.open(place) as warehouse:
        summary = warehouse.ingest(tmp_path / "gone")
    assert summary.problems
    assert ask(place, "SELECT run_id FROM runs") == []


def test_the_folder_of_a_whole_night_leaves_the_parts_of_hosts(place, tmp_path):
    shutil.copytree(FIRST, tmp_path / "night" / "a")
    put(place, FIRST, "a")
    with memhouse.open(place) as warehouse:
        assert warehouse.ingest(tmp_path / "night").run_id == "night"
    query = "SELECT DISTINCT run_id, host FROM dumps ORDER BY ALL"
    assert ask(place, query) == [("night", "a")]
