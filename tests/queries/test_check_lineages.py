"""What `check` holds a run against, on main, on branches, and against the lowest."""

import pytest

from memhouse import UsageError

from ..support.made_runs import MIB, check, make_nights, make_run

STEP, EVAL = "train/jit_step", "eval/jit_eval"
DRIFT = [1000 * 1.009**night for night in range(10)]


def step(db, run, **options):
    """The outcome, and what the training step is held against."""
    outcome, found = check(db, run, **options)
    return outcome, found[STEP].baseline_run


# --- the default lineage --------------------------------------------------------------------


def test_a_drift_is_caught_on_its_fourth_night_and_again_after_it_was_accepted(db):
    """+0.9 % a night passes every night's limit of 1 %, but not 3 % since the lowest."""
    make_nights(db, *DRIFT)
    outcomes = [check(db, f"n{night}")[0] for night in range(6)]
    assert outcomes == ["not judged", "pass", "pass", "pass", "fail", "fail"]
    row = check(db, "n4")[1][STEP]
    assert (row.status, row.baseline_run, row.before_bytes) == ("grown", "n0", 1000 * MIB)
    assert ["3%" in b.text and "n0" in b.text for b in row.breaches] == [True]
    assert check(db, "n4", accept="more heads")[0] == "pass"
    assert [check(db, f"n{night}")[0] for night in (4, 5, 7, 8, 9)] == [
        *["pass"] * 3,
        *["fail"] * 2,
    ]
    row = check(db, "n8")[1][STEP]
    assert (row.baseline_run, row.lowest_run_id) == ("n4", "n4")


def test_of_donated_memory_a_fall_drifts(db):
    alias = {"peak_bytes": 1e6, "argument_bytes": 600}
    make_nights(db, *(alias | {"alias_bytes": 500 * 0.99**night} for night in range(5)))
    outcomes = [check(db, f"n{night}", metric="alias")[0] for night in (1, 3, 4)]
    assert outcomes == ["pass", "pass", "fail"]
    row = check(db, "n4", metric="alias")[1][STEP]
    assert (row.status, row.baseline_run, row.lowest_run_id) == ("shrunk", "n0", "n0")


def test_accepting_covers_one_program_and_one_figure(db):
    for night, peak in enumerate((1000, 1100)):
        both = {"peak_bytes": peak, "temp_bytes": peak}
        make_run(db, f"n{night}", {"a/jit_step": both, "b/jit_step": peak + 1}, day=night)
    check(db, "n1", accept="we know", module="a/jit_step")
    _, found = check(db, "n1")
    assert [found[name].outcome for name in ("a/jit_step", "b/jit_step")] == ["pass", "fail"]
    assert found["a/jit_step"].accepted_reason == "we know"
    assert check(db, "n1", metric="temp")[0] == "fail"


def test_the_best_is_the_lowest_of_all_time_and_a_named_baseline_switches_the_drift_off(db):
    make_nights(db, 1000, 1050, 900, 1050, 1055)
    _, found = check(db, "n4", best=True)
    row = found[STEP]
    assert (row.outcome, row.baseline_run, row.before_bytes) == ("fail", "n2", 900 * MIB)
    assert check(db, "n4")[0] == "fail"
    assert step(db, "n4", baseline="n3") == ("pass", "n3")
    assert check(db, "n4", baseline="n3", toml='max_drift = "3%"')[0] == "fail"


# --- renamed, new, gone ---------------------------------------------------------------------


def test_a_renamed_program_is_held_against_itself(db):
    make_run(db, "n0", {"train/jit_train_step": 1000, EVAL: 10}, day=0)
    make_run(db, "n1", {STEP: 3000, EVAL: 10}, day=1)
    outcome, found = check(db, "n1", accept="a larger batch")
    assert (outcome, found[STEP].status, found[STEP].baseline_run) == ("pass", "grown", "n0")
    assert found[STEP].before_bytes == 1000 * MIB
    # And keeps what was accepted.
    make_run(db, "n2", {"train2/jit_step": 3000, EVAL: 10}, day=2)
    outcome, found = check(db, "n2")
    assert (outcome, found["train2/jit_step"].status) == ("pass", "renamed")
    assert (found[EVAL].status, found[EVAL].matters) == ("unchanged", False)


