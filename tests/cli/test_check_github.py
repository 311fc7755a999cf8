"""`memhouse check --format github`: annotations on source lines, and the job's summary."""

import re

import pytest

from memhouse.cli.render.github import in_repository

from ..support.command import run_memhouse
from ..support.made_runs import make_run


@pytest.fixture
def checkout(tmp_path):
    """A repository that has the source of the nights' programs."""
    (tmp_path / "repo/zoo").mkdir(parents=True)
    (tmp_path / "repo/zoo/zoo.py").touch()
    return tmp_path / "repo"


def check(db, checkout, *args, summary=None):
    env = {"GITHUB_WORKSPACE": str(checkout), "GITHUB_STEP_SUMMARY": str(summary or "")}
    return run_memhouse("check", "--db", db, "-f", "github", *args, env=env)


def commands(out: str) -> list[str]:
    return [line for line in out.splitlines() if line.startswith("::")]


def test_what_grew_is_an_error_on_the_line_that_owns_it(history, checkout):
    done = check(history, checkout, "--run", "2026-10-03")
    assert done.returncode == 1
    (command,) = commands(done.stdout)
    start = "::error file=zoo/zoo.py,line=40,title=memhouse%3A "
    assert command.startswith(start)
    assert "::llama-v5e/jit_train_step: fail: " in command
    assert "1%25 (max_growth)%0A" in command
    assert re.search(r"reserved 331\.44 MiB in 2026-10-02, now .*\(\+", command)
    assert re.search(r"[\d.]+ MiB of it at \S*/train/zoo/zoo\.py:40$", command)


def test_a_line_that_the_repository_lacks_is_no_annotation_of_a_file(history, tmp_path):
    (command,) = commands(check(history, tmp_path, "--run", "2026-10-03").stdout)
    assert command.startswith("::error title=memhouse%3A ")


def test_the_jobs_summary_is_the_markdown(history, checkout, tmp_path):
    summary = tmp_path / "summary.md"
    summary.write_text("# before\n")
    done = check(history, checkout, "--run", "2026-10-03", summary=summary)
    text = summary.read_text()
    assert re.match(r"# before\n### [^\n]*`2026-10-03`: 1 of 4 [^\n]*\n\n\| ", text)
    assert "###" not in done.stdout


def test_without_a_job_the_markdown_follows_the_annotations(history, checkout):
    done = check(history, checkout, "--run", "2026-10-02")
    assert re.fullmatch(r"### [^\n]*`2026-10-02`: all 4 [^\n]*\n\nRules: [^\n]*\n\n", done.stdout)


def test_a_summary_that_cannot_be_written_is_one_clear_line(history, checkout, tmp_path):
    done = check(history, checkout, "--run", "2026-10-02", summary=tmp_path / "no/summary.md")
    assert done.returncode == 1
    assert done.stderr.startswith("error: ")
    assert done.stderr.count("\n") == 1


def test_warnings_and_notices(db, checkout):
    make_run(db, "m1", {"a/jit_step": 1000, "b/jit_step": 10}, day=1, branch="main")
    make_run(db, "p1", {"a/jit_step": 1200}, day=2, branch="pr,1:\n2")
    check(db, checkout, "--run", "p1", "--accept", "50% more,\nagreed: yes")
    done = check(db, checkout, "--run", "p1")
    assert done.returncode == 0
    notice, warning = sorted(commands(done.stdout))
    assert notice.startswith("::notice title=memhouse%3A ")
    assert "::a/jit_step: pass" in notice
    assert "50%25 more" in notice
    assert warning.startswith("::warning title=memhouse%3A ")
    assert "::b/jit_step: warn: " in warning


def test_nothing_to_hold_it_against_is_a_notice(db, checkout):
    make_run(db, "p1", {"a/jit_step": 1000}, day=1, branch="pr-1")
    (notice,) = commands(check(db, checkout).stdout)
    assert notice.startswith("::notice title=memhouse::first run of branch pr-1")


def test_a_file_of_the_repository(checkout):
    files = {
        "/home/runner/work/repo/repo/zoo/zoo.py": "zoo/zoo.py",
        "zoo/zoo.py": "zoo/zoo.py",
        "zoo.py": None,
        "/zoo.py": None,
        "/train/../zoo/zoo.py": None,
        "<frozen runpy>": None,
        "": None,
        "/train/" + "x" * 5000 + ".py": None,
    }
    assert {file: in_repository(file, checkout) for file in files} == files
