"""Out-of-memory messages of dump folders and logs: reports of the run, joined to its dumps."""

import gzip
import json
import shutil
import tarfile

import pytest
import zstandard

import memhouse
from memhouse.ingest.pipeline import ingest
from memhouse.ingest.workers import Workers
from memhouse.schema.errors import UsageError

from ..support.dumps import DATA, DUMPS, copy_dump
from ..support.warehouse import everything, fill, rows, writing

REPORTS = """SELECT dumps.workload, kind, used_bytes, requested_bytes, dumps.oom
    FROM oom_reports LEFT JOIN dumps USING (dump_id) ORDER BY ALL"""
OOM = DATA / "oom"
LOG = "I0912 12:00:00.123456 1234 train.py:88] step 12\n"


@pytest.fixture
def dumps(tmp_path):
    """Dumps of four modules that did not fit, a folder each."""
    with (DATA / "oom-dumps.tar.zst").open("rb") as packed:
        reader = zstandard.ZstdDecompressor().stream_reader(packed)
        with tarfile.open(fileobj=reader, mode="r|") as tar:
            tar.extractall(tmp_path / "night", filter="data")
    return tmp_path / "night"


def log(folder, *names):
    """A training log with messages of ours."""
    texts = [(DATA / f"oom/{name}.txt").read_text() for name in names]
    path = folder / "train.log"
    path.write_text(LOG * 100 + LOG.join(texts) + LOG * 100)
    return path


def take(db, *paths, **options):
    """Ingest paths as one run."""
    with writing(db) as store, Workers(1) as workers:
        return ingest(store, *paths, tool_version="test", workers=workers, **options)


def test_a_folder_of_dumps_tells_each_once(dumps, db):
    (summary,) = fill(db, dumps)
    assert summary.problems == []
    assert summary.oom_reports == 4
    assert rows(db, REPORTS) == [
        ("jax0.10.2-pad", "program", 33 << 30, None, True),
        ("jax0.10.2-vmem", "allocation", None, 256 << 20, True),
        ("jax0.5.3-vmemgrid", "scoped", None, 48 << 20, True),
        ("jax0.9.2-temps", "program", 22 << 30, None, True),
    ]
    # The list of XLA's files and of the error are one.
    assert rows(db, "SELECT COUNT(*), SUM(size_bytes) FROM oom_buffers") == [(11, 22 << 30)]


def test_the_lists_alone_tell_what_they_hold(dumps, db):
    for error in dumps.glob("*/error.txt"):
        error.unlink()
    fill(db, dumps)
    found = rows(db, "SELECT program_bytes, used_bytes, is_cut FROM oom_reports")
    assert found == [(22 << 30, None, False)]
    assert rows(db, "SELECT COUNT(*) FROM oom_buffers") == [(11,)]


def test_ingested_again_nothing_changes(dumps, db):
    fill(db, dumps)
    before, file = everything(db), db.read_bytes()
    (summary,) = fill(db, dumps)
    assert summary.unchanged == 4
    assert summary.oom_reports == 4
    assert everything(db) == before
    # Not even a checkpoint, which would move rows.
    assert db.read_bytes() == file


def test_a_log_is_told_of_the_dumps_beside_it(dumps, db, tmp_path):
    for error in dumps.glob("*/error.txt"):
        error.unlink()
    found = log(tmp_path, "jax0.5.3-vmemgrid", "jax0.10.2-pad")
    summary = take(db, dumps, found, run_id="night")
    assert (summary.problems, summary.oom_reports) == ([], 3)
    assert rows(db, REPORTS)[:2] == [
        ("night/jax0.10.2-pad", "program", 33 << 30, None, True),
        ("night/jax0.5.3-vmemgrid", "scoped", None, 48 << 20, True),
    ]
    before = everything(db)
    assert take(db, dumps, found, run_id="night").unchanged == 4
    assert everything(db) == before


def test_a_log_that_comes_later_joins_the_run(dumps, db, tmp_path):
    (dumps / "jax0.10.2-pad/error.txt").unlink()
    fill(db, dumps)
    take(db, log(tmp_path, "jax0.10.2-pad", "jax0.9.2-temps"), run_id="night")
    found = rows(db, REPORTS)
    assert found[0] == ("jax0.10.2-pad", "program", 33 << 30, None, True)
    assert len(found) == 4
    before = everything(db)
    take(db, log(tmp_path, "jax0.10.2-pad", "jax0.9.2-temps"), run_id="night")
    assert everything(db) == before


def test_a_log_alone_replaces_nothing(dumps, db, tmp_path):
    fill(db, dumps)
    before = everything(db)
    with pytest.raises(UsageError, match="replaces no dumps"):
        take(db, log(tmp_path, "jax0.5.3-args"), run_id="night", replaces=True)
    assert everything(db) == before


