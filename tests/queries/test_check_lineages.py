"""`memhouse check`: what a run is held against, on main, on branches, and against the lowest."""

import pytest

from ..support.command import run_memhouse
from ..support.made_runs import check, make_run


def said(db, run, *args) -> str:
    return run_memhouse("check", "--db", db, "--run", run, *args).stdout


# --- the default lineage --------------------------------------------------------------------


def test_a_creep_is_caught_on_its_fourth_night(db):
    """+0.9 % a night passes every night's limit of 1 %, but not 3 % since the lowest."""
    peak = 1000.0
    for night in range(10):
        make_run(db, f"n{night}", {"train/jit_step": peak}, day=night)
        peak *= 1.009
    statuses = [check(db, f"n{night}")[0] for night in range(10)]
    assert statuses == [3, 0, 0, 0, 1, 1, 1, 1, 1, 1]
    row = check(db, "n4")[1]["train/jit_step"]
    assert (row["status"], row["held_against"]) == ("grown", "n0")
    assert row["why"] == "grew by more than 3% since n0"
    assert row["before_bytes"] == 1000 * 2**20


def test_a_creep_is_caught_again_on_the_fourth_night_after_it_was_accepted(db):
    peak = 1000.0
    for night in range(10):
        make_run(db, f"n{night}", {"train/jit_step": peak}, day=night)
        peak *= 1.009
    assert check(db, "n4", "--accept", "more heads")[0] == 0
    statuses = [check(db, f"n{night}")[0] for night in range(10)]
    assert statuses == [3, 0, 0, 0, 0, 0, 0, 0, 1, 1]
    row = check(db, "n8")[1]["train/jit_step"]
    assert (row["held_against"], row["lowest_run"]) == ("n4", "n4")


def test_accepting_one_program_and_figure_leaves_the_others(db):
    for night, peak in enumerate((1000, 1100)):
        both = {"peak_bytes": peak, "temp_bytes": peak}
        make_run(db, f"n{night}", {"a/jit_step": both, "b/jit_step": peak + 1}, day=night)
    check(db, "n1", "--accept", "we know", "--bisect", "a/jit_step")
    status, rows = check(db, "n1")
    assert (status, rows["a/jit_step"]["verdict"], rows["b/jit_step"]["verdict"]) == (
        1,
        "pass",
        "fail",
    )
    assert rows["a/jit_step"]["accepted"] == "we know"
    assert check(db, "n1", "--figure", "temp")[0] == 1


def test_a_growth_that_is_allowed_is_not_a_creep(db):
    """The default limit of creep is never stricter than the limit of growth."""
    make_run(db, "n1", {"train/jit_step": 1000}, day=1)
    make_run(db, "n2", {"train/jit_step": 1080}, day=2)
    make_run(db, "n3", {"train/jit_step": 1120}, day=3)
    assert check(db, "n2", "--max-growth", "10%")[0] == 0
    status, rows = check(db, "n3", "--max-growth", "10%")
    assert (status, rows["train/jit_step"]["why"]) == (1, "grew by more than 10% since n1")


def test_a_rename_keeps_what_was_accepted(db):
    make_run(db, "n1", {"train/jit_step": 1000}, day=1)
    make_run(db, "n2", {"train/jit_step": 1100}, day=2)
    make_run(db, "n3", {"train2/jit_step": 1100}, day=3)
    check(db, "n2", "--accept", "a larger batch")
    status, rows = check(db, "n3")
    assert (status, rows["train2/jit_step"]["status"]) == (0, "renamed")


# --- renamed, new, gone ---------------------------------------------------------------------


def test_a_program_renamed_and_grown_threefold_fails(db):
    make_run(db, "n1", {"train/jit_train_step": 1000}, day=1)
    make_run(db, "n2", {"train/jit_step": 3000}, day=2)
    status, rows = check(db, "n2")
    assert status == 1
    row = rows["train/jit_step"]
    assert (row["status"], row["before_bytes"], row["held_against"]) == (
        "grown",
        1000 * 2**20,
        "n1",
    )


def test_a_program_of_equal_content_under_another_name_passes_with_a_line(db):
    make_run(db, "n1", {"train/jit_train_step": 1000, "eval/jit_eval": 10}, day=1)
    make_run(db, "n2", {"train/jit_step": 1000, "eval/jit_eval": 10}, day=2)
    status, rows = check(db, "n2")
    assert (status, rows["train/jit_step"]["status"]) == (0, "renamed")
    out = said(db, "n2")
    assert "train/jit_step" in out
    assert "1 unchanged" in out


