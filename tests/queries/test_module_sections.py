"""The sections of a module's report: its headline, treemap, packing and tables."""

import shlex

import pyarrow as pa
import pytest

from memhouse.queries.find_module import find_module
from memhouse.queries.reporting.module import module_tables
from memhouse.queries.reporting.module.memory_timeline import space_chart
from memhouse.queries.reporting.module.module_report import module_report
from memhouse.queries.reporting.module.module_spaces import Space
from memhouse.queries.reporting.page import Chart, Table, Text

from ..support.command import run_memhouse
from ..support.warehouse import reading, writing

ESTIMATED = ("jit_conv_general_dilated", "seeds")
OOM = ("llama7b-oom-v5e", "tpu")
LLAMA = ("llama-v5e/jit_train_step", "tpu")


@pytest.fixture(scope="module")
def store(filled):
    with reading(filled) as opened:
        yield opened


@pytest.fixture(scope="module")
def nights(history):
    with reading(history) as opened:
        yield opened


def facts(report):
    return {fact.name: fact for fact in report.facts}


def section(report, title):
    (found,) = [section for section in report.sections if section.title == title]
    return found


def texts(section):
    return [part.text for part in section.parts if isinstance(part, Text)]


def treemap(report):
    (chart,) = section(report, "Who owns the peak").parts
    assert isinstance(chart, Chart)
    return chart.data["treemap"]


def test_the_headline_has_the_figures_of_peaks(store):
    found = find_module(store, *LLAMA)
    (row,) = store.rows(
        "SELECT * FROM peaks WHERE dump_id = ? AND memory_space = 0", [found.dump_id]
    ).to_pylist()
    report = module_report(store, *LLAMA)
    told = facts(report)
    for name in ("peak", "headroom", "argument", "output", "temp", "constant", "packing"):
        assert told[name].value_bytes == row[f"{name}_bytes"]
    assert told["padding"].value_bytes == row["padding_bytes"]
    assert told["headroom"].tone == "good"
    assert told["device"].text == "TPU v5e"
    assert "libtpu 933746096" in report.subtitle


@pytest.mark.slow
def test_nothing_unknown_is_shown(store):
    for name, run in (LLAMA, OOM, ESTIMATED, ("decode-h100", "gpu")):
        report = module_report(store, name, run)
        assert all(fact.text and "None" not in fact.text + fact.note for fact in report.facts)
        assert "None" not in report.subtitle


def test_the_level_of_the_run_is_told_as_since_tells_it(nights):
    report = module_report(nights, "llama-v5e", "2026-10-08")
    first, course = report.sections[0].parts
    assert first.text.startswith("llama-v5e/jit_train_step: peak 674.96 MiB since 2026-10-08")
    assert "Before: 569.65 MiB in 2026-10-07 (+105.31 MiB, +18.5 %). Cause: " in first.text
    assert course.kind == "note"
    assert "2026-10-10" not in first.text + course.text, "a later night"


def test_a_first_run_has_no_change_to_tell(nights):
    report = module_report(nights, "llama-v5e", "2026-10-01")
    assert report.sections[0].title == "Memory over time"


def test_labels_and_accepted_changes_are_told(filled, tmp_path):
    db = tmp_path / "labelled.duckdb"
    db.write_bytes(filled.read_bytes())
    with writing(db) as store:
        found = find_module(store, *LLAMA)
        store.label(["tpu"], {"commit": "abc123", "note": "<b>\x1b</b>"})
        store.connection.execute(
            """INSERT INTO accepted_changes
            VALUES ($1, 0, 'peak_bytes', 1073741824, 'a larger batch', '2026-10-02 10:00+00')""",
            [found.dump_id],
        )
        report = module_report(store, *LLAMA)
    assert facts(report)["label-commit"].text == "abc123"
    assert facts(report)["label-note"].text == "<b>\N{REPLACEMENT CHARACTER}</b>"
    assert texts(report.sections[0]) == [
        "Accepted on 2026-10-02: peak 1.00 GiB: a larger batch",
    ]


def test_a_module_that_does_not_fit_says_by_how_much(store):
    report = module_report(store, *OOM)
    headroom = facts(report)["headroom"]
    assert (headroom.label, headroom.text, headroom.tone) == (
        "does not fit",
        "44.14 GiB over",
        "bad",
    )
    warning, *advice = report.sections[0].parts
    assert warning.kind == "warning"
    assert warning.text.startswith("Out of HBM: the program needs ")
    assert advice[0].text.startswith("1. ")


