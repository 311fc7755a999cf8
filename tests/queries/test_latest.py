"""`latest`: what a name means today, a row a module, so that no join multiplies."""

from datetime import datetime

import memhouse
from memhouse.queries.catalogue import public_views

from ..support.history import NIGHTS, SERIES, copy_night, dicts
from ..support.warehouse import reading, rows

TODAY = "SELECT workload, run_id, runs_since FROM latest ORDER BY 1"


def test_what_a_workload_owns_today_adds_up_to_its_peak(hosts):
    """With a run of a pull request between, which has another llama-v5e."""
    of_llama = "workload = 'llama-v5e'"
    peak = f"SELECT peak_bytes FROM peaks WHERE run_id = 'main-3' AND {of_llama}"
    owned = f"SELECT SUM(counted_bytes)::BIGINT FROM peak_buffers WHERE is_latest AND {of_llama}"
    assert rows(hosts, peak) == rows(hosts, owned)


def test_the_latest_of_all_views_are_those_of_main(hosts):
    """One dump of each of nine names, and a row of `latest` for each of their modules."""
    with reading(hosts) as store:
        for view in public_views().values():
            if "is_latest" in view.columns:
                found = store.rows(
                    f"SELECT DISTINCT run_id, dump_id FROM {view.name} WHERE is_latest"
                )
                assert set(found["run_id"].to_pylist()) <= {"main-3"}, view.name
    today = "SELECT COUNT(DISTINCT dump_id), COUNT(DISTINCT module_id) FROM peaks WHERE is_latest"
    assert rows(hosts, today) == [(9, 3)]
    assert rows(hosts, "SELECT COUNT(*) FROM latest") == [(3,)]


def test_hosts_are_a_row_that_counts_them(hosts):
    found = dicts(
        hosts,
        "workload, workloads, series, run_id, branch, runs_since",
        "FROM latest ORDER BY workload",
    )
    others = "host0, host1, host2, host4, host5, host6, host7"
    same = {"run_id": "main-3", "branch": "main", "runs_since": 0}
    assert found == [
        {"workload": "host0", "workloads": others, "series": 7, **same},
        {"workload": "host3", "workloads": "host3", "series": 1, **same},
        {"workload": "llama-v5e", "workloads": "llama-v5e", "series": 1, **same},
    ]


def test_a_name_means_the_newest_of_the_default_branch_and_is_told_if_it_is_gone(
    own, nights, tmp_path
):
    assert rows(own, TODAY) == [(workload, NIGHTS[-1], 0) for workload in SERIES]
    assert rows(own, "SELECT COUNT(*) FROM latest JOIN peaks USING (dump_id)") == rows(
        own, f"SELECT COUNT(*) FROM peaks WHERE run_id = '{NIGHTS[-1]}'"
    )
    # A pull request's newer llama-cpu is not what the name means; its new job is told.
    for name, night in (("llama-cpu", "2026-10-01"), ("serve-cpu", "2026-10-05")):
        copy_night(nights / night / "llama-cpu", tmp_path / "pr" / name)
    with memhouse.open(own) as warehouse:
        at = datetime(2026, 10, 11)
        warehouse.ingest(tmp_path / "pr", at=at, labels={"branch": "pull/8"})
        branches = "SELECT workload, branch FROM latest ORDER BY 1"
        found = [tuple(row.values()) for row in warehouse.sql(branches).table.to_pylist()]
        assert found == [*((name, "") for name in SERIES), ("serve-cpu", "pull/8")]
        warehouse.prune([*NIGHTS[7:], "pr"])
        found = [tuple(row.values()) for row in warehouse.sql(TODAY).table.to_pylist()]
        gone = warehouse.sql("SELECT workload, last_run_id FROM series WHERE NOT is_alive").table
    assert gone.to_pylist() == [{"workload": "llama-cpu", "last_run_id": "2026-10-06"}]
    assert found == [(name, "2026-10-07", 0) for name in SERIES if name != "llama-cpu"]
