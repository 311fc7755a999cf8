"""No night is lost: what ingesting a path again makes of dumps that have changed."""

import os
import shutil
from datetime import UTC, datetime

import pytest

from memhouse.ingest import batches
from memhouse.schema.errors import UsageError
from memhouse.schema.stores import duckdb_file
from memhouse.schema.stores.duckdb import DuckDBStore

from ..support.clock import at
from ..support.command import run_memhouse
from ..support.dumps import DUMPS, copy_dump, one_file
from ..support.warehouse import content, everything, fill, rows

CPU = DUMPS / "cpu"
RUNS = "SELECT run_id, run_at, source, run_seq FROM runs ORDER BY run_seq"


def train(folder, night, time, *workloads):
    """Dump what these workloads compiled in a night into the folder; the time of its files."""
    for workload in workloads or ("llama-cpu",):
        shutil.copytree(night / workload, folder / workload, dirs_exist_ok=True)
        for file in (folder / workload).iterdir():
            os.utime(file, (time.timestamp(), time.timestamp()))
    return folder


def fill_at(time, db, *paths, **options):
    """Ingest at a time; what became of the last path."""
    with at(time):
        return fill(db, *paths, **options)[-1]


def night(day, hour=5):
    return datetime(2026, 11, day, hour, 12, 9, tzinfo=UTC)


@pytest.fixture
def dumps(tmp_path):
    return tmp_path / "dumps"


def run_ids(db):
    return [run for run, *_ in rows(db, RUNS)]


def peaks(db):
    """The peak of llama-cpu in each run."""
    return rows(
        db,
        "SELECT run_id, peak_bytes FROM peaks INNER JOIN runs USING (run_id) "
        "WHERE memory_space = 0 AND workload = 'llama-cpu' ORDER BY run_seq",
    )


def test_training_again_into_the_same_folder_keeps_both_nights(dumps, db, nights):
    first = fill_at(night(2), db, train(dumps, nights / "2026-10-01", night(1)))
    assert (first.run_id, first.notes) == ("dumps", [])
    second = fill_at(night(3), db, train(dumps, nights / "2026-10-05", night(1, 6)))
    assert second.run_id == "dumps@2026-11-03T05:12:09"
    assert second.notes == [
        f"{dumps} has changed since it was ingested as dumps: both are kept, "
        "this is the run dumps@2026-11-03T05:12:09, because no run was named"
    ]
    assert rows(db, RUNS) == [
        ("dumps", night(2), str(dumps), 1),
        ("dumps@2026-11-03T05:12:09", night(3), str(dumps), 2),
    ]
    assert rows(db, "SELECT claimed_at, compiled_at FROM runs ORDER BY run_seq") == [
        (None, night(1)),
        (None, night(1, 6)),
    ]
    (_, before), (_, after) = peaks(db)
    assert after > 1.5 * before


def test_the_command_says_so_and_does_well(dumps, db, nights):
    train(dumps, nights / "2026-10-01", night(2))
    assert run_memhouse("ingest", dumps, "--db", db).returncode == 0
    train(dumps, nights / "2026-10-05", night(2))
    with at(night(3)):
        done = run_memhouse("ingest", dumps, "--db", db)
    changed, told = done.stderr.splitlines()
    assert (done.returncode, done.stdout) == (0, "")
    assert changed.startswith(f"{dumps} has changed since it was ingested as dumps: both are kept")
    assert told.startswith("dumps@2026-11-03T05:12:09: 1 dump, 1 new module, ")


def test_every_change_is_a_night(dumps, db, nights):
    for day, name in enumerate(["2026-10-01", "2026-10-05", "2026-10-08"], 2):
        fill_at(night(day), db, train(dumps, nights / name, night(day)))
    # 2026-10-08 has the programs of 2026-10-01 again: what was changed was taken back.
    assert run_ids(db) == ["dumps", "dumps@2026-11-03T05:12:09", "dumps@2026-11-04T05:12:09"]
    (_, first), (_, second), (_, third) = peaks(db)
    assert first == third < second


