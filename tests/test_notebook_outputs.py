"""What a notebook shows of every result: a table with human sizes, and a chart with bokeh."""

import inspect
import re
from html.parser import HTMLParser

import pytest

import memhouse
from memhouse.queries.read_module import ReadModule

from .support.dumps import DUMPS, one_file
from .support.hostile_names import poison

A, B, LLAMA = "2026-10-07", "2026-10-08", "llama-v5e"
LOG = DUMPS.parent / "oom/jax0.10.2-args.txt"
# Every public method that answers a question, and a call of each.
READING = {
    "sql": lambda w: w.sql("SELECT workload, peak_bytes FROM peaks"),
    "tables": lambda w: w.tables(),
    "runs": lambda w: w.runs(),
    "modules": lambda w: w.modules(run=B),
    "peaks": lambda w: w.peaks(),
    "fragmentation": lambda w: w.fragmentation(),
    "owners": lambda w: w.owners(LLAMA),
    "buffers": lambda w: w.buffers(LLAMA),
    "advise": lambda w: w.advise(LLAMA),
    "donations": lambda w: w.donations(LLAMA, run=B),
    "kernels": lambda w: w.kernels(),
    "saved": lambda w: w.saved(LLAMA),
    "timeline": lambda w: w.timeline(LLAMA),
    "trends": lambda w: w.trends(),
    "since": lambda w: w.since(LLAMA),
    "diff": lambda w: w.diff(A, B, workload=LLAMA),
    "check": lambda w: w.check(),
    "verify": lambda w: w.verify(),
    "oom": lambda w: w.oom(log=LOG),
    "log": lambda w: w.log(),
}
# What has no sizes: lists of names, and what became of a command.
WITHOUT_SIZES = {"tables", "log", "verify"}
CHARTED = {"timeline", "owners", "trends", "diff"}
# Reports are opened in a browser; the others write.
ELSEWHERE = {"accept", "close", "compact", "export", "export_trace", "ingest", "label", "passes"}
ELSEWHERE |= {"export_sql", "merge", "prune", "publish", "record"}
ELSEWHERE |= {"report", "report_diff", "report_history", "report_site"}
SIZE = re.compile(r"\d(\.\d\d)? ([KMGT]i)?B\b")


def public(kind):
    return {name for name, _ in inspect.getmembers(kind, inspect.isfunction) if name[0] != "_"}


def test_every_method_is_looked_at():
    assert public(memhouse.Warehouse) == {*READING, *ELSEWHERE}
    assert public(ReadModule) <= {*READING, *ELSEWHERE, "changes_since"}


def test_an_answer_is_a_table_with_sizes_and_prints_nothing(nightly, capfd):
    shown = {name: ask(nightly)._repr_html_() for name, ask in READING.items()}
    assert [wrong for name in READING if (wrong := looks_wrong(name, shown[name]))] == []
    assert [name for name in CHARTED if "srcdoc" not in shown[name]] == []
    assert capfd.readouterr() == ("", "")


def test_a_module_that_was_read_shows_the_same(module, nightly):
    # A CPU has no kernels that reserve memory; `test_module_report.py` has its report.
    asked = public(ReadModule) - {"kernels", "changes_since", "report"}
    shown = {name: getattr(module, name)()._repr_html_() for name in sorted(asked)}
    assert [wrong for name in shown if (wrong := looks_wrong(name, shown[name]))] == []
    (dump,) = nightly.sql(
        "SELECT dump_id FROM dumps WHERE workload = 'llama-cpu' AND run_id = $1", [B]
    ).arrow()["dump_id"]
    assert SIZE.search(module.changes_since(nightly.store, dump.as_py())._repr_html_())
    whole = module._repr_html_()
    assert "srcdoc" in whole
    assert "<th style" in whole


def test_an_examined_folder_and_a_log_are_shown():
    shown = memhouse.doctor(DUMPS / "seeds")._repr_html_()
    assert "<td" in shown
    assert SIZE.search(shown)
    assert SIZE.search(memhouse.read_oom(LOG)._repr_html_())


