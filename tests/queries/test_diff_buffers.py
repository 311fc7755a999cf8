"""How `memhouse diff` matches the buffers of two peaks, groups them and shows them."""

import json
import re
from itertools import pairwise

import pytest

import memhouse
from memhouse.queries.catalogue import statement

from ..support.command import run_memhouse
from ..support.console import on_terminal
from ..support.history import NIGHTS
from ..support.warehouse import fill, reading

KINDS = ("source", "scope", "op", "dtype", "pass", "category", "role")


@pytest.fixture(scope="module")
def nightly(history):
    with memhouse.open(history, read_only=True) as warehouse:
        yield warehouse


@pytest.fixture(scope="module")
def changes(nightly):
    """The modules that differ from one night to the next: the modules' ids, and their rows."""
    latest: dict[str, tuple[str, int]] = {}
    found = {}
    for row in nightly.sql("SELECT * FROM dumps ORDER BY run_id").arrow().to_pylist():
        before = latest.get(row["workload"])
        latest[row["workload"]] = (row["run_id"], row["module_id"])
        if before is None or before[1] == row["module_id"]:
            continue
        done = nightly.diff(before[0], row["run_id"], workload=row["workload"])
        key = (row["workload"], before[0], row["run_id"])
        found[key] = (before[1], row["module_id"], done.arrow().to_pylist())
    return found


def named(warehouse, module_id):
    """What the values of a module hold, by the values' names."""
    query = "SELECT instruction, shape_index, * FROM _values WHERE module_id = $1"
    return {
        row["instruction"] + row["shape_index"].replace("{}", ""): row
        for row in warehouse.sql(query, [module_id]).arrow().to_pylist()
    }


def owner(value):
    if value["pass"] == "argument":
        return value["op_name"]
    return (value["scope"], value["operation"], value["pass"])


def rank(value):
    return re.sub("[0-9]+", "n", value["shape"].partition("{")[0])


def in_hbm(rows):
    return [row for row in rows if row["memory_space"] == 0]


# --- who matches whom -----------------------------------------------------------------------


def test_every_night_that_differs_is_tried(changes):
    assert len(changes) == 14


def test_no_strangers_are_paired(nightly, changes):
    checked = 0
    for a_id, b_id, rows in changes.values():
        a_values, b_values = named(nightly, a_id), named(nightly, b_id)
        for row in rows:
            if row["what"] not in ("grew", "shrank"):
                continue
            a, b = a_values[row["a_value"]], b_values[row["value"]]
            assert owner(a) == owner(b)
            if a["pass"] != "argument":
                assert re.sub(r"^\w+", "", rank(a)) == re.sub(r"^\w+", "", rank(b))
            checked += 1
    assert checked > 150


def test_matching_by_owner_loses_little(changes):
    """The sums of all changes when buffers were matched by line and opcode, in MB."""
    before = {
        ("decode-v5e", "2026-10-03"): 33.6,
        ("decode-v5e", "2026-10-06"): 33.6,
        ("llama-cpu", "2026-10-04"): 190.6,
        ("llama-cpu", "2026-10-06"): 190.6,
        ("llama-v5e", "2026-10-02"): 402.5,
        ("llama-v5e", "2026-10-04"): 402.5,
        ("llama-v5e", "2026-10-05"): 250.3,
        ("llama-v5e", "2026-10-06"): 64.8,
        ("llama-v5e", "2026-10-07"): 166.2,
        ("llama-v5e", "2026-10-08"): 166.2,
        ("llama-v5e", "2026-10-09"): 2489.8,
        ("resnet-h100", "2026-10-04"): 115.3,
        ("resnet-h100", "2026-10-07"): 123.2,
        ("resnet-h100", "2026-10-09"): 220.9,
    }
    for (workload, night, _), (_, _, rows) in changes.items():
        now = sum(abs(row["change_bytes"]) for row in in_hbm(rows)) / 1e6
        assert now <= before[workload, night] + 0.05, (workload, night)


