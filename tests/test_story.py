"""A story of one team: three hosts that train, a generator, a vision model, and a pull request.

2 February, main: the first night. Three hosts dump the same program.
2 February, noon, pr-1: a pull request saves dots instead of rematerialising them.
3 February, main: the generator's function is renamed, and the vision job does not run.
4 February, main: the policy has arrived on all hosts, but host1 also has a larger batch. The
cache is int8, and the vision job is back with a larger batch.
"""

import re

import pytest

from .support.command import run_memhouse
from .support.scenarios import SCENARIOS, laid_out

STORY = "two lineages, three hosts, a renamed and a vanished program"


@pytest.fixture(scope="module")
def db(nights, tmp_path_factory):
    """The warehouse, ingested night by night with the command."""
    folder = tmp_path_factory.mktemp("story")
    (story,) = (scenario for scenario in SCENARIOS if scenario.name == STORY)
    for run in story.runs:
        night = laid_out(story, run, nights, folder / run.run_id)
        done = run_memhouse(
            *("ingest", night, "--db", folder / "story.duckdb", "--jobs", "1"),
            *("--at", run.run_at.isoformat(), "--label", f"branch={run.branch}"),
        )
        assert done.returncode == 0, done.stderr
    return folder / "story.duckdb"


def test_check_says_each_morning_what_to_do(db):
    """The pull request is held against main, and its growth is not lost when main has it."""
    first = run_memhouse("check", "--db", db, "--run", "m1")
    assert first.returncode == 3
    assert "branch main" in first.stdout

    request = run_memhouse("check", "--db", db, "--run", "pr1")
    assert request.returncode == 1
    assert verdicts(request.stdout) == {
        "jit_train_step of host0 … host2 (3 the same)": ("m1", "fail"),
    }

    second = run_memhouse("check", "--db", db, "--run", "m2")
    assert second.returncode == 1
    assert verdicts(second.stdout) == {
        # It is gone.
        "vision/jit_train": ("m1", "fail"),
        "gen/jit_decode": ("m1", "pass"),
    }

    third = run_memhouse("check", "--db", db, "--run", "m3")
    assert third.returncode == 1
    assert verdicts(third.stdout) == {
        "host1/jit_train_step": ("m2", "fail"),
        "jit_train_step of host0 and host2 (2 the same)": ("m2", "fail"),
        "vision/jit_train": ("m1", "fail"),
        "gen/jit_decode": ("m2", "pass"),
    }


def verdicts(markdown):
    """Which run each program was held against, and the verdict."""
    table = [line.split(" | ") for line in markdown.splitlines() if line.startswith("| ")]
    assert table[0][4::2] == ["baseline_run", "verdict |"]
    return {row[0].removeprefix("| "): (row[4], re.split("[ :]", row[6])[0]) for row in table[2:]}


def test_trends_tells_each_change_once_and_the_two_equal_hosts_in_one_line(db):
    done = run_memhouse("trends", "--db", db)
    assert "--branch pr-1" in done.stderr
    found = lines(done.stdout)
    for change in [
        "m2: gen/jit_decode changed at the same 99.04 MiB: renamed from jit_generate",
        "m3: gen/jit_decode shrank by 32.00 MiB (-32.3 %) to 67.04 MiB: cache: bf16 → s8",
        "m3: host0 and host2 (2 the same)/jit_train_step grew by 195.19 MiB (+63.6 %) to 502.17",
        "m3: host1/jit_train_step grew by 212.36 MiB (+69.2 %) to 519.35 MiB: x, y: 4 → 6",
        "m2: vision/jit_train: gone",
        "m3: vision/jit_train grew by 100.74 MiB (+44.8 %) to 325.50 MiB: x: bf16[16,224,224,3]",
    ]:
        assert sum(line.startswith(change) for line in found) == 1, change
    # Those of the pull request hold it against no night of main.
    told = lines(run_memhouse("trends", "--db", db, "--branch", "pr-1").stdout)
    assert any(line.startswith("host0 … host2 (3 the same)") for line in told)
    assert not any(line.startswith("pr1 ") for line in told)


def lines(table):
    """The lines of a table, their cells apart by one space."""
    return [" ".join(line.split()) for line in table.splitlines()]
