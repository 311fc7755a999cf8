"""A content that several programs of a run have is read once; every row is as if all were read."""

import pytest

from memhouse.ingest import read_program, workers
from memhouse.ingest.sources.dumped_program import DumpedProgram

from ..support.dumps import copy_dump
from ..support.warehouse import content, fill, writing

CPU = "cpu/jax-0.10.2"
CUT = ("jit_broadcast_in_dim", "jit_mixed")
HLO = "*after_optimizations.txt"


@pytest.fixture
def read(monkeypatch):
    """The programs that this process read, or gave to another one to read."""
    found = []
    plainly, submit = DumpedProgram.read, workers._RunOfProcesses._submit

    def counted(program, *others, **options):
        found.append((program.key.workload, program.key.module_name))
        return plainly(program, *others, **options)

    def submitted(run, program, *identified):
        found.append((program.key.workload, program.key.module_name))
        return submit(run, program, *identified)

    monkeypatch.setattr(DumpedProgram, "read", counted)
    monkeypatch.setattr(workers._RunOfProcesses, "_submit", submitted)
    return found


def each_read(do):
    """What it does where nothing is remembered."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(read_program.ReadBefore, "outcome", lambda *_: None)
        return do()


def cut(*files, size):
    assert files
    for file in files:
        file.write_bytes(file.read_bytes()[:size])


def read_by_an_older_reader(db):
    with writing(db) as store:
        store.connection.execute("UPDATE modules SET reader_version = 0")
        store.connection.execute("UPDATE module_memory SET peak_bytes = peak_bytes + 1")


@pytest.mark.parametrize("jobs", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_a_night_of_many_hosts(tmp_path, read, jobs):
    """One program is cut on each host, another on `b` alone, and its flags on `c`."""
    night = tmp_path / "night"
    for host in "abc":
        copy_dump(f"{CPU}/module_00*", night / host)
    cut(*night.glob(f"*/*jit_broadcast_in_dim{HLO}"), *night.glob(f"b/*jit_mixed{HLO}"), size=300)
    cut(*night.glob("c/*jit_mixed*.debug_options"), size=40)

    def ingest(name):
        db = tmp_path / name
        first = fill(db, night, jobs=jobs)
        read_by_an_older_reader(db)
        return first, fill(db, night, jobs=jobs), content(db)

    each = each_read(lambda: ingest("each.duckdb"))
    programs = set(read)
    assert sorted(read) == sorted([*programs, *programs])
    read.clear()
    assert ingest("once.duckdb") == each
    whole = {("a", name) for _, name in programs}
    cut_ones = {(host, name) for host in "bc" for name in CUT}
    assert sorted(read) == sorted([*whole, *cut_ones] * 2)


@pytest.mark.slow
def test_the_first_may_be_of_a_dump_that_stays_as_it_is(tmp_path, read):
    """Files of `a` have vanished, so its dump stays; by now it has the content of `b`."""

    def ingest(name):
        night, db = tmp_path / name / "night", tmp_path / f"{name}.duckdb"
        copy_dump(f"{CPU}/*jit_mixed*", night / "a")
        copy_dump(f"{CPU}/*jit_mixed{HLO}", night / "b")
        fill(db, night)
        read_by_an_older_reader(db)
        for path in night.glob("a/*after_optimizations-*"):
            path.unlink()
        read.clear()
        fill(db, night)
        return content(db, "source", "compiled_at")

    assert each_read(lambda: ingest("each")) == ingest("once")
    assert read == [("a", "jit_mixed")]
