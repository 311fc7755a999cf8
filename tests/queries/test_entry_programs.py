"""Entry programs are shown and judged; helpers are a line, and no event until one is large."""

import json

import pytest

import memhouse
from memhouse.queries.modules import find_module

from ..support.command import run_memhouse
from ..support.made_runs import MIB, make_run
from ..support.warehouse import reading, rows

STEP, EVAL, INIT = "train/jit_step", "train/jit_eval", "train/jit_init"
NIGHTS = ("n0", "n1", "n2", "n3")


@pytest.fixture
def made(db):
    """Four nights: helpers come, grow and go; then one becomes large, and small again."""
    for day, init in enumerate((40, 44, 400, 20)):
        programs = {STEP: 1000, EVAL: 300, INIT: init, "train/jit_add": 5}
        gone = {"train/jit_mul": 10, "train/jit_neg": 9} if day == 0 else {}
        make_run(db, f"n{day}", {**programs, **gone}, day=day)
    return db


def entries(db, run):
    query = f"SELECT module_name FROM peaks WHERE is_entry AND run_id = '{run}' ORDER BY 1"
    return [name.removeprefix("jit_") for (name,) in rows(db, query)]


def test_a_twentieth_of_the_largest_peak_parts_entry_programs_from_helpers(made):
    assert [entries(made, run) for run in NIGHTS] == [
        ["eval", "step"],
        ["eval", "step"],
        ["eval", "init", "step"],
        ["eval", "step"],
    ]


def test_a_short_program_is_an_entry_program_from_half_of_the_largest_peak_on(db):
    """An eager operation on a batch, and a program of one kernel."""
    programs = {
        "train/jit_step": {"peak_bytes": 1000, "schedule_length": 900},
        "train/jit_add": {"peak_bytes": 400, "schedule_length": 3},
        "train/jit_sum": {"peak_bytes": 500, "schedule_length": 3},
        "train/jit_eval": {"peak_bytes": 300, "schedule_length": 90},
        "kernel/jit_k": {"peak_bytes": 100, "schedule_length": 2},
    }
    make_run(db, "a", programs, day=1)
    assert entries(db, "a") == ["eval", "k", "step", "sum"]


def test_helpers_that_come_grow_and_go_are_no_event_and_one_that_becomes_large_is(made):
    with memhouse.open(made, read_only=True) as warehouse:
        judged = [warehouse.check(run) for run in NIGHTS[1:]]
        found = warehouse.trends()
        whole = warehouse.trends(fold=False)
    assert [check.outcome for check in judged] == ["pass", "fail", "pass"]
    assert [verdict.module_name for verdict in judged[1].breaches] == ["jit_init"]
    assert [check.helpers for check in judged] == [
        "2 helpers, at most 44.00 MiB",
        "1 helper, at most 5.00 MiB",
        "1 helper, at most 5.00 MiB",
    ]
    # The series of what was large once stays; its steps are told from the newest on.
    assert found.series.table["module"].to_pylist() == ["jit_step", "jit_eval", "jit_init"]
    steps = found.steps.table.to_pylist()
    assert [(step["module"], step["change"] // MIB) for step in steps] == [
        ("jit_init", -380),
        ("jit_init", 356),
        ("jit_init", 4),
    ]
    assert found.helpers == "3 helpers, at most 10.00 MiB"
    assert set(whole.series.table["module"].to_pylist()) > {"jit_mul", "jit_add"}
    assert whole.helpers == ""


def test_a_program_without_figures_is_no_helper(db):
    make_run(db, "a", {STEP: 1000, EVAL: 300, INIT: 40}, day=1)
    make_run(db, "b", {STEP: "failed", EVAL: 300, INIT: "oom"}, day=2)
    with memhouse.open(db, read_only=True) as warehouse:
        found = warehouse.check()
        modules = warehouse.modules(run="b").table
    assert [v.module_name for v in found.breaches] == ["jit_init", "jit_step"]
    assert modules["is_entry"].to_pylist() == [True, True, True]


def test_a_label_names_more_entry_programs_and_a_named_helper_is_judged(db):
    make_run(db, "a", {STEP: 1000, EVAL: 20, INIT: 10}, day=1, entry="jit_eval,jit_other")
    make_run(db, "b", {STEP: 1000, EVAL: 20, INIT: 30}, day=2)
    assert [entries(db, run) for run in ("a", "b")] == [["eval", "step"], ["step"]]
    with memhouse.open(db, read_only=True) as warehouse:
        assert warehouse.check().outcome == "pass"
        assert warehouse.check(module="jit_init").outcome == "fail"


def test_screens_have_entry_programs_and_a_line_and_scripts_have_all(made):
    shown = run_memhouse("peaks", "--db", made)
    assert [line.split()[1] for line in shown.stdout.splitlines()[1:]] == ["jit_step", "jit_eval"]
    assert "4 helpers, at most 20.00 MiB (--all)" in shown.stderr
    assert "jit_add" in run_memhouse("peaks", "--db", made, "--all").stdout
    names = json.loads(run_memhouse("peaks", "--db", made, "-f", "json").stdout)
    assert {(row["module"], row["is_entry"]) for row in names} == {
        ("jit_step", True),
        ("jit_eval", True),
        ("jit_init", False),
        ("jit_add", False),
        ("jit_mul", False),
        ("jit_neg", False),
    }
    # What is an entry program in one of two runs is none of the helpers.
    shown = run_memhouse("diff", "n2", "n3", "--db", made).stdout
    assert "jit_init" in shown
    assert "1 helper, at most 5.00 MiB" in shown
    assert "jit_add" in run_memhouse("diff", "n2", "n3", "--db", made, "--all").stdout
    assert "jit_add" in run_memhouse("check", "--db", made, "--all").stdout
    assert "jit_add" not in run_memhouse("check", "--db", made).stdout


def test_a_workload_means_the_largest_program_of_its_newest_run(made):
    with reading(made) as store:
        for name, run, module in (
            ("train", None, "jit_step"),
            ("jit_add", None, "jit_add"),
            ("n0/train", None, "jit_step"),
            ("train", "n2", "jit_step"),
        ):
            assert find_module(store, name, run).module_name == module
        assert "the largest of 4 programs" in find_module(store, "train").caption
        assert "largest" not in find_module(store, "train/jit_step").caption


def test_a_module_s_own_name_is_meant_before_a_workload_and_before_other_branches(db):
    programs = {"train/train": 10, "train/jit_step": 1000, "other/jit_step": 1000}
    make_run(db, "main", programs, day=1, branch="main")
    make_run(db, "dev", {**programs, "train/jit_new": 2000}, day=2, branch="dev")
    with reading(db) as store:
        assert find_module(store, "train").module_name == "train"
        assert find_module(store, "other").module_name == "jit_step"
    make_run(db, "main-2", {"eval/jit_step": 1000, "eval/jit_b": 9}, day=1, branch="main")
    make_run(db, "dev-2", {"eval/jit_new": 2000, "eval/jit_b": 9}, day=2, branch="dev")
    with reading(db) as store:
        found = find_module(store, "eval")
    assert (found.run_id, found.module_name) == ("main-2", "jit_step")
