"""Spark reads a lake, and ingests into one, as the page about many hosts shows."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ..support.command import run_memhouse
from ..support.history import NIGHTS
from ..support.warehouse import fill, rows

pytestmark = pytest.mark.slow
pytest.importorskip("pyspark")
PAGE = Path(__file__).parents[2] / "docs/how-to/many-hosts.md"


@pytest.fixture
def folder(tmp_path, nights):
    """A folder with the programs of the page, the nights, and a lake of two of them."""
    if shutil.which("java") is None:
        pytest.skip("Spark needs Java")
    text = PAGE.read_text()
    for name, program in re.findall(r'^```python title="(\S+)"\n(.*?)^```', text, re.M | re.S):
        (tmp_path / name).write_text(program)
    (tmp_path / "nightly").symlink_to(nights)
    fill(tmp_path / "nights.duckdb", *(nights / name for name in NIGHTS[:2]))
    done = run_memhouse("publish", tmp_path / "lake", "--db", tmp_path / "nights.duckdb")
    assert done.returncode == 0, done.stderr
    return tmp_path


def run(name, folder):
    done = subprocess.run(
        [sys.executable, name],
        cwd=folder,
        env=os.environ | {"PYSPARK_PYTHON": sys.executable},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_spark_reads_and_ingests_as_the_page_says(folder, nights):
    peak = "SELECT MAX(peak_bytes) FROM peaks_by_space AS peaks WHERE space = 'hbm'"
    assert run("read_by_spark.py", folder) == str(rows(folder / "nights.duckdb", peak)[0][0])
    assert run("ingest_by_spark.py", folder) == "[]"
    fill(folder / "all.duckdb", *(nights / name for name in NIGHTS[:4]))
    assert run("read_by_spark.py", folder) == str(rows(folder / "all.duckdb", peak)[0][0])
    # What executors published is what a merged file would publish.
    done = run_memhouse("publish", folder / "lake", "--db", folder / "all.duckdb")
    assert "no new run" in done.stderr
    assert len(done.stderr.splitlines()) == 1
