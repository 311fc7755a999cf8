"""`diff`: what grew or shrank between two runs or modules, which buffers are matched, and why."""

import csv
import json
import re
from functools import cache
from itertools import pairwise

import pytest

import memhouse
from memhouse import UsageError
from memhouse.queries.diff import changed_buffers

from ..support.command import run_memhouse
from ..support.dumps import copy_dump
from ..support.history import NIGHTS, SERIES, copy_night, ingest_nights
from ..support.warehouse import fill, reading, rows

PAIRS = list(pairwise(NIGHTS))
MIB = 2**20


@pytest.fixture(scope="module")
def nightly(history):
    with memhouse.open(history, read_only=True) as warehouse:
        yield warehouse


@pytest.fixture(scope="module")
def diffs(nightly):
    """What differs from a night to another, worked out when it is first asked for."""
    return cache(nightly.diff)


@pytest.fixture(scope="module")
def peaks(nightly):
    """The figures by night, workload and memory space."""
    found = nightly.sql("SELECT * FROM peaks_by_space").table.to_pylist()
    return {(row["run_id"], row["workload"], row["memory_space"]): row for row in found}


def of_module(found, workload):
    (module,) = [m for m in found.modules if (m.b or m.a).workload == workload]
    return module


def listed(module):
    return module.rows.table.to_pylist()


def in_hbm(module):
    return [row for row in listed(module) if row["memory_space"] == 0]


def changes_of(found):
    """The change of each memory space."""
    changes: dict[int, int] = {}
    for row in found:
        changes[row["memory_space"]] = changes.get(row["memory_space"], 0) + row["change_bytes"]
    return changes


def night(day):
    return f"2026-10-{day:02}"


# --- what changed -------------------------------------------------------------------------


def test_the_cause_is_the_one_of_the_history(history, diffs):
    for a, b in PAIRS:
        stored = rows(
            history,
            f"SELECT workload, cause FROM history WHERE run_id = '{b}' AND missed_runs = 0",
        )
        modules = {name: of_module(diffs(a, b), name) for name, _ in stored}
        told = {name: None if m.is_same else m.cause for name, m in modules.items()}
        assert told == dict(stored)


def test_what_changed_in_a_night_is_told_by_buffers_figures_and_causes(diffs):
    lost = of_module(diffs(night(7), night(8)), "llama-v5e")
    donated = of_module(diffs(night(8), night(9)), "llama-v5e")
    for module, sign in ((lost, -1), (donated, 1)):
        first, *others = module.causes.table.to_pylist()
        assert first["term"].endswith(": m, v, p")
        assert first["change_bytes"] >> 20 == (131 if sign < 0 else -132)
        assert others[-1]["kind"] == "remainder"
        figures = {
            row["metric"]: row["change_bytes"]
            for row in module.metrics.table.to_pylist()
            if row["memory_space"] == 0
        }
        assert (figures["alias_bytes"], figures["peak_bytes"]) == (
            sign * 138307584,
            -sign * 110428160,
        )
        # Nothing but the donation changes: a residual that leaves the peak is not rematerialised.
        told = {row["what"] for row in listed(module)}
        assert not {what for what in told if "kept" in what or "rematerialised" in what}
    batch = listed(of_module(diffs(night(7), night(8)), "resnet-h100"))[0]
    assert (
        batch
        | {
            "what": "grew",
            "category": "temp",
            "shape": "bf16[24,112,112,64] → bf16[32,112,112,64]",
            "a_bytes": 38535168,
            "b_bytes": 51380224,
            "change_bytes": 12845056,
        }
        == batch
    )
    kept = listed(of_module(diffs(night(9), night(10)), "llama-v5e"))[0]
    assert (
        kept
        | {
            "what": "now kept for backward",
            "change_bytes": 576 * MIB,
            "shape": "f32[3,12,4,1024,1024]",
            "op_name": "jit(train_step)/jvp()/while/body/closed_call/exp",
            "residuals": 1,
            "layers": 3,
        }
        == kept
    )


# --- it adds up ---------------------------------------------------------------------------


def test_the_buffers_add_up_to_the_change_of_the_peak(diffs, peaks):
    checked = 0
    for pair in PAIRS:
        for module in diffs(*pair).modules:
            if module.a is None or module.b is None:
                assert listed(module) == []
                continue
            assert 0 not in [row["change_bytes"] for row in listed(module)]
            changes, workload = changes_of(listed(module)), module.a.workload
            for space in {key[2] for key in peaks if key[0] in pair and key[1] == workload}:
                a, b = (peaks[night, workload, space]["peak_bytes"] for night in pair)
                assert changes.get(space, 0) == b - a
                checked += 1
    assert checked >= 9 * 5


