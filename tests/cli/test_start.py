"""What a command imports: start-up is most of the time of a short command."""

import re
import subprocess
import sys

import pytest

from ..support.command import MEMHOUSE, run_memhouse
from ..support.dumps import DUMPS

# Submodules, because a package that is refused is listed too.
SLOW = {"pandas.core", "rich.console", "sqlalchemy.sql"}
IMPORTED = re.compile(r"^import time:[ \d|]+\| +([\w.]+)", re.MULTILINE)


def imported(*args):
    """The modules that a command imports whose output goes to pipes."""
    command = [sys.executable, "-X", "importtime", str(MEMHOUSE), *map(str, args)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr[-500:]
    return set(IMPORTED.findall(done.stderr))


def test_ingest_imports_nothing_slow(db):
    found = imported("ingest", "--jobs", "1", "--db", db, DUMPS / "seeds")
    assert {"memhouse.ingest.pipeline", "duckdb", "pyarrow.lib", "numpy._core"} <= found
    # No file here is a log, and something was found.
    unneeded = {"memhouse.ingest.readers.oom_message", "memhouse.ingest.doctor"}
    assert not found & (SLOW | unneeded)


@pytest.mark.parametrize("output", ["table", "csv", "json", "markdown"])
@pytest.mark.parametrize("command", [["modules"], ["peaks"], ["runs"], ["sql", "SELECT 'x' AS y"]])
def test_reading_imports_nothing_slow(filled, command, output):
    found = imported(*command, "--format", output, "--db", filled)
    assert {"duckdb", "pyarrow.lib"} <= found
    assert not found & {*SLOW, "numpy._core", "memhouse.cli.commands.ingest"}


def test_check_imports_nothing_slow(history):
    """Its table has a renderer of its own, which needs rich."""
    found = imported("check", "--max-growth", "1000%", "--db", history)
    assert not found & {"pandas.core", "sqlalchemy.sql", "memhouse.queries.advise"}


LAKE = {"deltalake", "fsspec", "s3fs", "botocore", "pyspark", "sqlglot"}


def test_a_file_needs_nothing_of_a_lake(filled, db):
    assert not imported("peaks", "--db", filled) & LAKE
    assert not imported("ingest", "--jobs", "1", "--db", db, DUMPS / "seeds") & LAKE


def test_a_lake_in_a_folder_needs_no_cloud(tmp_path):
    assert run_memhouse("lake", "init", tmp_path / "lake").returncode == 0
    found = imported("ingest", "--jobs", "1", "--db", tmp_path / "lake", DUMPS / "seeds")
    found |= imported("peaks", "--db", tmp_path / "lake")
    assert found & LAKE <= {"deltalake", "fsspec"}
    assert "deltalake" in found
    assert not found & {"pandas.core", "sqlalchemy.sql"}


def test_what_record_runs_may_use_pandas(tmp_path, db):
    program = "import numpy, pandas; print(pandas.__name__)"
    run = run_memhouse("record", "--db", db, "--", sys.executable, "-c", program, cwd=tmp_path)
    assert run.stdout == "pandas\n"
    assert "ModuleNotFoundError" not in run.stderr


@pytest.mark.parametrize("output", ["table", "csv", "json", "markdown"])
def test_times_to_the_nanosecond_need_no_pandas(filled, output):
    query = "SELECT TIMESTAMP_NS '2020-01-01 00:00:00.123456789' AS at"
    run = run_memhouse("sql", query, "--format", output, "--db", filled)
    assert run.returncode == 0, run.stderr
    assert "2020-01-01" in run.stdout
