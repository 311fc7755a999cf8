"""`memhouse check`: one module, as `git bisect run` asks for it."""

import pytest

from ..support.command import run_memhouse
from ..support.made_runs import check, make_run
from ..support.warehouse import writing


@pytest.fixture
def commits(db):
    made = {"good": 1000, "fine": 1001, "bad": 1300, "broken": "failed", "full": "oom"}
    for day, (run, peak) in enumerate(made.items()):
        make_run(db, run, {"train/jit_step": peak, "eval/jit_eval": 10 + day}, day=day)
    make_run(db, "other", {"eval/jit_eval": 10}, day=9)
    return db


@pytest.mark.parametrize(
    ("run", "status"),
    [("fine", 0), ("bad", 1), ("full", 1), ("broken", 125), ("other", 125), ("no-run", 125)],
)
def test_bisect_skips_what_cannot_be_judged(commits, run, status):
    options = ("--run", run, "--baseline", "good", "--bisect", "train/jit_step")
    done = run_memhouse("check", "--db", commits, *options)
    assert done.returncode == status
    assert (status == 125) == ("cannot be judged" in done.stderr)


def test_bisect_without_anything_to_hold_it_against_is_not_judged(commits, limits):
    options = ("--run", "good", "--bisect", "train")
    assert run_memhouse("check", "--db", commits, *options).returncode == 125
    limit = limits('max_growth = []\nmax_bytes = "2GiB"')
    assert run_memhouse("check", "--db", commits, *options, *limit).returncode == 0


@pytest.mark.parametrize(
    "wrong",
    [
        ("--baseline", "no-run"),
        ("--baseline", "branch=no-branch"),
        ("--figure", "size"),
        ("--max-growth", "lots"),
        ("--limits", "/no/such.toml"),
        ("--db", "/no/such.duckdb"),
        ("--db", "/dev/null"),
        ("--space", "one"),
        ("--no-such-option",),
    ],
)
def test_bisect_aborts_where_the_check_itself_fails(commits, wrong):
    """To git, the statuses 1 to 124 are bad commits."""
    options = ("--db", commits, "--run", "fine", "--bisect", "train/jit_step", *wrong)
    done = run_memhouse("check", *options)
    assert (done.returncode, done.stdout) == (128, "")
    assert done.stderr


def test_bisect_aborts_where_the_warehouse_is_busy(commits):
    with writing(commits):
        options = ("--db", commits, "--run", "fine", "--bisect", "train", "--wait", "0")
        assert run_memhouse("check", *options).returncode == 128


def test_bisect_skips_a_commit_if_no_run_was_ever_made(db):
    with writing(db):
        pass
    assert run_memhouse("check", "--db", db, "--bisect", "train").returncode == 125


def test_bisect_asks_which_module_is_meant(commits):
    options = ("--run", "fine", "--bisect", "jit_")
    done = run_memhouse("check", "--db", commits, *options)
    assert done.returncode == 128
    assert "several modules fit 'jit_'" in " ".join(done.stderr.replace("│", " ").split())


def test_bisect_judges_equal_programs_of_several_hosts_as_one(db):
    for day, (run, peak) in enumerate({"good": 1000, "fine": 1001, "bad": 1300}.items()):
        make_run(db, run, {f"host{n}/jit_step": peak for n in range(4)}, day=day)
    make_run(db, "odd", {"host0/jit_step": "failed", "host1/jit_step": 1000}, day=3)
    options = ("check", "--db", db, "--baseline", "good", "--bisect", "jit_step", "--run")
    statuses = [run_memhouse(*options, run).returncode for run in ("fine", "bad", "odd")]
    assert statuses == [0, 1, 0]


@pytest.fixture
def platforms(db):
    """A program of one name for the CPU and for the TPU; the TPU's grows."""
    for day, peak in enumerate((1000, 1300)):
        both = {"train/jit_step@cpu": 900, "train/jit_step@tpu": peak}
        make_run(db, f"n{day}", both, day=day)
    return db


def test_programs_of_one_name_on_two_platforms_are_told_apart(platforms):
    found = check(platforms, "n1")[1]
    shown = {name: row["verdict"] for name, row in found.items()}
    assert shown == {"train/jit_step (cpu)": "pass", "train/jit_step (tpu)": "fail"}


@pytest.mark.parametrize(
    ("module", "status"),
    [("train/jit_step (cpu)", 0), ("train/jit_step (tpu)", 1), ("train/jit_step", 128)],
)
def test_bisect_takes_the_platform_as_part_of_the_name(platforms, module, status):
    done = run_memhouse("check", "--db", platforms, "--run", "n1", "--bisect", module)
    assert done.returncode == status