def test_a_new_program_passes_unless_the_limits_say_otherwise(db, tmp_path):
    limits = tmp_path / "limits.toml"
    make_run(db, "n1", {"train/jit_step": 1000}, day=1)
    make_run(db, "n2", {"train/jit_step": 1000, "eval/jit_eval": 10}, day=2)
    status, rows = check(db, "n2")
    assert (status, rows["eval/jit_eval"]["status"]) == (0, "new")
    for outcome, expected in (("warn", 0), ("fail", 1)):
        limits.write_text(f'new = "{outcome}"\n')
        status, rows = check(db, "n2", "--limits", limits)
        assert (status, rows["eval/jit_eval"]["verdict"]) == (expected, outcome)
    # What is new can be expected.
    assert check(db, "n2", "--limits", limits, "--accept", "we evaluate now")[0] == 0
    assert check(db, "n2", "--limits", limits)[0] == 0


def test_a_program_that_is_gone_fails_once(db):
    make_run(db, "n1", {"train/jit_step": 1000, "eval/jit_eval": 10}, day=1)
    make_run(db, "n2", {"train/jit_step": 1000}, day=2)
    make_run(db, "n3", {"train/jit_step": 1000}, day=3)
    status, rows = check(db, "n2")
    assert status == 1
    gone = rows["eval/jit_eval"]
    assert (gone["status"], gone["verdict"], gone["held_against"]) == ("gone", "fail", "n1")
    assert (gone["before_bytes"], gone["now_bytes"]) == (10 * 2**20, None)
    assert check(db, "n3") == (0, check(db, "n3")[1])
    # There is nothing to accept: the next night passes.
    assert check(db, "n2", "--accept", "we know")[0] == 1


@pytest.mark.parametrize(("outcome", "status"), [("pass", 0), ("warn", 0), ("fail", 1)])
def test_the_limits_say_what_gone_means(db, tmp_path, outcome, status):
    limits = tmp_path / "limits.toml"
    limits.write_text(f'gone = "{outcome}"\n')
    make_run(db, "n1", {"train/jit_step": 1000, "eval/jit_eval": 10}, day=1)
    make_run(db, "n2", {"train/jit_step": 1000}, day=2)
    assert check(db, "n2", "--limits", limits)[0] == status
    assert check(db, "n2", "--limits", limits)[1]["eval/jit_eval"]["verdict"] == outcome


def test_a_failed_dump_fails_and_is_not_gone(db):
    make_run(db, "n1", {"train/jit_step": 1000}, day=1)
    make_run(db, "n2", {"train/jit_step": "failed"}, day=2)
    status, rows = check(db, "n2", "--accept", "we know")
    assert (status, rows["train/jit_step"]["status"]) == (1, "failed")
    assert rows["train/jit_step"]["why"] == "the dump is failed"


def test_after_a_failed_night_a_program_is_held_against_its_last_figures(db):
    make_run(db, "n1", {"train/jit_step": 1000}, day=1)
    make_run(db, "n2", {"train/jit_step": "failed"}, day=2)
    make_run(db, "n3", {"train/jit_step": 1100}, day=3)
    status, rows = check(db, "n3")
    assert (status, rows["train/jit_step"]["held_against"]) == (1, "n1")


# --- branches -------------------------------------------------------------------------------


@pytest.fixture
def branched(db):
    """Two nights of main, a pull request of two pushes between, and a night after."""
    make_run(db, "m1", {"train/jit_step": 1000, "eval/jit_eval": 10}, day=1, branch="main")
    make_run(db, "m2", {"train/jit_step": 1000, "eval/jit_eval": 10}, day=2, branch="main")
    make_run(db, "p1", {"train/jit_step": 1300}, day=3, branch="pr-7")
    make_run(db, "p2", {"train/jit_step": 1300}, day=4, branch="pr-7")
    make_run(db, "m3", {"train/jit_step": 1140, "eval/jit_eval": 10}, day=5, branch="main")
    return db


def test_a_pull_requests_run_is_never_the_baseline_of_main(branched):
    status, rows = check(branched, "m3")
    row = rows["train/jit_step"]
    assert (status, row["held_against"], row["change_bytes"]) == (1, "m2", 140 * 2**20)


@pytest.mark.parametrize("push", ["p1", "p2"])
def test_every_push_is_held_against_main_not_against_the_push_before(branched, push):
    status, rows = check(branched, push)
    row = rows["train/jit_step"]
    assert (status, row["held_against"], row["change_bytes"]) == (1, "m2", 300 * 2**20)


def test_what_a_branch_lacks_only_warns(branched):
    _, rows = check(branched, "p1", "--max-growth", "50%")
    assert (rows["eval/jit_eval"]["status"], rows["eval/jit_eval"]["verdict"]) == ("gone", "warn")
    done = run_memhouse("check", "--db", branched, "--run", "p1", "--max-growth", "50%")
    assert done.returncode == 0
    assert done.stdout.startswith("### memhouse: peak memory of `p1`: all 1 pass, 1 warning\n")