def test_a_new_program_passes_unless_the_limits_say_otherwise(db):
    make_run(db, "n0", {STEP: 1000}, day=0)
    make_run(db, "n1", {STEP: 1000, EVAL: 10}, day=1)
    outcome, found = check(db, "n1")
    assert (outcome, found[EVAL].status, found[EVAL].outcome) == ("pass", "new", "not judged")
    assert check(db, "n1", toml='new = "warn"')[0] == "pass"
    assert check(db, "n1", toml='new = "fail"')[1][EVAL].outcome == "fail"
    # What is new can be expected.
    assert check(db, "n1", toml='new = "fail"', accept="we evaluate now")[0] == "pass"
    assert check(db, "n1", toml='new = "fail"')[0] == "pass"


def test_a_program_that_is_gone_fails_once_or_as_the_limits_say(db):
    make_run(db, "n0", {STEP: 1000, EVAL: 10}, day=0)
    make_run(db, "n1", {STEP: 1000}, day=1)
    make_run(db, "n2", {STEP: 1000}, day=2)
    outcome, found = check(db, "n1")
    gone = found[EVAL]
    assert (outcome, gone.status, gone.outcome, gone.baseline_run) == ("fail", "gone", "fail", "n0")
    assert (gone.before_bytes, gone.now_bytes) == (10 * MIB, None)
    # There is nothing to accept: the next night passes.
    assert check(db, "n1", accept="we know")[0] == "fail"
    assert check(db, "n2")[0] == "pass"
    for said, outcome in (("pass", "pass"), ("warn", "pass"), ("fail", "fail")):
        found = check(db, "n1", toml=f'gone = "{said}"')
        assert (found[0], found[1][EVAL].outcome) == (outcome, said)


def test_a_failed_dump_fails_and_the_next_is_held_against_the_last_figures(db):
    make_nights(db, 1000, "failed", 1100)
    outcome, found = check(db, "n1", accept="we know")
    assert (outcome, found[STEP].status) == ("fail", "failed")
    assert step(db, "n2") == ("fail", "n0")


# --- branches -------------------------------------------------------------------------------


def branched(db):
    """Two nights of main, a pull request of two pushes between, and a night after."""
    make_run(db, "m1", {STEP: 1000, EVAL: 10}, day=1, branch="main")
    make_run(db, "m2", {STEP: 1000, EVAL: 10}, day=2, branch="main")
    make_run(db, "p1", {STEP: 1300}, day=3, branch="pr-7")
    make_run(db, "p2", {STEP: 1300}, day=4, branch="pr-7")
    make_run(db, "m3", {STEP: 1140, EVAL: 10}, day=5, branch="main")


def test_main_and_every_push_are_held_against_main(db):
    branched(db)
    for run, change in (("m3", 140), ("p1", 300), ("p2", 300)):
        outcome, found = check(db, run)
        row = found[STEP]
        assert (outcome, row.baseline_run, row.change_bytes) == ("fail", "m2", change * MIB)
    # What a branch lacks only warns.
    outcome, found = check(db, "p1", max_growth=["50%"])
    assert (outcome, found[EVAL].status, found[EVAL].outcome) == ("pass", "gone", "warn")
    # What was accepted on a branch holds for its next push, but not on main.
    assert check(db, "p1", accept="agreed in review")[0] == "pass"
    outcome, found = check(db, "p2")
    assert (outcome, found[STEP].accepted_reason) == ("pass", "agreed in review")
    assert check(db, "m3")[0] == "fail"


