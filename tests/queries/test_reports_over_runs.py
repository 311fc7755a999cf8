"""The reports of a history and of a diff: figures, levels, events and bars of the warehouse."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from bokeh.models import HoverTool

from memhouse.report.diff_report import diff_report
from memhouse.report.history_report import history_report, step_diff
from memhouse.report.page import Beside, Table, Text
from memhouse.report.series import histories
from memhouse.schema.errors import UsageError

from ..support.command import run_memhouse
from ..support.history import NIGHTS, SERIES, rows
from ..support.made_runs import make_run
from ..support.warehouse import reading

CASE = ("2026-10-07", "2026-10-08")


@pytest.fixture(scope="module")
def store(history):
    """The ten nights."""
    with reading(history) as opened:
        yield opened


@pytest.fixture(scope="module")
def samples(filled):
    with reading(filled) as opened:
        yield opened


@pytest.fixture(scope="module")
def found(store):
    """The ten nights' series by workload."""
    return {series.workload: series for series in histories(store).series}


@pytest.fixture(scope="module")
def report(store):
    """The ten nights' report."""
    return history_report(store)


@pytest.fixture(scope="module")
def llama_diff(store):
    return diff_report(store, *CASE, "llama-v5e")


def made(db, *, since=None):
    """The series of a made warehouse by module."""
    with reading(db) as store:
        return {
            series.name.rpartition("/")[2]: series
            for series in histories(store, since=since).series
        }


def kinds(series):
    return [(event.run, event.kind) for event in series.events]


def facts(part):
    return {fact.name: fact for fact in part.facts}


def parts(report):
    for section in report.sections:
        for part in section.parts:
            yield from [p for c in part.columns for p in c] if isinstance(part, Beside) else [part]


def texts(report):
    return [part.text for part in parts(report) if isinstance(part, Text)]


def tables(report):
    return {part.name: part for part in parts(report) if isinstance(part, Table)}


# --- the history ------------------------------------------------------------------------


def test_every_run_has_the_figure_of_trends(history, found):
    for workload in SERIES:
        series = found[workload]
        shown = {
            NIGHTS[place]: value
            for place, value in zip(series.runs, series.values, strict=True)
            if not np.isnan(value)
        }
        assert shown == dict(
            rows(
                history,
                f"""SELECT run_id, value FROM trends_by_space AS trends
                WHERE metric = 'peak_bytes' AND memory_space = 0 AND workload = '{workload}'""",
            )
        )
    # llama-cpu was not dumped in the night of 2026-10-07.
    series = found["llama-cpu"]
    assert [NIGHTS[n] for n in series.runs[np.isnan(series.values)]] == ["2026-10-07"]
    assert kinds(series) == [
        ("2026-10-05", "grew"),
        ("2026-10-07", "gone"),
        ("2026-10-08", "shrank"),
    ]


def test_growths_are_those_of_the_view_and_the_newest_comes_first(history, report):
    query = """SELECT run_id, workload || '/' || module_name, change, cause
    FROM regressions WHERE metric = 'peak_bytes'"""
    (table,) = tables(report).values()
    shown = table.rows.arrow().select(["run", "series", "change_bytes", "why"]).to_pylist()
    assert sorted(tuple(row.values()) for row in shown) == sorted(rows(history, query))
    assert shown == sorted(shown, key=lambda row: row["run"], reverse=True)
    # In the newest run llama-v5e grew, and resnet-h100 shrank.
    assert {name: fact.text for name, fact in facts(report).items()} == {
        "series": "4",
        "newest-run": "2026-10-10",
        "grew": "1",
        "shrank": "1",
        "regressions": str(len(shown)),
    }
    titles = [chart.title.partition("/")[0] for chart in report.charts()]
    assert titles == ["llama-v5e", "decode-v5e", "resnet-h100", "llama-cpu"]
    chart = next(report.charts())
    for told in ("▲ +1.88 GiB", "+338.5 %", "2026-10-10"):
        assert told in chart.note
    assert shown[0]["why"] in chart.below.html
    (steps,) = chart.tables
    newest = steps.rows.arrow().to_pylist()[0]
    assert (newest["from_run"], newest["to_run"]) == ("2026-10-10", "2026-10-10")
    assert newest["change_bytes"] == shown[0]["change_bytes"] == 2021955072


@pytest.mark.slow
def test_every_table_of_a_step_adds_up_to_its_change(store, found):
    for workload in SERIES:
        steps = found[workload].steps
        assert steps
        for event in steps:
            of_step = step_diff(store, event, 0, with_buffers=True)
            assert len(of_step) == 3
            for table in of_step:
                assert len(table.rows) <= 13
                assert sum(table.rows.arrow()["change_bytes"].to_pylist()) == event.change_bytes


