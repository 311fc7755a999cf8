"""`trends` and `regressions`: on which night which metric changed, however nights come in."""

import csv
import io
import json
import random
import shutil

import pytest

from memhouse.schema.metric_names import METRICS

from ..support.command import run_memhouse
from ..support.console import on_terminal
from ..support.history import NIGHTS, SERIES, copy_night, dicts, ingest_nights
from ..support.warehouse import fill, rows, writing

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


@pytest.fixture(scope="session")
def trends(history):
    """Every row of the view, in order of series and time."""
    return in_order(history)


def in_order(db) -> list[dict]:
    """The rows as `memhouse trends` prints them, of all spaces and metrics."""
    columns = [name for (name,) in rows(db, "SELECT column_name FROM (DESCRIBE trends)")]
    return dicts(
        db, ", ".join(columns), "FROM trends ORDER BY workload, memory_space, metric, run_at"
    )


def hbm(found: list[dict], workload: str, metric: str = "peak_bytes") -> list[dict]:
    key = (workload, 0, metric)
    return [row for row in found if (row["workload"], row["memory_space"], row["metric"]) == key]


def of_night(found: list[dict], workload: str, night: str, metric: str = "peak_bytes") -> dict:
    (row,) = [row for row in hbm(found, workload, metric) if row["run_id"] == night]
    return row


def key_of(row: dict) -> tuple:
    return row["workload"], row["memory_space"], row["run_id"]


def changed(found: list[dict]) -> dict[str, list[str]]:
    """The nights at which each workload's program changed."""
    return {
        workload: [row["run_id"] for row in hbm(found, workload) if row["content_changed"]]
        for workload in SERIES
    }


# --- which night changed what -------------------------------------------------------------


def test_a_row_per_night_and_series(trends):
    for workload, module in SERIES.items():
        series = hbm(trends, workload)
        missing = ["2026-10-07"] if workload == "llama-cpu" else []
        assert [row["run_id"] for row in series] == [n for n in NIGHTS if n not in missing]
        assert {(row["module_name"], row["occurrence"], row["status"]) for row in series} == {
            (module, 1, "ok")
        }


def test_exactly_the_nights_on_which_something_changed(trends):
    assert changed(trends) == CHANGES


@pytest.mark.parametrize("order", ["reversed", "shuffled"])
def test_the_order_of_ingesting_does_not_matter(tmp_path, nights, trends, order):
    names = NIGHTS[::-1] if order == "reversed" else random.Random(7).sample(NIGHTS, len(NIGHTS))
    assert names != NIGHTS
    found = in_order(ingest_nights(tmp_path / "other.duckdb", nights, names))
    assert changed(found) == CHANGES
    assert found == trends


def test_a_step_has_the_size_that_the_dumps_say(trends):
    # Donation switched off, then on again.
    off, on = (
        {row["metric"]: row for row in trends if key_of(row) == ("llama-v5e", 0, night)}
        for night in ("2026-10-08", "2026-10-09")
    )
    assert (off["alias_bytes"]["value_bytes"], off["alias_bytes"]["previous_bytes"]) == (
        0,
        138307584,
    )
    assert (on["alias_bytes"]["value_bytes"], on["alias_bytes"]["previous_bytes"]) == (
        138307584,
        0,
    )
    assert off["peak_bytes"]["change_bytes"] == -on["peak_bytes"]["change_bytes"] == 110428160
    assert off["argument_bytes"]["change_bytes"] == 0
    assert off["alias_bytes"]["change_pct"] == -100
    assert on["alias_bytes"]["change_pct"] is None


def test_what_else_changed(trends):
    causes = {
        (workload, night): [
            column
            for column in ("signature_changed", "compiler_changed", "flags_changed")
            if of_night(trends, workload, night)[column]
        ]
        for workload, nights in CHANGES.items()
        for night in nights
    }
    new_shapes = {key for key, found in causes.items() if found == ["signature_changed"]}
    assert new_shapes == {
        ("decode-v5e", "2026-10-04"),
        ("decode-v5e", "2026-10-07"),
        ("llama-v5e", "2026-10-06"),
        ("llama-v5e", "2026-10-07"),
        ("resnet-h100", "2026-10-05"),
        ("resnet-h100", "2026-10-08"),
        ("resnet-h100", "2026-10-10"),
    }
    assert all(found == [] for key, found in causes.items() if key not in new_shapes)