def test_the_lowest_of_a_branch_is_that_of_main_up_to_its_base(db):
    for night, peak in enumerate((1000, 1009, 1018, 1027), 1):
        make_run(db, f"m{night}", {"train/jit_step": peak}, day=night, branch="main")
    make_run(db, "p1", {"train/jit_step": 1035}, day=5, branch="pr-7")
    make_run(db, "m5", {"train/jit_step": 900}, day=6, branch="main")
    status, rows = check(db, "p1")
    assert (status, rows["train/jit_step"]["why"]) == (1, "grew by more than 3% since m1")


@pytest.fixture
def crept(db):
    """main crept by 3.6 %, which nobody accepted."""
    for night, peak in enumerate((1000, 1009, 1018, 1027, 1036), 1):
        make_run(db, f"m{night}", {"train/jit_step": peak}, day=night, branch="main")
    return db


def test_a_creep_that_main_has_already_only_warns_on_a_branch(crept):
    make_run(crept, "p1", {"train/jit_step": 1036}, day=6, branch="pr-7")
    assert check(crept, "m5")[0] == 1
    status, rows = check(crept, "p1")
    row = rows["train/jit_step"]
    assert (status, row["verdict"]) == (0, "warn")
    assert row["why"] == "main already grew by more than 3% since m1"


def test_a_branch_that_grows_on_top_of_mains_creep_fails(crept):
    make_run(crept, "p1", {"train/jit_step": 1060}, day=6, branch="pr-7")
    status, rows = check(crept, "p1")
    assert (status, rows["train/jit_step"]["why"]) == (1, "grew by more than 1%")


def test_what_was_accepted_on_a_branch_holds_for_its_next_push_but_not_on_main(branched):
    assert check(branched, "p1", "--accept", "agreed in review")[0] == 0
    status, rows = check(branched, "p2")
    assert (status, rows["train/jit_step"]["accepted"]) == (0, "agreed in review")
    assert check(branched, "m3")[0] == 1


def test_a_branch_is_held_against_mains_last_figures_if_its_base_failed(db):
    make_run(db, "m1", {"train/jit_step": 1000}, day=1, branch="main")
    make_run(db, "m2", {"train/jit_step": "failed"}, day=2, branch="main")
    make_run(db, "p1", {"train/jit_step": 1300}, day=3, branch="pr-7")
    status, rows = check(db, "p1")
    assert (status, rows["train/jit_step"]["held_against"]) == (1, "m1")


def test_a_branch_is_held_against_an_earlier_run_if_the_base_lacks_the_program(db):
    """The night before the push, main did not dump train: its growth must not pass as new."""
    both = {"train/jit_step": 1000, "eval/jit_eval": 10}
    make_run(db, "m1", both, day=1, branch="main")
    make_run(db, "m2", {"eval/jit_eval": 10}, day=2, branch="main")
    make_run(db, "p1", both | {"train/jit_step": 3000}, day=3, branch="pr-7")
    status, rows = check(db, "p1")
    row = rows["train/jit_step"]
    assert (status, row["status"], row["held_against"]) == (1, "grown", "m1")
    assert rows["eval/jit_eval"]["status"] == "unchanged"


def test_a_program_that_main_never_had_before_the_push_is_new_on_a_branch(db):
    make_run(db, "m1", {"eval/jit_eval": 10}, day=1, branch="main")
    make_run(db, "p1", {"eval/jit_eval": 10, "train/jit_step": 3000}, day=2, branch="pr-7")
    make_run(db, "m2", {"eval/jit_eval": 10, "train/jit_step": 1000}, day=3, branch="main")
    status, rows = check(db, "p1")
    assert (status, rows["train/jit_step"]["status"]) == (0, "new")


@pytest.mark.parametrize("default", ["master", "develop"])
def test_the_default_lineage_is_main_or_master_or_what_the_limits_name(db, tmp_path, default):
    make_run(db, "d1", {"train/jit_step": 1000}, day=1, branch=default)
    make_run(db, "p1", {"train/jit_step": 1300}, day=2, branch="pr-7")
    limits = tmp_path / "limits.toml"
    limits.write_text('baseline = "develop"\n' if default == "develop" else "")
    status, rows = check(db, "p1", "--limits", limits)
    assert (status, rows["train/jit_step"]["held_against"]) == (1, "d1")


def test_runs_without_a_branch_are_the_default_lineage_if_there_is_no_main(db):
    make_run(db, "n1", {"train/jit_step": 1000}, day=1)
    make_run(db, "p1", {"train/jit_step": 1300}, day=2, branch="pr-7")
    status, rows = check(db, "p1")
    assert (status, rows["train/jit_step"]["held_against"]) == (1, "n1")