def test_an_estimate_is_marked(store):
    report = module_report(store, *ESTIMATED)
    sizes = [fact for fact in report.facts if fact.value_bytes is not None]
    assert sizes
    assert all(fact.text.startswith("≈") for fact in sizes)
    assert any(part.kind == "warning" for part in report.sections[0].parts)
    assert treemap(report)["mark"] == "≈"
    assert texts(section(report, "Fragmentation")) == [
        "An estimate knows no packing: nothing is assigned yet."
    ]


@pytest.mark.parametrize("module", [LLAMA, OOM, ESTIMATED, ("decode-h100", "gpu")], ids="/".join)
def test_the_treemap_is_the_peak_to_the_byte(store, module):
    report = module_report(store, *module)
    given = treemap(report)
    for tree in given["trees"].values():
        assert tree["size_bytes"][0] == facts(report)["peak"].value_bytes
        leaves = set(range(len(tree["parent"]))) - set(tree["parent"])
        assert sum(tree["size_bytes"][leaf] for leaf in leaves) == tree["size_bytes"][0]


@pytest.mark.parametrize("shape", ["wide", "narrow"])
def test_each_layout_fills_its_frame_in_proportion(store, shape):
    given = treemap(module_report(store, *LLAMA))
    frame = given["widths"][shape] * given["height"]
    for tree in given["trees"].values():
        for owner, numbers in tree["layouts"][shape].items():
            rects = [numbers[at : at + 6] for at in range(0, len(numbers), 6)]
            # Kinds 0 and 2 are the owner's children, each once.
            children = [rect for rect in rects if rect[1] in (0, 2)]
            assert sorted(rect[0] for rect in children) == [
                child for child, parent in enumerate(tree["parent"]) if parent == owner
            ]
            for child, _, left, top, right, bottom in children:
                share = tree["size_bytes"][child] / tree["size_bytes"][owner]
                # Edges are rounded to a tenth of a pixel.
                room = 0.1 * (right - left + bottom - top) + 0.1
                assert abs((right - left) * (bottom - top) - share * frame) <= room


def test_packing_adds_up(store):
    chart = section(module_report(store, *LLAMA), "Fragmentation").parts[0]
    (row,) = [r for r in chart.tables[0].rows.table.to_pylist() if r["memory_space"] == 0]
    assert row["live_bound_bytes"] + row["packing_bytes"] == row["size_bytes"]
    bars = chart.model.select_one({"name": "packing_bars"}).data_source.data
    assert bars["size"].tolist() == [row["size_bytes"]]
    assert bars["bound"].tolist() == [row["live_bound_bytes"]]


def test_padding_at_the_peak_comes_first(store):
    table = section(module_report(store, *LLAMA), "Padding").parts[0]
    assert isinstance(table, Table)
    live = table.rows.table["live_at_peak"].to_pylist()
    assert live == sorted(live, reverse=True)
    assert any(live)


def test_a_long_table_says_how_to_list_all(nights):
    report = module_report(nights, "llama-v5e", "2026-10-07")
    tables = [part for each in report.sections for part in each.parts if isinstance(part, Table)]
    assert tables
    for table in tables:
        assert len(table.rows) <= 200
        assert ("All: memhouse " in table.rows.caption) == (len(table.rows) == 200)


def test_a_program_without_a_backward_pass_says_so(store):
    saved = section(module_report(store, "decode-h100", "gpu"), "Saved for the backward pass")
    assert texts(saved) == ["The forward pass keeps nothing for a backward pass."]


def test_the_other_spaces_of_an_estimate_are_estimates():
    space = Space(1, "vmem", 2048, 0, None, None, 4, is_estimated=True)
    occupied = pa.table({"start_time": [0, 2], "occupied_bytes": [2048, 1024]})
    (table,) = space_chart(space, occupied).tables
    cells = {title: cells for title, _, cells, _ in table.columns()}
    assert cells["occupied"] == ["≈2.00 KiB", "≈1.00 KiB"]


def test_what_a_short_table_names_lists_all(store, filled, monkeypatch):
    """The caption of a table that is cut has a command that runs."""
    monkeypatch.setattr(module_tables, "_LISTED", 1)
    report = module_report(store, *LLAMA)
    tables = [part for each in report.sections for part in each.parts if isinstance(part, Table)]
    commands = [
        shlex.split(table.rows.caption.partition("All: memhouse ")[2])
        for table in tables
        if "All: " in table.rows.caption
    ]
    assert {"sql", "donations", "kernels"} <= {command[0] for command in commands}
    for command in commands:
        done = run_memhouse(*command, "--db", filled)
        assert done.returncode == 0, done.stderr
        assert len(done.stdout.splitlines()) > 2