# --- previous, change, change_pct, best ---------------------------------------------------


def test_the_first_night_has_nothing_to_compare_with(trends):
    first = [row for row in trends if row["run_id"] == NIGHTS[0]]
    assert len(first) > len(SERIES)
    for row in first:
        for column, value in row.items():
            if column.startswith(("previous_", "change_")) or column.endswith("_changed"):
                assert value is None, column
        assert row["previous_run_id"] is None
        assert row["missed_runs"] is None


def test_a_row_is_compared_with_the_one_before(trends):
    previous: dict[tuple, dict] = {}
    for row in trends:
        key = (row["workload"], row["memory_space"], row["metric"])
        before = previous.get(key)
        previous[key] = row
        if before is None:
            continue
        assert row["previous_run_id"] == before["run_id"]
        assert row["content_changed"] == (row["module_id"] != before["module_id"])
        change = row["value_bytes"] - before["value_bytes"]
        assert row["previous_bytes"] == before["value_bytes"]
        assert row["change_bytes"] == change
        if before["value_bytes"]:
            assert row["change_pct"] == pytest.approx(100 * change / before["value_bytes"])
        else:
            assert row["change_pct"] is None


def test_the_best_is_the_lowest_so_far_but_of_donated_bytes_the_highest(trends):
    best: dict[tuple, int] = {}
    for row in trends:
        key = (row["workload"], row["memory_space"], row["metric"])
        better = max if row["metric"] == "alias_bytes" else min
        best[key] = better(row["value_bytes"], best.get(key, row["value_bytes"]))
        assert row["best_bytes"] == best[key]


def test_a_night_without_change_has_none(trends):
    for workload, nights in CHANGES.items():
        for metric in METRICS:
            for row in hbm(trends, workload, metric)[1:]:
                if row["run_id"] not in nights:
                    assert (row["content_changed"], row["change_bytes"]) == (False, 0)


# --- missing nights -----------------------------------------------------------------------


def test_after_a_missing_night_the_one_before_it_counts(trends):
    row = of_night(trends, "llama-cpu", "2026-10-08")
    assert (row["previous_run_id"], row["missed_runs"]) == ("2026-10-06", 1)
    assert row["content_changed"] is True
    others = [
        other["missed_runs"]
        for other in trends
        if key_of(other) != key_of(row) and other["previous_run_id"]
    ]
    assert set(others) == {0}


def test_only_the_last_row_of_a_series_is_its_last(trends):
    last = {row["run_id"] for row in trends if row["is_last"]}
    assert last == {"2026-10-10"}
    assert {row["runs_since"] for row in trends if row["is_last"]} == {0}
    assert {row["runs_since"] for row in trends if not row["is_last"]} == {None}


def test_a_vanished_series_says_for_how_long(tmp_path, nights):
    db = ingest_nights(tmp_path / "some.duckdb", nights, ["2026-10-05", "2026-10-06", "2026-10-07"])
    found = in_order(db)
    row = of_night(found, "llama-cpu", "2026-10-06")
    assert (row["is_last"], row["runs_since"]) == (True, 1)
    row = of_night(found, "llama-cpu", "2026-10-05")
    assert (row["is_last"], row["runs_since"]) == (False, None)
    assert of_night(found, "llama-v5e", "2026-10-07")["runs_since"] == 0
    header, *lines = run_memhouse("trends", "--db", db).stdout.split("\n\n")[0].splitlines()
    assert header.split()[-2:] == ["gone", "for"]
    assert {line.split()[0]: line.rstrip().endswith("2026-10-06  1 run") for line in lines} == {
        workload: workload == "llama-cpu" for workload in SERIES
    }