def test_another_suite_is_another_history(db):
    make_run(db, "a1", {"train/jit_step": 1000}, day=1, branch="main", suite="small")
    make_run(db, "b1", {"train/jit_step": 1300}, day=2, branch="main", suite="large")
    make_run(db, "a2", {"train/jit_step": 1000}, day=3, branch="main", suite="small")
    status, rows = check(db, "b1")
    assert (status, rows["train/jit_step"]["status"]) == (3, "first")
    assert check(db, "a2")[1]["train/jit_step"]["held_against"] == "a1"


# --- nothing to hold it against -------------------------------------------------------------


def test_a_first_run_is_not_judged_and_says_that_it_is_held_against_nothing(db, tmp_path):
    make_run(db, "p1", {"train/jit_step": 1000}, day=1, branch="pr-7")
    make_run(db, "m1", {"train/jit_step": 1000}, day=2, branch="main")
    first = "first run of branch main: nothing to hold it against; --baseline RUN names a run"
    assert check(db, "m1")[0] == 3
    assert first in said(db, "m1")
    none = "there is no run of branch main before it: nothing to hold it against; --baseline RUN"
    assert check(db, "p1")[0] == 3
    assert none in said(db, "p1")
    # Sizes need nothing to hold it against, but what is within them may have grown.
    limits = tmp_path / "limits.toml"
    for text, status in (
        ('max_bytes = "900MiB"', 1),
        ('max_bytes = "2GiB"', 3),
        ('max_bytes = "2GiB"\nmax_growth = []', 0),
    ):
        limits.write_text(text)
        assert check(db, "p1", "--limits", limits)[0] == status


def test_the_first_labelled_run_says_how_to_join_the_runs_without_labels(db):
    make_run(db, "n1", {"train/jit_step": 1000}, day=1)
    make_run(db, "m1", {"train/jit_step": 1300}, day=2, branch="main")
    hint = "a history of their own: memhouse label --rename branch=:main joins them"
    assert hint in said(db, "m1")
    assert check(db, "m1")[0] == 3


# --- a baseline of one's own ----------------------------------------------------------------


def test_a_run_as_baseline_switches_the_creep_off_unless_the_limits_ask_for_it(db, tmp_path):
    for night, peak in enumerate((1000, 1050, 1055), 1):
        make_run(db, f"n{night}", {"train/jit_step": peak}, day=night)
    assert check(db, "n3")[0] == 1
    status, rows = check(db, "n3", "--baseline", "n2")
    assert (status, rows["train/jit_step"]["held_against"]) == (0, "n2")
    limits = tmp_path / "limits.toml"
    limits.write_text('max_creep = "3%"\n')
    assert check(db, "n3", "--baseline", "n2", "--limits", limits)[0] == 1


def test_the_newest_run_of_a_branch_as_baseline(branched):
    status, rows = check(branched, "m3", "--baseline", "branch=pr-7")
    assert (status, rows["train/jit_step"]["held_against"]) == (0, "p2")
    assert rows["train/jit_step"]["status"] == "shrunk"
    assert rows["eval/jit_eval"]["status"] == "new"


def test_what_a_baseline_has_and_the_run_lacks_warns(branched):
    _, rows = check(branched, "p2", "--baseline", "m1")
    assert (rows["eval/jit_eval"]["status"], rows["eval/jit_eval"]["verdict"]) == ("gone", "warn")


def test_the_best_is_the_lowest_of_all_time(db):
    for night, peak in enumerate((1000, 900, 1000), 1):
        make_run(db, f"n{night}", {"train/jit_step": peak}, day=night)
    status, rows = check(db, "n3", "--best")
    row = rows["train/jit_step"]
    assert (status, row["held_against"], row["before_bytes"]) == (1, "n2", 900 * 2**20)


@pytest.mark.parametrize(
    ("baseline", "message"),
    [
        ("branch=gone", "there is no run of branch gone before m3"),
        ("m3", "m3 is the run to judge: name another run"),
    ],
)
def test_a_baseline_that_says_nothing_is_refused(branched, baseline, message):
    done = run_memhouse("check", "--db", branched, "--run", "m3", "--baseline", baseline)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in " ".join(done.stderr.replace("│", " ").split())


def test_a_misspelt_baseline_in_the_limits_is_refused(branched, tmp_path):
    limits = tmp_path / "limits.toml"
    limits.write_text('baseline = "maim"\n')
    done = run_memhouse("check", "--db", branched, "--run", "p1", "--limits", limits)
    assert (done.returncode, done.stdout) == (2, "")
    message = "baseline: there is no branch 'maim':"
    assert message in " ".join(done.stderr.replace("│", " ").split())