def test_any_two_modules_add_up(filled):
    """Of one program or of two, on one device or on two, with HLO text or without."""
    with memhouse.open(filled, read_only=True) as warehouse:
        found = warehouse.sql("SELECT * FROM module_memory").table.to_pylist()
        peaks = {(row["module_id"], row["memory_space"]): row["peak_bytes"] or 0 for row in found}
        modules = sorted({module for module, _ in peaks})
        names = dict(rows(filled, "SELECT module_id, dump_id FROM dumps"))
        assert len(modules) == len(names.keys() & set(modules)) > 10
    with reading(filled) as store:
        for a, b in pairwise(modules):
            changes = changes_of(changed_buffers(store, a, b).to_pylist())
            for space in {space for module, space in peaks if module in (a, b)}:
                assert changes.get(space, 0) == peaks.get((b, space), 0) - peaks.get((a, space), 0)


# --- who matches whom -----------------------------------------------------------------------


@pytest.fixture(scope="module")
def changed(diffs):
    """The modules that differ from one night to the next."""
    found = [m for pair in PAIRS for m in diffs(*pair).modules if len(m.rows)]
    assert len(found) == 13
    return found


def test_no_strangers_are_paired(nightly, changed):
    def named(module_id):
        """What the values of a module hold, by the values' names."""
        query = "SELECT * FROM buffers WHERE module_id = $1 AND instruction IS NOT NULL"
        return {
            row["instruction"] + row["shape_index"].replace("{}", ""): row
            for row in nightly.sql(query, [module_id]).table.to_pylist()
        }

    def owner(value):
        if value["pass"] == "argument":
            return value["op_name"]
        return (value["scope"], value["operation"], value["pass"])

    def rank(value):
        return re.sub(r"^\w+", "", re.sub("[0-9]+", "n", value["shape"].partition("{")[0]))

    checked = 0
    for module in changed:
        a_values, b_values = named(module.a.module_id), named(module.b.module_id)
        for row in listed(module):
            if row["what"] in ("grew", "shrank"):
                a, b = a_values[row["a_value"]], b_values[row["value"]]
                assert owner(a) == owner(b)
                assert a["pass"] == "argument" or rank(a) == rank(b)
                checked += 1
    assert checked > 150


def test_matching_by_owner_loses_little(changed):
    """Matched by line and opcode the changes were 4,742 MB in sum."""
    sums = [abs(row["change_bytes"]) for module in changed for row in in_hbm(module)]
    assert sum(sums) <= 4742e6


def test_an_argument_of_another_type_is_the_same_argument(diffs):
    module = of_module(diffs(night(3), night(4)), "decode-v5e")
    caches = [row for row in in_hbm(module) if row["op_name"].startswith("cache")]
    assert len(caches) == 4
    assert {row["what"] for row in caches} == {"shrank"}
    assert caches[0]["shape"] == "bf16[8,2048,4,128] → s8[8,2048,4,128]"


def test_what_is_kept_stands_beside_what_was_rematerialised(diffs):
    there = of_module(diffs(night(2), night(3)), "llama-v5e")
    kept = [row for row in in_hbm(there) if row["what"] == "now kept for backward"]
    columns = ("source", "residuals", "layers", "a_bytes", "b_bytes")
    # zoo.py:41 was rematerialised as two buffers of one layer, and is kept as two of two layers.
    assert [tuple(row[name] for name in columns) for row in kept] == [
        ("zoo.py:41", 2, 2, 44 * MIB, 88 * MIB),
        ("zoo.py:38", 3, 2, 24 * MIB, 48 * MIB),
        ("zoo.py:40", 1, 2, None, 16 * MIB),
    ]
    # The way back is the same with the sign changed.
    opposite = {"now kept for backward": "now rematerialised", "came": "went"}
    opposite |= {"now at the peak": "not at the peak now", "grew": "shrank"}
    opposite |= {after: before for before, after in opposite.items()}
    back = listed(of_module(diffs(night(4), night(5)), "llama-v5e"))
    assert sorted((-r["change_bytes"], opposite[r["what"]], r["source"]) for r in back) == sorted(
        (r["change_bytes"], r["what"], r["source"]) for r in listed(there)
    )


def test_without_hlo_text_the_instruction_tells(tmp_path, nights, peaks):
    for name in NIGHTS[1:3]:
        folder = copy_night(nights / name / "llama-v5e", tmp_path / name / "llama-v5e")
        for file in folder.glob("*after_optimizations.txt*"):
            file.unlink()
    db = tmp_path / "bare.duckdb"
    fill(db, *(tmp_path / name for name in NIGHTS[1:3]))
    with memhouse.open(db, read_only=True) as warehouse:
        (module,) = warehouse.diff(*NIGHTS[1:3]).modules
    a, b = (peaks[name, "llama-v5e", 0]["peak_bytes"] for name in NIGHTS[1:3])
    found = in_hbm(module)
    assert sum(row["change_bytes"] for row in found) == b - a
    assert {row["operation"] for row in found} == {None}
    assert len(found) < 120


