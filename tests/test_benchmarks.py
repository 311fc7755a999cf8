"""The benchmarks go on working, and what they make of measurements: nothing looks at a time."""

import json
import re
import shutil
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from .support.dumps import DUMPS

# One worker measures.
pytestmark = pytest.mark.xdist_group("benchmarks")
BENCHMARKS = Path(__file__).parent.parent / "benchmarks"
# The benchmarks on so little that only their working shows.
SMALL = ("--rounds=1", "--programs=20", "--runs=4", "--copies=1")
NAMES = (
    "`memhouse --help`",
    "`memhouse sql` of one line",
    "ingest of the large module",
    "ingest of the large module, peak memory",
    "ingest of 20 programs, --jobs 2",
    "CPU of a further program of 913 instructions",
    "CPU of 8 hosts / 1 host, 20 programs, --jobs 2",
    "CPU of `check` of 4 runs",
    "CPU of one more run, 4 runs / 1 run",
    "`trends` of 4 runs",
    "warehouse of the large module / zstd -3",
    "memory of 5 / 1 large modules, --jobs 2",
)


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


@pytest.mark.scheduled
@pytest.mark.timeout(700)
def test_every_benchmark_measures_and_every_target_is_judged(tmp_path):
    results = tmp_path / "results.json"
    done = bench("--json", str(results))
    assert done.returncode == 0, done.stderr
    lines = [line.strip("| ").split(" | ") for line in done.stdout.splitlines()]
    table = {cells[0]: cells[1:] for cells in lines}
    written = json.loads(results.read_text())
    assert {*NAMES} <= {measured["name"] for measured in written["measurements"]} <= table.keys()
    with_target = [each for each in written["measurements"] if each["limit"] is not None]
    assert len(with_target) > len(written["measurements"]) / 2
    for measured in written["measurements"]:
        assert measured["values"], measured
    for measured in with_target:
        assert table[measured["name"]][2].endswith((": met", ": missed"))
    assert {"commit", "python", "duckdb", "pyarrow", "numpy", "cores"} <= set(
        written["environment"]
    )


@pytest.mark.scheduled
def test_one_benchmark_alone_and_none_of_another_name():
    done = bench("--only", "size")
    assert "zstd" in done.stdout
    assert "--help" not in done.stdout
    done = bench("--only", "nothing")
    assert done.returncode == 2
    assert "'nothing'" in done.stderr


@pytest.mark.scheduled
def test_a_program_of_the_history_changes_every_nine_days(tmp_path):
    from dumps import ingest_history, lay_out

    import memhouse

    source = tmp_path / "source"
    shutil.copytree(DUMPS / "cpu", source / "cpu")
    dumps = lay_out(source, tmp_path / "laid-out")
    assert [run.name for run in dumps.runs] == ["cpu"]
    assert len(dumps.modules) == 11
    folder = tmp_path / "history"
    folder.mkdir()
    with memhouse.open(ingest_history(dumps, folder, 12)) as warehouse:
        query = (
            "SELECT run_id, LIST(module_id ORDER BY module_name) AS modules FROM dumps GROUP BY ALL"
        )
        rows = warehouse.sql(f"{query} ORDER BY run_id").arrow()["modules"].to_pylist()
    changed = [sum(a != b for a, b in zip(x, y, strict=True)) for x, y in pairwise(rows)]
    assert changed == [0] * 9 + [1, 0]


def test_a_measurement_shows_its_median_its_spread_and_whether_its_target_is_met():
    from measurement import Measurement

    assert Measurement("", [2.0, 1.0, 0.5], limit=1.0).row()["target"] == "<= 1: met"
    assert Measurement("", [2.0, 1.01, 0.5], limit=1.0).row()["target"] == "<= 1: missed"
    row = Measurement("ingest", [1.5, 1.25, 2.0], "s").row()
    assert (row["median"], row["spread"]) == ("1.50 s", "1.25 s to 2.00 s")
    row = Measurement("memory", [444e6], "bytes", 420e6).row()
    assert (row["median"], row["spread"]) == ("444 MB", "")
    assert row["target"] == "<= 420 MB: missed"
    # Without values nothing is judged.
    measured = Measurement("ingest", [], limit=1.0)
    assert measured.is_met is None
    assert measured.row()["median"] == "not measured"
    assert measured.row()["target"] == "<= 1"


def test_the_works_take_turns_after_a_warm_up():
    from process import in_turn

    order = []
    a, b = in_turn(3, lambda: order.append("a") or 1, lambda: order.append("b") or 2)
    assert "".join(order) == "ab" + "ab" + "ba" + "ab"
    assert (a, b) == ([1, 1, 1], [2, 2, 2])


def test_cpu_seconds_are_of_children_too_and_a_failure_is_an_error():
    from process import ProcessError, run

    busy = "import time\nwhile time.process_time() < 0.2: pass"
    child = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {busy!r}])"
    assert run(sys.executable, "-c", child).cpu_seconds >= 0.2
    with pytest.raises(ProcessError, match="exit status 3"):
        run(sys.executable, "-c", "exit(3)")
    assert run(sys.executable, "-c", "print('no'); exit(3)", ok=(0, 3)).output == "no\n"


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
    # What only one result has is shown.
    (row,) = compare(measurements(ingest=[2.0]), {})
    assert (row["before"], row["after"], row["verdict"]) == ("2.00 s", "not measured", "")


def test_two_files_of_results_are_compared(tmp_path):
    from measurement import Results, write_results

    before, after = tmp_path / "before.json", tmp_path / "after.json"
    for path, version, seconds in ((before, "1.4.0", 2.0), (after, "2.0.0", 1.0)):
        around = {"duckdb": version, "cores": "2"}
        write_results(path, Results(around, [*measurements(a=[seconds]).values()]))
    command = [*map(str, [sys.executable, BENCHMARKS / "compare.py", before, after])]
    done = subprocess.run(command, capture_output=True, text=True)
    assert "| a | 2.00 s | 1.00 s | -50 % | better |" in done.stdout
    assert done.stdout.endswith("\n\nduckdb: 1.4.0 before, 2.0.0 after\n")


def test_a_file_that_is_no_result_is_named(tmp_path):
    from measurement import read_results

    path = tmp_path / "other.json"
    for text in ("", "[]", "{}", '{"environment": {}, "measurements": [{}]}'):
        path.write_text(text)
        with pytest.raises(ValueError, match=re.escape(str(path))):
            read_results(path)
