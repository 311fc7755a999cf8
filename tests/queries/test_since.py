"""`since`: since when a figure is what it is, and how it came about."""

import pytest

import memhouse
from memhouse import UsageError

from ..support.command import run_memhouse
from ..support.history import NIGHTS, SERIES
from ..support.warehouse import reading, rows, writing

COLUMNS = ("since_run", "last_run", "runs", "value", "change", "before_run")


@pytest.fixture(scope="module")
def nightly(history):
    with memhouse.open(history, read_only=True) as warehouse:
        yield warehouse


def since(db, module, **options):
    with memhouse.open(db, read_only=True) as warehouse:
        return warehouse.since(module, **options)


def facts(sentence, *expected):
    """Whether a sentence has all of them."""
    return [fact for fact in expected if fact not in sentence] == []


def scaled(db, factors, workload="llama-v5e"):
    """Make the nights' peaks of a workload these multiples of 100 MiB, each a program."""
    dumps = rows(
        db, f"SELECT dump_id, module_id FROM dumps WHERE workload = '{workload}' ORDER BY run_id"
    )
    made = "\n".join(
        f"""
        INSERT INTO modules BY NAME
            SELECT * REPLACE ({place} AS module_id, {place} AS program_id)
            FROM modules WHERE module_id = {dumps[0][1]};
        INSERT INTO module_memory BY NAME
            SELECT * REPLACE ({place} AS module_id, {round(factor * (100 << 20))} AS peak_bytes)
            FROM module_memory WHERE module_id = {dumps[0][1]} AND memory_space = 0;
        UPDATE dumps SET module_id = {place} WHERE dump_id = {dump_id};
        """
        for place, ((dump_id, _), factor) in enumerate(zip(dumps, factors, strict=True), 1)
    )
    with writing(db) as store:
        store.change(made)


def test_each_level_has_its_first_and_last_run_and_the_run_before(nightly):
    found = nightly.since("llama-cpu")
    levels = [tuple(row[name] for name in COLUMNS) for row in found.rows.table.to_pylist()]
    # The night of 2026-10-07 has no figures.
    assert levels == [
        ("2026-10-01", "2026-10-04", 4, 63865732, None, None),
        ("2026-10-05", "2026-10-06", 2, 147587964, 83722232, "2026-10-04"),
        ("2026-10-08", "2026-10-10", 3, 63865732, -83722232, "2026-10-06"),
    ]
    now, before, *_, back = found.answer
    assert facts(now, "llama-cpu/jit_train_step", "60.91 MiB", "2026-10-08", "3")
    assert facts(before, "140.75 MiB", "2026-10-06", "-79.84 MiB", "-56.7 %")
    # A growth that was taken back is told with both runs.
    assert facts(back, "79.84 MiB", "2026-10-05", "2026-10-08")


def test_the_cause_is_that_of_the_link(history, nightly):
    for workload in SERIES:
        ((cause,),) = rows(
            history,
            f"""SELECT cause FROM trends_by_space
            JOIN (SELECT MAX(run_at) AS run_at FROM trends_by_space
                WHERE workload = '{workload}' AND content_changed) USING (run_at)
                WHERE workload = '{workload}' AND metric = 'peak_bytes' AND memory_space = 0""",
        )
        found = nightly.since(workload)
        assert found.rows.table["cause"][-1].as_py() == cause
        assert sum(cause in sentence for sentence in found.answer) == 1


def test_a_drift_is_told_from_the_lowest_run_or_the_accepted_one_on(own):
    scaled(own, [1.009**night for night in range(10)])
    assert facts(since(own, "llama-v5e").answer[-1], "8.4 %", "2026-10-01", "9")
    with writing(own) as store:
        store.change(
            """INSERT INTO accepted_changes
            SELECT dump_id, 0, 'peak_bytes', 0, 'agreed', now() FROM dumps
            WHERE workload = 'llama-v5e' AND run_id = '2026-10-06'"""
        )
    assert facts(since(own, "llama-v5e").answer[-1], "3.6 %", "2026-10-06", "4")
    # Accepting the peak accepts no other figure.
    assert not facts(" ".join(since(own, "llama-v5e", metric="argument").answer), "2026-10-06")


def test_two_answers_of_autotuning_alternate(own):
    scaled(own, [1, 1.01] * 5)
    found = since(own, "llama-v5e")
    assert facts(found.answer[-1], "100.00 MiB", "101.00 MiB")
    # No growth was taken back, and the steps between two figures are not told one by one.
    assert len(found.answer) == 4
    # Those of another series are, the newest first.
    assert facts(since(own, "decode-v5e").answer[-1], "2026-10-04", "32.00 MiB", "67.04 MiB")
    series = run_memhouse("trends", "--db", own).stdout.splitlines()
    assert "alternates" in next(line for line in series if line.startswith("llama-v5e "))


