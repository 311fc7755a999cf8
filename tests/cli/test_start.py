"""What a command imports: start-up is most of the time of a short command."""

import re
import subprocess
import sys

import pytest

from ..support.command import MEMHOUSE, run_memhouse, run_process
from ..support.dumps import DUMPS

# Submodules, because a package that is refused is listed too.
SLOW = {"pandas.core", "pydantic.main", "rich.console", "sqlalchemy.sql"}
LAKE = {"deltalake", "fsspec", "s3fs", "botocore", "pyspark", "sqlglot"}
IMPORTED = re.compile(r"^import time:[ \d|]+\| +([\w.]+)", re.MULTILINE)


def imported(*args, said=""):
    """The modules that a command imports whose output goes to pipes, and has this text."""
    command = [sys.executable, "-X", "importtime", str(MEMHOUSE), *map(str, args)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr[-500:]
    assert said in done.stdout
    return set(IMPORTED.findall(done.stderr))


def test_ingest_imports_nothing_slow(db):
    found = imported("ingest", "--jobs", "1", "--db", db, DUMPS / "seeds")
    assert {"memhouse.ingest.pipeline", "duckdb", "pyarrow.lib", "numpy._core"} <= found
    # No file here is a log, and something was found.
    unneeded = {"memhouse.ingest.readers.oom_message", "memhouse.ingest.doctor"}
    assert not found & (SLOW | LAKE | unneeded)


def test_reading_imports_nothing_slow(filled):
    """A time to the nanosecond is what pandas is good for."""
    time = "SELECT TIMESTAMP_NS '2020-01-01 00:00:00.123456789' AS at"
    for output, command, said in (
        ("table", ["peaks"], "llama-v5e"),
        ("csv", ["modules"], "llama-v5e"),
        ("markdown", ["runs"], "tpu"),
        ("json", ["sql", time], "2020-01-01"),
    ):
        found = imported(*command, "--format", output, "--db", filled, said=said)
        assert {"duckdb", "pyarrow.lib"} <= found
        assert not found & {*SLOW, *LAKE, "numpy._core", "memhouse.cli.commands.ingest"}


def test_check_imports_nothing_slow(history):
    """Its table has a renderer of its own, which needs rich."""
    found = imported("check", "--max-growth", "1000%", "--db", history)
    unneeded = {"pandas.core", "pydantic.main", "sqlalchemy.sql", "memhouse.queries.advice.advice"}
    assert not found & unneeded


@pytest.mark.slow
def test_a_lake_in_a_folder_needs_no_cloud(tmp_path):
    assert run_memhouse("lake", "init", tmp_path / "lake").returncode == 0
    found = imported("ingest", "--jobs", "1", "--db", tmp_path / "lake", DUMPS / "seeds")
    found |= imported("peaks", "--db", tmp_path / "lake")
    assert found & LAKE <= {"deltalake", "fsspec"}
    assert "deltalake" in found
    assert not found & {"pandas.core", "sqlalchemy.sql"}


def test_a_name_is_completed_without_what_takes_long_to_import(history):
    asked = {
        "_MEMHOUSE_COMPLETE": "complete_bash",
        "COMP_WORDS": "memhouse owners l",
        "COMP_CWORD": "2",
        "MEMHOUSE_DB": str(history),
        "PYTHONPROFILEIMPORTTIME": "1",
    }
    done = run_process(env=asked)
    assert done.stdout.splitlines() == ["llama-cpu", "llama-v5e"]
    found = set(IMPORTED.findall(done.stderr))
    assert "duckdb" in found
    assert not found & {"pyarrow", "numpy", "pydantic", "rich", "memhouse.cli.commands.ingest"}


@pytest.mark.slow
def test_what_record_runs_may_use_pandas(tmp_path, db):
    program = "import numpy, pandas; print(pandas.__name__)"
    run = run_process("record", "--db", db, "--", sys.executable, "-c", program, cwd=tmp_path)
    assert run.stdout == "pandas\n"
    assert "ModuleNotFoundError" not in run.stderr