def test_an_argument_of_another_type_is_the_same_argument(changes):
    _, _, rows = changes["decode-v5e", "2026-10-03", "2026-10-04"]
    caches = [row for row in in_hbm(rows) if row["op_name"].startswith("cache")]
    assert len(caches) == 4
    assert {row["what"] for row in caches} == {"shrank"}
    assert caches[0]["shape"] == "bf16[8,2048,4,128] → s8[8,2048,4,128]"


def test_any_two_modules_add_up(filled):
    """Of one program or of two, on one device or on two, with HLO text or without."""
    with memhouse.open(filled, read_only=True) as warehouse:
        query = "SELECT DISTINCT module_id FROM module_memory ORDER BY module_id"
        modules = [row["module_id"] for row in warehouse.sql(query).arrow().to_pylist()]
        peaks = {
            (row["module_id"], row["memory_space"]): row["peak_bytes"] or 0
            for row in warehouse.sql("SELECT * FROM module_memory").arrow().to_pylist()
        }
    with reading(filled) as store:
        for a, b in pairwise(modules):
            found: dict[int, int] = {}
            for row in store.rows(statement("diff_buffers"), [a, b]).to_pylist():
                space = row["memory_space"]
                found[space] = found.get(space, 0) + row["change_bytes"]
            for space in {space for module, space in peaks if module in (a, b)}:
                change = peaks.get((b, space), 0) - peaks.get((a, space), 0)
                assert found.get(space, 0) == change


# --- rematerialisation ----------------------------------------------------------------------


def test_what_is_kept_stands_beside_what_was_rematerialised(changes):
    _, _, rows = changes["llama-v5e", "2026-10-02", "2026-10-03"]
    kept = [row for row in in_hbm(rows) if row["what"] == "now kept for backward"]
    found = [(r["source"], r["residuals"], r["layers"], r["a_bytes"], r["b_bytes"]) for r in kept]
    # zoo.py:41 was rematerialised as two buffers of one layer, and is kept as two of two layers.
    assert found == [
        ("zoo.py:41", 2, 2, 44 << 20, 88 << 20),
        ("zoo.py:38", 3, 2, 24 << 20, 48 << 20),
        ("zoo.py:40", 1, 2, None, 16 << 20),
    ]


def test_the_way_back_is_the_same_with_the_sign_changed(changes):
    _, _, there = changes["llama-v5e", "2026-10-02", "2026-10-03"]
    _, _, back = changes["llama-v5e", "2026-10-04", "2026-10-05"]
    opposite = {"now kept for backward": "now rematerialised", "came": "went"}
    opposite |= {"now at the peak": "not at the peak now", "grew": "shrank"}
    opposite |= {after: before for before, after in opposite.items()}
    assert sorted((-r["change_bytes"], opposite[r["what"]], r["source"]) for r in back) == sorted(
        (r["change_bytes"], r["what"], r["source"]) for r in there
    )


def test_a_residual_that_leaves_the_peak_is_not_rematerialised(changes):
    """Nothing but the donation changes in this night."""
    _, _, rows = changes["llama-v5e", "2026-10-07", "2026-10-08"]
    assert not [row for row in rows if "kept" in row["what"] or "rematerialised" in row["what"]]


# --- without attribution ----------------------------------------------------------------------


@pytest.fixture(scope="module")
def bare(tmp_path_factory, nights):
    """Two nights of llama-v5e without their HLO text."""
    folder = tmp_path_factory.mktemp("bare")
    for night in NIGHTS[1:3]:
        for file in (nights / night / "llama-v5e").iterdir():
            if "after_optimizations.txt" not in file.name:
                (folder / night / "llama-v5e").mkdir(parents=True, exist_ok=True)
                (folder / night / "llama-v5e" / file.name).write_bytes(file.read_bytes())
    fill(folder / "bare.duckdb", *(folder / night for night in NIGHTS[1:3]))
    return folder / "bare.duckdb"