def test_jitter_within_a_level_is_no_step(own):
    scaled(own, [1, 1.001, 0.999, 1.0015, 1, 1.2, 1.201, 1.199, 1.2, 1.2005])
    found = since(own, "llama-v5e")
    assert found.rows.table["since_run"].to_pylist() == ["2026-10-01", "2026-10-06"]
    assert facts(found.answer[0], "120.05 MiB", "2026-10-06", "5", "120.00 MiB")
    with memhouse.open(own, read_only=True) as warehouse:
        trends = warehouse.trends(workload="llama-v5e")
    assert trends.steps.table["run"].to_pylist() == ["2026-10-06"]
    assert trends.jitter == 8


def test_a_tolerance_widens_the_levels_and_any_figure_can_be_asked_for(nightly):
    for tolerance in ("50%", "1GiB"):
        found = nightly.since("decode-v5e", tolerance=tolerance).rows.table
        assert found["runs"].to_pylist() == [10]
    assert facts(nightly.since("llama-v5e", memory_space=1).answer[0], "111.16 MiB")
    alias = nightly.since("llama-v5e", metric="alias")
    assert alias.rows.table["change"].to_pylist()[-1] == 138307584
    # Of donated bytes more is better: nothing crept or came back.
    assert [facts(sentence, "132 MiB") for sentence in alias.answer] == [False, False, True]
    nothing = nightly.since("llama-v5e", memory_space=9)
    assert (len(nothing.rows), nothing.answer) == (0, ())


def test_a_series_that_never_changed_or_is_gone_says_so(own):
    with memhouse.open(own) as warehouse:
        warehouse.prune(NIGHTS[7:])
        assert facts(warehouse.since("llama-cpu").answer[0], "2026-10-05", "2", "gone", "1 run")
        warehouse.prune(NIGHTS[2:7])
        _, never = warehouse.since("decode-v5e").answer
    assert facts(never, "2026-10-01")


def test_a_branch_has_a_history_of_its_own(hosts):
    main, other = since(hosts, "llama-v5e"), since(hosts, "pr-7/llama-v5e")
    assert main.rows.table["since_run"].to_pylist() == ["main-1", "main-3"]
    assert other.rows.table["since_run"].to_pylist() == ["pr-7"]
    assert since(hosts, "llama-v5e", branch="pull/7").answer == other.answer
    assert since(hosts, "llama-v5e", branch="main").answer == main.answer


def test_a_run_without_the_memory_space_is_passed_over(own):
    """The figure is held against the one before it, and so is the cause."""
    with writing(own) as store:
        store.change(
            """DELETE FROM module_memory WHERE memory_space = 1 AND module_id IN (
                SELECT module_id FROM dumps
                WHERE run_id = '2026-10-09' AND workload = 'llama-v5e')"""
        )
    row = since(own, "llama-v5e", memory_space=1).rows.table.to_pylist()[-1]
    (a, before), (b, value) = rows(
        own,
        """SELECT dump_id, peak_bytes FROM dumps JOIN module_memory USING (module_id)
        WHERE run_id IN ('2026-10-08', '2026-10-10') AND workload = 'llama-v5e'
            AND memory_space = 1 ORDER BY run_id""",
    )
    with reading(own) as store:
        (cause,) = store.causes([(a, b)])["cause"].to_pylist()
    assert (
        row
        | {
            "since_run": "2026-10-10",
            "before_run": "2026-10-08",
            "value": value,
            "change": value - before,
            "change_ratio": (value - before) / before,
            "cause": f"{cause} (bytes of the peak in memory space 0)",
        }
        == row
    )
    assert cause is not None


@pytest.mark.parametrize(
    ("module", "options", "argument", "fact"),
    [
        ("nope", {}, "module", "'nope'"),
        ("llama-v5e", {"metric": "size"}, "metric", "peak, total"),
        ("llama-v5e", {"branch": "pull/8"}, "branch", "'pull/8'"),
        ("llama-v5e", {"tolerance": "few"}, "tolerance", "'few'"),
    ],
)
def test_wrong_usage(nightly, module, options, argument, fact):
    with pytest.raises(UsageError, match=fact) as error:
        nightly.since(module, **options)
    assert error.value.argument == argument