# --- what did not change, or is not known -----------------------------------------------------


def test_unchanged_modules_are_the_same(nightly, diffs):
    found = diffs(*NIGHTS[:2])
    assert sorted(module.name for module in found.modules) == [
        f"{w}/{m}" for w, m in SERIES.items()
    ]
    peaks = [module.peak_bytes for module in found.modules]
    assert peaks == sorted(peaks, reverse=True)
    assert len(found.rows) == 0
    for module in found.modules:
        assert module.is_same
        assert not any(map(len, (module.flags, module.metrics, module.rows)))
    assert all(module.is_same for module in nightly.diff(NIGHTS[4], NIGHTS[4]).modules)


def test_a_module_that_only_one_run_has(diffs):
    for pair, only in (((night(6), night(7)), 0), ((night(7), night(8)), 1)):
        module = of_module(diffs(*pair), "llama-cpu")
        runs = [dump and dump.run_id for dump in (module.a, module.b)]
        assert runs == [run if n == only else None for n, run in enumerate(pair)]
        assert pair[only] in module.cause
        assert (module.is_same, module.is_unchanged) == (False, False)


def test_many_modules_that_are_unchanged_are_a_count(tmp_path, db):
    """In b comments above moved the lines of all; c has one of them as it was."""
    for run, own in (("a", "jax-0.10.2"), ("b", "jax-0.4.35"), ("c", "jax-0.4.35")):
        copy_dump(f"cpu/{own}/*jit_mixed*", tmp_path / run / "own")
        for number in range(6):
            folder = copy_dump("cpu/jax-0.10.2/*broadcast*", tmp_path / run / f"eager{number}")
            (text,) = folder.glob("*after_optimizations.txt")
            if run == "b" or (run == "c" and number):
                text.write_text(re.sub(r"\bline=(\d)", r"line=1\1", text.read_text()))
        fill(db, tmp_path / run)
    with memhouse.open(db, read_only=True) as warehouse:
        for pair, counts, most in ((("a", "b"), ["6"], 1), (("a", "c"), [], 7)):
            found = warehouse.diff(*pair)
            assert [sentence.split()[0] for sentence in found.sentences()] == counts
            assert len(found.listed()) == most
            (changed,) = [module for module in found.modules if not module.is_unchanged]
            assert changed.name == "own/jit_mixed"
        assert sum(module.is_same for module in found.modules) == 1


def test_what_a_failed_or_damaged_dump_does_not_say_is_not_0(tmp_path, nights):
    broken = copy_night(nights / night(2), tmp_path / night(2))
    for file in (broken / "llama-cpu").glob("*after_optimizations*"):
        file.write_text("Segmentation fault\n")
    for file in (broken / "llama-v5e").glob("*live-range*"):
        file.unlink()
    for file in (broken / "llama-v5e").glob("*after_optimizations.txt"):
        file.write_bytes(file.read_bytes()[:100_000])
    again = copy_night(broken / "llama-cpu", tmp_path / night(3) / "llama-cpu").parent
    db = ingest_nights(tmp_path / "failed.duckdb", nights, [night(1)])
    fill(db, broken, again)
    with memhouse.open(db, read_only=True) as warehouse:
        found, both = warehouse.diff(night(1), night(2)), warehouse.diff(night(2), night(3))
        back = warehouse.diff(night(2), night(1))
    failed, damaged = of_module(found, "llama-cpu"), of_module(found, "llama-v5e")
    for module in (failed, damaged, of_module(back, "llama-v5e")):
        assert not module.is_same
        assert (len(module.metrics), len(module.rows)) == (0, 0)
    assert "failed" in failed.cause
    assert "partial" in damaged.cause
    assert of_module(both, "llama-cpu").cause != failed.cause
    assert not of_module(both, "llama-cpu").is_same


# --- flags --------------------------------------------------------------------------------


def test_flags_that_differ_are_listed(tmp_path, db):
    for run, level in (("a", "0"), ("b", "4")):
        folder = copy_dump("gpu/decode-h100/module*", tmp_path / run / "decode")
        (options,) = folder.glob("*.debug_options")
        text = options.read_text().replace("autotune_level: 0", f"autotune_level: {level}")
        options.write_text(text + (f"xla_gpu_{run}: true\n" if run == "b" else ""))
        fill(db, tmp_path / run)
    done = run_memhouse("diff", "a", "b", "--db", db)
    for flag in (r"xla_gpu_autotune_level: 0 → 4", r"xla_gpu_b: \w+ → true"):
        assert re.search(flag, done.stdout)
    (module,) = json.loads(run_memhouse("diff", "a", "b", "--db", db, "-f", "json").stdout)
    assert (module["same"], module["buffers"]) == (False, [])
    assert module["flags"] == [
        {"flag": "xla_gpu_autotune_level", "a_value": "0", "b_value": "4"},
        {"flag": "xla_gpu_b", "a_value": None, "b_value": "true"},
    ]