def test_without_hlo_text_the_instruction_tells(bare, history):
    peaks = []
    for db in (bare, history):
        with reading(db) as store:
            peaks.append(
                store.rows(
                    "SELECT peak_bytes FROM peaks WHERE workload = 'llama-v5e' "
                    "AND memory_space = 0 AND run_id IN ($1, $2) ORDER BY run_id",
                    NIGHTS[1:3],
                )["peak_bytes"].to_pylist()
            )
    assert peaks[0] == peaks[1]
    with memhouse.open(bare, read_only=True) as warehouse:
        rows = in_hbm(warehouse.diff(*NIGHTS[1:3]).arrow().to_pylist())
    assert sum(row["change_bytes"] for row in rows) == peaks[0][1] - peaks[0][0]
    assert {row["operation"] for row in rows} == {None}
    assert len(rows) < 120


# --- groups -----------------------------------------------------------------------------------


@pytest.mark.parametrize("by", KINDS)
def test_groups_add_up_to_the_change_of_the_peak(history, changes, by):
    with reading(history) as store:
        for a_id, b_id, rows in changes.values():
            groups = store.rows(statement("diff_groups"), [a_id, b_id, [by]]).to_pylist()
            for space in {row["memory_space"] for row in rows}:
                own = [row for row in groups if row["memory_space"] == space]
                assert len({row["owner"] for row in own}) == len(own)
                assert sum(row["change_bytes"] for row in own) == sum(
                    row["change_bytes"] for row in rows if row["memory_space"] == space
                )
            for row in groups:
                assert row["change_bytes"] == (row["b_bytes"] or 0) - (row["a_bytes"] or 0) != 0
                assert (row["a_bytes"] is None) == (row["a_buffers"] == 0)


@pytest.mark.parametrize(
    ("by", "column", "largest"),
    [
        ("source", "source", "zoo.py:40"),
        ("scope", "scope", "(no scope)"),
        ("op", "operation", "exp"),
        ("dtype", "element_type", "bf16"),
        ("pass", "pass", "forward"),
        ("category", "category", "temp"),
        ("role", "role", "activation"),
    ],
)
def test_a_group_has_its_owner_s_name(nightly, by, column, largest):
    found = nightly.diff("2026-10-09", "2026-10-10", workload="llama-v5e", by=by).arrow()
    assert found.column_names == [
        *("module", "memory_space", "change_bytes", column),
        *("a_bytes", "b_bytes", "a_buffers", "b_buffers"),
    ]
    assert found[column][0].as_py() == largest


def test_groups_are_those_of_the_owners(nightly):
    groups = nightly.diff("2026-10-09", "2026-10-10", workload="llama-v5e", by="pass")
    b_bytes = {r["pass"]: r["b_bytes"] for r in in_hbm(groups.arrow().to_pylist())}
    owners = nightly.owners("llama-v5e", run="2026-10-10", by="pass").arrow().to_pylist()
    found = {row["pass"]: row["counted_bytes"] for row in owners}
    assert b_bytes["forward"] == found["forward"] > 2_000_000_000


def test_an_unknown_kind_is_a_usage_error(nightly):
    with pytest.raises(memhouse.UsageError, match="invalid owner 'layer': use buffer, source"):
        nightly.diff("2026-10-09", "2026-10-10", by="layer")


def test_json_calls_groups_what_they_are(history):
    args = ("2026-10-09", "2026-10-10", "--workload", "llama-v5e", "--by", "dtype", "-f", "json")
    (module,) = json.loads(run_memhouse("diff", *args, "--db", history).stdout)
    assert module["groups"][0]["element_type"] == "bf16"
    assert "buffers" not in module


# --- what a terminal shows ----------------------------------------------------------------------


def shown(history, *args, columns=80):
    command = " ".join(("memhouse", "diff", *args, "--db", str(history)))
    return plain(on_terminal(command, history.parent, columns=columns))


