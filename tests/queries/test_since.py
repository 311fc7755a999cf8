"""`memhouse since`: since when a figure is what it is, and how it came about."""

import csv
import io
import shutil

import pytest

import memhouse as library
from memhouse.queries.since import since
from memhouse.schema.errors import UsageError

from ..support.command import run_memhouse
from ..support.history import NIGHTS, SERIES, copy_night, ingest_nights
from ..support.warehouse import reading, rows, writing


def said(db, *options: str) -> list[str]:
    done = run_memhouse("since", *options, "--db", db)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


def scaled(db, series: list[float], workload="llama-v5e"):
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
        for place, ((dump_id, _), factor) in enumerate(zip(dumps, series, strict=True), 1)
    )
    with writing(db) as store:
        store.change(made)


def test_the_first_run_of_todays_level_and_the_run_before(history):
    assert said(history, "decode-v5e")[:2] == [
        "decode-v5e/jit_generate: peak 99.04 MiB since 2026-10-07, for 4 runs",
        "before: 67.04 MiB in 2026-10-06 (+32.00 MiB, +47.7 %)",
    ]


def test_the_cause_is_that_of_the_link(history):
    """Every sentence of a cause is the one that `trends` stores."""
    for workload in SERIES:
        (cause,) = rows(
            history,
            f"""SELECT cause FROM trends JOIN (SELECT MAX(run_at) AS run_at FROM trends
                WHERE workload = '{workload}' AND content_changed) USING (run_at)
                WHERE workload = '{workload}' AND metric = 'peak_bytes' AND memory_space = 0""",
        )
        told = [x.removeprefix("cause: ") for x in said(history, workload) if x[:5] == "cause"]
        assert told == [*filter(None, cause)]


def test_a_growth_that_was_taken_back_is_told_with_both_runs(history):
    lines = said(history, "llama-cpu")
    assert lines[0] == "llama-cpu/jit_train_step: peak 60.91 MiB since 2026-10-08, for 3 runs"
    # The night of 2026-10-07 has no figures.
    assert lines[1] == "before: 140.75 MiB in 2026-10-06 (-79.84 MiB, -56.7 %)"
    assert lines[-1] == "grew 79.84 MiB on 2026-10-05, back on 2026-10-08"


def test_a_creep_is_told_from_the_lowest_run_on(own):
    scaled(own, [1.009**night for night in range(10)])
    lines = said(own, "llama-v5e")
    assert lines[0] == "llama-v5e/jit_train_step: peak 108.40 MiB since 2026-10-10, for 1 run"
    assert lines[-1] == "grown 8.4 % since 2026-10-01, the lowest, in 9 steps"


def test_an_accepted_growth_is_where_a_creep_begins(own):
    scaled(own, [1.009**night for night in range(10)])
    with writing(own) as store:
        store.change(
            """INSERT INTO accepted_changes
            SELECT dump_id, 0, 'peak_bytes', 0, 'agreed', now() FROM dumps
            WHERE workload = 'llama-v5e' AND run_id = '2026-10-06'"""
        )
    assert said(own, "llama-v5e")[-1] == "grown 3.6 % since 2026-10-06, the lowest, in 4 steps"
    # Accepting the peak accepts no other figure.
    assert "grown" not in " ".join(said(own, "llama-v5e", "--figure", "argument"))


def test_two_answers_of_autotuning_alternate(own):
    scaled(own, [1, 1.01] * 5)
    lines = said(own, "llama-v5e")
    assert lines[-1] == "alternates between 100.00 MiB and 101.00 MiB"
    assert not any(line.startswith("grew") for line in lines)
    assert (
        run_memhouse("trends", "--db", own).stdout.splitlines()[3].rstrip().endswith("alternates")
    )


def test_jitter_within_a_level_is_no_step(own):
    scaled(own, [1, 1.001, 0.999, 1.0015, 1, 1.2, 1.201, 1.199, 1.2, 1.2005])
    lines = said(own, "llama-v5e")
    assert lines[0].endswith(
        "peak 120.05 MiB since 2026-10-06, for 5 runs; "
        "it was 120.00 MiB then, which is the same level"
    )
    assert lines[1] == "before: 100.00 MiB in 2026-10-05 (+20.00 MiB, +20.0 %)"
    done = run_memhouse("trends", "--db", own, "--workload", "llama-v5e")
    steps = done.stdout.split("\n\n")[1].splitlines()[1:]
    assert [line.split()[0] for line in steps] == ["2026-10-06"]
    assert "8 changes within a level left out (--format csv)" in done.stderr


def test_a_tolerance_widens_the_levels(history):
    line = said(history, "decode-v5e", "--tolerance", "50%")[0]
    assert line.endswith("since 2026-10-01, for 10 runs")
    line = said(history, "decode-v5e", "--tolerance", "1GiB")[0]
    assert line.endswith("since 2026-10-01, for 10 runs")


def test_another_figure(history):
    assert said(history, "resnet-h100", "--figure", "argument")[0].startswith(
        "resnet-h100/jit_train: argument "
    )
    assert said(history, "llama-v5e", "--space", "1")[0].startswith(
        "llama-v5e/jit_train_step: peak 111.16 MiB since "
    )


