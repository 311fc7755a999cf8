"""`memhouse prune`: a run goes with all that only it has, and nothing else goes."""

import os
import shutil
from datetime import UTC, datetime, timedelta

import pytest

from memhouse import open as memhouse_open
from memhouse.queries.cells import counted
from memhouse.schema.tables import metadata

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


def test_a_night_on_which_nothing_was_new_takes_only_its_dumps(own):
    before = everything(own)
    assert prune(own, "2026-10-02") == "dropped 1 run, 4 dumps, 0 modules\n"
    after = everything(own)
    assert runs(own) == [night for night in NIGHTS if night != "2026-10-02"]
    changed = {name for name in before if before[name] != after[name]}
    assert changed == {
        *("runs", "run_parts", "journal"),
        *("lineages", "dumps", "dump_files", "history"),
    }
    assert len(before["dumps"]) - len(after["dumps"]) == 4


def test_a_night_takes_the_modules_that_only_it_has(own):
    night = "run_id = '2026-10-08'"
    only = rows(
        own,
        f"SELECT module_id FROM dumps WHERE {night} AND module_id NOT IN "
        f"(SELECT module_id FROM dumps WHERE NOT {night})",
    )
    assert len(only) == 1
    before = {module for (module,) in rows(own, "SELECT module_id FROM modules")}
    assert prune(own, "2026-10-08") == "dropped 1 run, 4 dumps, 1 module\n"
    after = {module for (module,) in rows(own, "SELECT module_id FROM modules")}
    assert before - after == {only[0][0]}


def test_of_a_module_that_went_nothing_is_left(own):
    ((gone,),) = rows(
        own,
        "SELECT module_id FROM dumps WHERE run_id = '2026-10-08' AND workload = 'llama-v5e'",
    )
    prune(own, "2026-10-08")
    for name, table in metadata.tables.items():
        if "module_id" in table.c:
            found = rows(own, f'SELECT COUNT(*) FROM "{name}" WHERE module_id = {gone}')
            assert found == [(0,)], name


def test_what_is_left_is_what_a_warehouse_without_the_run_has(tmp_path, own, nights):
    prune(own, *NIGHTS[3:])
    other = ingest_nights(tmp_path / "three.duckdb", nights, NIGHTS[:3])
    assert content(own, "source") == content(other, "source")
    assert runs(own) == runs(other)


def test_a_pruned_warehouse_verifies(own):
    prune(own, "2026-10-01", "2026-10-05", "2026-10-10")
    done = run_memhouse("verify", "--db", own)
    assert done.returncode == 0
    assert "no breaches" in done.stderr


def test_trends_close_the_gap(own):
    prune(own, "2026-10-07")
    (row,) = rows(
        own,
        "SELECT previous_run_id, missed_runs, content_changed FROM trends "
        "WHERE run_id = '2026-10-08' AND workload = 'decode-v5e' AND memory_space = 0 "
        "AND metric = 'peak_bytes'",
    )
    assert row == ("2026-10-06", 0, True)


def test_all_runs_can_go(own):
    size = own.stat().st_size
    said = prune(own, *NIGHTS)
    assert said.startswith("dropped 10 runs, 39 dumps, 14 modules\n")
    assert own.stat().st_size < size / 4
    left = {name: len(table) for name, table in everything(own).items() if table}
    assert left == {"journal": 21, "schema_version": 1, "view_set": 1}
    assert rows(own, "SELECT action, run_id FROM journal ORDER BY ALL") == [
        ("compact", None),
        *((action, night) for action in ("ingest", "prune") for night in NIGHTS),
    ]


def test_what_went_can_come_back(own, nights):
    before = content(own, "run_seq")
    prune(own, "2026-10-08")
    (summary,) = fill(own, nights / "2026-10-08")
    assert (summary.new_modules, summary.unchanged) == (1, 0)
    assert content(own, "run_seq") == before