def test_a_run_added_later_in_between_is_placed_right(tmp_path, nights):
    db = ingest_nights(tmp_path / "some.duckdb", nights, ["2026-10-04", "2026-10-06"])
    row = of_night(in_order(db), "llama-cpu", "2026-10-06")
    assert (row["previous_run_id"], row["content_changed"]) == ("2026-10-04", True)
    ingest_nights(db, nights, ["2026-10-05"])
    row = of_night(in_order(db), "llama-cpu", "2026-10-06")
    assert (row["previous_run_id"], row["content_changed"]) == ("2026-10-05", False)
    row = of_night(in_order(db), "llama-cpu", "2026-10-05")
    assert (row["previous_run_id"], row["content_changed"]) == ("2026-10-04", True)


# --- nights that failed ---------------------------------------------------------------------


@pytest.fixture(scope="session")
def with_failure(tmp_path_factory, nights):
    """Three nights, of which the second has an unreadable decode-v5e."""
    folder = tmp_path_factory.mktemp("failed")
    db = ingest_nights(folder / "failed.duckdb", nights, ["2026-10-06"])
    broken = copy_night(nights / "2026-10-07", folder / "2026-10-07")
    for file in (broken / "decode-v5e").glob("*after_optimizations*"):
        file.write_text("Segmentation fault\n")
    (summary,) = fill(db, broken)
    assert (summary.dumps, summary.failed) == (3, 1)
    return ingest_nights(db, nights, ["2026-10-08"])


def test_a_failed_dump_has_a_row_without_figures(with_failure):
    found = in_order(with_failure)
    for metric in METRICS:
        row = of_night(found, "decode-v5e", "2026-10-07", metric)
        assert (row["status"], row["module_id"], row["previous_run_id"]) == ("failed", None, None)
        assert (row["value_bytes"], row["change_bytes"]) == (None, None)
        assert row["content_changed"] is None


def test_the_next_good_night_is_compared_with_the_last_good_one(with_failure):
    row = of_night(in_order(with_failure), "decode-v5e", "2026-10-08")
    assert (row["previous_run_id"], row["missed_runs"]) == ("2026-10-06", 1)
    assert row["content_changed"] is True
    assert row["change_bytes"] == 32 << 20


def test_a_failed_night_is_not_the_end_of_a_series(with_failure):
    found = in_order(with_failure)
    row = of_night(found, "decode-v5e", "2026-10-07")
    assert (row["is_last"], row["runs_since"]) == (False, None)
    row = of_night(found, "decode-v5e", "2026-10-08")
    assert (row["is_last"], row["runs_since"]) == (True, 0)


def test_other_workloads_of_that_night_are_compared_as_ever(with_failure):
    row = of_night(in_order(with_failure), "llama-v5e", "2026-10-07")
    assert (row["previous_run_id"], row["content_changed"]) == ("2026-10-06", True)


# --- regressions --------------------------------------------------------------------------


def test_regressions_are_the_growths_of_the_peak(history):
    found = rows(
        history,
        "SELECT workload, run_id FROM regressions "
        "WHERE metric = 'peak_bytes' AND memory_space = 0 ORDER BY 1, 2",
    )
    assert found == [(workload, night) for workload, nights in GROWTHS.items() for night in nights]


def test_regressions_are_exactly_the_steps_over_one_percent(history, trends):
    columns = ("run_id", "workload", "memory_space", "metric", "change_bytes")
    steps = {
        tuple(row[column] for column in columns)
        for row in trends
        if row["metric"] not in ("alias_bytes", "constant_bytes", "thread_local_bytes")
        and row["previous_run_id"]
        and row["change_bytes"] > row["previous_bytes"] / 100
    }
    found = rows(
        history,
        f"SELECT {', '.join(columns)} FROM regressions",
    )
    assert len(found) == len(steps) > 20
    assert set(found) == steps


def test_a_regression_says_from_where_to_where(history):
    (found,) = dicts(
        history,
        "previous_run_id, previous_bytes, now_bytes, change_bytes, change_pct, best_bytes, "
        "signature_changed",
        "FROM regressions WHERE workload = 'resnet-h100' AND run_id = '2026-10-08' "
        "AND metric = 'peak_bytes'",
    )
    assert found == {
        "previous_run_id": "2026-10-07",
        "previous_bytes": 341311576,
        "now_bytes": 450058160,
        "change_bytes": 450058160 - 341311576,
        "change_pct": pytest.approx(100 * (450058160 / 341311576 - 1)),
        "best_bytes": 235678888,
        "signature_changed": True,
    }


