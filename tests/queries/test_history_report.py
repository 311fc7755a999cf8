"""The report of a history: figures, levels, events and diffs are those of the warehouse."""

from dataclasses import replace

import numpy as np
import pytest
from bokeh.models import HoverTool

from memhouse.queries.reporting.over_runs.history_report import history_report
from memhouse.queries.reporting.over_runs.series_history import histories
from memhouse.queries.reporting.over_runs.step_diffs import step_diff
from memhouse.queries.reporting.page import Chart, Table
from memhouse.schema.errors import UsageError

from ..support.command import run_memhouse
from ..support.history import NIGHTS, SERIES, rows
from ..support.made_runs import MIB, make_run
from ..support.warehouse import reading

PEAKS = """FROM trends WHERE metric = 'peak_bytes' AND memory_space = 0"""


@pytest.fixture(scope="module")
def found(history):
    """The ten nights' series by workload."""
    with reading(history) as store:
        return {series.workload: series for series in histories(store).series}


@pytest.fixture(scope="module")
def report(history):
    """The ten nights' report."""
    with reading(history) as store:
        return history_report(store)


def made(db, *, since=None):
    """The series of a made warehouse by module."""
    with reading(db) as store:
        return {
            series.name.rpartition("/")[2]: series
            for series in histories(store, since=since).series
        }


def kinds(series):
    return [(event.run, event.kind) for event in series.events]


def facts(report):
    return {fact.name: fact.text for fact in report.facts}


@pytest.mark.parametrize("workload", SERIES)
def test_every_run_has_the_figure_of_trends(history, found, workload):
    peaks = dict(rows(history, f"SELECT run_id, value_bytes {PEAKS} AND workload = '{workload}'"))
    series = found[workload]
    shown = {
        NIGHTS[place]: value
        for place, value in zip(series.runs, series.values, strict=True)
        if not np.isnan(value)
    }
    assert shown == peaks


def test_a_missing_night_is_a_gap_and_told(found):
    """llama-cpu was not dumped in the night of 2026-10-07."""
    series = found["llama-cpu"]
    assert [NIGHTS[n] for n in series.runs[np.isnan(series.values)]] == ["2026-10-07"]
    assert kinds(series) == [
        ("2026-10-05", "grew"),
        ("2026-10-07", "gone"),
        ("2026-10-08", "shrank"),
    ]


def test_growths_are_those_of_the_view(history, report):
    query = """SELECT run_id, workload || '/' || module_name, change_bytes, cause
    FROM regressions WHERE metric = 'peak_bytes' AND memory_space = 0"""
    (table,) = [
        part for section in report.sections for part in section.parts if isinstance(part, Table)
    ]
    shown = table.rows.arrow().select(["run", "series", "change_bytes", "why"]).to_pylist()
    assert sorted(tuple(row.values()) for row in shown) == sorted(rows(history, query))
    assert shown == sorted(shown, key=lambda row: row["run"], reverse=True)


def test_the_headline_counts_the_newest_run(report):
    """llama-v5e grew on 2026-10-10, and resnet-h100 shrank."""
    assert facts(report) == {
        "series": "4",
        "newest-run": "2026-10-10",
        "grew": "1",
        "shrank": "1",
        "regressions": "9",
    }


def test_what_grew_last_comes_first(report):
    titles = [chart.title.partition("/")[0] for chart in report.charts()]
    assert titles == ["llama-v5e", "decode-v5e", "resnet-h100", "llama-cpu"]


def test_a_chart_says_which_step_and_why(report):
    chart = next(report.charts())
    assert "▲ +1.88 GiB (+338.5 %) in 2026-10-10" in chart.note
    assert "no longer rematerialised (jax.checkpoint)" in chart.below.html
    (table,) = chart.tables
    newest = table.rows.arrow().to_pylist()[0]
    assert (newest["from_run"], newest["to_run"]) == ("2026-10-10", "2026-10-10")
    assert newest["change_bytes"] == 2021955072


@pytest.mark.slow
@pytest.mark.parametrize("workload", SERIES)
def test_every_table_of_a_step_adds_up_to_its_change(history, found, workload):
    steps = found[workload].steps
    assert steps
    with reading(history) as store:
        for event in steps:
            tables = step_diff(store, event, 0, with_buffers=True)
            assert [table.title for table in tables] == ["By source line", "By scope", "By buffer"]
            for table in tables:
                assert len(table.rows) <= 13
                assert sum(table.rows.arrow()["change_bytes"].to_pylist()) == event.change_bytes


def test_since_cuts_the_axis_but_not_the_comparison(history, found):
    with reading(history) as store:
        late = histories(store, since="2026-10-06")
    assert list(late.runs) == NIGHTS[5:]
    llama = next(series for series in late.series if series.workload == "llama-v5e")
    assert kinds(llama) == kinds(found["llama-v5e"])[2:]
    assert llama.events[0].module_ids == found["llama-v5e"].events[2].module_ids


def test_only_one_workload(history):
    with reading(history) as store:
        report = history_report(store, "resnet-h100")
        assert report.title == "History of resnet-h100"
        assert [chart.title for chart in report.charts()] == ["resnet-h100/jit_train"]
        with pytest.raises(UsageError, match="there is no workload 'nothing'"):
            history_report(store, "nothing")
        with pytest.raises(UsageError, match="there is no such history"):
            history_report(store, since="2030-01-01")


