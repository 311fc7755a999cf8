"""`trends` and `regressions`: on which night which metric changed, however nights come in."""

import json
from datetime import datetime

import pytest

import memhouse
from memhouse import UsageError
from memhouse.queries.runs import choose_branch
from memhouse.schema.metrics import METRICS

from ..support.command import run_memhouse
from ..support.history import NIGHTS, SERIES, TOLD_METRICS, copy_night, dicts
from ..support.warehouse import fill, reading, rows, writing

CHANGES = {
    "decode-v5e": ["2026-10-04", "2026-10-07"],
    "llama-cpu": ["2026-10-05", "2026-10-08"],
    "llama-v5e": [f"2026-10-{day:02}" for day in (3, 5, 6, 7, 8, 9, 10)],
    "resnet-h100": ["2026-10-05", "2026-10-08", "2026-10-10"],
}
GROWTHS = {
    "decode-v5e": ["2026-10-07"],
    "llama-cpu": ["2026-10-05"],
    "llama-v5e": ["2026-10-03", "2026-10-06", "2026-10-07", "2026-10-08", "2026-10-10"],
    "resnet-h100": ["2026-10-05", "2026-10-08"],
}


@pytest.fixture(scope="module")
def trends(history):
    """Every row of the view, in order of series and time."""
    return in_order(history)


@pytest.fixture(scope="module")
def nightly(history):
    with memhouse.open(history, read_only=True) as warehouse:
        yield warehouse


def in_order(db):
    columns = [name for (name,) in rows(db, "SELECT column_name FROM (DESCRIBE internal.trends)")]
    return dicts(
        db,
        ", ".join(columns),
        "FROM internal.trends ORDER BY workload, memory_space, metric, run_at",
    )


def hbm(found, workload, metric="peak_bytes"):
    key = (workload, 0, metric)
    return [row for row in found if (row["workload"], row["memory_space"], row["metric"]) == key]


def of_night(found, workload, night, metric="peak_bytes"):
    (row,) = [row for row in hbm(found, workload, metric) if row["run_id"] == night]
    return row


def changed(found):
    """The nights at which each workload's program changed."""
    return {
        workload: [row["run_id"] for row in hbm(found, workload) if row["content_changed"]]
        for workload in {row["workload"] for row in found}
    }


def asked(db, **options):
    with memhouse.open(db, read_only=True) as warehouse:
        return warehouse.trends(**options)


def steps_of(found):
    return [
        (step["run"], step["workload"], step["cause"]) for step in found.steps.table.to_pylist()
    ]


def ingest_some(db, folder, nights, runs):
    """Ingest runs that have some workloads of the nights: by run, by name, NIGHT/WORKLOAD."""
    for run, workloads in runs.items():
        for name, source in workloads.items():
            copy_night(nights / source, folder / run / name)
        fill(db, folder / run)
    return db


# --- which night changed what -------------------------------------------------------------


def test_exactly_the_nights_on_which_something_changed(trends):
    assert changed(trends) == CHANGES
    for workload, module in SERIES.items():
        series = hbm(trends, workload)
        missing = ["2026-10-07"] if workload == "llama-cpu" else []
        assert [row["run_id"] for row in series] == [n for n in NIGHTS if n not in missing]
        assert {(row["module_name"], row["occurrence"], row["status"]) for row in series} == {
            (module, 1, "ok")
        }
    new_shapes = {
        (row["workload"], row["run_id"])
        for row in trends
        if row["signature_changed"] and row["metric"] == "peak_bytes" and not row["memory_space"]
    }
    days = {"decode-v5e": (4, 7), "llama-v5e": (6, 7), "resnet-h100": (5, 8, 10)}
    assert new_shapes == {(name, f"2026-10-{day:02}") for name, of in days.items() for day in of}
    assert not any(row["compiler_changed"] or row["flags_changed"] for row in trends)


def test_a_step_has_the_size_that_the_dumps_say(trends):
    """Donation switched off, then on again."""
    off, on = (
        {metric: of_night(trends, "llama-v5e", night, metric) for metric in TOLD_METRICS}
        for night in ("2026-10-08", "2026-10-09")
    )
    alias = [
        (row["alias_bytes"]["previous_value"], row["alias_bytes"]["value"]) for row in (off, on)
    ]
    assert alias == [(138307584, 0), (0, 138307584)]
    assert off["peak_bytes"]["change"] == -on["peak_bytes"]["change"] == 110428160
    assert off["argument_bytes"]["change"] == 0
    assert off["alias_bytes"]["change_ratio"] == -1
    assert on["alias_bytes"]["change_ratio"] is None


