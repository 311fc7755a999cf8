"""`memhouse prune`: a run goes with all that only it has, and nothing else goes."""

import os
import re
import shutil
from datetime import UTC, datetime, timedelta

import pytest

from memhouse.schema import arrow

from ..support.clock import at
from ..support.command import run_memhouse
from ..support.history import NIGHTS, ingest_nights
from ..support.warehouse import content, everything, fill, rows


def prune(db, *args: str) -> str:
    done = run_memhouse("prune", *args, "--db", db)
    assert (done.returncode, done.stdout) == (0, "")
    return done.stderr


def runs(db) -> list[str]:
    return [run for (run,) in rows(db, "SELECT run_id FROM runs ORDER BY run_at")]


def test_a_night_takes_what_only_it_has(own):
    """On 2026-10-02 nothing was new, and on 2026-10-08 one program."""
    before = everything(own)
    assert "1 run, 4 dumps, 0 modules" in prune(own, "2026-10-02")
    after = everything(own)
    assert runs(own) == [night for night in NIGHTS if night != "2026-10-02"]
    changed = {name for name in before if before[name] != after[name]}
    assert changed == {"runs", "run_parts", "journal", "dumps", "dump_series"}
    assert len(before["dumps"]) - len(after["dumps"]) == 4
    night = "run_id = '2026-10-08'"
    ((only,),) = rows(
        own,
        f"SELECT module_id FROM dumps WHERE {night} AND module_id NOT IN "
        f"(SELECT module_id FROM dumps WHERE NOT {night})",
    )
    stored = {module for (module,) in rows(own, "SELECT module_id FROM modules")}
    assert "1 run, 4 dumps, 1 module" in prune(own, "2026-10-08")
    left = {module for (module,) in rows(own, "SELECT module_id FROM modules")}
    assert stored - left == {only}
    for name, table in arrow.tables().items():
        if "module_id" in table.c:
            query = f"SELECT COUNT(*) FROM {arrow.sql_name(name)} WHERE module_id = {only}"
            found = rows(own, query)
            assert found == [(0,)], name


def test_what_is_left_is_what_a_warehouse_without_the_run_has(tmp_path, own, nights):
    prune(own, *NIGHTS[3:])
    other = ingest_nights(tmp_path / "three.duckdb", nights, NIGHTS[:3])
    assert content(own, "source") == content(other, "source")
    assert runs(own) == runs(other)


def test_trends_close_the_gap(own):
    prune(own, "2026-10-01", "2026-10-05", "2026-10-07", "2026-10-10")
    (row,) = rows(
        own,
        "SELECT previous_run_id, missed_runs, content_changed FROM trends_by_space AS trends "
        "WHERE run_id = '2026-10-08' AND workload = 'decode-v5e' AND memory_space = 0 "
        "AND metric = 'peak_bytes'",
    )
    assert row == ("2026-10-06", 0, True)
    assert run_memhouse("verify", "--db", own).returncode == 0


def test_all_runs_can_go(own):
    size = own.stat().st_size
    assert " 10 runs, 39 dumps, 14 modules" in prune(own, *NIGHTS)
    assert own.stat().st_size < size / 3
    left = {name: len(table) for name, table in everything(own).items() if table}
    assert left == {"journal": 21}
    assert rows(own, "SELECT action::TEXT AS action, run_id FROM journal ORDER BY ALL") == [
        ("compact", None),
        *((action, night) for action in ("ingest", "prune") for night in NIGHTS),
    ]


def test_what_went_can_come_back(own, nights):
    before = content(own, "run_seq")
    prune(own, "2026-10-08")
    (summary,) = fill(own, nights / "2026-10-08")
    assert (summary.new_modules, summary.unchanged) == (1, 0)
    assert content(own, "run_seq") == before