def test_ingesting_a_later_night_again_changes_nothing(dumps, db, nights):
    for day, name in enumerate(["2026-10-01", "2026-10-05"], 2):
        fill_at(night(day), db, train(dumps, nights / name, night(day)))
    before = everything(db)
    summary = fill_at(night(4), db, dumps)
    assert (summary.run_id, summary.unchanged) == ("dumps@2026-11-03T05:12:09", 1)
    assert summary.notes == []
    assert everything(db) == before


def test_an_earlier_night_that_was_put_back_changes_nothing(dumps, tmp_path, db, nights):
    fill_at(night(2), db, train(dumps, nights / "2026-10-01", night(2)))
    shutil.copytree(dumps, tmp_path / "kept")  # With its times.
    fill_at(night(3), db, train(dumps, nights / "2026-10-05", night(3)))
    shutil.rmtree(dumps)
    (tmp_path / "kept").rename(dumps)
    before = everything(db)
    summary = fill_at(night(4), db, dumps)
    assert (summary.run_id, summary.unchanged) == ("dumps", 1)
    assert everything(db) == before


def test_nights_that_enter_within_a_second_have_names_of_their_own(dumps, db, nights):
    for name in ("2026-10-01", "2026-10-04", "2026-10-07"):
        fill_at(night(2), db, train(dumps, nights / name, night(2), "decode-v5e"))
    assert run_ids(db) == ["dumps", "dumps@2026-11-02T05:12:09", "dumps@2026-11-02T05:12:09_2"]


def test_a_folder_of_the_same_name_is_another_night(tmp_path, db, nights):
    one = train(tmp_path / "a/dumps", nights / "2026-10-01", night(2))
    other = train(tmp_path / "b/dumps", nights / "2026-10-05", night(2))
    fill(db, one)
    summary = fill_at(night(3), db, other)
    assert summary.notes == [
        f"run dumps holds other dumps, of {one}: both are kept, "
        "this is the run dumps@2026-11-03T05:12:09, because no run was named"
    ]
    assert [source for _, _, source, _ in rows(db, RUNS)] == [str(one), str(other)]


def test_a_folder_that_was_emptied_and_filled_is_another_night(dumps, db, nights):
    """What both nights compiled alike does not make them one."""
    train(dumps, nights / "2026-10-01", night(2), "llama-cpu", "resnet-h100")
    fill(db, dumps)
    shutil.rmtree(dumps / "llama-cpu")
    train(dumps, nights / "2026-10-01", night(3), "decode-v5e")
    summary = fill_at(night(3), db, dumps)
    assert summary.run_id == "dumps@2026-11-03T05:12:09"
    assert rows(db, "SELECT run_id, workload FROM dumps ORDER BY ALL") == [
        ("dumps", "llama-cpu"),
        ("dumps", "resnet-h100"),
        ("dumps@2026-11-03T05:12:09", "decode-v5e"),
        ("dumps@2026-11-03T05:12:09", "resnet-h100"),
    ]


def test_a_night_that_is_still_being_dumped_goes_on(dumps, db, nights):
    fill_at(night(2), db, train(dumps, nights / "2026-10-01", night(2), "llama-cpu"))
    train(dumps, nights / "2026-10-01", night(3), "resnet-h100")
    summary = fill_at(night(3), db, dumps)
    assert (summary.run_id, summary.dumps, summary.unchanged) == ("dumps", 2, 1)
    # It is one night, which entered when it was first seen.
    assert rows(db, RUNS) == [("dumps", night(2), str(dumps), 1)]


def test_a_dump_that_is_still_being_written_is_completed(dumps, db):
    """XLA writes the HLO text first, which alone is a whole dump: an estimate."""
    copy_dump("cpu/jax-0.9.0/module_0019*cpu_after_optimizations.txt*", dumps)
    fill(db, dumps)
    assert rows(db, "SELECT status, origin FROM dumps JOIN modules USING (module_id)") == [
        ("ok", "estimated")
    ]
    copy_dump("cpu/jax-0.9.0/module_0019*", dumps)
    (summary,) = fill(db, dumps)
    assert summary.run_id == "dumps"
    assert rows(db, "SELECT status, origin FROM dumps JOIN modules USING (module_id)") == [
        ("ok", "dumped")
    ]