# --- two modules, one workload, wrong usage ---------------------------------------------------


def test_two_modules_by_name_and_a_workload(nightly, diffs):
    whole = of_module(diffs(night(7), night(8)), "llama-v5e")
    names = [f"{name}/llama-v5e/jit_train_step" for name in (night(7), night(8))]
    (by_name,) = nightly.diff(*names).modules
    (of_workload,) = nightly.diff(night(7), night(8), workload="llama-v5e").modules
    assert by_name.rows.table == of_workload.rows.table == whole.rows.table
    # Of a workload that one run lacks.
    (alone,) = nightly.diff(night(6), night(7), workload="llama-cpu").modules
    assert (alone.a.workload, alone.b) == ("llama-cpu", None)


def test_one_program_by_two_compilers_needs_the_same(filled):
    with memhouse.open(filled, read_only=True) as warehouse:
        (module,) = warehouse.diff("llama-v5e/jit", "llama-v5e-jax0.7.0").modules
    assert (module.a.run_id, module.b.run_id) == ("tpu", "tpu")
    assert module.name == "llama-v5e/jit_train_step → llama-v5e-jax0.7.0/jit_train_step"
    assert "933746096 → 788670714" in module.cause
    assert changes_of(listed(module))[0] == 0
    metrics = module.metrics.table.to_pylist()
    assert [row["metric"] for row in metrics if row["memory_space"] == 0] == [
        *("fragmentation_bytes", "reserved_bytes", "temp_bytes", "total_bytes"),
    ]


@pytest.mark.parametrize(
    ("a", "b", "options", "argument", "fact"),
    [
        (night(7), "llama-v5e", {}, None, f"{night(7)} is a run"),
        ("llama-v5e", night(7), {}, None, f"{night(7)} is a run"),
        (night(7), "2026-10-77", {}, None, "2026-10-"),
        ("llama-v5e", "no-such", {}, "module", "'no-such'"),
        ("llama-v5e", "jit_train_step", {}, "module", "'jit_train_step'"),
        ("llama-v5e", "llama-cpu", {"workload": "llama-v5e"}, None, "--workload"),
        (night(7), night(8), {"workload": "llama"}, "workload", ", ".join(SERIES)),
        (night(9), night(10), {"by": "layer"}, "by", "buffer, source"),
    ],
)
def test_wrong_usage(nightly, a, b, options, argument, fact):
    with pytest.raises(UsageError, match=re.escape(fact)) as error:
        nightly.diff(a, b, **options)
    assert error.value.argument == argument


# --- the command ------------------------------------------------------------------------------


def test_the_command_tells_figures_buffers_and_causes_in_each_format(history, diffs):
    args = ("diff", night(7), night(8), "--db", history)
    done = run_memhouse(*args, "--workload", "llama-v5e")
    assert (done.returncode, done.stderr) == (0, "")
    cells = [line.split() for line in done.stdout.splitlines()]
    assert ["alias", "131.90", "MiB", "0", "B", "-131.90", "MiB", "-100.0", "%"] in cells
    assert ["peak", "569.65", "MiB", "674.96", "MiB", "+105.31", "MiB", "+18.5", "%"] in cells
    found = list(csv.DictReader(run_memhouse(*args, "-f", "csv").stdout.splitlines()))
    expected = diffs(night(7), night(8)).rows.table.to_pylist()
    assert len(found) == len(expected) > 100
    for row, want in zip(found, expected, strict=True):
        assert (row["module"], row["value"]) == (want["module"], want["value"] or "")
        assert int(row["change_bytes"]) == want["change_bytes"]
        assert int(row["memory_space"]) == want["memory_space"]
    markdown = run_memhouse(*args, "-f", "markdown").stdout.splitlines()
    headings = [line.split(":")[0] for line in markdown if line.startswith("#")]
    assert sorted(headings) == [f"## {workload}/{module}" for workload, module in SERIES.items()]
    # No change has the heading alone.
    same = run_memhouse("diff", *NIGHTS[:2], "--db", history, "-f", "csv").stdout
    assert same.strip().split(",") == list(expected[0])
    for wrong in ((night(7),), (night(7), "2026-10-77")):
        assert run_memhouse("diff", *wrong, "--db", history).returncode == 2


def test_another_memory_space(history):
    args = ("diff", night(3), night(4), "--workload", "decode-v5e", "--db", history)
    assert "-28.02 MiB:" in run_memhouse(*args, "--space", "1").stdout
    assert "-32.00 MiB:" in run_memhouse(*args).stdout