# --- memhouse trends ------------------------------------------------------------------------


def test_json_has_a_row_per_night(history, trends):
    done = run_memhouse("trends", "--db", history, "--workload", "llama-v5e", "--format", "json")
    assert (done.returncode, done.stderr) == (0, "")
    found = json.loads(done.stdout)
    expected = hbm(trends, "llama-v5e")
    assert len(found) == len(expected) == 10
    for row, want in zip(found, expected, strict=True):
        assert list(row) == list(want)
        assert row | {"run_at": None} == want | {"run_at": None}


def test_csv_has_plain_numbers(history, trends):
    done = run_memhouse("trends", "--db", history, "--workload", "llama-cpu", "--format", "csv")
    found = list(csv.DictReader(io.StringIO(done.stdout)))
    want = hbm(trends, "llama-cpu")
    assert [row["run_id"] for row in found] == [row["run_id"] for row in want]
    assert [int(row["value_bytes"]) for row in found] == [row["value_bytes"] for row in want]
    assert found[0]["change_bytes"] == ""
    assert found[4]["change_bytes"] == str(want[4]["change_bytes"])


def test_a_table_has_a_line_a_series_and_a_line_a_change(history):
    done = run_memhouse("trends", "--db", history)
    series, changes = done.stdout.split("\n\n")
    lines = series.splitlines()
    assert lines[0].split() == [*("workload", "module", "trend", "now", "best", "since")]
    assert [line.split()[0] for line in lines[1:]] == list(SERIES)
    assert "2.44 GiB  306.98 MiB  2026-10-10" in lines[3]
    told = [line.split()[:2] for line in changes.splitlines()[1:] if " gone " not in line]
    assert told == [[night, workload] for workload in SERIES for night in CHANGES[workload]]
    assert "+195.19 MiB" in changes


def test_a_sparkline_is_blank_where_a_night_is_missing(history):
    def trend(*options: str) -> str:
        done = run_memhouse("trends", "--db", history, *options)
        (line,) = [x for x in done.stdout.split("\n\n")[0].splitlines() if x[:9] == "llama-cpu"]
        return line.removeprefix("llama-cpu").split("jit_train_step")[1][2:12]

    assert trend() == "▁▁▁▁██ ▁▁▁"
    assert trend("--workload", "llama-cpu") == "▁▁▁▁██ ▁▁▁"


def test_since_leaves_out_older_nights(history):
    done = run_memhouse("trends", "--db", history, "--since", "2026-10-09", "--format", "json")
    assert {row["run_id"] for row in json.loads(done.stdout)} == {"2026-10-09", "2026-10-10"}


def test_another_figure_and_another_space(history):
    done = run_memhouse("trends", "--db", history, "--figure", "argument")
    assert "▁▁▁▁▁▁████" in done.stdout.splitlines()[3]
    done = run_memhouse("trends", "--db", history, "--space", "1")
    assert [line.split()[0] for line in done.stdout.splitlines()[1:3]] == [
        "decode-v5e",
        "llama-v5e",
    ]


def test_markdown_is_a_table(history):
    done = run_memhouse(
        "trends", "--db", history, "--workload", "resnet-h100", "--format", "markdown"
    )
    lines = done.stdout.splitlines()
    assert len(lines) == 12
    assert all(line.startswith("| ") and line.endswith(" |") for line in lines)
    assert len({line.count("|") for line in lines}) == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--figure", "size"], "unknown metric 'size': use one of peak, total"),
        (["--since", "yesterday"], "invalid time 'yesterday': use an ISO time"),
    ],
)
def test_wrong_usage(history, options, message):
    done = run_memhouse("trends", "--db", history, *options)
    assert done.returncode == 2
    assert message in " ".join(done.stderr.split())


def test_no_history_is_no_failure(history):
    done = run_memhouse("trends", "--db", history, "--since", "2027-01-01")
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr == "there is no such history\n"


