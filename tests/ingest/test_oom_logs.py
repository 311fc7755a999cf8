"""Out-of-memory messages of dump folders and logs: reports of the run, joined to its dumps."""

import gzip
import json
import re
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
OF_MESSAGES = """SELECT COUNT(*) FROM
    (SELECT run_id FROM oom_reports UNION ALL SELECT run_id FROM oom_buffers)"""
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


def test_a_folder_of_dumps_tells_each_once(dumps, db, tmp_path):
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
    # Again, nothing changes: not even a checkpoint is made, which would move rows.
    file = db.read_bytes()
    (summary,) = fill(db, dumps)
    assert (summary.unchanged, summary.oom_reports) == (4, 4)
    assert db.read_bytes() == file
    # A log alone replaces nothing; other dumps do.
    with pytest.raises(UsageError):
        take(db, log(tmp_path, "jax0.5.3-args"), run_id="night", replaces=True)
    assert db.read_bytes() == file
    fill(db, DUMPS / "seeds", run_id="night", replaces=True)
    assert rows(db, OF_MESSAGES) == [(0,)]


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


def test_a_log_alone_is_a_run_without_dumps(db, tmp_path):
    packed = tmp_path / "train.log.gz"
    packed.write_bytes(gzip.compress(log(tmp_path, "jax0.9.2-temps").read_bytes()))
    # A log of records is a log too.
    records = tmp_path / "records.log"
    lines = (OOM / "jax0.9.2-temps.txt").read_text().splitlines()
    records.write_text("".join(json.dumps({"log": f"{line}\n"}) + "\n" for line in lines))
    for summary in fill(db, packed, records):
        assert (summary.problems, summary.oom_reports) == ([], 1)
    assert rows(db, "SELECT run_id, path, line, dump_id FROM oom_reports ORDER BY ALL") == [
        ("records.log", "records.log", 1, None),
        ("train.log", "train.log.gz", 101, None),
    ]
    query = "SELECT run_id, COUNT(*), SUM(size_bytes) FROM oom_buffers GROUP BY ALL ORDER BY ALL"
    assert rows(db, query) == [("records.log", 11, 22 << 30), ("train.log", 11, 22 << 30)]
    # It is no night of which all programs are gone.
    assert rows(db, "SELECT * FROM internal.lineages") == []


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
    (note,) = summary.notes
    assert note.startswith(f"{quiet}: ")
    (summary,) = fill(db, quiet)
    (problem,) = summary.problems
    assert problem.startswith(f"{quiet}: ")


def test_another_message_in_the_same_log_is_another_night(tmp_path, db):
    args, pad = (OOM / f"jax0.10.2-{name}.txt" for name in ("args", "pad"))
    log = tmp_path / "train.log"
    shutil.copy(args, log)
    fill(db, log)
    # A log that grows is the same night.
    log.write_text(args.read_text() + pad.read_text())
    (summary,) = fill(db, log)
    assert (summary.run_id, summary.oom_reports) == ("train.log", 2)
    shutil.copy(OOM / "jax0.9.2-temps.txt", log)
    (summary,) = fill(db, log)
    assert summary.run_id.startswith("train.log@")
    # Again, and one that has grown, are that later night.
    later = summary.run_id
    for text in ("", args.read_text()):
        log.write_text(log.read_text() + text)
        (summary,) = fill(db, log)
        assert summary.run_id == later
    assert len(rows(db, "SELECT DISTINCT run_id FROM oom_reports")) == 2
    assert len(rows(db, "SELECT run_id FROM runs_summary")) == 2
    for replaces in (False, True):
        with pytest.raises(UsageError):
            fill(db, log, run_id="train.log", replaces=replaces)
    # No log alone is judged.
    fill(db, copy_dump("cpu/jax-0.10.2/module_0018*", tmp_path / "night"))
    fill(db, shutil.copy(args, tmp_path / "late.log"))
    with memhouse.open(db, read_only=True) as warehouse:
        assert warehouse.check().run_id == "night"
        with pytest.raises(UsageError, match=re.escape("late.log")):
            warehouse.check("late.log")
