"""Which series `trends` shows, and which of them are one row."""

from memhouse.queries.branches import choose_branch
from memhouse.queries.trends import trends

from ..support.command import run_memhouse
from ..support.history import NIGHTS, copy_night, ingest_nights
from ..support.warehouse import reading, writing


def ingest(db, folder, run, at, label):
    done = run_memhouse("ingest", folder, "--db", db, "--run", run, "--at", at, "--label", label)
    assert done.returncode == 0, done.stderr


def test_the_same_program_of_two_suites_is_two_rows(tmp_path, nights):
    """Runs are counted within a suite: equal numbers of two suites are different runs."""
    db = tmp_path / "suites.duckdb"
    for suite, day in (("serve", "10"), ("train", "11")):
        night = copy_night(nights / "2026-10-03" / "llama-v5e", tmp_path / suite / "llama-v5e")
        ingest(db, night.parent, suite, f"2026-11-{day}", f"suite={suite}")
    with reading(db) as store:
        series = trends(store).series.table
    assert series["workload"].to_pylist() == ["llama-v5e", "llama-v5e"]
    assert series["since"].to_pylist() == ["serve", "train"]


def test_a_program_that_vanished_since_then_is_shown(tmp_path, nights):
    db = ingest_nights(tmp_path / "gone.duckdb", nights, NIGHTS[5:7])
    with reading(db) as store:
        found = trends(store, since="2026-10-07")
        later = trends(store, since="2026-10-08")
    (row,) = [row for row in found.series.table.to_pylist() if row["workload"] == "llama-cpu"]
    assert (row["last_run"], row["gone_for"]) == ("2026-10-06", "1 run")
    assert row["trend"] == [None]
    assert [
        (step["run"], step["workload"], step["previous_run"])
        for step in found.steps.table.to_pylist()
        if step["cause"] == "gone"
    ] == [("2026-10-07", "llama-cpu", "2026-10-06")]
    assert {row["run_id"] for row in found.rows.table.to_pylist()} == {"2026-10-07"}
    assert len(later.series) == 0
    shown = run_memhouse("trends", "--since", "2026-10-07", "--db", db).stdout
    assert "llama-cpu" in shown.split("\n\n")[0]


def test_a_suite_whose_programs_all_vanished_since_then_is_shown(tmp_path, nights):
    db = ingest_nights(tmp_path / "gone.duckdb", nights, NIGHTS[5:7])
    with writing(db) as store:
        store.change("DELETE FROM dumps WHERE run_id = '2026-10-07'")
    with reading(db) as store:
        found = trends(store, since="2026-10-07")
    assert len(found.rows) == 0
    assert {step["cause"] for step in found.steps.table.to_pylist()} == {"gone"}
    assert {row["last_run"] for row in found.series.table.to_pylist()} == {"2026-10-06"}
    assert run_memhouse("trends", "--since", "2026-10-07", "--db", db).returncode == 0


def test_the_branch_of_the_last_run_of_one_time_comes_first(tmp_path, nights):
    """The first branch has the newest time, and an older run that entered last."""
    db = tmp_path / "ties.duckdb"
    night = copy_night(nights / "2026-10-03" / "llama-v5e", tmp_path / "job" / "llama-v5e").parent
    for run, day in (("a", 10), ("b", 10), ("a", 9)):
        ingest(db, night, f"{run}-{day}", f"2026-11-{day:02}", f"branch={run}")
    with reading(db) as store:
        found = choose_branch(store)
    assert (found.chosen, found.others) == ("b", ("a",))
