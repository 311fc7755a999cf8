"""A module's report: its headline, sections, charts and tables are what the warehouse has."""

import re
import shlex
from functools import cache
from itertools import accumulate

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from bokeh.io import save
from bokeh.models import UIElement
from bokeh.resources import INLINE
from hypothesis import given, settings
from hypothesis import strategies as st

import memhouse
from memhouse.queries.modules import find_module
from memhouse.report.memory_over_time import stacks_of
from memhouse.report.memory_timeline import space_chart
from memhouse.report.module_report import module_report
from memhouse.report.module_spaces import Space, module_buffers, module_spaces
from memhouse.report.page import Table, Text, packed
from memhouse.report.sections import module_tables
from memhouse.report.value_details import (
    buffer_table,
    pinned_panel,
    value_details,
)

from ..support.command import run_memhouse
from ..support.dumps import one_file
from ..support.rounds import rounds
from ..support.warehouse import reading, writing

ESTIMATED = ("jit_conv_general_dilated", "seeds")
OOM = ("llama7b-oom-v5e", "tpu")
LLAMA = ("llama-v5e/jit_train_step", "tpu")
DECODE = ("decode-h100", "gpu")
CHANGES = "What to change"


@pytest.fixture(scope="module")
def store(filled):
    with reading(filled) as opened:
        yield opened


@pytest.fixture(scope="module")
def report(store):
    """The report of a module of the samples. Only read it."""
    return cache(lambda module: module_report(store, *module))


@pytest.fixture(scope="module")
def llama(store):
    """The id of the llama module of the TPU."""
    return find_module(store, *LLAMA).module_id


def facts(report):
    return {fact.name: fact for fact in report.facts}


def section(report, title):
    (found,) = [section for section in report.sections if section.title == title]
    return found


def texts(section):
    return [part.text for part in section.parts if isinstance(part, Text)]


def tables(report):
    return [part for each in report.sections for part in each.parts if isinstance(part, Table)]


def treemap(report):
    chart, *_ = section(report, "Who owns the peak").parts
    return chart.data["treemap"]


def flame(report):
    _, drawn, _ = section(report, "Who owns the peak").parts
    return drawn.data["flame"]


# --- the headline -----------------------------------------------------------------------


def test_the_headline_has_the_figures_of_peaks(store, report):
    found = find_module(store, *LLAMA)
    (row,) = store.rows(
        "SELECT * FROM peaks_by_space AS peaks WHERE dump_id = ? AND memory_space = 0",
        [found.dump_id],
    ).to_pylist()
    told = facts(report(LLAMA))
    parts = ("argument", "output", "temp", "constant", "fragmentation", "padding")
    for name in ("peak", "headroom", *parts):
        assert told[name].value_bytes == row[f"{name}_bytes"]
    assert told["headroom"].tone == "good"
    assert told["device"].text == "TPU v5e"
    assert "libtpu 933746096" in report(LLAMA).subtitle


def test_nothing_unknown_is_shown_and_the_pictures_are_the_peak_to_the_byte(report):
    for module in (LLAMA, OOM, ESTIMATED, DECODE):
        found = report(module)
        assert all(fact.text and "None" not in fact.text + fact.note for fact in found.facts)
        assert "None" not in found.subtitle
        trees = [*treemap(found)["trees"].values(), *flame(found)["trees"].values()]
        for tree in trees:
            assert tree["size_bytes"][0] == facts(found)["peak"].value_bytes
            leaves = set(range(len(tree["parent"]))) - set(tree["parent"])
            assert sum(tree["size_bytes"][leaf] for leaf in leaves) == tree["size_bytes"][0]


def test_the_level_of_the_run_is_told_as_of_that_run(history, report):
    with reading(history) as nights:
        found = module_report(nights, "llama-v5e", "2026-10-08")
    first, course = found.sections[0].parts
    for told in ("674.96 MiB", "569.65 MiB", "2026-10-07", "+105.31 MiB", "+18.5 %"):
        assert told in first.text
    assert course.kind == "note"
    assert "2026-10-10" not in first.text + course.text, "a later night"
    # A first run has no change to tell.
    assert report(LLAMA).sections[0].title == "Memory over time"


