"""Ingesting: what a path becomes, and what doing it again changes."""

import gzip
import io
import shutil
import tarfile
from datetime import datetime

import zstandard

from memhouse.ingest.readers import live_range
from memhouse.xla.errors import DumpError

from ..support.command import run_memhouse
from ..support.dumps import DUMPS, RUNS, copy_dump, one_file
from ..support.warehouse import everything, fill, rows

SMALL = DUMPS / "cpu"


def tar(folder, compress=lambda data: data):
    """The folder as an archive whose top folder it is."""
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as archive:
        archive.add(folder, arcname=folder.name)
    return compress(data.getvalue())


def test_ingesting_again_changes_nothing(filled, copied):
    before = everything(filled)
    for summary in fill(copied, *RUNS):
        assert summary.dumps == summary.unchanged > 0
        assert summary.new_modules == 0
    assert everything(copied) == before


def test_ingesting_again_what_is_incomplete_or_claims_a_time_changes_nothing(tmp_path, db):
    folder = copy_dump("cpu/jax-0.10.2/module_0018*", tmp_path / "2026-10-01")
    (values,) = folder.glob("*-values.txt")
    values.write_bytes(values.read_bytes()[:5000])
    fill(db, folder, run_at=datetime(2026, 10, 3))
    before = everything(db)
    fill(db, folder)
    assert everything(db) == before


def test_a_new_run_of_the_same_modules_stores_no_module_again(copied):
    before = everything(copied)
    fill(copied, DUMPS / "tpu", run_id="tpu-again")
    after = everything(copied)
    assert set(before) == set(after)
    changed = {name for name in before if before[name] != after[name]}
    of_runs = {"runs", "run_parts", "journal"}
    assert changed == of_runs | {"dumps", "dump_series", "oom_reports"}
    assert len(after["runs"]) == len(before["runs"]) + 1
    assert len(after["dumps"]) == len(before["dumps"]) + len(list((DUMPS / "tpu").iterdir()))
    for name in changed:
        assert set(before[name]) < set(after[name])
    assert len(after["dump_series"]) == len(after["dumps"])


def test_an_archive_is_its_folder(filled, tmp_path, db):
    found = []
    for ending, compress in (
        (".tar", bytes),
        (".tar.gz", gzip.compress),
        (".tgz", gzip.compress),
        (".tar.zst", zstandard.compress),
    ):
        archive = tmp_path / ending[1:] / f"cpu{ending}"
        archive.parent.mkdir()
        archive.write_bytes(tar(SMALL, compress))
        (summary,) = fill(db, archive)
        found.append((summary.run_id, summary.problems, summary.unchanged))
    # All are one night.
    number = len(rows(db, "FROM dumps"))
    assert found == [("cpu", [], 0), *[("cpu", [], number)] * 3]
    found, expected = everything(db), everything(filled)
    of_cpu = rows(filled, "SELECT * FROM dumps WHERE run_id = 'cpu' ORDER BY ALL")
    assert found["dumps"] == of_cpu
    assert set(found["modules"]) < set(expected["modules"])
    assert set(found["file_sets"]) < set(expected["file_sets"])


def test_a_single_file_of_any_name_is_a_module(filled, tmp_path, db):
    seed = one_file("seeds/002*")
    for name, compress, run in (
        (seed.name, bytes, seed.stem),
        (f"{seed.name}.gz", gzip.compress, seed.stem),
        (f"{seed.name}.zst", zstandard.compress, seed.stem),
        ("what.ever", bytes, "what.ever"),
    ):
        path = tmp_path / name
        path.write_bytes(compress(seed.read_bytes()))
        (summary,) = fill(db, path)
        assert (summary.run_id, summary.dumps, summary.problems) == (run, 1, []), name
    query = f"SELECT DISTINCT module_id, status FROM dumps WHERE module_name = '{seed.stem}'"
    assert rows(db, query) == rows(filled, query)


def test_compressed_files_are_the_same_module(filled, tmp_path, db):
    folder = tmp_path / "llama-v5e"
    copy_dump("tpu/llama-v5e/*", folder)
    fill(db, folder)
    (found,) = rows(db, "SELECT module_id, flags_id, status FROM dumps")
    query = "SELECT module_id, flags_id, status FROM dumps WHERE workload = 'llama-v5e'"
    assert [found] == rows(filled, query)


