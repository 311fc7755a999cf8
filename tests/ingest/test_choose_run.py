"""No night is lost: what ingesting a path again makes of dumps that have changed."""

import os
import shutil
from datetime import UTC, datetime

import pytest

from memhouse.ingest import writer
from memhouse.schema import connection as file_connection
from memhouse.schema.store import Store

from ..support.clock import at
from ..support.command import run_memhouse
from ..support.dumps import DUMPS, copy_dump
from ..support.warehouse import content, everything, fill, rows

CPU = DUMPS / "cpu"
RUNS = "SELECT run_id, run_at, source, run_seq FROM runs ORDER BY run_seq"


def train(folder, night, time, *workloads):
    """Dump what these workloads compiled in a night into the folder; the time of its files."""
    for workload in workloads or ("llama-cpu",):
        shutil.copytree(night / workload, folder / workload, dirs_exist_ok=True)
        for file in (folder / workload).iterdir():
            written = time.replace(tzinfo=UTC).timestamp()
            os.utime(file, (written, written))
    return folder


def fill_at(time, db, *paths, **options):
    """Ingest at a time; what became of the last path."""
    with at(time):
        return fill(db, *paths, **options)[-1]


def night(day, hour=5):
    return datetime(2026, 11, day, hour, 12, 9)


@pytest.fixture
def dumps(tmp_path):
    return tmp_path / "dumps"


def run_ids(db):
    return [run for run, *_ in rows(db, RUNS)]


def peaks(db):
    """The peak of llama-cpu in each run."""
    return rows(
        db,
        "SELECT run_id, peak_bytes FROM peaks_by_space AS peaks INNER JOIN runs USING (run_id) "
        "WHERE memory_space = 0 AND workload = 'llama-cpu' ORDER BY run_seq",
    )


def test_every_change_is_a_night(dumps, tmp_path, db, nights):
    names = ["2026-10-01", "2026-10-05", "2026-10-08"]
    done = []
    for day, name in enumerate(names, 2):
        train(dumps, nights / name, night(1, day))
        done.append(fill_at(night(day), db, dumps))
        if day == 3:
            shutil.copytree(dumps, tmp_path / "kept")  # With its times.
    runs = ["dumps", "dumps@2026-11-03T05:12:09", "dumps@2026-11-04T05:12:09"]
    assert [summary.run_id for summary in done] == runs
    assert done[0].notes == []
    (note,) = done[1].notes
    assert all(name in note for name in (str(dumps), "as dumps:", runs[1]))
    assert rows(db, RUNS) == [
        (run, night(day), str(dumps), day - 1) for day, run in enumerate(runs, 2)
    ]
    assert rows(db, "SELECT claimed_at, compiled_at FROM runs ORDER BY run_seq") == [
        (None, night(1, day)) for day in (2, 3, 4)
    ]
    # 2026-10-08 has the programs of 2026-10-01 again: what was changed was taken back.
    (_, first), (_, second), (_, third) = peaks(db)
    assert second > 1.5 * first == 1.5 * third
    # A night that is ingested again changes nothing, nor does an earlier one that is put back.
    before = everything(db)
    summary = fill_at(night(5), db, dumps)
    assert (summary.run_id, summary.unchanged, summary.notes) == (runs[2], 1, [])
    shutil.rmtree(dumps)
    (tmp_path / "kept").rename(dumps)
    summary = fill_at(night(5), db, dumps)
    assert (summary.run_id, summary.unchanged) == (runs[1], 1)
    assert everything(db) == before


def test_the_command_says_so_and_does_well(dumps, db, nights):
    train(dumps, nights / "2026-10-01", night(2))
    assert run_memhouse("ingest", dumps, "--db", db).returncode == 0
    train(dumps, nights / "2026-10-05", night(2))
    with at(night(3)):
        done = run_memhouse("ingest", dumps, "--db", db)
    changed, told = done.stderr.splitlines()
    assert (done.returncode, done.stdout) == (0, "")
    assert changed.startswith(f"{dumps} ")
    assert told.startswith("dumps@2026-11-03T05:12:09: ")


def test_nights_that_enter_within_a_second_have_names_of_their_own(dumps, db, nights):
    for name in ("2026-10-01", "2026-10-04", "2026-10-07"):
        fill_at(night(2), db, train(dumps, nights / name, night(2), "decode-v5e"))
    assert run_ids(db) == ["dumps", "dumps@2026-11-02T05:12:09", "dumps@2026-11-02T05:12:09_2"]


