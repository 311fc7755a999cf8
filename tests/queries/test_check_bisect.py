"""`memhouse check --bisect`: one module, as `git bisect run` asks for it."""

import pytest

from ..support.command import run_memhouse
from ..support.made_runs import check, make_run
from ..support.warehouse import fill, writing

GOOD, BAD, SKIP, ABORT = 0, 1, 125, 128


@pytest.fixture(scope="module")
def commits(tmp_path_factory):
    """Runs of commits. Only read it."""
    db = tmp_path_factory.mktemp("commits") / "commits.duckdb"
    made = {"good": 1000, "fine": 1001, "bad": 1300, "broken": "failed", "full": "oom"}
    for day, (run, peak) in enumerate(made.items()):
        make_run(db, run, {"train/jit_step": peak, "eval/jit_eval": 10 + day}, day=day)
    make_run(db, "other", {"eval/jit_eval": 10}, day=9)
    return db


def bisect(db, run, module, *options):
    return run_memhouse("check", "--db", db, "--run", run, "--bisect", module, *options)


def test_bisect_skips_what_cannot_be_judged(commits, limits):
    expected = {"fine": GOOD, "bad": BAD, "full": BAD, "broken": SKIP, "other": SKIP, "no": SKIP}
    against = ("--baseline", "good")
    statuses = {run: bisect(commits, run, "train/jit_step", *against) for run in expected}
    assert {run: done.returncode for run, done in statuses.items()} == expected
    assert bisect(commits, "good", "train").returncode == SKIP
    sizes = limits('max_growth = []\nmax_bytes = "2GiB"')
    assert bisect(commits, "good", "train", *sizes).returncode == GOOD


def test_bisect_by_a_workload_judges_its_largest_program(db):
    """Of this run, or of what it is held against: a program that is not there is skipped."""
    nights = (
        {"train/jit_step": 1000, "train/jit_eval": 300, "train/jit_add": 5},
        {"train/jit_step": 1001, "train/jit_eval": 600, "train/jit_add": 9},
        {"train/jit_step": 1300, "train/jit_eval": 300, "train/jit_add": 5},
        {"train/jit_eval": 300, "train/jit_add": 5},
        {"train/jit_step": "oom", "train/jit_eval": 300, "train/jit_add": 5},
    )
    for day, night in enumerate(nights):
        make_run(db, f"n{day}", night, day=day)
    statuses = [
        bisect(db, f"n{day}", "train", "--baseline", "n0").returncode for day in range(1, 5)
    ]
    assert statuses == [GOOD, BAD, SKIP, BAD]


def test_bisect_aborts_where_the_check_itself_fails(commits):
    """To git, the statuses 1 to 124 are bad commits."""
    for wrong in (
        ("--baseline", "no-run"),
        ("--baseline", "branch=no-branch"),
        ("--metric", "size"),
        ("--max-growth", "lots"),
        ("--limits", "/no/such.toml"),
        ("--db", "/no/such.duckdb"),
        ("--db", "/dev/null"),
        ("--space", "one"),
        ("--no-such-option",),
    ):
        done = bisect(commits, "fine", "train/jit_step", *wrong)
        assert (done.returncode, done.stdout, bool(done.stderr)) == (ABORT, "", True), wrong
    # Several modules fit.
    assert bisect(commits, "fine", "jit_").returncode == ABORT
    with writing(commits):
        assert bisect(commits, "fine", "train", "--wait", "0").returncode == ABORT


def test_bisect_skips_a_commit_if_no_run_was_ever_made(db):
    fill(db)
    assert run_memhouse("check", "--db", db, "--bisect", "train").returncode == SKIP


def test_bisect_judges_equal_programs_of_several_hosts_as_one(db):
    for day, (run, peak) in enumerate({"good": 1000, "fine": 1001, "bad": 1300}.items()):
        make_run(db, run, {f"host{n}/jit_step": peak for n in range(4)}, day=day)
    make_run(db, "odd", {"host0/jit_step": "failed", "host1/jit_step": 1000}, day=3)
    statuses = [
        bisect(db, run, "jit_step", "--baseline", "good").returncode
        for run in ("fine", "bad", "odd")
    ]
    assert statuses == [GOOD, BAD, GOOD]


def test_programs_of_one_name_on_two_platforms_are_told_apart(db):
    for day, peak in enumerate((1000, 1300)):
        both = {"train/jit_step@cpu": 900, "train/jit_step@tpu": peak}
        make_run(db, f"n{day}", both, day=day)
    expected = {"train/jit_step (cpu)": GOOD, "train/jit_step (tpu)": BAD, "train/jit_step": ABORT}
    assert {name: bisect(db, "n1", name).returncode for name in expected} == expected
    outcomes = {name: verdict.outcome for name, verdict in check(db, "n1")[1].items()}
    assert outcomes == {"train/jit_step (cpu)": "pass", "train/jit_step (tpu)": "fail"}