def test_a_chart_takes_bokeh_from_its_cdn_and_an_offline_one_is_whole(nightly, monkeypatch):
    shown = nightly.timeline(LLAMA)._repr_html_()
    assert "https://cdn.bokeh.org/bokeh/release/bokeh-" in shown
    assert len(shown) < 100_000
    monkeypatch.setenv("BOKEH_RESOURCES", "inline")
    whole = nightly.timeline(LLAMA)._repr_html_()
    assert "cdn.bokeh.org" not in whole
    assert 400_000 < len(whole) < 700_000


def test_a_result_of_a_closed_warehouse_still_has_its_table(history):
    with memhouse.open(history, read_only=True) as warehouse:
        found = warehouse.timeline(LLAMA)
    assert found._repr_html_().startswith("<p>llama-v5e")


@pytest.mark.slow
def test_hostile_names_stay_text(own):
    poison(own)
    with memhouse.open(own) as warehouse:
        runs = warehouse.sql("SELECT run_id FROM runs ORDER BY run_at").arrow()["run_id"]
        a, b = (str(name) for name in runs.to_pylist()[-2:])
        found = warehouse.sql("SELECT module_id FROM dumps WHERE run_id = $1 LIMIT 1", [b])
        module = found.arrow()["module_id"][0].as_py()
        asked = [READING[name](warehouse) for name in ("runs", "peaks", "trends", "check")]
        asked.append(warehouse.modules(run=b))
        for name in ("owners", "buffers", "timeline", "donations", "since"):
            asked.append(getattr(warehouse, name)(module))
        asked.append(warehouse.diff(a, b))
        for result in asked:
            tags = Tags()
            tags.feed(result._repr_html_())
            assert tags.found <= {"iframe", "table", "thead", "tbody", "tr", "th", "td", "p"}
            assert "\u202e" not in str(result)


class Tags(HTMLParser):
    """The tags of a text of HTML."""

    def __init__(self):
        super().__init__()
        self.found = set()

    def handle_starttag(self, tag, attrs):
        self.found.add(tag)


# --- print ----------------------------------------------------------------------------------


def test_rows_are_printed_as_on_a_terminal(nightly, tmp_path):
    shown = str(nightly.since("decode-v5e")).splitlines()
    assert shown[6].startswith("since_run   last_run    runs      value      change")
    assert shown[8].split()[-5:] == ["-32.00", "MiB", "-32.3", "%", "2026-10-03"]
    # At most twenty rows, no wider than a notebook.
    shown = str(nightly.sql("SELECT range AS n FROM range(50)")).splitlines()
    assert len(shown) == 22
    assert "30" in shown[-1]
    lines = str(nightly.buffers(LLAMA)).splitlines()
    assert max(map(len, lines[:-1])) <= 120
    # An empty answer is a sentence.
    found = nightly.modules(run="2026-10-07", workload="llama-cpu")
    assert repr(found) == found.empty
    with memhouse.open(tmp_path / "typo.duckdb") as warehouse:
        assert "typo.duckdb" in repr(warehouse.peaks())


def looks_wrong(name, shown):
    """The method's name and what it shows, if that is no table with sizes, or no page."""
    told = re.sub(r"<iframe.*?</iframe>", "", shown, flags=re.DOTALL)
    is_right = (
        ("srcdoc" in shown) == (name in CHARTED)
        and ("<td" in told or "<p>" in told)
        and bool(SIZE.search(told)) == (name not in WITHOUT_SIZES)
        # A raw figure of bytes is one that nobody reads.
        and (name == "modules" or not re.search(r">\d{8,}<", told))
    )
    return None if is_right else (name, told[:2000])


@pytest.fixture(scope="module")
def nightly(history):
    with memhouse.open(history, read_only=True) as warehouse:
        yield warehouse


@pytest.fixture(scope="module")
def module():
    return memhouse.read(one_file("cpu/jax-0.10.2/module_0018*after_optimizations.txt"))