def test_csv_has_a_row_a_level(history):
    done = run_memhouse("since", "llama-cpu", "--db", history, "--format", "csv")
    found = list(csv.DictReader(io.StringIO(done.stdout)))
    columns = ("since_run", "last_run", "runs", "value_bytes", "change_bytes", "before_run")
    assert [[row[name] for name in columns] for row in found] == [
        ["2026-10-01", "2026-10-04", "4", "63865732", "", ""],
        ["2026-10-05", "2026-10-06", "2", "147587964", "83722232", "2026-10-04"],
        ["2026-10-08", "2026-10-10", "3", "63865732", "-83722232", "2026-10-06"],
    ]


def test_a_series_that_never_changed(tmp_path, nights):
    db = ingest_nights(tmp_path / "some.duckdb", nights, NIGHTS[:2])
    assert said(db, "decode-v5e")[1:] == ["it has not changed since the first run, 2026-10-01"]


def test_a_series_that_is_gone(tmp_path, nights):
    db = ingest_nights(tmp_path / "some.duckdb", nights, ["2026-10-06", "2026-10-07"])
    assert said(db, "llama-cpu")[0].endswith("since 2026-10-06, for 1 run; gone for 1 run")


def test_runs_of_one_date_follow_each_other_as_ingested(tmp_path, nights):
    """A date in a name is midnight, and names order no runs: `…-a` came after `…-rerun`."""
    db = tmp_path / "day.duckdb"
    for name, night in (("rerun", "2026-10-03"), ("a", "2026-10-04")):
        run = copy_night(nights / night, tmp_path / f"2026-11-03-{name}")
        assert run_memhouse("ingest", run, "--db", db).returncode == 0
    lines = said(db, "decode-v5e")
    assert lines[0].endswith("peak 67.04 MiB since 2026-11-03-a, for 1 run")
    assert lines[1] == "before: 99.04 MiB in 2026-11-03-rerun (-32.00 MiB, -32.3 %)"


def test_a_branch_has_a_history_of_its_own(hosts):
    assert said(hosts, "llama-v5e")[:2] == [
        "llama-v5e/jit_train_step: peak 502.17 MiB since main-3, for 1 run",
        "before: 306.98 MiB in main-2 (+195.19 MiB, +63.6 %)",
    ]
    assert said(hosts, "pr-7/llama-v5e") == [
        "llama-v5e/jit_train_step: peak 2.44 GiB since pr-7, for 1 run",
        "it has not changed since the first run, pr-7",
    ]
    assert said(hosts, "llama-v5e", "--branch", "pull/7") == said(hosts, "pr-7/llama-v5e")
    assert said(hosts, "llama-v5e", "--branch", "main") == said(hosts, "llama-v5e")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["nope"], "no module fits 'nope'"),
        (["llama-v5e", "--figure", "size"], "unknown metric 'size': use one of peak, total"),
        (["llama-v5e", "--branch", "pull/8"], "Invalid value for --branch: there is no branch"),
        (["llama-v5e", "--tolerance", "few"], "'few' is neither a percentage such as"),
    ],
)
def test_wrong_usage(history, options, message):
    done = run_memhouse("since", *options, "--db", history)
    assert done.returncode == 2
    assert message in " ".join(done.stderr.split())


def test_a_space_without_figures_is_no_failure(history):
    done = run_memhouse("since", "llama-v5e", "--space", "9", "--db", history)
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr == "llama-v5e/jit_train_step has no peak in memory space 9\n"


def test_the_library_returns_values(history, tmp_path):
    with library.open(shutil.copy(history, tmp_path / "copy.duckdb")) as warehouse:
        found = warehouse.since("decode-v5e", metric="argument")
        assert found.answer[0].startswith("decode-v5e/jit_generate: argument ")
        assert found.arrow()["since_run"].to_pylist()[0] == NIGHTS[0]
        with pytest.raises(UsageError):
            warehouse.since("decode-v5e", tolerance="wide")


def test_a_run_without_the_memory_space_is_passed_over(own):
    """The figure is held against the one before it, and so is the cause."""
    with writing(own) as store:
        store.change(
            """DELETE FROM module_memory WHERE memory_space = 1 AND module_id IN (
                SELECT module_id FROM dumps
                WHERE run_id = '2026-10-09' AND workload = 'llama-v5e')"""
        )
    with reading(own) as store:
        row = since(store, "llama-v5e", memory_space=1).rows.table.to_pylist()[-1]
        ((a, before), (b, value)) = [
            store.connection.sql(
                f"""SELECT dump_id, peak_bytes FROM dumps JOIN module_memory USING (module_id)
                WHERE run_id = '{run}' AND workload = 'llama-v5e' AND memory_space = 1"""
            ).fetchall()[0]
            for run in ("2026-10-08", "2026-10-10")
        ]
        (cause,) = store.causes([(a, b)])["cause"].to_pylist()
    assert cause is not None
    assert (row["since_run"], row["before_run"]) == ("2026-10-10", "2026-10-08")
    assert (row["value_bytes"], row["change_bytes"]) == (value, value - before)
    assert row["change_pct"] == 100 * (value - before) / before
    assert row["cause"] == cause
    assert "in 2026-10-08 (" in said(own, "llama-v5e", "--space", "1")[1]


def test_of_donated_bytes_more_is_better_so_nothing_crept_or_came_back(history):
    assert said(history, "llama-v5e", "--figure", "alias") == [
        "llama-v5e/jit_train_step: alias 131.90 MiB since 2026-10-09, for 2 runs",
        "before: 0 B in 2026-10-08 (+131.90 MiB)",
        "cause: donated now: 132 MiB of m, v, p",
    ]