def test_a_run_is_named_by_its_folder_wherever_one_stands(tmp_path, db):
    copy_dump("seeds/002*", tmp_path / "night")
    run = run_memhouse("ingest", "--db", db, ".", cwd=tmp_path / "night")
    assert run.returncode == 0
    assert rows(db, "SELECT run_id, source FROM runs") == [("night", ".")]


def test_at_run_and_labels_are_taken_as_given_and_can_be_changed_later(db):
    args = ["--run", "nightly", "--at", "2026-10-01T03:00+02:00", "--label", "branch=main"]
    path = SMALL / "jax-0.9.0"
    run = run_memhouse("ingest", "--db", db, path, *args, "--label", "jax=a=b")
    assert run.returncode == 0
    query = "SELECT run_id, run_at, source FROM runs"
    assert rows(db, query) == [("nightly", datetime(2026, 10, 1, 1), str(path))]
    labels = "SELECT key, value FROM run_labels ORDER BY key"
    assert rows(db, labels) == [("branch", "main"), ("jax", "a=b")]
    at = datetime(2026, 10, 2)
    fill(db, path, run_id="nightly", labels={"branch": "dev"}, run_at=at)
    assert rows(db, labels) == [("branch", "dev"), ("jax", "a=b")]
    assert rows(db, "SELECT run_at FROM runs") == [(at,)]


def test_a_workload_is_the_folder_within_the_path(tmp_path, db):
    for workload in ("", "a", "a/b"):
        copy_dump("seeds/002*", tmp_path / "night" / workload)
    (summary,) = fill(db, tmp_path / "night")
    assert (summary.dumps, summary.new_modules) == (3, 1)
    assert rows(db, "SELECT workload FROM dumps ORDER BY 1") == [(".",), ("a",), ("a/b",)]


def test_dump_order_is_that_of_numbers(tmp_path, db):
    seed = one_file("seeds/002*")
    (tmp_path / "night").mkdir()
    for number in ("9", "10", "0001"):
        shutil.copy(
            seed, tmp_path / f"night/module_{number}.f.after_optimizations-buffer-assignment.txt"
        )
    fill(db, tmp_path / "night")
    assert rows(db, "SELECT module_number, occurrence FROM dumps ORDER BY 2") == [
        (1, 1),
        (9, 2),
        (10, 3),
    ]


def test_every_sample_is_read_whole(filled):
    assert rows(filled, "SELECT * FROM dumps WHERE status <> 'ok'") == []
    assert rows(filled, "SELECT * FROM dump_files WHERE status <> 'ok'") == []
    (files,) = rows(filled, "SELECT COUNT(*), COUNT(bytes), COUNT(sha256) FROM dump_files")
    assert len(set(files)) == 1


def test_a_repaired_dump_is_whole(filled, tmp_path, db):
    folder = copy_dump("cpu/jax-0.9.0/module_0019*", tmp_path / "night")
    broken = next(folder.glob("*-buffer-assignment.txt"))
    text = broken.read_bytes()
    broken.write_bytes(text[: len(text) // 2])
    fill(db, folder)
    assert rows(db, "SELECT status FROM dumps") == [("partial",)]
    broken.write_bytes(text)
    fill(db, folder)
    assert rows(db, "SELECT status, module_id FROM dumps") == rows(
        filled,
        "SELECT status, module_id FROM dumps WHERE workload = 'jax-0.9.0' AND module_number = 19",
    )


def test_what_a_later_version_can_read_is_added(tmp_path, db, monkeypatch):
    def cannot_read(*_):
        raise DumpError("this version cannot read it", 1)

    folder = copy_dump("seeds/002*", tmp_path / "night")
    with monkeypatch.context() as earlier:
        earlier.setattr(live_range, "_read_scheduled", cannot_read)
        fill(db, folder)
    assert rows(db, "SELECT status FROM dumps") == [("partial",)]
    fill(db, folder)
    assert rows(db, "SELECT status FROM dumps") == [("ok",)]
    assert rows(db, "SELECT COUNT(*) FROM live_ranges") == [(6,)]


def test_progress_ends_at_the_whole(db):
    seen = []
    fill(db, SMALL, progress=lambda done, total: seen.append((done, total)))
    assert seen == sorted(seen)
    assert seen[-1][0] == seen[-1][1] > 0