# --- previous, change, change_ratio, best ---------------------------------------------------


def test_a_row_is_compared_with_the_one_before_and_with_the_best_so_far(trends):
    """The lowest, but of donated bytes the highest. A night without change has none."""
    previous: dict[tuple, dict] = {}
    best: dict[tuple, int] = {}
    for row in trends:
        key = (row["workload"], row["memory_space"], row["metric"])
        better = max if row["metric"] == "alias_bytes" else min
        best[key] = better(row["value"], best.get(key, row["value"]))
        assert row["best_value"] == best[key]
        before = previous.get(key)
        previous[key] = row
        if before is None:
            told = [
                value for name, value in row.items() if name.startswith(("previous_", "change_"))
            ]
            told += [value for name, value in row.items() if name.endswith("_changed")]
            assert {*told, row["missed_runs"]} == {None}
            continue
        gap = (row["workload"], row["run_id"]) == ("llama-cpu", "2026-10-08")
        assert (row["previous_run_id"], row["missed_runs"]) == (before["run_id"], int(gap))
        assert row["content_changed"] == (row["module_id"] != before["module_id"])
        change = row["value"] - before["value"]
        assert (row["previous_value"], row["change"]) == (before["value"], change)
        assert row["content_changed"] or change == 0
        ratio = before["value"] and change / before["value"]
        assert row["change_ratio"] == (pytest.approx(ratio) if before["value"] else None)
    assert len(trends) > 400


def test_the_last_row_of_a_series_says_for_how_long_it_is_gone(own, trends):
    last = {(row["run_id"], row["is_last"], row["runs_since"]) for row in trends if row["is_last"]}
    assert last == {("2026-10-10", True, 0)}
    assert {row["runs_since"] for row in trends if not row["is_last"]} == {None}
    with memhouse.open(own) as warehouse:
        warehouse.prune(NIGHTS[7:])
        found = warehouse.trends(since="2026-10-07")
        later = warehouse.trends(since="2026-10-08")
        whole = warehouse.trends()
    after = in_order(own)
    rows = [of_night(after, "llama-cpu", f"2026-10-0{day}") for day in (5, 6)]
    assert [(row["is_last"], row["runs_since"]) for row in rows] == [(False, None), (True, 1)]
    assert of_night(after, "llama-v5e", "2026-10-07")["runs_since"] == 0
    # A program that vanished since then is shown.
    (row,) = [row for row in found.series.table.to_pylist() if row["workload"] == "llama-cpu"]
    assert (row["last_run"], row["gone_for"], row["trend"]) == ("2026-10-06", "1 run", [None])
    gone = ("2026-10-07", "llama-cpu", "gone")
    assert gone in steps_of(found)
    assert gone in steps_of(whole)
    assert {row["run_id"] for row in found.rows.table.to_pylist()} == {"2026-10-07"}
    assert len(later.series) == 0
    with writing(own) as store:
        store.change("DELETE FROM dumps WHERE run_id = '2026-10-07'")
    # Also where all programs of the suite did.
    found = asked(own, since="2026-10-07")
    assert len(found.rows) == 0
    assert {cause for _, _, cause in steps_of(found)} == {"gone"}
    assert set(found.series.table["last_run"].to_pylist()) == {"2026-10-06"}
    assert run_memhouse("trends", "--since", "2026-10-07", "--db", own).returncode == 0


# --- nights that failed or lack figures -------------------------------------------------------


def test_a_failed_dump_has_a_row_without_figures_and_ends_nothing(tmp_path, db, nights):
    """The next good night is compared with the last good one."""
    for night in ("2026-10-06", "2026-10-07", "2026-10-08"):
        for name in ("decode-v5e", "llama-cpu"):
            if (nights / night / name).is_dir():
                copy_night(nights / night / name, tmp_path / night / name)
    for file in (tmp_path / "2026-10-07" / "decode-v5e").glob("*after_optimizations*"):
        file.write_text("Segmentation fault\n")
    summaries = fill(db, *(tmp_path / f"2026-10-{day}" for day in ("06", "07", "08")))
    assert [(summary.dumps, summary.failed) for summary in summaries] == [(2, 0), (1, 1), (2, 0)]
    found = in_order(db)
    for metric in METRICS:
        row = of_night(found, "decode-v5e", "2026-10-07", metric)
        columns = ("module_id", "previous_run_id", "value", "change", "content_changed")
        assert (row["status"], *(row[name] for name in columns)) == ("failed", *[None] * 5)
        assert (row["is_last"], row["runs_since"]) == (False, None)
    row = of_night(found, "decode-v5e", "2026-10-08")
    assert (row["previous_run_id"], row["missed_runs"]) == ("2026-10-06", 1)
    assert (row["content_changed"], row["change"]) == (True, 32 << 20)
    assert (row["is_last"], row["runs_since"]) == (True, 0)