def test_labels_and_accepted_changes_are_told(copied):
    with writing(copied) as store:
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
    (accepted,) = texts(report.sections[0])
    assert all(told in accepted for told in ("2026-10-02", "1.00 GiB", "a larger batch"))


def test_a_module_that_does_not_fit_says_by_how_much(report):
    headroom = facts(report(OOM))["headroom"]
    assert headroom.tone == "bad"
    assert "44.14 GiB" in headroom.text
    warning, *advice = report(OOM).sections[0].parts
    assert warning.kind == "warning"
    assert advice[0].text.startswith("1. ")


def test_an_estimate_is_marked(report):
    found = report(ESTIMATED)
    sizes = [fact for fact in found.facts if fact.value_bytes is not None]
    assert sizes
    assert all(fact.text.startswith("≈") for fact in sizes)
    assert any(part.kind == "warning" for part in found.sections[0].parts)
    assert treemap(found)["mark"] == "≈"
    # Nothing is assigned yet, so that there is no packing.
    (told,) = section(found, "Fragmentation").parts
    assert isinstance(told, Text)
    # Its other memory spaces are estimates too.
    space = Space(1, "vmem", 2048, 0, None, None, 4, is_estimated=True)
    occupied = pa.table({"start_time": [0, 2], "occupied_bytes": [2048, 1024]})
    (table,) = space_chart(space, occupied).tables
    cells = {title: cells for title, _, cells, _ in table.columns()}
    assert cells["occupied"] == ["≈2.00 KiB", "≈1.00 KiB"]


def test_a_module_that_was_read_has_a_report(tmp_path):
    module = memhouse.read(one_file("cpu/jax-0.10.2/module_0018*after_optimizations.txt"))
    page = module.report().save(tmp_path / "x.html").read_text()
    assert module.name in page
    assert "≈" in page


# --- the sections -----------------------------------------------------------------------


def test_packing_adds_up_and_padding_at_the_peak_comes_first(report):
    chart = section(report(LLAMA), "Fragmentation").parts[0]
    (row,) = [r for r in chart.tables[0].rows.table.to_pylist() if r["memory_space"] == 0]
    assert row["live_bound_bytes"] + row["fragmentation_bytes"] == row["size_bytes"]
    bars = chart.model.select_one({"name": "packing_bars"}).data_source.data
    assert bars["size"].tolist() == [row["size_bytes"]]
    assert bars["bound"].tolist() == [row["live_bound_bytes"]]
    table = section(report(LLAMA), "Padding").parts[0]
    live = table.rows.table["live_at_peak"].to_pylist()
    assert live == sorted(live, reverse=True)
    assert any(live)


def test_sections_are_there_where_there_is_something_to_tell(report, store, copied, llama):
    saved = section(report(DECODE), "Saved for the backward pass")
    assert all(isinstance(part, Text) for part in saved.parts), "there is no backward pass"
    assert CHANGES in [each.title for each in report(LLAMA).sections]
    # Advice is of the main memory, and needs live ranges.
    of_another_space = module_report(store, llama, memory_space=1)
    with writing(copied) as changed:
        changed.connection.execute(
            f"""UPDATE module_memory SET peak_bytes = NULL, peak_time = NULL
            WHERE module_id = {llama}"""
        )
        without_ranges = module_report(changed, llama)
    for found in (of_another_space, without_ranges):
        assert CHANGES not in [each.title for each in found.sections]


def test_a_long_table_names_a_command_that_lists_all(store, report, filled, monkeypatch):
    found = tables(report(LLAMA))
    assert found
    # What is not cut has all.
    assert not any("All: " in table.rows.caption for table in found if len(table.rows) < 200)
    monkeypatch.setattr(module_tables, "_LISTED", 1)
    captions = [table.rows.caption for table in tables(module_report(store, *LLAMA))]
    commands = [
        shlex.split(caption.partition("All: memhouse ")[2])
        for caption in captions
        if "All: " in caption
    ]
    assert {"sql", "donations", "kernels"} <= {command[0] for command in commands}
    for command in commands:
        done = run_memhouse(*command, "--db", filled)
        assert done.returncode == 0, done.stderr
        assert len(done.stdout.splitlines()) > 2


