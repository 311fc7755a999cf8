"""The benchmarks go on working: nothing here looks at a time."""

import subprocess
import sys
from pathlib import Path

import pytest

from .support.dumps import DUMPS

pytestmark = pytest.mark.slow
BENCHMARKS = Path(__file__).parent.parent / "benchmarks"
ROWS = (
    "`memhouse --help`",
    "`memhouse sql` of one line",
    "ingest of the large module / XProf's memory viewer",
    "ingest of 2 modules: --jobs 2 / --jobs 1",
    "ingest of 2 copies of the large module: --jobs 2 / --jobs 1",
    "re-ingest of all runs, less start-up / sha256sum",
    "re-ingest of the large module, less start-up / sha256sum",
    "warehouse of the large module / zstd -3 of each text",
    "warehouse of everything / zstd -3 of all texts as one",
    "peak memory of the large module's ingest",
    "memory of 4 / 1 copies of 2 modules, all processes together",
    "`trends` of the year",
    "`regressions` of the year",
    "`runs_summary` of the year",
    "`peak_buffers`, largest module",
    "`timeline`, median module",
)


@pytest.fixture(scope="module")
def table():
    """The table of all benchmarks, by what was measured."""
    small = [
        "--rounds=1",
        "--modules=2",
        "--copies=1",
        "--nights=10",
        "--series=5",
        "--no-xprof",
    ]
    done = subprocess.run(
        [sys.executable, BENCHMARKS / "all.py", DUMPS, *small],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    lines = [line.strip("| ").split(" | ") for line in done.stdout.splitlines()]
    return {cells[0]: cells[1:] for cells in lines}


def test_every_benchmark_measures(table):
    assert [row for row in ROWS if not table.get(row, [""])[0]] == []


def test_every_target_is_judged(table):
    targets = {row: cells[1] for row, cells in table.items() if len(cells) > 1 and cells[1]}
    judged = {row: target.rpartition(": ")[2] for row, target in targets.items()}
    assert len(judged) > len(ROWS) / 2
    assert {what: said for what, said in judged.items() if said not in ("met", "missed")} == {
        "what": "target",
        "---": "---",
    }


def test_a_target_is_met_or_missed(monkeypatch):
    monkeypatch.syspath_prepend(BENCHMARKS)
    from bench import verdict

    assert verdict(1.0, 1.0, "1") == "<= 1: met"
    assert verdict(1.01, 1.0, "1") == "<= 1: missed"


def test_what_cannot_be_measured_is_a_row(table):
    assert table[ROWS[2]][0].startswith("not measured: --no-xprof")
