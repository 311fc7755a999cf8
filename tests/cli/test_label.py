"""`memhouse label`: labels of runs, and what a branch is told of."""

import json
import shutil

import pytest

import memhouse as library
from memhouse.schema.errors import UsageError

from ..support.command import run_memhouse
from ..support.made_runs import make_run
from ..support.warehouse import everything, fill, rows

# What says how runs with a branch and runs without become one history.
HINT = "memhouse label --rename branch=:main"
LABELS = "SELECT run_id, key, value FROM run_labels ORDER BY ALL"


@pytest.fixture(scope="module")
def filled_two(tmp_path_factory, nights):
    db = tmp_path_factory.mktemp("two") / "two.duckdb"
    for night in ("2026-10-01", "2026-10-05"):
        fill(db, nights / night / "llama-cpu", run_id=night)
    return db


@pytest.fixture
def two(db, filled_two):
    """A warehouse of two nights."""
    return shutil.copy(filled_two, db)


def label(db, *args):
    done = run_memhouse("label", *args, "--db", db)
    assert done.returncode == 0, done.stderr
    return done


def refused(db, *args):
    """What is said of wrong usage."""
    done = run_memhouse("label", *args, "--db", db)
    assert (done.returncode, done.stdout) == (2, "")
    return " ".join(done.stderr.replace("│", " ").split())


def test_labels_are_set_changed_and_removed(two):
    said = label(two, "2026-10-01", "2026-10-05", "branch=main", "commit=a1")
    assert said.stderr.endswith(" 2026-10-01, 2026-10-05: branch=main commit=a1\n")
    label(two, "2026-10-05", "commit=b2=c", "branch=")
    assert rows(two, LABELS) == [
        ("2026-10-01", "branch", "main"),
        ("2026-10-01", "commit", "a1"),
        ("2026-10-05", "commit", "b2=c"),
    ]


def test_runs_are_told_by_their_labels(two):
    """All labels that are asked for must be there: KEY=VALUE, or KEY of any value."""
    label(two, "2026-10-01", "2026-10-05", "branch=main")
    label(two, "2026-10-05", "fit=train:build=2")
    for asked, found in {
        ("branch",): ["2026-10-01", "2026-10-05"],
        ("branch=main", "branch", "branch"): ["2026-10-01", "2026-10-05"],
        ("branch=main", "fit=train:build=2"): ["2026-10-05"],
        ("branch=other",): [],
    }.items():
        options = [word for each in asked for word in ("--label", each)]
        shown = run_memhouse("runs", *options, "-f", "json", "--db", two)
        assert [row["run"] for row in json.loads(shown.stdout)] == found


def test_without_labels_they_are_shown(two):
    assert label(two, "2026-10-01").stderr.startswith("2026-10-01 ")
    label(two, "2026-10-01", "commit=a1", "branch=main")
    shown = json.loads(label(two, "2026-10-05", "2026-10-01", "-f", "json").stdout)
    assert shown == [
        {"run": "2026-10-01", "key": "branch", "value": "main"},
        {"run": "2026-10-01", "key": "commit", "value": "a1"},
    ]


def test_a_label_moves_a_run_to_another_history(two):
    linked = "SELECT COUNT(previous_dump_id) FROM history"
    assert rows(two, linked) == [(1,)]
    label(two, "2026-10-05", "branch=main")
    assert rows(two, linked) == [(0,)]
    label(two, "2026-10-01", "branch=main")
    assert rows(two, linked) == [(1,)]
    assert run_memhouse("verify", "--db", two).returncode == 0


def test_a_branch_is_renamed_with_all_its_runs(db):
    """Runs that have the new name already come after: CI knew of it first."""
    for day, branch in enumerate(["develop", "develop", "pr-7", "trunk"]):
        make_run(db, f"n{day}", {"train/jit_step": 1000}, day=day, branch=branch)
    told = label(db, "--rename", "branch=develop:trunk").stderr
    assert " 2 runs: branch=trunk, " in told
    assert 'baseline = "trunk"' in told
    kept = (
        "SELECT run_id, previous_run_id FROM internal.lineages WHERE branch = 'trunk' ORDER BY ALL"
    )
    assert rows(db, kept) == [("n0", None), ("n1", "n0"), ("n3", "n1")]
    assert run_memhouse("verify", "--db", db).returncode == 0
    assert " 3 runs: branch=main" in label(db, "--rename", "branch=trunk:main").stderr
    make_run(db, "n4", {"train/jit_step": 1000}, day=4, branch="pr-7")
    said = refused(db, "--rename", "branch=pr-7:main")
    assert all(fact in said for fact in ("branch=main", "branch=pr-7", "n0", "n4"))
    label(db, "--rename", "branch=main:")
    assert {branch for (branch,) in rows(db, "SELECT branch FROM internal.lineages")} == {
        "",
        "pr-7",
    }
    assert " 3 runs: branch=main" in label(db, "--rename", "branch=:main").stderr