def test_a_report_is_the_same_page_again_also_after_bokeh_saved_its_charts(report, tmp_path):
    """Bokeh numbers models on and on in a process, and keeps what it saved in a document."""

    def without_models():
        found, count = re.subn(r">[A-Za-z0-9+/=]{200,}<", "><", report(LLAMA).html())
        assert count
        return re.sub(r"\bp\d+\b|[0-9a-f]{8}-[0-9a-f-]{27}", "p", found)

    before = without_models()
    charts = list(report(LLAMA).charts())
    assert len(charts) > 3
    assert all(isinstance(chart.model, UIElement) for chart in charts)
    save(charts[0].model, tmp_path / "x.html", resources=INLINE, title="x")
    assert without_models() == before
    assert "srcdoc" in charts[1]._repr_html_()


# --- buffers ----------------------------------------------------------------------------


def test_the_buffers_of_every_module_add_up_to_its_peak(store):
    spaces = store.rows(
        """SELECT module_memory.module_id, module_memory.memory_space, module_memory.peak_bytes,
            module_memory.reserved_bytes,
            COUNT(buffer_extents.module_id) AS buffers
        FROM module_memory
        LEFT JOIN internal.buffer_extents USING (module_id, memory_space)
        GROUP BY ALL"""
    ).to_pylist()
    assert any(space["buffers"] > 100 for space in spaces)
    for space in spaces:
        found = module_buffers(store, space["module_id"], space["memory_space"])
        assert len(found) == space["buffers"]
        if space["peak_bytes"] is not None:
            assert (pc.sum(found["peak_counted_bytes"]).as_py() or 0) == space["peak_bytes"]
        if space["reserved_bytes"] is not None:
            for row in found.select(["address", "size_bytes"]).to_pylist():
                assert 0 <= row["address"] <= space["reserved_bytes"] - row["size_bytes"]


def at(times, steps, values):
    return values[..., np.searchsorted(steps, times, "right") - 1]


@pytest.mark.slow
def test_the_stacks_add_up_to_what_is_occupied_at_every_time(store):
    compared = 0
    for module in store.rows(
        "SELECT DISTINCT ON (module_id) module_id, dump_id FROM dumps"
    ).to_pylist():
        spaces = module_spaces(store, module["module_id"], module["dump_id"])
        for number, space in spaces.items():
            buffers = module_buffers(store, module["module_id"], number)
            if space.peak_bytes is None or not len(buffers):
                continue
            occupied = store.rows(
                "SELECT start_time, occupied_bytes FROM occupancy"
                " WHERE module_id = $1 AND memory_space = $2 ORDER BY start_time",
                [module["module_id"], number],
            )
            every = np.arange(space.schedule_length or 0)
            known = at(every, *(occupied[name].to_numpy() for name in occupied.column_names))
            for by in ("pass", "category"):
                stacks = stacks_of(space, buffers)[by]
                assert (stacks.sums >= 0).all()
                drawn = at(every, stacks.times, stacks.sums).sum(axis=0)
                assert (drawn == known).all()
                assert drawn.max() == space.peak_bytes
                compared += 1
    assert compared > 40


# --- what is told of each value ---------------------------------------------------------


def unpacked(column):
    """A column as it was: what `pages/columns.js` does."""
    if isinstance(column, list):
        return list(accumulate(column))
    return [None if row < 0 else column["texts"][row] for row in accumulate(column["rows"])]


def details_of(store, module_id, space=0):
    """The details of a memory space with their columns unpacked."""
    details = value_details(store, module_id, space, module_buffers(store, module_id, space))
    details["readers"] = unpacked(details["readers"])
    for name in ("values", "instructions", "frames", "allocations"):
        details[name] = {key: unpacked(column) for key, column in details[name].items()}
    return details


def names(instructions):
    numbers = ("" if number < 0 else str(number) for number in instructions["number"])
    return [stem + number for stem, number in zip(instructions["stem"], numbers, strict=True)]


@settings(max_examples=rounds(50))
@given(
    st.lists(
        st.tuples(
            st.one_of(st.none(), st.integers(0, 2**53)),
            st.one_of(st.none(), st.text(st.characters(categories=["L", "P"]))),
        )
    )
)
def test_what_is_packed_comes_out_again(rows):
    numbers = pa.array([number for number, _ in rows], pa.int64())
    told = pa.array([text for _, text in rows], pa.string())
    columns = packed(pa.table({"number": numbers, "text": told}))
    assert unpacked(columns["number"]) == [-1 if n is None else n for n in numbers.to_pylist()]
    assert unpacked(columns["text"]) == told.to_pylist()