def test_since_cuts_the_axis_but_not_the_comparison(store, found):
    late = histories(store, since="2026-10-06")
    assert list(late.runs) == NIGHTS[5:]
    llama = next(series for series in late.series if series.workload == "llama-v5e")
    assert kinds(llama) == kinds(found["llama-v5e"])[2:]
    assert llama.events[0].module_ids == found["llama-v5e"].events[2].module_ids


def test_a_history_can_be_of_one_workload(store):
    one = history_report(store, "resnet-h100")
    assert [chart.title for chart in one.charts()] == ["resnet-h100/jit_train"]
    with pytest.raises(UsageError, match="'nothing'"):
        history_report(store, "nothing")
    with pytest.raises(UsageError):
        history_report(store, since="2030-01-01")
    assert len(one.html()) < 2_500_000


def test_what_comes_goes_and_fails_is_told(db):
    new = {"peak_bytes": 7, "signature": "two", "skeleton": 2}
    make_run(db, "a", {"w/jit_stays": 100, "w/jit_goes": 50, "w/jit_fails": 10}, day=0)
    make_run(db, "b", {"w/jit_stays": 100, "w/jit_new": new, "w/jit_fails": "failed"}, day=1)
    make_run(db, "c", {"w/jit_stays": 100, "w/jit_goes": 50, "w/jit_fails": "oom"}, day=2)
    series = made(db)
    assert {name: kinds(one) for name, one in series.items()} == {
        "jit_stays": [],
        "jit_goes": [("b", "gone"), ("c", "back")],
        "jit_new": [("b", "new"), ("c", "gone")],
        "jit_fails": [("b", "failed"), ("c", "oom")],
    }
    assert series["jit_new"].missing_runs == 1
    with reading(db) as store:
        report = history_report(store)
    assert facts(report)["came"].text == "1 and 1"
    assert all(name in report.html() for name in series)
    # What went in the first run shown is told.
    gone = made(db, since="2026-01-02")["jit_goes"]
    assert kinds(gone)[0] == ("b", "gone")
    gone = made(db, since="2026-01-03")["jit_new"]
    assert kinds(gone) == [("c", "gone")]
    assert gone.now_bytes is None


def test_an_accepted_growth_is_marked(db):
    make_run(db, "a", {"w/jit_step": 100}, day=0)
    make_run(db, "b", {"w/jit_step": 200}, day=1)
    done = run_memhouse("check", "--db", db, "--run", "b", "--accept", "larger batch")
    assert done.returncode == 0
    with reading(db) as store:
        report = history_report(store)
    assert "(accepted)" in next(report.charts()).below.html
    assert "1 accepted" in facts(report)["regressions"].note


def test_an_estimate_is_marked_wherever_it_is_shown(db, store, found):
    for day, peak in enumerate([100, 200, 200]):
        programs = {"w/jit_step": {"peak_bytes": peak, "origin": "estimated"}}
        make_run(db, f"run-{day}", programs, day=day)
    with reading(db) as opened:
        report = history_report(opened)
        late = history_report(opened, since="2026-01-03")
    (chart,) = report.charts()
    for told in ("≈200.00 MiB", "▲ ≈+100.00 MiB", "≈100.00 MiB"):
        assert told in chart.note
    assert chart.note.count("≈") == chart.note.count("MiB")
    assert "▲ ≈+100.00 MiB" in chart.below.html
    assert "@mark@value{custom}" in chart.model.select_one({"type": HoverTool}).tooltips[1]
    assert chart.model.renderers[0].data_source.data["mark"] == ["≈", "≈", "≈"]
    assert "≈200.00 MiB" in late.html()
    # So is the diff of an estimated step.
    step = replace(found["llama-v5e"].steps[0], is_estimated=True)
    for table in step_diff(store, step, 0, with_buffers=True):
        (changes,) = [cells for title, _, cells, _ in table.columns() if title == "change"]
        assert all(cell.startswith("≈") for cell in changes)


# --- the diff ---------------------------------------------------------------------------


def waterfalls(report):
    """By what a waterfall sums by, what its bars reach; one a module."""
    for chart in report.charts():
        if chart.model.name.startswith("waterfall"):
            yield chart.data[chart.model.name]


def assert_bars_lead_from_peak_to_peak(report):
    sections = [section for section in report.sections if section.facts]
    found = list(waterfalls(report))
    for waterfall, section in zip(found, sections or [report] * len(found), strict=True):
        peaks = [facts(section)[name].value_bytes for name in ("peak_a", "peak_b")]
        assert sorted(waterfall) == ["buffer", "pass", "role", "scope", "source"]
        for bars in waterfall.values():
            assert [bars["after"][0], bars["after"][-1]] == peaks
            # The last bar but one ends where peak B does.
            assert bars["after"][-2] == peaks[1]
    return len(found)


