"""The benchmarks go on working: nothing here looks at a time."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from .support.dumps import DUMPS

# One worker measures.
pytestmark = [pytest.mark.scheduled, pytest.mark.scheduled, pytest.mark.xdist_group("benchmarks")]
BENCHMARKS = Path(__file__).parent.parent / "benchmarks"
ROWS = (
    "`memhouse --help`",
    "`memhouse sql` of one line",
    '`memhouse peaks`, 10 runs / `python -c "import duckdb"`',
    "ingest of the large module / XProf's memory viewer",
    "ingest of the large module, CPU seconds",
    "re-ingest of all runs, less start-up / sha256sum",
    "re-ingest of the large module, less start-up / sha256sum",
    "warehouse of the large module / zstd -3 of each text",
    "warehouse of everything / zstd -3 of all texts as one",
    "dumps read beyond start-up: large modules, --jobs 2",
    "dumps read beyond start-up: smaller modules, --jobs 1",
    "peak memory of the large module's ingest",
    "memory of 10 large modules with two jobs, all processes together",
    "memory of 10 / 1 large modules with two jobs, all processes together",
    "`trends` of the year",
    "`regressions` of the year",
    "`runs_summary` of the year",
    "`long_lived`, largest module",
    "`timeline`, median module",
    "exponent of ingest time by modules",
    "exponent of file size by runs",
    "exponent of `peaks` by runs",
    "CPU of `check` of 10 runs",
    "CPU of a prune of the oldest of 100 runs",
    "a lake's log a night, 10 nights / 2",
    "occupancy of 80 nested overlapping values",
)
# The benchmarks on so little that only their working shows.
SMALL = [
    "--rounds=1",
    "--modules=2",
    "--copies=1",
    "--grown=4",
    "--nights=10",
    "--runs=100",
    "--series=5",
    "--values=80",
    "--no-xprof",
]


def run_all(*options):
    return subprocess.run(
        [sys.executable, BENCHMARKS / "all.py", DUMPS, *SMALL, *options],
        capture_output=True,
        text=True,
        timeout=600,
    )


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """The printed table, by what was measured, and the results as JSON."""
    written = tmp_path_factory.mktemp("results") / "results.json"
    done = run_all("--json", str(written))
    assert done.returncode == 0, done.stderr
    lines = [line.strip("| ").split(" | ") for line in done.stdout.splitlines()]
    return {cells[0]: cells[1:] for cells in lines}, json.loads(written.read_text())


def test_every_benchmark_measures_and_every_target_is_judged(results):
    table, written = results
    assert [row for row in ROWS if not table.get(row, [""])[0]] == []
    with_target = [f for f in written["figures"] if f["limit"] is not None]
    assert len(with_target) > len(ROWS) / 2
    for figure in with_target:
        if figure["values"]:
            assert table[figure["what"]][2].endswith((": met", ": missed"))
    # What cannot be measured is a row.
    assert table[ROWS[3]][0] == "not measured"
    assert "--no-xprof" in table[ROWS[3]]
    assert {figure["what"] for figure in written["figures"]} <= table.keys()
    assert {"commit", "python", "duckdb", "pyarrow", "numpy", "pandas", "cores"} <= set(
        written["environment"]
    )


def test_one_benchmark_alone_and_none_of_another_name():
    done = run_all("--only", "nested")
    assert "nested overlapping values" in done.stdout
    assert "large module" not in done.stdout
    done = run_all("--only", "nothing")
    assert done.returncode == 2
    assert "'nothing'" in done.stderr