def test_a_night_without_a_peak_is_compared_with_none(tmp_path, db, nights):
    for night in ("2026-10-06", "2026-10-07", "2026-10-08"):
        folder = copy_night(nights / night / "decode-v5e", tmp_path / night / "decode-v5e")
        for ending in ("*-live-range.txt*", "*optimizations.txt*"):
            for path in folder.glob(ending) if night > "2026-10-06" else ():
                path.unlink()
        fill(db, tmp_path / night)
    found = rows(
        db,
        """SELECT run_id[-2:], status, previous_run_id, value > 0, change,
            best_value > 0, content_changed, signature_changed
        FROM trends WHERE metric = 'total_bytes' ORDER BY run_at""",
    )
    assert found == [
        ("06", "ok", None, True, None, True, None, None),
        ("07", "partial", None, True, None, None, None, None),
        ("08", "partial", None, True, None, None, None, None),
    ]
    assert rows(db, "SELECT * FROM regressions") == []


# --- regressions --------------------------------------------------------------------------


def test_regressions_are_exactly_the_steps_over_one_percent(history, trends):
    columns = ("run_id", "workload", "metric", "previous_value", "change")
    harmless = ("total_bytes", "alias_bytes", "constant_bytes", "thread_local_bytes", "flops")
    steps = {
        tuple(row[column] for column in columns)
        for row in trends
        if row["metric"] not in harmless
        and row["memory_space"] == 0
        and row["previous_run_id"]
        and row["change"] > row["previous_value"] / 100
    }
    found = rows(history, f"SELECT {', '.join(columns)} FROM regressions")
    assert len(found) == len(steps) > 20
    assert set(found) == steps
    of_peaks = sorted((row[1], row[0]) for row in found if row[2] == "peak_bytes")
    assert of_peaks == [(name, night) for name, nights in GROWTHS.items() for night in nights]


# --- what the question and the command tell ---------------------------------------------------


def test_a_series_has_a_row_and_its_steps_are_the_nights_of_change(nightly):
    found = nightly.trends()
    series = {row["workload"]: row for row in found.series.table.to_pylist()}
    assert sorted(series) == list(SERIES)
    now = found.series.table["value"].to_pylist()
    assert now == sorted(now, reverse=True)
    llama = series["llama-v5e"]
    assert (round(llama["value"] / 2**30, 2), llama["since"]) == (2.44, "2026-10-10")
    assert round(llama["best_value"] / 2**20, 2) == 306.98
    assert [value is None for value in series["llama-cpu"]["trend"]].index(True) == 6
    steps = [step[:2] for step in steps_of(found) if step[2] != "gone"]
    assert sorted(steps) == sorted(
        (night, workload) for workload in SERIES for night in CHANGES[workload]
    )
    assert [night for night, _ in steps] == sorted((night for night, _ in steps), reverse=True)
    assert (found.branch, found.other_branches) == ("", ())
    recent = nightly.trends(since="2026-10-09").rows.table
    assert set(recent["run_id"].to_pylist()) == {"2026-10-09", "2026-10-10"}
    assert len(nightly.trends(since="2027-01-01").series) == 0
    vmem = nightly.trends(memory_space=1)
    # A cause's bytes are those of the main memory's peak, beside its figure alone.
    causes = [row["cause"] for row in vmem.steps.table.to_pylist() if "MiB" in row["cause"]]
    assert causes
    assert all(cause.endswith("(bytes of the peak in memory space 0)") for cause in causes)
    of_vmem = vmem.series.table["workload"].to_pylist()
    assert sorted(of_vmem) == ["decode-v5e", "llama-v5e"]
    arguments = nightly.trends(metric="argument").rows.table
    assert set(arguments["metric"].to_pylist()) == {"argument_bytes"}