def test_a_folder_of_the_same_name_is_another_night(tmp_path, db, nights):
    one = train(tmp_path / "a/dumps", nights / "2026-10-01", night(2))
    other = train(tmp_path / "b/dumps", nights / "2026-10-05", night(2))
    fill(db, one)
    summary = fill_at(night(3), db, other)
    assert summary.run_id == "dumps@2026-11-03T05:12:09"
    (note,) = summary.notes
    assert all(name in note for name in ("run dumps ", str(one), summary.run_id))
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
    # What is left of the folder takes nothing from its run.
    before = everything(db)
    shutil.rmtree(dumps / "llama-cpu")
    (summary,) = fill(db, dumps)
    assert (summary.run_id, summary.unchanged, summary.problems) == ("dumps", 1, [])
    assert everything(db) == before


def test_a_dump_that_is_still_being_written_is_completed(dumps, db):
    """XLA writes the HLO text first, which alone is a whole dump: an estimate."""
    query = "SELECT status, origin FROM dumps JOIN modules USING (module_id)"
    copy_dump("cpu/jax-0.9.0/module_0019*cpu_after_optimizations.txt*", dumps)
    fill(db, dumps)
    assert rows(db, query) == [("ok", "estimated")]
    copy_dump("cpu/jax-0.9.0/module_0019*", dumps)
    (summary,) = fill(db, dumps)
    assert summary.run_id == "dumps"
    assert rows(db, query) == [("ok", "dumped")]
    # If it loses a file, it stays as it was read.
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
    write, written = Store.write, []

    def write_some(store, batch):
        if len(written) == after:
            raise CutError
        write(store, batch)
        written.append(batch)

    with monkeypatch.context() as patch:
        patch.setattr(writer, "_MAX_DUMPS", 1)
        patch.setattr(Store, "write", write_some)
        with pytest.raises(CutError):
            fill(db, *paths, **options)


def test_a_later_night_that_was_cut_short_goes_on(dumps, tmp_path, db, nights, monkeypatch):
    train(dumps, nights / "2026-10-01", night(2), "llama-cpu", "decode-v5e")
    fill(db, dumps)
    train(dumps, nights / "2026-10-07", night(3), "llama-v5e", "decode-v5e")
    alone = shutil.copy(db, tmp_path / "alone.duckdb")
    fill_at(night(3), alone, dumps)
    expected = content(alone)
    for after in (0, 1):
        cut = shutil.copy(db, tmp_path / f"{after}.duckdb")
        with at(night(3)):
            cut_short(monkeypatch, after, cut, dumps)
        assert len(run_ids(cut)) == (2 if after else 1)
        summary = fill_at(night(3, 6) if after else night(3), cut, dumps)
        assert (summary.run_id, summary.unchanged) == ("dumps@2026-11-03T05:12:09", after)
        assert content(cut) == expected


# --- a run that the user names ------------------------------------------------------------


def test_a_named_run_is_not_overwritten(db, nights):
    fill(db, nights / "2026-10-01" / "llama-cpu", run_id="2026-10-01")
    before = everything(db)
    path = nights / "2026-10-05" / "llama-cpu"
    args = ("ingest", path, "--run", "2026-10-01", "--db", db)
    done = run_memhouse(*args)
    assert (done.returncode, done.stdout) == (2, "")
    assert "'2026-10-01'" in done.stderr
    assert "--replace" in done.stderr
    assert everything(db) == before
    done = run_memhouse(*args, "--replace")
    said, told = done.stderr.splitlines()
    assert done.returncode == 0
    assert str(nights / "2026-10-01/llama-cpu") in said
    assert told.startswith("2026-10-01: ")
    assert rows(db, "SELECT source FROM runs") == [(str(path),)]


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
    assert (gone.runs, gone.dumps, gone.modules, gone.run_ids) == (1, 4, 1, ["mine"])
    (note,) = summary.notes
    assert all(name in note for name in ("mine", "4 dumps", str(nights / "2026-10-10")))
    fresh = tmp_path / "fresh.duckdb"
    fill(fresh, nights / "2026-10-01", labels=main)
    fill(fresh, other, run_id="mine", labels={**main, "by": "you"})
    fill(fresh, nights / "2026-10-07", labels=main)
    assert content(db) == content(fresh)
    assert run_memhouse("verify", "--db", db).returncode == 0