def test_the_room_is_used_again(own, nights):
    size = own.stat().st_size
    prune(own, *NIGHTS)
    ingest_nights(own, nights, NIGHTS)
    # The file is small: a few blocks that DuckDB does not use at once are a tenth of it.
    assert own.stat().st_size < 1.2 * size


def test_labels_and_accepted_growth_go_with_the_run(db, nights):
    for night in ("2026-10-06", "2026-10-07"):
        fill(db, nights / night, labels={"branch": "main"})
    run_memhouse("check", "--db", db, "--run", "2026-10-07", "--accept", "we know")
    assert rows(db, "SELECT COUNT(*) FROM accepted_changes") == [(2,)]
    prune(db, "2026-10-07")
    assert rows(db, "SELECT COUNT(*) FROM accepted_changes") == [(0,)]
    assert rows(db, "SELECT run_id FROM run_labels") == [("2026-10-06",)]


def test_flags_go_with_their_last_dump(copied):
    prune(copied, "cpu")
    assert rows(copied, "SELECT COUNT(DISTINCT flags_id) FROM compiler_flags") == rows(
        copied, "SELECT COUNT(DISTINCT flags_id) FROM dumps"
    )
    assert not rows(copied, "SELECT * FROM compiler_flags WHERE flag LIKE 'xla_force_host%'")


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


@pytest.mark.parametrize(
    ("keep", "gone"),
    [
        ("0d", ["years", "late", "moved", "month", "today"]),
        ("1 d", ["years", "moved", "month"]),
        ("1w", ["years", "moved", "month"]),
        ("2w", ["years", "month"]),
        ("90d", ["years"]),
        ("1y", ["years"]),
        ("3y", []),
    ],
)
def test_a_run_goes_that_claims_and_entered_longer_ago(tmp_path, aged, keep, gone):
    db = tmp_path / "own.duckdb"
    shutil.copy(aged, db)
    would = run_memhouse("prune", "--keep", keep, "--dry-run", "--db", db).stdout.split()
    assert would == gone
    assert prune(db, "--keep", keep).startswith(f"dropped {counted(len(gone), 'run')}, ")
    assert sorted(runs(db)) == sorted({*AGES} - {*gone})


# --- wrong usage ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ([], "name the runs to drop, or say how long to keep with --keep"),
        (["2026-10-01", "--keep", "90d"], "name the runs to drop, or say how long"),
        (["2026-13-01"], "there is no run '2026-13-01': did you mean '2026-10-01'?"),
        (["2026-10-01", "2026-13-01"], "there is no run '2026-13-01': did you mean '2026-10-01'?"),
        (["--keep", "90"], "invalid age '90': use 90d, 12w or 1y"),
        (["--keep", "3m"], "invalid age '3m'"),
        (["--keep", "-1d"], "invalid age '-1d'"),
        (["--keep", "9999y"], "9999y is too long ago"),
        (["--keep", "99999999y"], "99999999y is too long ago"),
    ],
)
def test_wrong_usage_drops_nothing(own, args, message):
    done = run_memhouse("prune", *args, "--db", own)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in " ".join(done.stderr.replace("│", " ").split())
    assert runs(own) == NIGHTS


def test_a_warehouse_that_is_not_there(tmp_path):
    done = run_memhouse("prune", "--keep", "90d", "--db", tmp_path / "none.duckdb")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("error: there is no warehouse at ")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("chosen", [["2026-10-08"], NIGHTS[3:], ["--keep", "1d"]])
def test_a_dry_run_says_what_would_go_and_changes_nothing(own, chosen):
    before = own.read_bytes()
    would = run_memhouse("prune", *chosen, "--dry-run", "--db", own)
    assert own.read_bytes() == before
    names = runs(own)
    done = prune(own, *chosen)
    assert would.stdout.splitlines() == sorted(set(names) - set(runs(own)))
    assert done.startswith(would.stderr.rstrip("\n").replace("would drop", "dropped"))


def test_the_library_says_so_too(own):
    with memhouse_open(own) as warehouse:
        would = warehouse.prune(["2026-10-08"], dry_run=True)
        assert warehouse.prune(["2026-10-08"]) == would
