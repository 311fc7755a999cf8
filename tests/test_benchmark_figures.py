"""What the benchmarks make of what they measure: medians, verdicts, exponents, comparisons."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from .support.dumps import DATA, DUMPS

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"
COUNTS = (1, 2, 4, 8, 16, 32)


@pytest.fixture(autouse=True, scope="module")
def on_path():
    """The benchmarks import each other as scripts do."""
    sys.path.insert(0, str(BENCHMARKS))
    yield
    sys.path.remove(str(BENCHMARKS))


def test_a_figure_shows_its_median_its_spread_and_whether_its_target_is_met():
    from figures import Figure

    assert Figure("", [2.0, 1.0, 0.5], limit=1.0).shown()["target"] == "<= 1: met"
    assert Figure("", [2.0, 1.01, 0.5], limit=1.0).shown()["target"] == "<= 1: missed"
    faster = Figure("", [160.0], "MB/s", 150.0, at_least=True)
    assert faster.shown()["target"] == ">= 150 MB/s: met"
    shown = Figure("ingest", [1.5, 1.25, 2.0], "s").shown()
    assert (shown["median"], shown["spread"]) == ("1.50 s", "1.25 s to 2.00 s")
    shown = Figure("memory", [444e6], "bytes", 420e6).shown()
    assert (shown["median"], shown["spread"]) == ("444 MB", "")
    assert shown["target"] == "<= 420 MB: missed"
    # Without values nothing is judged.
    figure = Figure("ingest / XProf", [], limit=1.0, parts="no XProf")
    assert figure.met is None
    assert figure.shown()["median"] == "not measured"
    assert figure.shown()["target"] == "<= 1"


@settings(max_examples=50)
@given(
    start=st.floats(0.1, 10), share=st.floats(1, 100), power=st.floats(0.1, 3), unit=st.floats(1, 9)
)
def test_the_exponent_is_found_beyond_start_up(start, share, power, unit):
    from exponents import exponent

    costs = {n: unit * start * (1 + share * (n - 1) ** power) for n in COUNTS}
    assert exponent(costs) == pytest.approx(power, rel=1e-6)


def test_what_does_not_grow_has_exponent_0_and_what_grows_late_has_one():
    from exponents import exponent

    assert exponent(dict.fromkeys(COUNTS, 0.4)) == pytest.approx(0)
    # Differences that are noise.
    assert exponent({1: 0.4, 10: 0.41, 100: 0.39, 1000: 0.415}) == pytest.approx(0)
    assert exponent({1: 0.4, 10: 0.3, 100: 0.2}) == pytest.approx(0)
    assert exponent({1: 0.4, 10: 0.4, 100: 0.4, 1000: 40.0}) > 1.5
    with pytest.raises(ValueError, match="three counts"):
        exponent({1: 0.4, 2: 0.5})


def test_the_works_take_turns_after_a_warm_up():
    from process import in_turn

    order = []
    a, b = in_turn(3, lambda: order.append("a") or 1, lambda: order.append("b") or 2)
    assert "".join(order) == "ab" + "ab" + "ba" + "ab"
    assert (a, b) == ([1, 1, 1], [2, 2, 2])


def test_cpu_seconds_are_of_children_too():
    from process import run

    busy = "import time\nwhile time.process_time() < 0.2: pass"
    child = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {busy!r}])"
    assert run(sys.executable, "-c", child).cpu_seconds >= 0.2


def test_more_modules_in_no_more_time_are_no_throughput():
    from process import Finished
    from throughput import _figure

    runs = [Finished(seconds, seconds, 0, 0, "") for seconds in (1.0, 3.0, 1.0)]
    few, many = runs[:1], runs[1:2]
    assert _figure("", 4, 10_000_000, few, many, 150.0).values == [5.0]
    assert _figure("", 4, 10_000_000, few, runs[2:], 150.0).met is None


def test_nested_values_lie_within_each_other():
    from nested import nest

    from memhouse.xla.occupancy import occupied_changes

    extents = nest(5)
    for inner, outer in zip(range(1, 5), range(4), strict=True):
        assert extents.low[outer] < extents.low[inner] < extents.high[inner] < extents.high[outer]
    # The first value holds all the others.
    times, sums = occupied_changes(extents)
    assert (times.tolist(), sums.tolist()) == ([0, 11], [10, 0])


def figures(**values):
    from figures import Figure

    return {what: Figure(what, found, "s") for what, found in values.items()}


def test_a_change_beyond_the_spread_has_a_verdict():
    from compare import compared
    from figures import Figure

    before = figures(faster=[2.0, 2.1, 2.2], slower=[1.0, 1.1, 1.2], chance=[1.0, 1.2, 1.4])
    after = figures(faster=[1.0, 1.1, 1.2], slower=[1.3, 1.4, 1.5], chance=[0.9, 1.1, 1.3])
    rows = {row["what"]: (row["change"], row["verdict"]) for row in compared(before, after)}
    assert rows == {
        "faster": ("-48 %", "better"),
        "slower": ("+27 %", "worse"),
        "chance": ("-8 %", "within the spread"),
    }
    # More is better where the target is at least something.
    before = {"speed": Figure("speed", [85.0], "MB/s", 150.0, at_least=True)}
    after = {"speed": Figure("speed", [160.0], "MB/s", 150.0, at_least=True)}
    assert compared(before, after)[0]["verdict"] == "better"
    assert compared(after, before)[0]["verdict"] == "worse"
    assert compared(before, before)[0]["verdict"] == "the same"
    # What only one result has is shown.
    (row,) = compared(figures(ingest=[2.0]), {})
    assert (row["before"], row["after"], row["verdict"]) == ("2.00 s", "not measured", "")


def compare(*paths):
    command = [*map(str, [sys.executable, BENCHMARKS / "compare.py", *paths])]
    return subprocess.run(command, capture_output=True, text=True)


def test_two_files_of_results_are_compared(tmp_path):
    from bench import write_results

    before, after = tmp_path / "before.json", tmp_path / "after.json"
    write_results(before, {"duckdb": "1.4.0", "cores": "2"}, [*figures(ingest=[2.0]).values()])
    write_results(after, {"duckdb": "2.0.0", "cores": "2"}, [*figures(ingest=[1.0]).values()])
    done = compare(before, after)
    assert "| ingest | 2.00 s | 1.00 s | -50 % | better |" in done.stdout
    assert done.stdout.endswith("\n\nduckdb: 1.4.0 before, 2.0.0 after\n")


def test_a_file_that_is_no_result_is_named(tmp_path):
    from compare import read_results

    path = tmp_path / "other.json"
    for text in ("", "[]", "{}", '{"environment": {}, "figures": [{}]}'):
        path.write_text(text)
        with pytest.raises(ValueError, match=re.escape(str(path))):
            read_results(path)


@pytest.mark.scheduled
def test_a_session_is_one_file_to_read(tmp_path):
    """The programs of a session have no files of their own."""
    from dumps import lay_out, read_files

    dumps = lay_out(*a_session_and_a_dump(tmp_path))
    files = read_files(dumps.warehouse, dumps.runs)
    assert all(file.is_file() for file in files)
    assert len([file for file in files if file.name.endswith(".xplane.pb")]) == 1
    assert all(file.is_file() for module in dumps.modules for file in module.files)


def a_session_and_a_dump(folder):
    """Where two runs lie, and where to lay them out."""
    shutil.copytree(DATA / "session", folder / "source/session")
    shutil.copytree(DUMPS / "seeds", folder / "source/seeds")
    return folder / "source", folder / "laid-out"