def test_what_is_left_of_a_folder_takes_nothing_from_its_run(dumps, db, nights):
    train(dumps, nights / "2026-10-01", night(2), "llama-cpu", "resnet-h100")
    fill(db, dumps)
    before = everything(db)
    shutil.rmtree(dumps / "llama-cpu")
    (summary,) = fill(db, dumps)
    assert (summary.run_id, summary.unchanged, summary.problems) == ("dumps", 1, [])
    assert everything(db) == before


def test_a_dump_that_lost_a_file_stays_as_it_was_read(dumps, db):
    copy_dump("cpu/jax-0.9.0/module_0019*", dumps)
    fill(db, dumps)
    before = everything(db)
    next(dumps.glob("*-buffer-assignment.txt")).unlink()
    (summary,) = fill(db, dumps)
    assert (summary.run_id, summary.unchanged) == ("dumps", 1)
    assert everything(db) == before


def test_other_flags_are_another_night(dumps, db, nights):
    """The flags are part of the night, though the program is the same."""
    train(dumps, nights / "2026-10-01", night(2), "llama-v5e")
    fill(db, dumps)
    flags = next((dumps / "llama-v5e").glob("*.flagfile"))
    flags.write_text(flags.read_text() + "--xla_new=true\n")
    summary = fill_at(night(3), db, dumps)
    assert summary.run_id == "dumps@2026-11-03T05:12:09"
    assert rows(db, "SELECT COUNT(DISTINCT module_id), COUNT(DISTINCT flags_id) FROM dumps") == [
        (1, 2)
    ]


class CutError(Exception):
    """The ingest ends here."""


def cut_short(monkeypatch, after, db, *paths, **options):
    """An ingest that writes a dump at a time and ends after so many."""
    write, written = DuckDBStore.write, []

    def write_some(store, batch):
        if len(written) == after:
            raise CutError
        write(store, batch)
        written.append(batch)

    with monkeypatch.context() as patch:
        patch.setattr(batches, "_BATCH_DUMPS", 1)
        patch.setattr(DuckDBStore, "write", write_some)
        with pytest.raises(CutError):
            fill(db, *paths, **options)


@pytest.mark.parametrize("after", [0, 1, 2])
def test_a_later_night_that_was_cut_short_goes_on(dumps, tmp_path, db, nights, monkeypatch, after):
    workloads = ("llama-cpu", "llama-v5e", "resnet-h100")
    for file in (db, tmp_path / "alone.duckdb"):
        train(dumps, nights / "2026-10-01", night(2), *workloads)
        fill(file, dumps)
    train(dumps, nights / "2026-10-07", night(3), "llama-v5e", "resnet-h100")
    fill_at(night(3), tmp_path / "alone.duckdb", dumps)
    with at(night(3)):
        cut_short(monkeypatch, after, db, dumps)
    assert len(run_ids(db)) == (2 if after else 1)
    summary = fill_at(night(3, 6) if after else night(3), db, dumps)
    assert (summary.run_id, summary.unchanged) == ("dumps@2026-11-03T05:12:09", after)
    assert content(db) == content(tmp_path / "alone.duckdb")


# --- a run that the user names ------------------------------------------------------------


def test_a_named_run_is_not_overwritten(db, nights):
    fill(db, nights / "2026-10-01" / "llama-cpu", run_id="2026-10-01")
    before = everything(db)
    args = ("ingest", nights / "2026-10-05" / "llama-cpu", "--run", "2026-10-01", "--db", db)
    done = run_memhouse(*args)
    assert (done.returncode, done.stdout) == (2, "")
    said = " ".join(done.stderr.replace("│", " ").split())
    assert "run '2026-10-01' holds other dumps, of " in said
    assert "name another run, or drop these dumps with --replace" in said
    assert everything(db) == before


def test_a_named_run_goes_on(dumps, db, nights):
    fill_at(night(2), db, train(dumps, nights / "2026-10-01", night(2), "llama-cpu"), run_id="mine")
    moved = dumps.rename(dumps.with_name("moved"))
    (summary,) = fill(
        db, train(moved, nights / "2026-10-01", night(2), "resnet-h100"), run_id="mine"
    )
    assert (summary.run_id, summary.unchanged, summary.dumps) == ("mine", 1, 2)
    assert rows(db, RUNS) == [("mine", night(2), str(moved), 1)]


