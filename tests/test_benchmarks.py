"""The benchmarks go on working, and what they make of measurements: nothing looks at a time."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from .support.dumps import DUMPS

# One worker measures.
pytestmark = pytest.mark.xdist_group("benchmarks")
BENCHMARKS = Path(__file__).parent.parent / "benchmarks"
# The benchmarks on so little that only their working shows.
SMALL = ("--rounds=1", "--programs=20", "--runs=4", "--copies=1")


@pytest.fixture(autouse=True)
def on_path(monkeypatch):
    """The benchmarks import each other as scripts do."""
    monkeypatch.syspath_prepend(BENCHMARKS)


def bench(*options):
    return subprocess.run(
        [sys.executable, BENCHMARKS / "bench.py", DUMPS, *SMALL, *options],
        capture_output=True,
        text=True,
        timeout=600,
    )


@pytest.mark.slow
def test_a_benchmark_measures_and_its_target_is_judged(tmp_path):
    results = tmp_path / "results.json"
    done = bench("--only", "size", "--json", str(results))
    assert done.returncode == 0, done.stderr
    lines = [line.strip("| ").split(" | ") for line in done.stdout.splitlines()]
    table = {cells[0]: cells[1:] for cells in lines}
    written = json.loads(results.read_text())
    assert {measured["name"] for measured in written["measurements"]} <= table.keys()
    with_target = [each for each in written["measurements"] if each["limit"] is not None]
    assert with_target
    for measured in with_target:
        assert measured["values"], measured
        assert table[measured["name"]][2].endswith((": met", ": missed"))


def test_a_measurement_shows_its_median_its_spread_and_whether_its_target_is_met():
    from measurement import Measurement

    assert Measurement("", [2.0, 1.0, 0.5], limit=1.0).row()["target"] == "<= 1: met"
    assert Measurement("", [2.0, 1.01, 0.5], limit=1.0).row()["target"] == "<= 1: missed"
    row = Measurement("ingest", [1.5, 1.25, 2.0], "s").row()
    assert (row["median"], row["spread"]) == ("1.50 s", "1.25 s to 2.00 s")
    # Without values nothing is judged.
    assert Measurement("ingest", [], limit=1.0).is_met is None


def measurements(**values):
    from measurement import Measurement

    return {name: Measurement(name, rounds, "s") for name, rounds in values.items()}


def test_a_change_beyond_the_spread_has_a_verdict():
    from compare import compare

    before = measurements(faster=[2.0, 2.1, 2.2], slower=[1.0, 1.1, 1.2], chance=[1.0, 1.2, 1.4])
    after = measurements(faster=[1.0, 1.1, 1.2], slower=[1.3, 1.4, 1.5], chance=[0.9, 1.1, 1.3])
    rows = {row["name"]: (row["change"], row["verdict"]) for row in compare(before, after)}
    assert rows == {
        "faster": ("-48 %", "better"),
        "slower": ("+27 %", "worse"),
        "chance": ("-8 %", "within the spread"),
    }
    assert {row["verdict"] for row in compare(before, before)} == {"the same"}