def test_control_characters_do_not_reach_the_page():
    columns = packed(pa.table({"text": ["a\u202eb\x1b"]}))
    assert unpacked(columns["text"]) == ["a\N{REPLACEMENT CHARACTER}b\N{REPLACEMENT CHARACTER}"]


VALUES = """
SELECT "values".*, made.instruction, start_time, end_time
FROM "values"
INNER JOIN instructions AS made USING (module_id, instruction_id)
LEFT JOIN live_ranges
    ON live_ranges.module_id = made.module_id AND live_ranges.value_id = "values".value_id
WHERE made.module_id = $1 AND memory_space = $2
ORDER BY "values".value_id
"""


@pytest.mark.slow
def test_each_value_is_told_as_the_warehouse_has_it(store):
    spaces = store.rows("""SELECT DISTINCT module_id, memory_space FROM "values"
        SEMI JOIN dumps USING (module_id)""").to_pylist()
    assert len(spaces) > 20
    for space in spaces:
        parameters = [space["module_id"], space["memory_space"]]
        details = details_of(store, *parameters)
        values, instruction = details["values"], names(details["instructions"])
        wanted = store.rows(VALUES, parameters)
        for column in ("value_id", "size_bytes", "shape", "shape_index", "origin_rule", "pass"):
            assert values[column] == wanted[column].to_pylist()
        for column in ("start_time", "end_time", "last_use_time", "offset_bytes"):
            assert values[column] == wanted[column].fill_null(-1).to_pylist()
        assert [instruction[row] for row in values["made_by"]] == wanted["instruction"].to_pylist()
        assert sum(values["named_readers"]) == len(details["readers"])


def test_a_value_of_llama_has_its_origin_stack_and_aliases(store, llama):
    """What a loop of the forward pass stacks: the value while.47{2} keeps it for the backward."""
    details = details_of(store, llama)
    values, frames, instructions = (details[name] for name in ("values", "frames", "instructions"))
    instruction = names(instructions)
    told = [instruction[row] for row in values["made_by"]]
    row = told.index("bitcast_dynamic-update-slice_fusion.5")
    assert values["origin_rule"][row] == "loop"
    origin = values["origin"][row]
    assert instruction[origin] == "add.510"

    stack, frame = [], instructions["frame"][origin]
    while frame >= 0:
        stack.append((frames["place"][frame], frames["function"][frame]))
        frame = frames["caller"][frame]
    assert stack[0] == ("/train/zoo/zoo.py:35", "layer")
    assert stack[-1] == ("/train/zoo/zoo.py:52", "<module>")

    aliases = [
        at for at, name in enumerate(values["alias_set"]) if name == values["alias_set"][row]
    ]
    assert {told[at] + values["shape_index"][at] for at in aliases} == {
        "custom-call.6{}",
        "wide.param.42{2}",
        "wide.param.1{2}",
        "bitcast_dynamic-update-slice_fusion.5{}",
        "while.47{2}",
    }


def test_the_panel_the_map_and_the_table_have_the_same_buffers(store, llama):
    buffers = module_buffers(store, llama)
    details = details_of(store, llama)
    base = dict(
        zip(*(details["allocations"][k] for k in ("allocation_index", "base")), strict=True)
    )
    for row in buffers.to_pylist():
        assert base[row["allocation_index"]] + row["offset_bytes"] == row["address"]
    largest = max(buffers.to_pylist(), key=lambda row: row["peak_counted_bytes"])
    assert details["first"] == largest["value_id"]

    columns = buffer_table(buffers, 437).data["buffers"]["columns"]
    counted = unpacked(columns["peak_counted_bytes"])
    assert sum(counted) == pc.sum(buffers["peak_counted_bytes"]).as_py()
    assert unpacked(columns["value_id"]) == sorted(buffers["value_id"].to_pylist())

    # A memory space without values has no details.
    details = value_details(store, llama, 99, module_buffers(store, llama, 99))
    assert (details["values"]["value_id"], details["first"]) == ([], -1)
    assert pinned_panel(details, "99", 0, is_estimated=False).data["values"]["readers"] == []