def test_replacing_says_what_it_dropped_and_leaves_nothing_of_it(tmp_path, db, nights):
    main = {"branch": "main"}
    fill(db, nights / "2026-10-01", labels=main)
    fill(db, nights / "2026-10-10", run_id="mine", labels={**main, "by": "me"})
    fill(db, nights / "2026-10-07", labels=main)
    accept = ("check", "--run", "mine", "--baseline", "2026-10-01", "--accept", "we know")
    run_memhouse(*accept, "--db", db)
    assert rows(db, "SELECT COUNT(*) > 0 FROM accepted_changes") == [(True,)]
    other = tmp_path / "other"
    shutil.copytree(nights / "2026-10-05/llama-v5e", other / "llama-v5e")
    (summary,) = fill(db, other, run_id="mine", replaces=True, labels={"by": "you"})
    gone = summary.replaced
    assert (gone.runs, gone.dumps, gone.run_ids) == (1, 4, ["mine"])
    assert summary.notes == [
        f"replaced run mine: 4 dumps and 1 module of {nights / '2026-10-10'} dropped"
    ]
    fresh = tmp_path / "fresh.duckdb"
    fill(fresh, nights / "2026-10-01", labels=main)
    fill(fresh, other, run_id="mine", labels={**main, "by": "you"})
    fill(fresh, nights / "2026-10-07", labels=main)
    assert content(db) == content(fresh)
    assert run_memhouse("verify", "--db", db).returncode == 0


def test_replacing_keeps_the_modules_that_both_nights_have(db, nights):
    """2026-10-02 is 2026-10-01 again: nothing was new."""
    fill(db, nights / "2026-10-01", run_id="mine")
    modules = rows(db, "SELECT module_id FROM modules ORDER BY 1")
    shutil.copytree(nights / "2026-10-02", db.parent / "2026-10-02")
    shutil.rmtree(db.parent / "2026-10-02/resnet-h100")
    (summary,) = fill(db, db.parent / "2026-10-02", run_id="mine", replaces=True)
    assert (summary.replaced.dumps, summary.replaced.modules, summary.new_modules) == (4, 1, 0)
    assert set(rows(db, "SELECT module_id FROM modules")) < set(modules)
    assert run_memhouse("verify", "--db", db).returncode == 0


def test_replacing_by_command(db, nights):
    fill(db, nights / "2026-10-01/llama-cpu", run_id="mine")
    path = nights / "2026-10-05/llama-cpu"
    done = run_memhouse("ingest", path, "--run", "mine", "--replace", "--db", db)
    said, told = done.stderr.splitlines()
    assert done.returncode == 0
    source = nights / "2026-10-01/llama-cpu"
    assert said == f"replaced run mine: 1 dump and 1 module of {source} dropped"
    assert told.startswith("mine: 1 dump, 1 new module, ")
    assert rows(db, "SELECT source FROM runs") == [(str(path),)]


def test_replacing_by_the_same_changes_nothing(db, nights):
    fill(db, nights / "2026-10-01", run_id="mine")
    before = everything(db)
    (summary,) = fill(db, nights / "2026-10-01", run_id="mine", replaces=True)
    assert (summary.replaced, summary.unchanged, summary.notes) == (None, 4, [])
    assert everything(db) == before


def test_replacing_a_run_that_is_not_there_makes_it(db, nights):
    (summary,) = fill(db, nights / "2026-10-01", run_id="mine", replaces=True)
    assert (summary.run_id, summary.dumps, summary.replaced) == ("mine", 4, None)


def test_replacing_by_nothing_is_refused(tmp_path, db, nights):
    fill(db, nights / "2026-10-01", run_id="mine")
    before = everything(db)
    (tmp_path / "empty").mkdir()
    (summary,) = fill(db, tmp_path / "empty", run_id="mine", replaces=True)
    assert summary.problems
    assert everything(db) == before


@pytest.mark.parametrize("after", [0, 1, 2])
def test_a_replacement_that_is_cut_short_replaces_nothing(db, nights, monkeypatch, after):
    fill(db, nights / "2026-10-01", run_id="mine")
    before = everything(db)
    cut_short(monkeypatch, after, db, nights / "2026-10-07", run_id="mine", replaces=True)
    assert everything(db) == before
    (summary,) = fill(db, nights / "2026-10-07", run_id="mine", replaces=True)
    assert (summary.replaced.dumps, summary.dumps) == (4, 3)
    assert run_memhouse("verify", "--db", db).returncode == 0


