"""`memhouse export trends DIR --append`: CSV files that a job appends to, night after night."""

import csv

import pandas as pd
import pytest

import memhouse

from ..support.command import run_memhouse
from ..support.history import NIGHTS, TOLD_METRICS
from ..support.made_runs import MIB, make_run
from ..support.warehouse import rows

HEADER = ["date", "run", "branch", "workload", "module", "space", "value", "unit", "change"]
TRAIN, SERVE = "train/jit_step", "serve/jit_decode"


def append(db, folder, *options):
    done = run_memhouse("export", "trends", folder, "--append", "--db", db, *options)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    return done.stderr


def read(file) -> list[dict[str, str]]:
    with file.open(newline="", encoding="utf-8") as text:
        return list(csv.DictReader(text))


def contents(folder) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir()}


def test_a_spreadsheet_that_a_job_appends_to_for_eight_nights(tmp_path):
    db, folder = tmp_path / "memhouse.duckdb", tmp_path / "trends"
    arrivals = [1, 2, 3, 5, 6, 4, 7, 8]
    expected, before = [], {}
    for place, night in enumerate(arrivals):
        programs = {TRAIN: 100 + night, SERVE: 10}
        if night in (5, 6):
            del programs[SERVE]
        if night == 7:
            programs["eval/jit_loss"] = 7
        make_run(db, f"n{night}", programs, day=2 * night, branch="main")
        if night == 3:
            make_run(db, "pr", {TRAIN: 999, "new/jit_f": 1}, day=7, branch="fix")
        told = append(db, folder, "--wide", "--metric", "peak,total")
        assert told.count("\n") == 1
        if night == 4:
            assert " 0 new rows " in append(db, folder, "--wide", "--metric", "peak,total")
        expected += [(f"n{night}", name, str(peak * MIB)) for name, peak in programs.items()]
        expected += [(f"n{night}", SERVE, "")] if night in (5, 6) else []
        # The gap of a program that came on the night before.
        expected += [(f"n{night}", "eval/jit_loss", "")] if night == 8 else []
        now = contents(folder)
        assert now.keys() == {
            *("peak.csv", "peak_wide.csv", "programs.csv", "total.csv", "total_wide.csv")
        }
        # All that stood in a file stands there still.
        for name in ("peak.csv", "total.csv", "programs.csv"):
            assert now[name].startswith(before.get(name, b"")), (place, name)
        header = now["peak_wide.csv"].split(b"\n")[0]
        assert header.startswith(before.get("peak_wide.csv", b"").split(b"\n")[0])
        before = now
    long = read(folder / "peak.csv")
    found = [(row["run"], f"{row['workload']}/{row['module']}", row["value"]) for row in long]
    assert sorted(found) == sorted(expected)
    assert list(long[0]) == [*HEADER, "cause"]
    assert {(row["branch"], row["space"], row["unit"]) for row in long} == {
        ("main", "hbm", "bytes")
    }
    assert [row["run"] for row in long if row["workload"] == "train"] == [
        f"n{night}" for night in arrivals
    ]
    told = {(row["run"], row["workload"]): (row["change"], row["cause"]) for row in long}
    assert told["n5", "serve"] == ("", "missing")
    assert told["n7", "serve"] == ("0", "back after 2 missing runs")
    assert told["n7", "eval"] == ("", "new")
    assert told["n2", "train"][0] == str(MIB)
    wide = read(folder / "peak_wide.csv")
    assert list(wide[0]) == ["date", "run", "branch", SERVE, TRAIN, "eval/jit_loss"]
    assert [row["run"] for row in wide] == [f"n{night}" for night in arrivals]
    assert wide[3] == {
        **{"date": "2026-01-11 00:00:00", "run": "n5", "branch": "main"},
        **{SERVE: "", TRAIN: str(105 * MIB), "eval/jit_loss": ""},
    }
    series = dict(rows(db, "SELECT workload, series_id FROM series WHERE branch = 'main'"))
    assert read(folder / "programs.csv") == [
        {
            **{"column": name, "workload": name.split("/")[0], "module": name.split("/")[1]},
            **{"platform": "tpu", "series": str(series[name.split("/")[0]])},
        }
        for name in (SERVE, TRAIN, "eval/jit_loss")
    ]


def test_a_gap_gets_its_value_when_the_run_gets_the_dump(history, tmp_path):
    """As of a host that ingests later, or of a dump that is replaced."""
    append(history, tmp_path, "--metric", "peak")
    whole = (tmp_path / "peak.csv").read_text()
    line = next(line for line in whole.split("\n") if "2026-10-03,,decode-v5e" in line)
    fields = line.split(",")
    gap = ",".join([*fields[:6], "", "bytes", "", "missing"])
    # A spreadsheet ends lines in its own way.
    text = whole.replace(line, gap).replace("\n", "\r\n")
    (tmp_path / "peak.csv").write_text(text, "utf-8-sig", newline="")
    assert " 1 " in append(history, tmp_path, "--metric", "peak")
    assert (tmp_path / "peak.csv").read_text() == whole