def test_labels_and_accepted_growth_go_with_the_run(own):
    accepted = "SELECT COUNT(*) FROM accepted_changes"
    assert run_memhouse("label", "2026-10-09", "2026-10-10", "a=b", "--db", own).returncode == 0
    run_memhouse("check", "--db", own, "--run", "2026-10-10", "--accept", "we know")
    assert rows(own, accepted) != [(0,)]
    prune(own, "2026-10-10")
    assert rows(own, accepted) == [(0,)]
    assert rows(own, "SELECT run_id FROM run_labels") == [("2026-10-09",)]


# --- by age -------------------------------------------------------------------------------


# How many days ago a run entered, and the time it claims; its file is always as old as Unix.
AGES: dict[str, tuple[int, int | None]] = {
    "years": (800, 800),
    "month": (31, None),
    "moved": (8, 40),
    "late": (0, 500),
    "today": (0, None),
}


@pytest.fixture(scope="module")
def aged(tmp_path_factory, nights):
    """A warehouse of these runs."""
    folder = tmp_path_factory.mktemp("aged")
    dumps = shutil.copytree(nights / "2026-10-01" / "llama-cpu", folder / "dumps")
    for file in dumps.iterdir():
        os.utime(file, (0, 0))
    now = datetime.now(UTC) - timedelta(hours=1)
    for run, (entered, claimed) in AGES.items():
        run_at = None if claimed is None else now - timedelta(days=claimed)
        with at(now - timedelta(days=entered)):
            fill(folder / "aged.duckdb", dumps, run_id=run, run_at=run_at)
    return folder / "aged.duckdb"


KEPT = {
    "0d": ["years", "late", "moved", "month", "today"],
    "1 d": ["years", "moved", "month"],
    "1w": ["years", "moved", "month"],
    "2w": ["years", "month"],
    "90d": ["years"],
    "1y": ["years"],
    "3y": [],
}


def test_a_run_goes_that_claims_and_entered_longer_ago(tmp_path, aged):
    would = {
        keep: run_memhouse("prune", "--keep", keep, "--dry-run", "--db", aged).stdout.split()
        for keep in KEPT
    }
    assert would == KEPT
    for keep in ("3y", "2w", "0d"):
        db = shutil.copy(aged, tmp_path / f"{keep}.duckdb")
        prune(db, "--keep", keep)
        assert sorted(runs(db)) == sorted({*AGES} - {*KEPT[keep]})


# --- wrong usage ----------------------------------------------------------------------------


def test_wrong_usage_drops_nothing(own, tmp_path):
    wrong = {
        (): "--keep",
        ("2026-10-01", "--keep", "90d"): "--keep",
        ("2026-13-01",): "'2026-13-01'",
        ("2026-10-01", "2026-13-01"): "'2026-13-01'",
        ("--keep", "90"): "'90'",
        ("--keep", "3m"): "'3m'",
        ("--keep", "-1d"): "'-1d'",
        ("--keep", "9999y"): "9999y",
        ("--keep", "99999999y"): "99999999y",
    }
    failures = []
    for args, named in wrong.items():
        done = run_memhouse("prune", *args, "--db", own)
        if (done.returncode, done.stdout) != (2, "") or named not in done.stderr:
            failures.append((args, done))
    assert failures == []
    assert runs(own) == NIGHTS
    done = run_memhouse("prune", "--keep", "90d", "--db", tmp_path / "none.duckdb")
    assert (done.returncode, done.stdout) == (1, "")
    assert "none.duckdb" in done.stderr
    assert list(tmp_path.iterdir()) == [own]


def test_a_dry_run_says_what_would_go_and_changes_nothing(own):
    for chosen in (["2026-10-08"], NIGHTS[5:7], ["--keep", "1d"]):
        before = own.read_bytes()
        would = run_memhouse("prune", *chosen, "--dry-run", "--db", own)
        assert own.read_bytes() == before
        names = runs(own)
        done = prune(own, *chosen)
        assert would.stdout.splitlines() == sorted(set(names) - set(runs(own)))
        # As many runs, dumps and modules.
        assert re.findall(r"\d+ \w+", would.stderr) == re.findall(r"\d+ \w+", done)[:3]