def test_replacing_keeps_what_both_nights_have(tmp_path, db, nights):
    """A run that is not there is made; the same and nothing replace nothing."""
    (summary,) = fill(db, nights / "2026-10-01", run_id="mine", replaces=True)
    assert (summary.run_id, summary.dumps, summary.replaced) == ("mine", 4, None)
    before = everything(db)
    (summary,) = fill(db, nights / "2026-10-01", run_id="mine", replaces=True)
    assert (summary.replaced, summary.unchanged, summary.notes) == (None, 4, [])
    (tmp_path / "empty").mkdir()
    (summary,) = fill(db, tmp_path / "empty", run_id="mine", replaces=True)
    assert summary.problems
    assert everything(db) == before
    # 2026-10-02 is 2026-10-01 again: nothing is new.
    shutil.copytree(nights / "2026-10-02", tmp_path / "2026-10-02")
    shutil.rmtree(tmp_path / "2026-10-02/resnet-h100")
    (summary,) = fill(db, tmp_path / "2026-10-02", run_id="mine", replaces=True)
    assert (summary.replaced.dumps, summary.replaced.modules, summary.new_modules) == (4, 1, 0)
    assert {row[:1] for row in rows(db, "FROM modules")} < {row[:1] for row in before["modules"]}


def test_a_replacement_that_is_cut_short_replaces_nothing(db, nights, monkeypatch):
    fill(db, nights / "2026-10-01", run_id="mine")
    before = everything(db)
    for after in (0, 1, 2):
        cut_short(monkeypatch, after, db, nights / "2026-10-07", run_id="mine", replaces=True)
        assert everything(db) == before
    # DuckDB cannot free its memory as it should: a limit that it could not keep ended it once.
    monkeypatch.setattr(file_connection, "_FEW_BLOCKS", "1KB")
    (summary,) = fill(db, nights / "2026-10-07", run_id="mine", replaces=True)
    assert (summary.replaced.dumps, summary.dumps) == (4, 3)
    assert run_memhouse("verify", "--db", db).returncode == 0


# --- several paths, one run ---------------------------------------------------------------


def test_several_paths_are_one_run_as_the_folder_that_holds_them(tmp_path, db, nights):
    paths = sorted((nights / "2026-10-01").iterdir())
    done = run_memhouse("ingest", *paths, "--run", "2026-10-01", "--db", db)
    assert done.returncode == 0
    assert done.stderr.startswith("2026-10-01: 4 dumps, ")
    whole = tmp_path / "whole.duckdb"
    fill(whole, nights / "2026-10-01")
    found, expected = content(db), content(whole)
    for table in expected.keys() - {"runs", "run_parts"}:
        assert found[table] == expected[table], table
    ((_, run_at, source, _),) = rows(db, RUNS)
    assert run_at == datetime(2026, 10, 1)
    assert source == ", ".join(map(str, paths))
    # Their order is of no account.
    before = everything(db)
    done = run_memhouse("ingest", *reversed(paths), "--run", "2026-10-01", "--db", db)
    assert "4 unchanged" in done.stderr
    assert everything(db) == before


def test_paths_of_one_name_are_refused(tmp_path, db):
    paths = [copy_dump("seeds/002*", tmp_path / job / "dumps") for job in "ab"]
    done = run_memhouse("ingest", *paths, "--run", "mine", "--db", db)
    assert done.returncode == 2
    assert not db.exists()


def test_several_paths_without_a_name_are_runs(db):
    run_memhouse("ingest", CPU / "jax-0.9.0", CPU / "jax-0.10.2", "--db", db)
    assert run_ids(db) == ["jax-0.9.0", "jax-0.10.2"]


def test_a_path_that_is_wrong_is_named_and_the_others_are_ingested(tmp_path, db):
    broken = copy_dump("cpu/jax-0.9.0/module_0019*", tmp_path / "a")
    file = next(broken.glob("*-buffer-assignment.txt"))
    file.write_text(file.read_text()[:2000])
    paths = (broken, tmp_path / "gone", copy_dump("seeds/002*", tmp_path / "b"))
    done = run_memhouse("ingest", *paths, "--run", "mine", "--db", db)
    assert done.returncode == 1
    assert f"error: {file}:" in done.stderr
    assert f"{tmp_path / 'gone'}: " in done.stderr
    assert rows(db, "SELECT workload, status FROM dumps ORDER BY 1") == [
        ("a", "partial"),
        ("b", "ok"),
    ]


def test_dump_files_given_one_by_one_are_one_dump(db, filled):
    files = sorted((CPU / "jax-0.9.0").glob("module_0019*"))
    assert len(files) > 1
    assert run_memhouse("ingest", *files, "--run", "mine", "--db", db).returncode == 0
    assert rows(db, "SELECT workload, module_id, status FROM dumps") == rows(
        filled,
        "SELECT '.', module_id, status FROM dumps "
        "WHERE workload = 'jax-0.9.0' AND module_number = 19",
    )
