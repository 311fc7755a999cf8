"""How `diff` sums buffers by owner, and what a terminal shows of them."""

import json
import re
from itertools import pairwise

import duckdb
import pytest

import memhouse
from memhouse.queries.diff import changed_buffers, changed_owners
from memhouse.queries.owners import OWNERS

from ..support.command import run_memhouse
from ..support.console import on_terminal
from ..support.history import NIGHTS
from ..support.warehouse import reading, rows

# The night in which the layers were no longer computed again.
LLAMA = ("2026-10-09", "2026-10-10", "--workload", "llama-v5e")
LARGEST = {
    "source": "zoo.py:40",
    "scope": "(no scope)",
    "op": "exp",
    "dtype": "bf16",
    "pass": "forward",
    "category": "temp",
    "role": "activation",
}


@pytest.fixture(scope="module")
def nightly(history):
    with memhouse.open(history, read_only=True) as warehouse:
        yield warehouse


def in_hbm(found):
    return [row for row in found if row["memory_space"] == 0]


def test_groups_of_each_kind_add_up_to_the_change_of_the_peak(history):
    dumps = rows(history, "SELECT workload, module_id FROM dumps ORDER BY workload, run_id")
    steps = [(a, b) for (of_a, a), (of_b, b) in pairwise(dumps) if of_a == of_b and a != b]
    peaks = {
        key: peak
        for *key, peak in rows(
            history, "SELECT module_id, memory_space, peak_bytes FROM module_memory"
        )
        for key in [tuple(key)]
    }
    assert len(steps) == 14
    with reading(history) as store:
        for a, b in steps:
            kinds = changed_owners(store, a, b, list(OWNERS))
            for by, table in kinds.items():
                groups = table.to_pylist()
                owners = [(row["memory_space"], row[OWNERS[by]]) for row in groups]
                assert len(set(owners)) == len(owners)
                for row in groups:
                    assert row["change_bytes"] == (row["b_bytes"] or 0) - (row["a_bytes"] or 0) != 0
                    assert (row["a_bytes"] is None) == (row["a_buffers"] == 0)
                for space in {space for module, space in peaks if module in (a, b)}:
                    change = sum(r["change_bytes"] for r in groups if r["memory_space"] == space)
                    assert change == peaks.get((b, space), 0) - peaks.get((a, space), 0), by


def test_a_group_has_its_owners_name_and_the_bytes_of_the_owners(nightly):
    for by, largest in LARGEST.items():
        found = nightly.diff(*LLAMA[:2], workload="llama-v5e", by=by).rows.table
        assert found.column_names == [
            *("module", "memory_space", "change_bytes", OWNERS[by]),
            *("a_bytes", "b_bytes", "a_buffers", "b_buffers", "is_entry"),
        ]
        assert found[OWNERS[by]][0].as_py() == largest
        if by == "pass":
            groups = {row["pass"]: row["b_bytes"] for row in in_hbm(found.to_pylist())}
    owners = nightly.owners("llama-v5e", run="2026-10-10", by="pass").table.to_pylist()
    of_forward = {row["pass"]: row["counted_bytes"] for row in owners}["forward"]
    assert groups["forward"] == of_forward > 2_000_000_000
    assert [len(nightly.diff(*NIGHTS[:2], by=by)) for by in ("buffer", "pass")] == [0, 0]


# --- what a terminal shows ----------------------------------------------------------------------


def shown(history, *args):
    command = " ".join(("memhouse", "diff", *args, "--db", str(history)))
    text = on_terminal(command, history.parent, columns=80)
    lines = re.sub("\x1b[^m]*m", "", text).replace("\r", "").splitlines()
    return [line.rstrip() for line in lines]


@pytest.mark.slow
def test_a_change_can_be_read_in_80_columns(history):
    lines = shown(history, *LLAMA)
    (first,) = [line for line in lines if line.lstrip().startswith("+576.00 MiB")]
    cells = re.split("  +", first.lstrip())
    assert (cells[1], cells[2]) == ("now kept for backward", "f32[3,12,4,1024,1024]")
    assert first.endswith("zoo.py:40")
    assert max(map(len, lines)) <= 80
    assert "--wide" in "".join(lines)
    # A shape that changes is told by what changes.
    lines = shown(history, "2026-10-07", "2026-10-08", "--workload", "resnet-h100")
    grown = next(line for line in lines if line.lstrip().startswith("+12.25 MiB"))
    assert re.split("  +", grown.lstrip())[2:4] == ["bf16[24→32,112,112,64]", "zoo.py:77"]
    lines = shown(history, *LLAMA, "--by", "pass")
    (forward,) = [line for line in lines if "forward" in line]
    assert forward.split() == ["+1.94", "GiB", "forward", "60.07", "MiB", "2.00", "GiB", "12", "38"]


def test_a_table_sums_up_what_it_leaves_out_and_what_is_small(history):
    with reading(history) as store:
        modules = [
            rows(
                history,
                f"SELECT module_id FROM dumps WHERE run_id = '{run}' AND workload = 'llama-v5e'",
            )[0][0]
            for run in LLAMA[:2]
        ]
        found = in_hbm(changed_buffers(store, *modules).to_pylist())
    least = sum(abs(row["change_bytes"]) for row in found) / 1000
    small = [row for row in found if abs(row["change_bytes"]) < least]
    assert 10 < len(small) < len(found)

    def buffers(*options):
        out = run_memhouse("diff", *LLAMA, *options, "--db", history).stdout
        return [line.split() for line in out.split(" 1.88 GiB:")[1].strip().splitlines()]

    assert str(len(small)) in buffers("-n", "1000")[-1]
    assert [cells[0] for cells in buffers("-n", "3")[-4:]] == [
        *("+576.00", "+288.00", "+216.38", "+847.91"),
    ]
    for option in ("-v", "--wide"):
        _, first, *others = buffers(option)
        assert len(others) + 1 == len(found)
        assert "jit(train_step)/jvp()/while/body/closed_call/exp" in first


def test_json_calls_groups_what_they_are(history):
    args = ("diff", *LLAMA, "--by", "dtype", "--db", history, "-f", "json")
    (module,) = json.loads(run_memhouse(*args).stdout)
    assert module["groups"][0]["element_type"] == "bf16"
    assert "buffers" not in module


def test_a_module_does_not_differ_from_itself(history):
    module = "module('decode-v5e')"
    query = "SELECT COUNT(*) FROM diff_buffers({}, {})"
    assert rows(history, query.format(module, module)) == [(0,)]
    for sides in (("NULL", module), (module, "NULL")):
        with pytest.raises(duckdb.InvalidInputException, match="is no module: null"):
            rows(history, query.format(*sides))