def test_a_page_has_a_section_for_each_module_that_changed(store):
    report = diff_report(store, *CASE)
    assert [section.title for section in report.sections] == [
        "",
        "llama-v5e/jit_train_step",
        "resnet-h100/jit_train",
    ]
    assert facts(report)["changed"].text == "2 of 3"
    assert facts(report)["largest"].text == "+105.31 MiB"
    same, alone = texts(report)[:2]
    assert "decode-v5e/jit_generate" in same
    assert CASE[1] in alone
    assert "llama-cpu/jit_train_step" in alone
    assert assert_bars_lead_from_peak_to_peak(report) == 2
    (alone,) = texts(diff_report(store, *CASE, "llama-cpu"))
    assert "llama-cpu/jit_train_step" in alone


@pytest.mark.slow
def test_bars_lead_from_peak_to_peak_whatever_changed_between_nights(store):
    for pair in [*pairwise(NIGHTS[::2]), (NIGHTS[0], NIGHTS[1])]:
        report = diff_report(store, *pair)
        found = assert_bars_lead_from_peak_to_peak(report)
        assert bool(found) == (not report.gist.startswith("0 of"))


def test_the_headline_has_the_peaks_and_the_cause_of_the_warehouse(llama_diff, history):
    said = facts(llama_diff)
    peaks = dict(
        rows(
            history,
            "SELECT run_id, peak_bytes FROM peaks_by_space AS peaks "
            "WHERE workload = 'llama-v5e' AND memory_space = 0",
        )
    )
    assert [said[name].value_bytes for name in ("peak_a", "peak_b", "change")] == [
        peaks[CASE[0]],
        peaks[CASE[1]],
        peaks[CASE[1]] - peaks[CASE[0]],
    ]
    ((cause,),) = rows(
        history,
        f"SELECT cause FROM history WHERE run_id = '{CASE[1]}' AND workload = 'llama-v5e'",
    )
    assert cause
    assert said["cause"].text == cause


def test_maps_stand_on_one_scale_and_say_what_became_of_the_buffers(llama_diff):
    charts = {chart.model.name: chart for chart in llama_diff.charts()}
    a, b = charts["address_map_a"], charts["address_map_b"]
    assert a.model.y_range is b.model.y_range
    times = [charts[f"memory_timeline_{side}"].model.x_range for side in "ab"]
    assert [a.model.x_range, b.model.x_range] == times
    left, came = (
        dict(zip(way["names"], way["peak_bytes"], strict=True))
        for way in (chart.data[chart.model.name]["ways"]["change"] for chart in (a, b))
    )
    said = facts(llama_diff)
    assert sum(left.values()) == said["peak_a"].value_bytes
    assert sum(came.values()) == said["peak_b"].value_bytes
    change = came["came to the peak"] - left["left the peak"]
    assert change == said["change"].value_bytes
    assert left["as large as before"] == came["as large as before"]


def test_nothing_differs_between_equals(store, history):
    report = diff_report(store, "2026-10-01", "2026-10-02")
    assert facts(report)["changed"].text == "0 of 4"
    assert list(report.charts()) == []
    assert "decode-v5e/jit_generate" in texts(report)[0]
    ((module,),) = rows(
        history,
        f"SELECT module_id FROM dumps WHERE (workload, run_id) = ('llama-v5e', '{CASE[1]}')",
    )
    report = diff_report(store, str(module), str(module))
    assert len(texts(report)) == 1
    assert list(report.charts()) == []
    assert list(tables(report)) == []


def test_a_diff_can_be_of_two_modules(samples):
    report = diff_report(samples, "tpu/llama-v5e", "llama-v5e-jax0.7.0")
    assert report.title == "llama-v5e/jit_train_step → llama-v5e-jax0.7.0/jit_train_step"
    assert "933746096 → 788670714" in facts(report)["cause"].text
    assert len(list(report.charts())) == 5


def test_a_diff_with_an_estimate_says_so_wherever_it_is_shown(samples, filled):
    ((estimated,),) = rows(
        filled,
        "SELECT module_id FROM peaks WHERE origin = 'estimated' "
        "AND module_name = 'jit_conv_general_dilated'",
    )
    report = diff_report(samples, str(estimated), "000_e0d5fae9bf2de249")
    marked = {name: fact.text.startswith("≈") for name, fact in facts(report).items()}
    assert [marked[name] for name in ("peak_a", "change", "peak_b")] == [True, True, False]
    cells = {
        title: cells for title, _, cells, _ in tables(report)["figures"].columns() if any(cells)
    }
    assert all(cell.startswith("≈") for cell in cells["A"] if cell)
    assert not any(cell.startswith("≈") for cell in cells["B"])
    assert "address_map_a" not in [chart.model.name for chart in report.charts()]


def test_names_of_runs_keep_their_capitals(db):
    make_run(db, "Night-A", {"w/jit_stays": 100}, day=0)
    make_run(db, "Night-B", {"w/jit_stays": 100, "w/jit_new": 10}, day=1)
    with reading(db) as store:
        told = texts(diff_report(store, "Night-A", "Night-B"))
    assert any("Night-B" in each and "w/jit_new" in each for each in told)