def test_a_baseline_is_a_run_or_the_newest_of_a_branch(db):
    branched(db)
    outcome, found = check(db, "m3", baseline="branch=pr-7")
    assert (outcome, found[STEP].baseline_run, found[STEP].status) == ("pass", "p2", "shrunk")
    assert found[EVAL].status == "new"
    _, found = check(db, "p2", baseline="m1")
    assert (found[EVAL].status, found[EVAL].outcome) == ("gone", "warn")
    for wrong, named in (("branch=gone", "gone"), ("m3", "m3")):
        with pytest.raises(UsageError, match=named) as error:
            check(db, "m3", baseline=wrong)
        assert error.value.argument == "baseline"
    with pytest.raises(UsageError, match="'maim'"):
        check(db, "p1", toml='baseline = "maim"')


def test_a_branch_answers_for_what_it_adds_to_the_drift_of_main(db):
    for night, peak in enumerate((1000, 1009, 1018, 1027), 1):
        make_run(db, f"m{night}", {STEP: peak}, day=night, branch="main")
    make_run(db, "p1", {STEP: 1035}, day=5, branch="pr-7")
    make_run(db, "m5", {STEP: 1036}, day=6, branch="main")
    make_run(db, "p2", {STEP: 1036}, day=7, branch="pr-8")
    make_run(db, "p3", {STEP: 1060}, day=8, branch="pr-9")
    make_run(db, "m6", {STEP: 900}, day=9, branch="main")
    # The lowest is that of main up to the base.
    found = check(db, "p1")[1][STEP]
    assert (found.outcome, found.baseline_run) == ("fail", "m1")
    assert check(db, "m5")[0] == "fail"
    outcome, found = check(db, "p2")
    assert (outcome, found[STEP].outcome) == ("pass", "warn")
    assert step(db, "p3") == ("fail", "m5")


def test_a_branch_is_held_against_an_earlier_run_if_the_base_failed_or_lacks_the_program(db):
    """Its growth must not pass as new."""
    make_run(db, "m1", {STEP: 1000, EVAL: 10}, day=1, branch="main")
    make_run(db, "m2", {STEP: "failed", EVAL: 10}, day=2, branch="main")
    make_run(db, "p1", {STEP: 1300}, day=3, branch="pr-7")
    make_run(db, "m3", {EVAL: 10}, day=4, branch="main")
    make_run(db, "p2", {STEP: 3000, EVAL: 10, "late/jit_late": 5}, day=5, branch="pr-8")
    make_run(db, "m4", {STEP: 1000, "late/jit_late": 1}, day=6, branch="main")
    assert step(db, "p1") == ("fail", "m1")
    assert step(db, "p2") == ("fail", "m1")
    found = check(db, "p2")[1]
    assert (found[EVAL].status, found["late/jit_late"].status) == ("unchanged", "new")


@pytest.mark.parametrize("default", ["master", "develop", None])
def test_the_default_lineage_is_main_or_master_or_what_the_limits_name_or_no_branch(db, default):
    labels = {"branch": default} if default else {}
    make_run(db, "d1", {STEP: 1000}, day=1, **labels)
    make_run(db, "p1", {STEP: 1300}, day=2, branch="pr-7")
    toml = 'baseline = "develop"\n' if default == "develop" else None
    assert step(db, "p1", toml=toml) == ("fail", "d1")


def test_another_suite_is_another_history(db):
    for day, (run, peak, suite) in enumerate(
        (("a1", 1000, "small"), ("b1", 1300, "large"), ("a2", 1000, "small"))
    ):
        make_run(db, run, {STEP: peak}, day=day, branch="main", suite=suite)
    outcome, found = check(db, "b1")
    assert (outcome, found[STEP].status) == ("not judged", "first")
    assert step(db, "a2") == ("pass", "a1")


# --- nothing to hold it against -------------------------------------------------------------


def test_a_first_run_is_not_judged_but_by_sizes(db):
    make_run(db, "p1", {STEP: 1000}, day=1, branch="pr-7")
    make_run(db, "m1", {STEP: 1000}, day=2, branch="main")
    assert check(db, "m1")[0] == check(db, "p1")[0] == "not judged"
    for toml, outcome in (
        ('max_bytes = "900MiB"', "fail"),
        ('max_bytes = "2GiB"', "not judged"),
        ('max_bytes = "2GiB"\nmax_growth = []', "pass"),
    ):
        assert check(db, "p1", toml=toml)[0] == outcome
