"""`latest`: what a name means today, a row a module, so that no join multiplies."""

import pytest

from memhouse.queries.catalogue import public_views

from ..support.command import run_memhouse
from ..support.history import NIGHTS, SERIES, copy_night, dicts, ingest_nights
from ..support.warehouse import rows

OF_MODULES = [
    view.name
    for view in public_views().values()
    if "module_id" in view.columns and "run_id" not in view.columns
]


@pytest.mark.parametrize("view", OF_MODULES)
def test_a_join_with_latest_repeats_no_row(hosts, view):
    """`JOIN dumps USING (module_id)` repeats a module for each of its nights and hosts."""
    of_latest = f"SELECT * FROM {view} WHERE module_id IN (SELECT module_id FROM latest)"
    joined = f"SELECT {view}.* FROM {view} JOIN latest USING (module_id)"
    assert rows(hosts, f"({joined}) EXCEPT ALL ({of_latest})") == []
    assert rows(hosts, f"({of_latest}) EXCEPT ALL ({joined})") == []


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


def test_a_branch_is_told_only_of_names_that_the_default_branch_lacks(own, nights, tmp_path):
    """A pull request's newer llama-v5e is not what `llama-v5e` means; its new job is told."""
    copy_night(nights / "2026-10-01" / "llama-v5e", tmp_path / "pr" / "llama-v5e")
    copy_night(nights / "2026-10-01" / "decode-v5e", tmp_path / "pr" / "serve-v5e")
    label = ("--label", "branch=pull/8", "--at", "2026-10-11")
    run_memhouse("ingest", tmp_path / "pr", "--db", own, *label)
    assert rows(own, "SELECT workload, branch FROM latest ORDER BY 1") == [
        ("decode-v5e", ""),
        ("llama-cpu", ""),
        ("llama-v5e", ""),
        ("resnet-h100", ""),
        ("serve-v5e", "pull/8"),
    ]


def test_the_newest_of_each_series(history):
    assert rows(history, "SELECT workload, run_id FROM latest ORDER BY 1") == [
        (workload, NIGHTS[-1]) for workload in SERIES
    ]
    assert rows(history, "SELECT COUNT(*) FROM latest JOIN peaks USING (dump_id)") == rows(
        history, f"SELECT COUNT(*) FROM peaks WHERE run_id = '{NIGHTS[-1]}'"
    )


def test_a_series_that_is_gone_says_so(tmp_path, nights):
    db = ingest_nights(tmp_path / "gone.duckdb", nights, ["2026-10-06", "2026-10-07"])
    assert rows(db, "SELECT workload, run_id, runs_since FROM latest ORDER BY 1") == [
        ("decode-v5e", "2026-10-07", 0),
        ("llama-cpu", "2026-10-06", 1),
        ("llama-v5e", "2026-10-07", 0),
        ("resnet-h100", "2026-10-07", 0),
    ]