def test_every_metric_has_a_file_with_the_values_of_the_view(history, tmp_path):
    """As pandas reads them, with their types; older runs that come later are added too."""
    append(history, tmp_path / "all", "--since", "2026-10-03")
    metrics = {metric.removesuffix("_bytes"): metric for metric in (*TOLD_METRICS, "flops")}
    assert {file.stem for file in (tmp_path / "all").iterdir()} == metrics.keys()
    append(history, tmp_path / "all", "--metric", "all", "--wide")
    query = "SELECT run_id, workload, value FROM trends WHERE metric = '{}'"
    for name, metric in metrics.items():
        of_pandas = pd.read_csv(tmp_path / "all" / f"{name}.csv", parse_dates=["date"])
        values = of_pandas.dropna(subset="value")[["run", "workload", "value"]]
        assert sorted(values.itertuples(index=False, name=None)) == sorted(
            rows(history, query.format(metric))
        )
        assert sorted(set(of_pandas["date"].astype(str))) == NIGHTS
        gaps = of_pandas[of_pandas["value"].isna()]
        assert gaps[["run", "workload", "cause"]].values.tolist() == [
            ["2026-10-07", "llama-cpu", "missing"]
        ]
    assert (tmp_path / "all" / "peak.csv").read_text().split("\n")[1][:10] == "2026-10-03"


def test_programs_of_one_name_and_helpers(tmp_path):
    """Each of two programs of a name has its rows; helpers are left out unless they are named."""
    db, folder = tmp_path / "memhouse.duckdb", tmp_path / "trends"
    for day in (1, 2):
        programs = {f"{TRAIN}@tpu": 100, f"{TRAIN}@cpu": 50, "train/jit_helper": 1}
        make_run(db, f"n{day}", programs, day=day)
    append(db, folder, "--wide", "--metric", "peak")
    wide = read(folder / "peak_wide.csv")
    assert [list(row.values())[3:] for row in wide] == [[str(100 * MIB), str(50 * MIB)]] * 2
    assert [row["platform"] for row in read(folder / "programs.csv")] == ["tpu", "cpu"]
    append(db, folder, "--wide", "--metric", "peak", "--module", "jit_helper")
    assert list(read(folder / "peak_wide.csv")[0])[3:] == [
        *(TRAIN, f"{TRAIN} 2", "train/jit_helper")
    ]


def test_a_failed_dump_is_an_empty_value_and_says_so(tmp_path):
    db = tmp_path / "memhouse.duckdb"
    for day, peak in enumerate([100, "failed", "oom"]):
        make_run(db, f"n{day}", {TRAIN: peak}, day=day)
    with memhouse.open(db, read_only=True) as warehouse:
        done = warehouse.export("trends", tmp_path / "trends", append=True, metric="peak")
    assert (done.path, done.rows) == (tmp_path / "trends", 3)
    found = [(row["value"], row["cause"]) for row in read(tmp_path / "trends" / "peak.csv")]
    assert found == [
        (str(100 * MIB), ""),
        ("", "this dump failed"),
        ("", "XLA runs out of memory now; the dump before failed"),
    ]


def test_wrong_usage_writes_nothing(history, tmp_path):
    (tmp_path / "file").write_text("mine\n")
    wrong = {
        ("trends", "no/folder", "--append"): "there is no folder no",
        ("trends", "file", "--append"): "file is no folder",
        ("trends", "x.csv", "--append"): "x.csv is no folder",
        ("trends", "x", "--append", "--metric", "peak,nope"): "'nope'",
        ("trends", "x", "--append", "--module", "nope"): "--module",
        ("trends", "x", "--append", "--workload", "nope"): "'nope'",
        ("trends", "x", "--append", "--format", "perfetto"): "--append",
        ("peaks", "x", "--append"): "trends",
        ("trends", "x.csv", "--wide"): "--append",
    }
    for args, named in wrong.items():
        done = run_memhouse("export", *args, "--db", history, cwd=tmp_path)
        assert (done.returncode, done.stdout) == (2, ""), args
        assert named in done.stderr, (args, done.stderr)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("peak.csv", b"date;run;branch\n"),
        ("peak.csv", b"date,run\n"),
        ("peak.csv", f"{','.join([*HEADER, 'cause'])}\n1,2\n".encode()),
        ("peak.csv", b"\xff\xfe"),
        ("peak_wide.csv", b"my,sheet\n"),
        ("peak_wide.csv", b"date,run,branch,my notes\n"),
        ("programs.csv", b"my,sheet\n"),
    ],
)
def test_a_file_of_other_columns_is_refused(history, tmp_path, name, text):
    """In one line, and no file is written: neither this one nor those of other metrics."""
    (tmp_path / name).write_bytes(text)
    options = ("--append", "--wide", "--metric", "fragmentation,peak")
    done = run_memhouse("export", "trends", tmp_path, *options, "--db", history)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.count("\n") == 1
    assert str(tmp_path / name) in done.stderr
    assert contents(tmp_path) == {name: text}
