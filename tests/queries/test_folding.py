"""Equal programs on many hosts are one row; the one that differs stands out."""

import pytest

import memhouse
from memhouse.queries.result import folded, folded_name

from ..support.command import run_memhouse
from ..support.history import copy_night
from ..support.warehouse import fill


@pytest.mark.parametrize(
    ("names", "shown"),
    [
        ([f"host{n}" for n in range(8)], "host0 … host7 (8 the same)"),
        # In order of numbers, not of letters.
        (["host10", "host9", "host8"], "host8 … host10 (3 the same)"),
        (["pod00/x", "pod01/x", "pod02/x"], "pod00/x … pod02/x (3 the same)"),
        # A range does not claim the host that differs.
        (["a0", "a1", "a2", "a4", "a5", "a6"], "a0 … a2 and a4 … a6 (6 the same)"),
        (["train", "eval"], "eval and train (2 the same)"),
        (
            ["w-7f9c2", "w-81ab0", "w-9d001", "w-a2b3c", "w-bb7aa"],
            "w-7f9c2, w-81ab0 and 3 more (5 the same)",
        ),
        # Several numbers make no range.
        (["s0-h1", "s0-h2", "s0-h3"], "s0-h1, s0-h2 and s0-h3 (3 the same)"),
        (["train", "train", "train"], "train (3 the same)"),
        (["host0"], "host0"),
    ],
)
def test_equal_programs_have_one_name(names, shown):
    assert folded_name(names) == shown


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
