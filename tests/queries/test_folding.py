"""Equal programs on many hosts are one row; the one that differs stands out."""

from memhouse.queries.folding import folded, folded_name

from ..support.command import run_memhouse
from ..support.history import copy_night


def test_hosts_are_a_range():
    assert folded_name([f"host{n}" for n in range(8)]) == "host0 … host7 (8 the same)"
    # In order of numbers, not of letters.
    assert folded_name(["host10", "host9", "host8"]) == "host8 … host10 (3 the same)"
    assert folded_name(["pod00/x", "pod01/x", "pod02/x"]) == "pod00/x … pod02/x (3 the same)"
    hosts = [f"host{n}/decode-v5e" for n in range(3)]
    assert folded_name(hosts) == "host0/decode-v5e … host2/decode-v5e (3 the same)"


def test_a_range_does_not_claim_the_host_that_differs():
    names = [f"host{n}" for n in range(8) if n != 3]
    assert folded_name(names) == "host0 … host2 and host4 … host7 (7 the same)"


def test_names_without_an_order_are_listed_and_counted():
    assert folded_name(["train", "eval"]) == "eval and train (2 the same)"
    pods = ["w-7f9c2", "w-81ab0", "w-9d001", "w-a2b3c", "w-bb7aa"]
    assert folded_name(pods) == "w-7f9c2, w-81ab0 and 3 more (5 the same)"


def test_several_numbers_in_a_name_make_no_range():
    assert folded_name(["s0-h1", "s0-h2", "s0-h3"]) == "s0-h1, s0-h2 and s0-h3 (3 the same)"


def test_equal_programs_of_one_workload_are_counted():
    assert folded_name(["train", "train", "train"]) == "train (3 the same)"


def test_a_name_alone_stays_as_it_is():
    assert folded_name(["host0"]) == "host0"


def test_rows_stay_in_order_and_unknown_programs_stay_apart():
    rows = [("host0", 7), ("host1", None), ("host2", 8), ("host3", 7), ("host4", None)]
    assert folded(rows, key=lambda row: row[1], name=lambda row: row[0]) == [
        (("host0", 7), "host0 and host3 (2 the same)"),
        (("host1", None), "host1"),
        (("host2", 8), "host2"),
        (("host4", None), "host4"),
    ]


# --- memhouse peaks and trends ----------------------------------------------------------------


def hbm(shown: str) -> list[str]:
    """The names in a table of peaks, of memory space 0."""
    return [line.split("  ")[0] for line in shown.splitlines() if " default " in line]


def test_peaks_fold_hosts_and_the_one_that_differs_stands_out(hosts):
    done = run_memhouse("peaks", "--db", hosts)
    assert hbm(done.stdout) == [
        "llama-v5e",
        "host3",
        "host0 … host2 and host4 … host7 (7 the same)",
    ]
    done = run_memhouse("peaks", "--db", hosts, "--run", "main-1", "--format", "markdown")
    assert "| host0 … host7 (8 the same) | jit_generate | default | 67.04 MiB |" in done.stdout


def test_peaks_unfold(hosts):
    every = ["llama-v5e", "host3", *(f"host{n}" for n in range(8) if n != 3)]
    assert hbm(run_memhouse("peaks", "--db", hosts, "--all").stdout) == every
    for output in ("csv", "json"):
        done = run_memhouse("peaks", "--db", hosts, "--format", output)
        assert "the same" not in done.stdout
        assert all(host in done.stdout for host in every)
        assert "fold_id" not in done.stdout


def test_trends_fold_series_of_equal_programs_and_their_steps(hosts):
    done = run_memhouse("trends", "--db", hosts)
    series, steps = done.stdout.split("\n\n")
    assert [line.split("  ")[0] for line in series.splitlines()[1:]] == [
        "host0 … host2 and host4 … host7 (7 the same)",
        "host3",
        "llama-v5e",
    ]
    assert [line.split()[:2] for line in steps.splitlines()[1:]] == [
        ["main-2", "host3"],
        ["main-3", "llama-v5e"],
    ]
    done = run_memhouse("trends", "--db", hosts, "--all")
    assert [line.split("  ")[0] for line in done.stdout.split("\n\n")[0].splitlines()[1:]] == [
        *(f"host{n}" for n in range(8)),
        "llama-v5e",
    ]


def test_a_change_on_all_hosts_is_one_step(tmp_path, nights):
    """Also where the hosts' histories differ, because one was missing once."""
    db = tmp_path / "hosts.duckdb"
    for night in ("2026-10-03", "2026-10-04", "2026-10-07"):
        for host in ("a", "b", "c"):
            if (night, host) != ("2026-10-04", "b"):
                copy_night(nights / night / "decode-v5e", tmp_path / night / host)
        assert run_memhouse("ingest", tmp_path / night, "--db", db).returncode == 0
    steps = run_memhouse("trends", "--db", db).stdout.split("\n\n")[1].splitlines()[1:]
    assert [line.split("  ")[:2] for line in steps] == [
        ["2026-10-04", "a and c (2 the same)"],
        ["2026-10-07", "a and c (2 the same)"],
        ["2026-10-04", "b"],
        ["2026-10-07", "b"],
    ]
