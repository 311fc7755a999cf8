"""`latest`: what a name means today, a row a module, so that no join multiplies."""

from datetime import UTC, datetime

import memhouse
from memhouse.queries.catalogue import public_views

from ..support.history import NIGHTS, SERIES, copy_night, dicts
from ..support.warehouse import reading, rows

OF_MODULES = [
    view.name
    for view in public_views().values()
    if "module_id" in view.columns and "run_id" not in view.columns
]
TODAY = "SELECT workload, run_id, runs_since FROM latest ORDER BY 1"


def test_a_join_with_latest_repeats_no_row(hosts):
    """`JOIN dumps USING (module_id)` repeats a module for each of its nights and hosts."""
    wrong = []
    with reading(hosts) as store:
        for view in OF_MODULES:
            of_latest = f"SELECT * FROM {view} WHERE module_id IN (SELECT module_id FROM latest)"
            joined = f"SELECT {view}.* FROM {view} JOIN latest USING (module_id)"
            store.execute(f"CREATE TEMP TABLE a AS {of_latest}; CREATE TEMP TABLE b AS {joined}")
            found = [store.rows(f"FROM {x} EXCEPT ALL FROM {y}").num_rows for x, y in ("ab", "ba")]
            store.execute("DROP TABLE a; DROP TABLE b")
            wrong += [view] * any(found)
    assert wrong == []
    assert len(OF_MODULES) > 8


def test_what_a_workload_owns_adds_up_to_its_peak(hosts):
    """With a run of a pull request between, which has another llama-v5e."""

    def counted(source):
        query = f"""SELECT SUM(counted_bytes)::BIGINT FROM peak_buffers JOIN {source}
            USING (module_id) WHERE workload = 'llama-v5e' AND memory_space = 0"""
        ((total,),) = rows(hosts, query)
        return total

    peak = "SELECT peak_bytes FROM peaks WHERE run_id = 'main-3' AND workload = 'llama-v5e'"
    assert rows(hosts, f"{peak} AND memory_space = 0") == [(counted("latest"),)]
    assert counted("dumps") > 4 * counted("latest")


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
        at = datetime(2026, 10, 11, tzinfo=UTC)
        warehouse.ingest(tmp_path / "pr", at=at, labels={"branch": "pull/8"})
        branches = "SELECT workload, branch FROM latest ORDER BY 1"
        found = [tuple(row.values()) for row in warehouse.sql(branches).table.to_pylist()]
        assert found == [*((name, "") for name in SERIES), ("serve-cpu", "pull/8")]
        warehouse.prune([*NIGHTS[7:], "pr"])
        found = [tuple(row.values()) for row in warehouse.sql(TODAY).table.to_pylist()]
    gone = {"llama-cpu": ("2026-10-06", 1)}
    assert found == [(name, *gone.get(name, ("2026-10-07", 0))) for name in SERIES]
