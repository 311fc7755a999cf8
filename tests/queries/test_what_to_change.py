"""What `check` and `oom` say to change."""

import memhouse
from memhouse.cli.render.markdown import as_code, as_text
from memhouse.queries.checking.what_to_change import what_to_change

from ..support.command import run_memhouse
from ..support.warehouse import reading, rows, writing


def test_only_programs_that_fail_are_advised(history):
    """Of three that grew two have nothing sure to change: a longer cache, a larger batch."""
    with memhouse.open(history, read_only=True) as warehouse:
        found = warehouse.check("2026-10-08")
        passing = warehouse.check("2026-10-02")
    with reading(history) as store:
        changes = what_to_change(store, found.verdicts)
        assert what_to_change(store, passing.verdicts) == []
    (change,) = changes
    assert change.name == "llama-v5e/jit_train_step"
    (finding,) = change.findings
    assert finding.title.startswith("donate p, m and v")


def test_every_format_for_people_says_it(history):
    for output in ("markdown", "table", "github"):
        said = run_memhouse("check", "--db", history, "--run", "2026-10-08", "-f", output).stdout
        assert "-105.31 MiB (expected, ± 1% of the new peak): donate p, m and v" in said
    for output in ("csv", "json"):
        said = run_memhouse("check", "--db", history, "--run", "2026-10-08", "-f", output).stdout
        assert "donate_argnames" not in said


def test_a_dump_without_live_ranges_is_judged_all_the_same(own):
    with writing(own) as store:
        store.execute("DELETE FROM live_ranges")
    done = run_memhouse("check", "--db", own, "--run", "2026-10-08")
    assert done.returncode == 1
    assert "What to change" not in done.stdout
    assert "donation lost: 132 MiB of m, v, p" in done.stdout


def test_names_are_text_in_markdown():
    assert as_text("a[0] <b> *c* `d` \\e") == r"a\[0\] \<b> \*c\* \`d\` \\e"
    assert as_code("x") == "`x`"
    assert as_code("a ` b") == "``a ` b``"


def test_programs_of_one_device(filled):
    """The arguments of all, each once, and the largest peak beyond a program's own arguments.

    Programs below 1 % of the largest are helpers, which say nothing.
    """
    arguments = dict(
        rows(
            filled,
            "SELECT module_id, SUM(padded_bytes)::BIGINT FROM _entry_arrays "
            "INNER JOIN dumps USING (module_id) "
            "WHERE run_id = 'seeds' AND memory_space = 0 AND NOT is_output GROUP BY module_id",
        )
    )
    peaks = dict(
        rows(
            filled,
            "SELECT module_id, peak_bytes FROM module_memory INNER JOIN dumps USING (module_id) "
            "WHERE run_id = 'seeds' AND memory_space = 0",
        )
    )
    small = {module for module, peak in peaks.items() if peak < 0.01 * max(peaks.values())}
    beyond = max(peak - arguments.get(module, 0) for module, peak in peaks.items())
    largest = max(peaks, key=peaks.__getitem__)
    with memhouse.open(filled, read_only=True) as warehouse:
        (found,) = (
            finding
            for finding in warehouse.advise(largest, run="seeds").findings
            if finding.kind == "programs of one device"
        )
    assert (len(peaks), len(small)) == (5, 1)
    assert found.saving_bytes is None
    kept = sum(size for module, size in arguments.items() if module not in small)
    gib = (kept + beyond) / (1 << 30)
    assert found.title == (
        f"with 3 other programs of its workload on the device, it needs {gib:.2f} GiB"
    )