def test_a_night_without_a_peak_is_compared_with_none(tmp_path, db, nights):
    for night in ("2026-10-06", "2026-10-07", "2026-10-08"):
        shutil.copytree(nights / night / "llama-v5e", tmp_path / night / "llama-v5e")
        if night > "2026-10-06":
            for ending in ("*-live-range.txt*", "*optimizations.txt*"):
                for path in (tmp_path / night / "llama-v5e").glob(ending):
                    path.unlink()
        fill(db, tmp_path / night)
    found = rows(
        db,
        """SELECT run_id[-2:], status, previous_run_id, value_bytes > 0, change_bytes,
            best_bytes > 0, content_changed, signature_changed
        FROM trends WHERE memory_space = 0 AND metric = 'total_bytes' ORDER BY run_at""",
    )
    assert found == [
        ("06", "ok", None, True, None, True, None, None),
        ("07", "partial", None, True, None, None, None, None),
        ("08", "partial", None, True, None, None, None, None),
    ]
    assert rows(db, "SELECT * FROM regressions") == []


# --- order, branches, names ---------------------------------------------------------------------


def test_runs_of_one_date_change_as_they_were_ingested(tmp_path, nights):
    """In order of names the rerun would come last, and the change had the other sign."""
    names = ["2026-11-03-rerun", "2026-11-03-a"]
    for name, night in zip(names, ("2026-10-03", "2026-10-04"), strict=True):
        copy_night(nights / night, tmp_path / name)
    db = ingest_nights(tmp_path / "day.duckdb", tmp_path, names)
    (row,) = [row for row in hbm(in_order(db), "decode-v5e") if row["content_changed"]]
    assert (row["run_id"], row["previous_run_id"]) == (names[1], names[0])
    assert row["change_bytes"] == -32 << 20


def test_new_modules_are_counted_once_in_runs_of_one_date(tmp_path, nights):
    names = ["2026-11-03-c", "2026-11-03-b", "2026-11-03-a"]
    for name, night in zip(names, ("2026-10-02", "2026-10-02", "2026-10-03"), strict=True):
        for workload in ("llama-v5e", "decode-v5e"):
            copy_night(nights / night / workload, tmp_path / name / workload)
    db = ingest_nights(tmp_path / "day.duckdb", tmp_path, names)
    done = run_memhouse("runs", "--db", db, "--format", "json")
    found = [(row["run"], row["new_modules"]) for row in json.loads(done.stdout)]
    assert found == list(zip(names, (2, 0, 1), strict=True))


def test_a_pull_request_between_two_nights_changes_nothing_on_main(hosts):
    done = run_memhouse("trends", "--db", hosts, "--workload", "llama-v5e", "--format", "json")
    found = [(row["run_id"], row["previous_run_id"]) for row in json.loads(done.stdout)]
    assert found == [("main-1", None), ("main-2", "main-1"), ("main-3", "main-2")]
    assert {row["missed_runs"] for row in json.loads(done.stdout)} == {None, 0}


def test_a_branch_shows_its_own_runs(hosts):
    done = run_memhouse("trends", "--db", hosts, "--branch", "pull/7", "--format", "json")
    assert {row["run_id"] for row in json.loads(done.stdout)} == {"pr-7"}
    done = run_memhouse("trends", "--db", hosts)
    assert "branch main; others: --branch pull/7" in done.stderr
    done = run_memhouse("trends", "--db", hosts, "--branch", "pull/8")
    assert done.returncode == 2
    assert "there is no branch 'pull/8': main, pull/7" in " ".join(done.stderr.split())


def test_without_labels_there_is_no_branch_to_name(history):
    done = run_memhouse("trends", "--db", history)
    assert "branch" not in done.stderr
    done = run_memhouse("trends", "--db", history, "--branch", "main")
    assert "there is no branch 'main': no run has" in " ".join(done.stderr.split())


def test_programs_that_come_and_go_are_steps(history, tmp_path, nights):
    copy_night(nights / "2026-10-06", tmp_path / "2026-10-06")
    copy_night(nights / "2026-10-07", tmp_path / "2026-10-07")
    copy_night(nights / "2026-10-07" / "decode-v5e", tmp_path / "2026-10-07" / "serve-v5e")
    db = ingest_nights(tmp_path / "some.duckdb", tmp_path, ["2026-10-06", "2026-10-07"])
    steps = run_memhouse("trends", "--db", db).stdout.split("\n\n")[1].splitlines()[1:]
    told = {line.split()[1]: line.split() for line in steps}
    assert told["llama-cpu"] == ["2026-10-07", "llama-cpu", "gone", "jit_train_step", "2026-10-06"]
    assert "new" in told["serve-v5e"]
    assert told["serve-v5e"][2:4] == ["99.04", "MiB"]