def test_what_to_replace_is_named(db, nights):
    with pytest.raises(UsageError, match="name the run to replace"):
        fill(db, nights / "2026-10-01", replaces=True)


# --- several paths, one run ---------------------------------------------------------------


def test_several_paths_are_one_run_as_the_folder_that_holds_them(tmp_path, db, nights):
    paths = sorted((nights / "2026-10-01").iterdir())
    done = run_memhouse("ingest", *paths, "--run", "2026-10-01", "--db", db)
    assert done.returncode == 0
    assert done.stderr.startswith("2026-10-01: 4 dumps, 4 new modules, ")
    whole = tmp_path / "whole.duckdb"
    fill(whole, nights / "2026-10-01")
    found, expected = content(db), content(whole)
    for table in expected.keys() - {"runs", "run_parts"}:
        assert found[table] == expected[table], table
    ((_, run_at, source, _),) = rows(db, RUNS)
    assert run_at == datetime(2026, 10, 1, tzinfo=UTC)
    assert source == ", ".join(map(str, paths))


def test_the_order_of_paths_is_of_no_account(db, nights):
    paths = sorted((nights / "2026-10-01").iterdir())
    run_memhouse("ingest", *paths, "--run", "mine", "--db", db)
    before = everything(db)
    done = run_memhouse("ingest", *reversed(paths), "--run", "mine", "--db", db)
    assert "4 unchanged" in done.stderr
    assert everything(db) == before


def test_dump_files_given_one_by_one_are_one_dump(db, filled):
    files = sorted((CPU / "jax-0.9.0").glob("module_0019*"))
    assert len(files) > 1
    assert run_memhouse("ingest", *files, "--run", "mine", "--db", db).returncode == 0
    assert rows(db, "SELECT workload, module_id, status FROM dumps") == rows(
        filled,
        "SELECT '.', module_id, status FROM dumps "
        "WHERE workload = 'jax-0.9.0' AND module_number = 19",
    )


def test_paths_of_one_name_are_refused(tmp_path, db):
    paths = [copy_dump("seeds/002*", tmp_path / job / "dumps") for job in "ab"]
    done = run_memhouse("ingest", *paths, "--run", "mine", "--db", db)
    assert done.returncode == 2
    assert "two of these paths have one name" in " ".join(done.stderr.split())
    assert not db.exists()


def test_several_paths_without_a_name_are_runs(db, nights):
    run_memhouse("ingest", nights / "2026-10-01", nights / "2026-10-02", "--db", db)
    assert run_ids(db) == ["2026-10-01", "2026-10-02"]


def test_a_path_that_is_not_there_is_named_and_the_others_are_ingested(tmp_path, db):
    seed = one_file("seeds/002*")
    done = run_memhouse("ingest", seed, tmp_path / "gone", "--run", "mine", "--db", db)
    assert done.returncode == 1
    assert f"{tmp_path / 'gone'}: there is no such file or folder" in done.stderr
    assert rows(db, "SELECT workload FROM dumps") == [(".",)]


def test_what_is_wrong_with_a_file_is_told_by_its_path(tmp_path, db):
    for job in "ab":
        copy_dump("cpu/jax-0.9.0/module_0019*", tmp_path / job)
    broken = next((tmp_path / "b").glob("*-buffer-assignment.txt"))
    broken.write_text(broken.read_text()[:2000])
    done = run_memhouse("ingest", tmp_path / "a", tmp_path / "b", "--run", "mine", "--db", db)
    assert done.returncode == 1
    assert done.stderr.startswith(f"error: {broken}:")


def test_a_run_is_replaced_though_duckdb_cannot_free_its_memory(db, nights, monkeypatch):
    """The limit that DuckDB could not keep ended the transaction."""
    monkeypatch.setattr(duckdb_file, "_FEW_BLOCKS", "1KB")
    fill(db, nights / "2026-10-01", run_id="mine")
    (summary,) = fill(db, nights / "2026-10-02", run_id="mine", replaces=True)
    assert summary.dumps == 4
