"""The report of a diff: peaks, bars that add up, maps on one scale, and what is said of both."""

from itertools import pairwise

import pytest

from memhouse.queries.reporting.difference.diff_report import diff_report
from memhouse.queries.reporting.page import Beside, Table, Text
from memhouse.schema.errors import UsageError

from ..support.history import NIGHTS
from ..support.made_runs import make_run
from ..support.warehouse import reading, rows

CASE = ("2026-10-07", "2026-10-08")


@pytest.fixture(scope="module")
def nights_store(history):
    with reading(history) as store:
        yield store


@pytest.fixture(scope="module")
def samples(filled):
    with reading(filled) as store:
        yield store


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


def waterfalls(report):
    """By the name of a waterfall what it sums by, and of each what its bars reach."""
    for chart in report.charts():
        if chart.model.name.startswith("waterfall"):
            yield chart.data[chart.model.name]


def module_named(db, workload, night):
    ((found,),) = rows(
        db, f"SELECT module_id FROM dumps WHERE (workload, run_id) = ('{workload}', '{night}')"
    )
    return str(found)


def test_a_page_has_a_section_for_each_module_that_changed(nights_store):
    report = diff_report(nights_store, *CASE)
    assert report.title == "2026-10-07 → 2026-10-08"
    assert [section.title for section in report.sections] == [
        "",
        "llama-v5e/jit_train_step",
        "resnet-h100/jit_train",
    ]
    assert facts(report)["changed"].text == "2 of 3"
    assert facts(report)["largest"].text == "+105.31 MiB"
    assert texts(report)[:2] == [
        "The same in both: decode-v5e/jit_generate.",
        "Only in 2026-10-08: llama-cpu/jit_train_step.",
    ]


def test_the_headline_has_the_peaks_and_the_cause_of_the_warehouse(nights_store, history):
    report = diff_report(nights_store, *CASE, "llama-v5e")
    said = facts(report)
    peaks = dict(
        rows(
            history,
            "SELECT run_id, peak_bytes FROM peaks "
            "WHERE workload = 'llama-v5e' AND memory_space = 0",
        )
    )
    assert said["peak_a"].value_bytes == peaks[CASE[0]]
    assert said["peak_b"].value_bytes == peaks[CASE[1]]
    assert said["change"].value_bytes == peaks[CASE[1]] - peaks[CASE[0]]
    ((cause,),) = rows(
        history,
        "SELECT cause FROM history INNER JOIN dumps USING (dump_id) "
        f"WHERE run_id = '{CASE[1]}' AND workload = 'llama-v5e'",
    )
    assert said["cause"].text == cause == "donation lost: 132 MiB of m, v, p"


@pytest.mark.parametrize(
    "pair", [pytest.param(p, marks=() if p == CASE else pytest.mark.slow) for p in pairwise(NIGHTS)]
)
def test_bars_lead_from_peak_to_peak_whatever_they_sum_by(nights_store, pair):
    report = diff_report(nights_store, *pair)
    found_bars = list(waterfalls(report))
    assert bool(found_bars) == (report.gist != "0 of 4 modules changed")
    sections = [section for section in report.sections if section.facts]
    sections = sections or [report] * len(found_bars)
    for found, section in zip(found_bars, sections, strict=True):
        peaks = [facts(section)[name].value_bytes for name in ("peak_a", "peak_b")]
        assert sorted(found) == ["buffer", "pass", "role", "scope", "source"]
        for bars in found.values():
            assert [bars["after"][0], bars["after"][-1]] == peaks
            # The last bar but one ends where peak B does.
            assert bars["after"][-2] == peaks[1]


def test_maps_stand_on_one_scale_and_say_what_became_of_the_buffers(nights_store):
    report = diff_report(nights_store, *CASE, "llama-v5e")
    charts = {chart.model.name: chart for chart in report.charts()}
    a, b = charts["address_map_a"], charts["address_map_b"]
    assert a.model.y_range is b.model.y_range
    times = [charts[f"memory_timeline_{side}"].model.x_range for side in "ab"]
    assert [a.model.x_range, b.model.x_range] == times
    left, came = (
        dict(zip(way["names"], way["peak_bytes"], strict=True))
        for way in (chart.data[chart.model.name]["ways"]["change"] for chart in (a, b))
    )
    said = facts(report)
    assert sum(left.values()) == said["peak_a"].value_bytes
    assert sum(came.values()) == said["peak_b"].value_bytes
    change = came["came to the peak"] - left["left the peak"]
    assert change == said["change"].value_bytes
    assert left["as large as before"] == came["as large as before"]