def plain(text):
    lines = re.sub("\x1b[^m]*m", "", text).replace("\r", "").splitlines()
    return [line.rstrip() for line in lines]


def test_what_is_kept_can_be_read_in_80_columns(history):
    lines = shown(history, "2026-10-09", "2026-10-10", "--workload", "llama-v5e")
    assert lines[:2] == [
        "llama-v5e/jit_train_step: no longer rematerialised (jax.checkpoint); 1.95 GiB",
        "  more saved for backward (zoo.py:40)",
    ]
    (first,) = [line for line in lines if line.startswith("+576.00 MiB")]
    assert first.split("  ")[:3] == [
        "+576.00 MiB",
        "now kept for backward",
        "f32[3,12,4,1024,1024]",
    ]
    assert first.endswith("zoo.py:40")
    assert "  f32[3,12,1024,512] +3 more " in "\n".join(lines)
    assert max(map(len, lines)) <= 80
    assert lines[-1].startswith("no room for: operation, pass,") or "--wide" in "".join(lines)


def test_a_shape_that_changes_is_told_by_what_changes(history):
    lines = shown(history, "2026-10-07", "2026-10-08", "--workload", "resnet-h100")
    assert "+12.25 MiB  grew                bf16[24→32,112,112,64]  zoo.py:77" in "\n".join(lines)


def test_small_changes_are_one_row(history, changes):
    _, _, rows = changes["llama-v5e", "2026-10-09", "2026-10-10"]
    least = sum(abs(row["change_bytes"]) for row in in_hbm(rows)) / 1000
    small = [row for row in in_hbm(rows) if abs(row["change_bytes"]) < least]
    args = ("2026-10-09", "2026-10-10", "--workload", "llama-v5e")
    out = run_memhouse("diff", *args, "-n", "1000", "--db", history).stdout.rstrip().splitlines()
    assert 10 < len(small) < len(in_hbm(rows))
    assert out[-1].split()[2:] == [str(len(small)), "smaller", "changes"]


def test_a_table_sums_up_what_it_leaves_out(history):
    args = ("2026-10-09", "2026-10-10", "--workload", "llama-v5e")
    out = run_memhouse("diff", *args, "-n", "3", "--db", history).stdout
    buffers = out.split("The peak changes by 1.88 GiB:")[1].strip().splitlines()
    assert [line.split()[0] for line in buffers[1:]] == [
        *("+576.00", "+288.00", "+216.38", "+847.91"),
    ]
    assert buffers[-1].split()[3:] == ["smaller", "changes"]


def test_wide_shows_every_change(history, changes):
    _, _, rows = changes["llama-v5e", "2026-10-09", "2026-10-10"]
    args = ("2026-10-09", "2026-10-10", "--workload", "llama-v5e")
    for option in ("-v", "--wide"):
        out = run_memhouse("diff", *args, option, "--db", history).stdout
        buffers = out.split("The peak changes by 1.88 GiB:")[1].strip().splitlines()
        assert len(buffers) == 1 + len(in_hbm(rows))
        assert "jit(train_step)/jvp()/while/body/closed_call/exp" in buffers[1]
        assert buffers[0].split()[:4] == ["change", "what", "A", "B"]


def test_groups_in_a_terminal(history):
    args = ("2026-10-09", "2026-10-10", "--workload", "llama-v5e", "--by", "pass")
    lines = shown(history, *args)
    assert "The peak changes by 1.88 GiB, by pass:" in lines
    (forward,) = [line for line in lines if "forward" in line]
    assert forward.split() == ["+1.94", "GiB", "forward", "60.07", "MiB", "2.00", "GiB", "12", "38"]


@pytest.mark.parametrize("by", ["buffer", "pass"])
def test_nights_without_a_change_have_no_rows(nightly, by):
    assert len(nightly.diff(*NIGHTS[:2], by=by)) == 0