def test_a_program_that_is_back_unchanged_is_a_step(tmp_path, nights):
    for name, night in (("2026-11-01", "06"), ("2026-11-02", "07"), ("2026-11-03", "06")):
        copy_night(nights / f"2026-10-{night}" / "llama-v5e", tmp_path / name / "llama-v5e")
        if night == "06":
            copy_night(nights / "2026-10-06" / "llama-cpu", tmp_path / name / "llama-cpu")
    db = ingest_nights(
        tmp_path / "some.duckdb", tmp_path, ["2026-11-01", "2026-11-02", "2026-11-03"]
    )
    done = run_memhouse("trends", "--db", db, "--workload", "llama-cpu")
    gone, back = done.stdout.split("\n\n")[1].splitlines()[1:]
    assert gone.split()[:3] == ["2026-11-02", "llama-cpu", "gone"]
    assert back.split()[0] == "2026-11-03"
    assert "back after 1 missing run" in back


def test_a_renamed_series_goes_on_under_its_new_name(tmp_path, nights):
    copy_night(nights / "2026-10-03", tmp_path / "2026-10-03")
    renamed = copy_night(nights / "2026-10-03", tmp_path / "2026-10-05")
    (renamed / "decode-v5e").rename(renamed / "serve-v5e")
    db = ingest_nights(tmp_path / "some.duckdb", tmp_path, ["2026-10-03", "2026-10-05"])
    series = run_memhouse("trends", "--db", db).stdout.split("\n\n")[0].splitlines()[1:]
    assert [line.split()[0] for line in series] == [
        *("llama-cpu", "llama-v5e", "resnet-h100", "serve-v5e")
    ]
    assert "▄▄" in series[-1]
    # Both names find the whole series.
    for name in ("decode-v5e", "serve-v5e"):
        done = run_memhouse("trends", "--db", db, "--workload", name, "--format", "json")
        assert [row["workload"] for row in json.loads(done.stdout)] == ["decode-v5e", "serve-v5e"]


def test_other_names_and_lines_are_no_change(tmp_path, nights):
    """The same program of another source is another module, and no step."""
    copy_night(nights / "2026-10-03", tmp_path / "2026-10-03")
    moved = copy_night(nights / "2026-10-03", tmp_path / "2026-10-05")
    (file,) = (moved / "llama-v5e").glob("*.after_optimizations.txt*")
    text = file.read_text()
    file.write_text(text.replace(" line=3", " line=73"))
    assert file.read_text() != text
    db = ingest_nights(tmp_path / "some.duckdb", tmp_path, ["2026-10-03", "2026-10-05"])
    row = of_night(in_order(db), "llama-v5e", "2026-10-05")
    modules = {row["module_id"] for row in hbm(in_order(db), "llama-v5e")}
    assert len(modules) == 2
    assert (row["content_changed"], row["change_bytes"], row["cause"]) == (False, 0, None)


def test_a_terminal_shows_a_cause_below_its_row(history, tmp_path):
    with writing(shutil.copy(history, tmp_path / "nights.duckdb")) as store:
        store.connection.execute(
            "UPDATE history SET cause = 'a long cause of many words, ' || REPEAT('long ', 12) || "
            "'and longer' WHERE cause IS NOT NULL OR previous_dump_id IS NOT NULL"
        )
    shown = on_terminal("memhouse trends --db nights.duckdb --workload llama-cpu", tmp_path)
    lines = [line.rstrip() for line in shown.replace("\r", "").splitlines()]
    (row,) = [n for n, line in enumerate(lines) if line.startswith("2026-10-05")]
    assert lines[row + 1 : row + 3] == [
        "    a long cause of many words, long long long long long long long long long long",
        "    long long and longer",
    ]
    wide = on_terminal("memhouse trends --db nights.duckdb", tmp_path, columns=200)
    assert "long long and longer" in next(x for x in wide.splitlines() if x[:10] == "2026-10-05")