def test_a_log_alone_is_a_run_without_dumps(db, tmp_path):
    packed = tmp_path / "train.log.gz"
    packed.write_bytes(gzip.compress(log(tmp_path, "jax0.9.2-temps").read_bytes()))
    (summary,) = fill(db, packed)
    assert (summary.problems, summary.oom_reports) == ([], 1)
    assert rows(db, "SELECT run_id, path, line, dump_id FROM oom_reports") == [
        ("train.log", "train.log.gz", 101, None)
    ]
    # It is no night of which all programs are gone.
    assert rows(db, "SELECT * FROM lineages") == []


def test_a_log_of_records_is_a_log(db, tmp_path):
    lines = (DATA / "oom/jax0.9.2-temps.txt").read_text().splitlines()
    path = tmp_path / "train.log"
    path.write_text("".join(json.dumps({"log": f"{line}\n"}) + "\n" for line in lines))
    (summary,) = fill(db, path)
    assert (summary.problems, summary.oom_reports) == ([], 1)
    assert rows(db, "SELECT COUNT(*), SUM(size_bytes) FROM oom_buffers") == [(11, 22 << 30)]


def test_a_log_of_several_modules_that_fit_is_of_none(dumps, db, tmp_path):
    (dumps / "jax0.10.2-pad/error.txt").unlink()
    (tmp_path / "again").mkdir()
    for module in dumps.glob("jax0.10.2-pad/module*"):
        (tmp_path / "again" / module.name).write_bytes(module.read_bytes())
    take(db, dumps, tmp_path / "again", log(tmp_path, "jax0.10.2-pad"), run_id="night")
    query = "SELECT DISTINCT dump_id IS NULL FROM oom_reports WHERE path = 'train.log'"
    assert rows(db, query) == [(True,)]


def test_a_log_without_a_message_is_one_line(dumps, db, tmp_path):
    quiet = tmp_path / "train.log"
    quiet.write_text(LOG * 10)
    summary = take(db, dumps, quiet, run_id="night")
    assert summary.problems == []
    assert summary.notes == [f"{quiet}: no out-of-memory message of XLA"]
    (summary,) = fill(db, quiet)
    (problem,) = summary.problems
    assert problem.startswith(f"{quiet}: this is not a memory dump of XLA, nor a log")


def test_what_is_dropped_takes_its_reports_along(dumps, db):
    fill(db, dumps, run_id="one")
    fill(db, DUMPS / "seeds")
    with writing(db) as store:
        store.delete_runs(["one"])
    assert rows(db, "SELECT COUNT(*) FROM oom_reports") == [(0,)]
    assert rows(db, "SELECT COUNT(*) FROM oom_buffers") == [(0,)]


def test_replaced_dumps_take_their_reports_along(dumps, db):
    fill(db, dumps, run_id="one")
    fill(db, DUMPS / "seeds", run_id="one", replaces=True)
    assert rows(db, "SELECT COUNT(*) FROM oom_reports") == [(0,)]
    assert rows(db, "SELECT COUNT(*) FROM oom_buffers") == [(0,)]


def test_another_message_in_the_same_log_is_another_night(tmp_path, db):
    log = tmp_path / "train.log"
    shutil.copy(OOM / "jax0.10.2-args.txt", log)
    fill(db, log)
    shutil.copy(OOM / "jax0.10.2-pad.txt", log)
    (summary,) = fill(db, log)
    assert summary.run_id.startswith("train.log@")
    assert len(rows(db, "SELECT DISTINCT run_id FROM oom_reports")) == 2
    assert len(rows(db, "SELECT run_id FROM runs_summary")) == 2
    with pytest.raises(UsageError, match="holds other messages"):
        fill(db, log, run_id="train.log")
    with pytest.raises(UsageError, match="replaces no dumps"):
        fill(db, log, run_id="train.log", replaces=True)


def test_a_log_that_grows_is_the_same_night(tmp_path, db):
    log = tmp_path / "train.log"
    shutil.copy(OOM / "jax0.10.2-args.txt", log)
    fill(db, log)
    log.write_text(log.read_text() + (OOM / "jax0.10.2-pad.txt").read_text())
    (summary,) = fill(db, log)
    assert (summary.run_id, summary.oom_reports) == ("train.log", 2)


def test_a_run_of_a_log_alone_is_not_judged(tmp_path, db):
    fill(db, copy_dump("cpu/jax-0.10.2/module_0018*", tmp_path / "night"))
    log = tmp_path / "late.log"
    shutil.copy(OOM / "jax0.10.2-args.txt", log)
    fill(db, log)
    with memhouse.open(db, read_only=True) as warehouse:
        assert warehouse.check().run_id == "night"
        with pytest.raises(UsageError, match="has no dumps to judge"):
            warehouse.check("late.log")