def test_the_first_branch_says_once_what_becomes_of_the_other_runs(two):
    assert HINT not in label(two, "2026-10-05", "commit=a1").stderr
    assert HINT in label(two, "2026-10-05", "branch=main").stderr
    assert HINT not in label(two, "2026-10-05", "branch=dev").stderr
    # All labelled at once have nothing to be told.
    label(two, "2026-10-05", "branch=")
    assert HINT not in label(two, "2026-10-01", "2026-10-05", "branch=main").stderr


def test_ingesting_with_the_first_branch_says_so_too(two, nights, tmp_path):
    """An empty branch is none, and a new warehouse has no other runs."""
    told = []
    for run, branch, db in (
        ("none", "", two),
        ("a", "main", two),
        ("b", "main", two),
        ("a", "main", tmp_path / "new.duckdb"),
    ):
        args = (nights / "2026-10-08/llama-cpu", "--run", run, "--label", f"branch={branch}")
        done = run_memhouse("ingest", *args, "--db", db)
        assert done.returncode == 0
        told.append(HINT in done.stderr)
    assert told == [False, True, False, False]


def test_the_first_name_is_a_run_whatever_it_looks_like(db, nights):
    fill(db, nights / "2026-10-01/llama-cpu", run_id="branch=main")
    label(db, "branch=main", "branch=dev")
    assert rows(db, LABELS) == [("branch=main", "branch", "dev")]


def test_wrong_usage_changes_nothing(two):
    before = everything(two)
    wrong = {
        ("branch=main",): "'branch=main'",
        ("gone", "branch=main"): "'gone'",
        ("2026-10-01", "gone", "branch=main"): "'gone'",
        ("2026-10-01", "branch=main", "2026-10-05"): "'2026-10-05'",
        ("2026-10-01", "=main"): "KEY=VALUE",
        (): "--rename",
        ("2026-10-01", "--rename", "branch=:main"): "--rename",
        ("--rename", "main"): "KEY=OLD:NEW",
        ("--rename", "branch=main:main"): "KEY=OLD:NEW",
        ("--rename", "branch=none:main"): "branch=none",
    }
    assert [args for args, named in wrong.items() if named not in refused(two, *args)] == []
    assert everything(two) == before


def test_runs_show_the_branch_where_one_has_one(two):
    assert "branch" not in run_memhouse("runs", "--db", two).stdout
    label(two, "2026-10-05", "branch=main")
    heading, first, second = run_memhouse("runs", "--db", two).stdout.splitlines()
    assert "branch" in heading.split()
    assert "main" not in first.split()
    assert "main" in second.split()
    shown = json.loads(run_memhouse("runs", "--db", two, "-f", "json").stdout)
    assert [row["branch"] for row in shown] == [None, "main"]


def test_python_labels_too(two):
    with library.open(two) as warehouse:
        warehouse.label("2026-10-01", "2026-10-05", labels={"branch": "main", "by": "me"})
        found = warehouse.label("2026-10-01", labels={"by": None})
        assert found.arrow().to_pylist() == [
            {"run": "2026-10-01", "key": "branch", "value": "main"}
        ]
        with pytest.raises(UsageError, match="'gone'"):
            warehouse.label("gone", labels={"branch": "main"})


def test_an_empty_label_is_none_when_ingesting_too(two, nights):
    path = nights / "2026-10-05/llama-cpu"
    again = ("ingest", path, "--run", "2026-10-05", "--db", two)
    assert run_memhouse(*again, "--label", "branch=", "--label", "by=me").returncode == 0
    assert rows(two, LABELS) == [("2026-10-05", "by", "me")]
    assert run_memhouse(*again, "--label", "by=").returncode == 0
    assert rows(two, LABELS) == []