def test_work_is_a_figure_with_steps_of_its_own(nightly):
    """In FLOPs, those of `modules`: recomputing is a step in work and in memory."""
    found = nightly.trends(metric="flops")
    query = "SELECT run_id, workload, flops FROM dumps JOIN modules USING (module_id)"
    view = nightly.sql(query).arrow().to_pylist()
    told = {(row["run_id"], row["workload"], row["value"]) for row in found.rows.table.to_pylist()}
    assert told == {tuple(row.values()) for row in view}
    least = {row["workload"]: row["best_value"] for row in found.series.table.to_pylist()}
    assert least == {name: min(r["flops"] for r in view if r["workload"] == name) for name in least}
    (step,) = (s for s in found.steps_in_words() if s.startswith("2026-10-08: llama-cpu"))
    assert "grew by 1.81194 GFLOP (+24.7 %) to 9.16036 GFLOP: rematerialised now" in step


def test_each_format_has_what_it_is_for(history, trends):
    args = ("trends", "--db", history, "--workload", "llama-cpu", "--format")
    want = hbm(trends, "llama-cpu")
    found = json.loads(run_memhouse(*args, "json").stdout)
    assert [row | {"run_at": None} for row in found] == [row | {"run_at": None} for row in want]
    assert list(found[0]) == list(want[0])
    # A sparkline is blank where a night is missing.
    for options in ((), ("--workload", "llama-cpu")):
        table = run_memhouse("trends", "--db", history, *options).stdout.split("\n\n")[0]
        assert "▁▁▁▁██ ▁▁▁" in next(x for x in table.splitlines() if x.startswith("llama-cpu"))
    done = run_memhouse("trends", "--db", history, "--since", "2027-01-01")
    assert (done.returncode, done.stdout, bool(done.stderr)) == (0, "", True)


# --- order, branches, names ---------------------------------------------------------------------


def test_runs_of_one_date_change_and_bring_modules_as_they_were_ingested(tmp_path, db, nights):
    """In order of names they would be turned round."""
    names = ["2026-11-03-c", "2026-11-03-b", "2026-11-03-a"]
    days = ("2026-10-03", "2026-10-03", "2026-10-04")
    runs = {name: {"decode": f"{day}/decode-v5e"} for name, day in zip(names, days, strict=True)}
    ingest_some(db, tmp_path, nights, runs)
    (row,) = [row for row in hbm(in_order(db), "decode") if row["content_changed"]]
    assert (row["run_id"], row["previous_run_id"]) == (names[2], names[1])
    assert row["change"] == -32 << 20
    with memhouse.open(db, read_only=True) as warehouse:
        found = warehouse.runs().table.to_pylist()
    assert [(row["run"], row["new_modules"]) for row in found] == list(
        zip(names, (1, 0, 1), strict=True)
    )


def test_a_branch_shows_its_own_runs_and_changes_nothing_on_main(hosts, nightly):
    with memhouse.open(hosts, read_only=True) as warehouse:
        found = warehouse.trends(workload="llama-v5e")
        other = warehouse.trends(branch="pull/7")
        with pytest.raises(UsageError, match="main, pull/7") as error:
            warehouse.trends(branch="pull/8")
    on_main = found.rows.table.to_pylist()
    assert [(row["run_id"], row["previous_run_id"]) for row in on_main] == [
        *(("main-1", None), ("main-2", "main-1"), ("main-3", "main-2")),
    ]
    assert {row["missed_runs"] for row in on_main} == {None, 0}
    assert (found.branch, found.other_branches) == ("main", ("pull/7",))
    assert set(other.rows.table["run_id"].to_pylist()) == {"pr-7"}
    assert error.value.argument == "branch"
    with pytest.raises(UsageError, match="'main'"):
        nightly.trends(branch="main")


def test_the_branch_of_the_last_run_of_one_time_comes_first(tmp_path, db, nights):
    """The first branch has the newest time, and an older run that entered last."""
    copy_night(nights / "2026-10-03" / "decode-v5e", tmp_path / "job" / "decode")
    with memhouse.open(db) as warehouse:
        for run, day in (("a", 10), ("b", 10), ("a", 9)):
            at = datetime(2026, 11, day)
            warehouse.ingest(tmp_path / "job", run=f"{run}-{day}", at=at, labels={"branch": run})
    with reading(db) as store:
        found = choose_branch(store)
    assert (found.chosen, found.others) == ("b", ("a",))


