"""`memhouse prune`: a run goes with all that only it has, and nothing else goes."""

from datetime import UTC, datetime, timedelta

import pytest

from memhouse import open as memhouse_open
from memhouse.queries.cells import counted
from memhouse.schema.tables import metadata

from ..support.command import run_memhouse
from ..support.history import NIGHTS, ingest_nights, memhouse
from ..support.warehouse import everything, fill, reading, rows


def prune(db, *args: str) -> str:
    done = memhouse("prune", *args, "--db", db)
    assert (done.returncode, done.stdout) == (0, "")
    return done.stderr


def runs(db) -> list[str]:
    return [run for (run,) in rows(db, "SELECT run_id FROM runs ORDER BY run_at")]


def without(tables: dict[str, list[tuple]], *names: str) -> dict[str, list[tuple]]:
    return {name: table for name, table in tables.items() if name not in names}


def test_a_night_on_which_nothing_was_new_takes_only_its_dumps(own):
    before = everything(own)
    assert prune(own, "2026-10-02") == "dropped 1 run, 4 dumps, 0 modules\n"
    after = everything(own)
    assert runs(own) == [night for night in NIGHTS if night != "2026-10-02"]
    changed = {name for name in before if before[name] != after[name]}
    assert changed == {"runs", "lineages", "dumps", "dump_files", "history"}
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
    # When each was ingested differs.
    assert without(everything(own), "runs") == without(everything(other), "runs")
    assert runs(own) == runs(other)


def test_a_pruned_warehouse_verifies(own):
    prune(own, "2026-10-01", "2026-10-05", "2026-10-10")
    done = memhouse("verify", "--db", own)
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
    assert own.stat().st_size < size / 5
    left = {name: len(table) for name, table in everything(own).items() if table}
    assert set(left) == {"schema_version", "view_set"}


def test_what_went_can_come_back(own, nights):
    before = without(everything(own), "runs")
    prune(own, "2026-10-08")
    (summary,) = fill(own, nights / "2026-10-08")
    assert (summary.new_modules, summary.unchanged) == (1, 0)
    assert without(everything(own), "runs") == before


def test_the_room_is_used_again(own, nights):
    size = own.stat().st_size
    prune(own, *NIGHTS)
    ingest_nights(own, nights, NIGHTS)
    # The file is small: a few blocks that DuckDB does not use at once are a tenth of it.
    assert own.stat().st_size < 1.2 * size


def test_labels_and_accepted_growth_go_with_the_run(db, nights):
    for night in ("2026-10-06", "2026-10-07"):
        fill(db, nights / night, labels={"branch": "main"})
    memhouse("check", "--db", db, "--run", "2026-10-07", "--accept", "we know")
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


def aged(db, nights, ages: dict[str, int]):
    """A warehouse of runs that are so many days old."""
    for run, days in ages.items():
        at = datetime.now(UTC) - timedelta(days=days, hours=1)
        fill(db, nights / "2026-10-01" / "llama-cpu", run_id=run, run_at=at)
    return db


@pytest.mark.parametrize(
    ("keep", "left"),
    [
        ("90d", ["month", "week", "today"]),
        ("2w", ["week", "today"]),
        ("1y", ["month", "week", "today"]),
        ("3y", ["years", "month", "week", "today"]),
        ("1 d", ["today"]),
        ("0d", []),
    ],
)
def test_runs_older_than_so_long_go(tmp_path, nights, keep, left):
    ages = {"years": 800, "month": 31, "week": 7, "today": 0}
    db = aged(tmp_path / "aged.duckdb", nights, ages)
    said = prune(db, "--keep", keep)
    assert runs(db) == left
    assert said.startswith(f"dropped {counted(4 - len(left), 'run')}, ")


def test_nothing_old_enough_is_no_failure(db, nights):
    aged(db, nights, {"today": 0})
    assert prune(db, "--keep", "90d") == "dropped 0 runs, 0 dumps, 0 modules\n"


def test_the_oldest_come_first(history):
    with reading(history) as store:
        found = store.runs_before(datetime(2026, 10, 4, tzinfo=UTC))
    assert found == ["2026-10-01", "2026-10-02", "2026-10-03"]


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
    done = memhouse("prune", *args, "--db", own)
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
    would = memhouse("prune", *chosen, "--dry-run", "--db", own)
    assert own.read_bytes() == before
    names = runs(own)
    done = prune(own, *chosen)
    assert would.stdout.splitlines() == sorted(set(names) - set(runs(own)))
    assert done.startswith(would.stderr.rstrip("\n").replace("would drop", "dropped"))


def test_the_library_says_so_too(own):
    with memhouse_open(own) as warehouse:
        would = warehouse.prune(["2026-10-08"], dry_run=True)
        assert warehouse.prune(["2026-10-08"]) == would
