"""Equal programs on many hosts are one row; the one that differs stands out."""

import memhouse
from memhouse.queries.result import folded, folded_name

from ..support.command import run_memhouse
from ..support.history import copy_night
from ..support.warehouse import fill


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


def first_cells(shown: str) -> list[str]:
    return [line.split("  ")[0] for line in shown.splitlines()[1:]]


def test_hosts_are_folded_and_the_one_that_differs_stands_out(hosts):
    others = "host0 … host2 and host4 … host7 (7 the same)"
    every = [f"host{n}" for n in range(8)]
    shown = run_memhouse("peaks", "--db", hosts).stdout
    of_hbm = [line.split("  ")[0] for line in shown.splitlines() if " hbm " in line]
    assert of_hbm == ["llama-v5e", "host3", others]
    args = ("peaks", "--db", hosts, "--run", "main-1", "--format", "markdown")
    assert "| host0 … host7 (8 the same) | jit_generate |" in run_memhouse(*args).stdout
    series, steps = run_memhouse("trends", "--db", hosts).stdout.split("\n\n")
    assert first_cells(series) == ["llama-v5e", "host3", others]
    assert [line.split("/")[0] for line in steps.splitlines()] == [
        "main-3: llama-v5e",
        "main-2: host3",
    ]
    # With --all, and for programs, nothing is folded.
    series, *_ = run_memhouse("trends", "--db", hosts, "--all").stdout.split("\n\n")
    assert sorted(first_cells(series)) == [*every, "llama-v5e"]
    for options in (("--all",), ("-f", "csv"), ("-f", "json")):
        shown = run_memhouse("peaks", "--db", hosts, *options).stdout
        assert [name for name in (*every, "llama-v5e") if name not in shown] == []
        assert "the same" not in shown
        assert "fold_id" not in shown


def test_a_change_on_all_hosts_is_one_step(tmp_path, db, nights):
    """Also where the hosts' histories differ, because one was missing once."""
    for night in ("2026-10-03", "2026-10-04", "2026-10-07"):
        for host in ("a", "b", "c"):
            if (night, host) != ("2026-10-04", "b"):
                copy_night(nights / night / "decode-v5e", tmp_path / night / host)
        fill(db, tmp_path / night)
    with memhouse.open(db, read_only=True) as warehouse:
        steps = warehouse.trends().steps.table.to_pylist()
    assert [(step["run"], step["workload"]) for step in steps] == [
        ("2026-10-07", "a and c (2 the same)"),
        ("2026-10-07", "b"),
        ("2026-10-04", "a and c (2 the same)"),
        ("2026-10-04", "b"),
    ]