def test_the_same_program_of_two_suites_is_two_rows(tmp_path, db, nights):
    """Runs are counted within a suite: equal numbers of two suites are different runs."""
    with memhouse.open(db) as warehouse:
        for suite, day in (("serve", 10), ("train", 11)):
            folder = tmp_path / suite
            copy_night(nights / "2026-10-03" / "decode-v5e", folder / "decode")
            at = datetime(2026, 11, day)
            warehouse.ingest(folder, run=suite, at=at, labels={"suite": suite})
        series = warehouse.trends().series.table
    assert series["workload"].to_pylist() == ["decode", "decode"]
    assert series["since"].to_pylist() == ["serve", "train"]


def test_programs_that_come_go_and_are_back_are_steps(tmp_path, db, nights):
    decode = {"decode": "2026-10-06/decode-v5e"}
    both = decode | {"cpu": "2026-10-06/llama-cpu"}
    without = decode | {"serve": "2026-10-07/decode-v5e"}
    runs = {"2026-11-01": both, "2026-11-02": without, "2026-11-03": both}
    found = asked(ingest_some(db, tmp_path, nights, runs))
    told = {(run, workload): cause for run, workload, cause in steps_of(found)}
    assert told["2026-11-02", "cpu"] == told["2026-11-03", "serve"] == "gone"
    assert told.keys() == {
        *(("2026-11-02", "cpu"), ("2026-11-02", "serve")),
        *(("2026-11-03", "cpu"), ("2026-11-03", "serve")),
    }
    assert told["2026-11-02", "serve"] == "new"
    assert "1" in told["2026-11-03", "cpu"]
    assert told["2026-11-03", "cpu"] != "gone"


def test_a_renamed_series_goes_on_and_other_lines_are_no_change(tmp_path, db, nights):
    """The same program of another source is another module, and no step."""
    run = {"decode": "2026-10-03/decode-v5e", "cpu": "2026-10-03/llama-cpu"}
    ingest_some(db, tmp_path, nights, {"2026-10-03": run})
    moved = copy_night(tmp_path / "2026-10-03", tmp_path / "2026-10-05")
    (moved / "decode").rename(moved / "serve")
    (file,) = (moved / "cpu").glob("*after_optimizations.txt")
    text = file.read_text()
    file.write_text(text.replace(" line=3", " line=73"))
    assert file.read_text() != text
    fill(db, moved)
    found = asked(db)
    assert sorted(found.series.table["workload"].to_pylist()) == ["cpu", "serve"]
    assert [len(trend) for trend in found.series.table["trend"].to_pylist()] == [2, 2]
    (renamed,) = steps_of(found)
    assert renamed[:2] == ("2026-10-05", "serve")
    assert "decode" in renamed[2]
    # Both names find the whole series.
    for name in ("decode", "serve"):
        of_name = asked(db, workload=name).rows.table["workload"].to_pylist()
        assert of_name == ["decode", "serve"]
    row = of_night(in_order(db), "cpu", "2026-10-05")
    assert len({row["module_id"] for row in hbm(in_order(db), "cpu")}) == 2
    assert (row["content_changed"], row["change"], row["cause"]) == (False, 0, None)


# --- by scope ---------------------------------------------------------------------------------


def test_the_scopes_add_up_to_the_peaks_and_their_changes(history):
    compared = rows(
        history,
        """
        SELECT
            trends.value,
            trends.change,
            SUM(scope_trends.counted_bytes)::BIGINT,
            SUM(scope_trends.change_bytes)::BIGINT
        FROM scope_trends
        INNER JOIN trends
            ON trends.dump_id = scope_trends.dump_id AND trends.metric = 'peak_bytes'
        GROUP BY scope_trends.dump_id, 1, 2
        """,
    )
    assert len(compared) > 30
    assert [row for row in compared if row[:2] != row[2:]] == []
    changes = rows(
        history,
        "SELECT pass, SUM(change_bytes)::BIGINT FROM scope_trends WHERE workload = 'llama-v5e' "
        "AND run_id = '2026-10-10' GROUP BY pass",
    )
    # A night without rematerialisation shows what forward keeps instead.
    assert dict(changes)["forward"] > 1.9 * 2**30
    assert dict(changes)["rematerialised"] < -200 * 2**20