def test_tables_that_are_cut_say_so(nights_store):
    report = diff_report(nights_store, "2026-10-09", "2026-10-10", "llama-v5e")
    table = tables(report)["by-buffer"].rows
    assert len(table) <= 100
    assert ("lists all" in table.caption) == (len(table) == 100)


def test_nothing_differs_between_equal_nights(nights_store):
    report = diff_report(nights_store, "2026-10-01", "2026-10-02")
    assert facts(report)["changed"].text == "0 of 4"
    assert list(report.charts()) == []
    assert "The same in both: decode-v5e/jit_generate" in texts(report)[0]


def test_nothing_differs_between_a_module_and_itself(nights_store, history):
    module = module_named(history, "llama-v5e", "2026-10-08")
    report = diff_report(nights_store, module, module)
    assert facts(report)["cause"].text == "the same"
    assert texts(report) == ["Nothing differs: neither flags, nor figures, nor buffers."]


def test_two_modules(samples):
    report = diff_report(samples, "tpu/llama-v5e", "llama-v5e-jax0.7.0")
    assert report.title == "llama-v5e/jit_train_step → llama-v5e-jax0.7.0/jit_train_step"
    assert facts(report)["cause"].text.startswith("compiler 933746096 → 788670714")
    assert len(list(report.charts())) == 5


def test_an_estimate_is_said_wherever_it_is_shown(samples, filled):
    ((estimated,),) = rows(
        filled,
        "SELECT module_id FROM peaks WHERE origin = 'estimated' AND memory_space = 0 "
        "AND module_name = 'jit_conv_general_dilated'",
    )
    report = diff_report(samples, str(estimated), "000_e0d5fae9bf2de249")
    said = facts(report)
    assert said["peak_a"].text.startswith("≈")
    assert said["change"].text.startswith("≈")
    assert not said["peak_b"].text.startswith("≈")
    assert texts(report)[0].startswith("A is estimated from HLO text alone, the other side is not")
    cells = {
        title: cells for title, _, cells, _ in tables(report)["figures"].columns() if any(cells)
    }
    assert all(cell.startswith("≈") for cell in cells["A"] if cell)
    assert not any(cell.startswith("≈") for cell in cells["B"])
    names = [chart.model.name for chart in report.charts()]
    assert "address_map_a" not in names


def test_a_module_of_one_night_alone_is_named(nights_store):
    report = diff_report(nights_store, *CASE, "llama-cpu")
    assert texts(report) == ["Only in 2026-10-08: llama-cpu/jit_train_step."]


def test_names_keep_their_capitals(db):
    make_run(db, "Night-A", {"w/jit_stays": 100}, day=0)
    make_run(db, "Night-B", {"w/jit_stays": 100, "w/jit_new": 1}, day=1)
    with reading(db) as store:
        report = diff_report(store, "Night-A", "Night-B")
    assert "Only in Night-B: w/jit_new." in texts(report)


def test_a_run_that_is_not_there_is_an_error(nights_store):
    with pytest.raises(UsageError, match="is a run"):
        diff_report(nights_store, "2026-10-07", "2026-13-08")


def test_switches_and_zoom_move_both_sides(browser, nights_store, tmp_path):
    path = diff_report(nights_store, *CASE, "llama-v5e").save(tmp_path / "diff.html")
    browser.open(path)
    choose = (
        "(() => { const s = document.getElementById(arguments[0]); s.value = arguments[1];"
        " s.dispatchEvent(new Event('change')); return true; })()"
    )
    assert browser.value(choose, "waterfall-by", "buffer")
    names = browser.value("memhouse.model('waterfall_bars').data.name")
    assert "came zoo.py:31 add f32[3,512,1408]" in names
    legend = "document.getElementById('address_map_b-legend').textContent"
    assert "came to the peak 131.90 MiB" in browser.value(legend)
    assert browser.value(choose, "map_a-colour", "pass")
    assert "optimizer" in browser.value(legend)
    moved = browser.value(
        "(memhouse.model('address_map_a').y_range.setv({start: 1e8, end: 2e8}),"
        " memhouse.model('address_map_b').y_range.start)"
    )
    assert moved == 1e8
    assert browser.console_errors() == []