def test_what_comes_goes_and_fails_is_told(db):
    new = {"peak_bytes": 7, "signature": "two", "skeleton": 2}
    make_run(db, "a", {"w/jit_stays": 100, "w/jit_goes": 50, "w/jit_fails": 10}, day=0)
    make_run(db, "b", {"w/jit_stays": 100, "w/jit_new": new, "w/jit_fails": "failed"}, day=1)
    make_run(db, "c", {"w/jit_stays": 100, "w/jit_goes": 50, "w/jit_fails": "oom"}, day=2)
    series = made(db)
    assert kinds(series["jit_stays"]) == []
    assert kinds(series["jit_goes"]) == [("b", "gone"), ("c", "back")]
    assert kinds(series["jit_new"]) == [("b", "new"), ("c", "gone")]
    assert series["jit_new"].missing_runs == 1
    assert kinds(series["jit_fails"]) == [("b", "failed"), ("c", "oom")]
    with reading(db) as store:
        report = history_report(store)
    assert facts(report)["came"] == "1 and 1"
    page = report.html()
    for said in ("new in b", "gone for 1 run", "failed in b", "out of memory in c"):
        assert said in page


def test_what_went_in_the_first_run_shown_is_told(db):
    make_run(db, "a", {"w/jit_stays": 100, "w/jit_goes": 50}, day=0)
    make_run(db, "b", {"w/jit_stays": 100}, day=1)
    series = made(db, since="2026-01-02")
    assert kinds(series["jit_goes"]) == [("b", "gone")]
    assert series["jit_goes"].now_bytes is None


def test_levels_and_alternation(db):
    for day, peak in enumerate([100, 200, 100, 200, 100, 200]):
        make_run(db, f"run-{day}", {"w/jit_step": peak}, day=day)
    series = made(db)["jit_step"]
    assert [level for _, _, level in series.levels] == [100 * MIB, 200 * MIB] * 3
    assert [(first, last) for first, last, _ in series.levels] == [(n, n) for n in range(6)]
    assert series.between == (100 * MIB, 200 * MIB)
    with reading(db) as store:
        (chart,) = history_report(store).charts()
    assert "alternates between 100.00 MiB and 200.00 MiB" in chart.note


def test_an_accepted_growth_is_marked(db):
    make_run(db, "a", {"w/jit_step": 100}, day=0)
    make_run(db, "b", {"w/jit_step": 200}, day=1)
    assert (
        run_memhouse("check", "--db", db, "--run", "b", "--accept", "larger batch").returncode == 0
    )
    with reading(db) as store:
        report = history_report(store)
    assert "(accepted)" in next(report.charts()).below.html
    assert {fact.name: fact.note for fact in report.facts}["regressions"].endswith("1 accepted")


def test_an_estimate_is_marked_wherever_it_is_shown(db):
    for day, peak in enumerate([100, 200, 200]):
        programs = {"w/jit_step": {"peak_bytes": peak, "origin": "estimated"}}
        make_run(db, f"run-{day}", programs, day=day)
    with reading(db) as store:
        report = history_report(store)
        late = history_report(store, since="2026-01-03")
    (chart,) = report.charts()
    assert chart.note == "now ≈200.00 MiB; ▲ ≈+100.00 MiB (+100.0 %) in run-1; best ≈100.00 MiB"
    assert "▲ ≈+100.00 MiB" in chart.below.html
    assert list(chart.model.select_one({"type": HoverTool}).tooltips[1]) == [
        "peak",
        "@mark@value{custom}",
    ]
    assert chart.model.renderers[0].data_source.data["mark"] == ["≈", "≈", "≈"]
    assert "≈200.00 MiB" in late.html()


def test_the_diff_of_an_estimated_step_is_marked(history, found):
    step = found["llama-v5e"].steps[0]
    with reading(history) as store:
        tables = step_diff(store, replace(step, is_estimated=True), 0, with_buffers=True)
    assert [table.title for table in tables] == ["By source line", "By scope", "By buffer"]
    for table in tables:
        (changes,) = [cells for title, _, cells, _ in table.columns() if title == "change"]
        assert all(cell.startswith("≈") for cell in changes)


def test_suites_have_runs_of_their_own(db):
    """A run of another suite is no gap."""
    for day in range(4):
        suite = "even" if day % 2 == 0 else "odd"
        make_run(db, f"run-{day}", {f"{suite}/jit_step": 100 + day}, day=day, suite=suite)
    with reading(db) as store:
        found = histories(store)
    assert {one.workload: one.runs.tolist() for one in found.series} == {
        "even": [0, 2],
        "odd": [1, 3],
    }
    assert not any(np.isnan(one.values).any() for one in found.series)


def test_hosts_of_one_program_are_one_series(hosts):
    with reading(hosts) as store:
        names = [series.name for series in histories(store).series]
    assert any("the same)" in name for name in names)


@pytest.mark.slow
def test_many_series_have_rows_instead_of_charts(db):
    for day in range(2):
        peaks = {f"w/jit_{n:02}": 100 + n * day for n in range(40)}
        make_run(db, f"run-{day}", peaks, day=day)
    with reading(db) as store:
        report = history_report(store)
    charts = [part for section in report.sections for part in section.parts]
    assert sum(isinstance(part, Chart) for part in charts) == 24
    assert report.html().count('<svg class="spark"') == 16


def test_the_command_writes_it(history, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = run_memhouse("report", "--history", "--db", history, "--workload", "resnet-h100")
    assert done.returncode == 0, done.stderr
    assert done.stderr.startswith("history.resnet-h100.html: ")
    assert (tmp_path / "history.resnet-h100.html").stat().st_size < 2_500_000


def test_an_unknown_workload_is_told(history):
    done = run_memhouse("report", "--history", "--workload", "nothing", "--db", history)
    assert done.returncode == 2
    assert "there is no workload 'nothing'" in done.stderr
