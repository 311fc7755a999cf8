"""`memhouse diff`: what grew or shrank between two runs or modules, and why."""

import csv
import io
import json
import re
from functools import cache
from itertools import pairwise

import pytest

from memhouse import Warehouse

from ..support.command import run_memhouse
from ..support.dumps import copy_dump
from ..support.history import NIGHTS, SERIES, copy_night, ingest_nights
from ..support.warehouse import fill, reading, rows

PAIRS = list(pairwise(NIGHTS))


@pytest.fixture(scope="session")
def diffs(history):
    """The json of two nights, made when it is first asked for."""
    return cache(lambda a, b: json.loads(diff(history, a, b, "--format", "json")))


@pytest.fixture(scope="session")
def peaks(history):
    """The figures by night, workload and memory space."""
    with reading(history) as store:
        found = store.rows("SELECT * FROM peaks").to_pylist()
    return {(row["run_id"], row["workload"], row["memory_space"]): row for row in found}


def diff(db, *args: str) -> str:
    done = run_memhouse("diff", *args, "--db", db)
    assert done.returncode == 0
    return done.stdout


def of_module(found: list[dict], workload: str) -> dict:
    (module,) = [m for m in found if m["module"].split("/")[0] == workload]
    return module


# --- what changed -------------------------------------------------------------------------


def test_arguments_that_are_no_longer_donated(history):
    args = ("2026-10-07", "2026-10-08", "--workload", "llama-v5e")
    done = run_memhouse("diff", *args, "--db", history)
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[0] == "llama-v5e/jit_train_step: donation lost: 132 MiB of m, v, p"
    assert lines[2].split() == ["figure", "A", "B", "change", "change", "%"]
    assert lines[3].split() == [
        *("alias", "131.90", "MiB", "0", "B", "-131.90", "MiB", "-100.0"),
    ]
    assert lines[4].split() == [
        *("peak", "569.65", "MiB", "674.96", "MiB", "+105.31", "MiB", "+18.5"),
    ]
    assert "The peak changes by 105.31 MiB:" in lines


def test_arguments_that_are_donated_again(diffs):
    module = of_module(diffs("2026-10-08", "2026-10-09"), "llama-v5e")
    assert module["causes"] == ["donated now: 132 MiB of m, v, p"]


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair[1])
def test_diff_says_the_cause_that_the_history_has(history, diffs, pair):
    stored = dict(
        rows(
            history,
            "SELECT workload, cause FROM history INNER JOIN dumps USING (dump_id) "
            f"WHERE run_id = '{pair[1]}' AND missed_runs = 0",
        )
    )
    told = {module["module"].split("/")[0]: module["cause"] for module in diffs(*pair)}
    assert {workload: told[workload] for workload in stored} == stored


def test_all_causes_are_shown_in_lines_of_80(history):
    out = diff(history, "2026-10-02", "2026-10-03", "--workload", "llama-v5e")
    assert out.splitlines()[:3] == [
        "llama-v5e/jit_train_step: checkpoint policy: dot_general no longer recomputed;",
        "  152 MiB more saved for backward (zoo.py:41)",
        "",
    ]


def test_a_larger_batch_is_told_by_the_shapes(diffs):
    module = of_module(diffs("2026-10-07", "2026-10-08"), "resnet-h100")
    first = module["buffers"][0]
    assert (first["what"], first["category"], first["change_bytes"]) == ("grew", "temp", 12845056)
    assert (first["a_bytes"], first["b_bytes"]) == (38535168, 51380224)
    assert first["shape"] == "bf16[24,112,112,64] → bf16[32,112,112,64]"


def test_rematerialisation_switched_off_shows_what_is_kept(diffs):
    module = of_module(diffs("2026-10-09", "2026-10-10"), "llama-v5e")
    first = module["buffers"][0]
    assert first["what"] == "now kept for backward"
    assert first["change_bytes"] == 576 << 20
    assert first["shape"] == "f32[3,12,4,1024,1024]"
    assert first["op_name"] == "jit(train_step)/jvp()/while/body/closed_call/exp"
    assert (first["residuals"], first["layers"]) == (1, 3)


# --- it adds up ---------------------------------------------------------------------------


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair[1])
def test_the_buffers_add_up_to_the_change_of_the_peak(diffs, peaks, pair):
    checked = 0
    for module in diffs(*pair):
        workload = module["module"].split("/")[0]
        if module["a_run"] is None or module["b_run"] is None:
            assert module["buffers"] == []
            continue
        for space in {key[2] for key in peaks if key[0] in pair and key[1] == workload}:
            a, b = (peaks[night, workload, space]["peak_bytes"] for night in pair)
            changes = [
                row["change_bytes"] for row in module["buffers"] if row["memory_space"] == space
            ]
            assert sum(changes) == b - a
            assert 0 not in changes
            checked += 1
    assert checked >= 9


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair[1])
def test_the_figures_are_those_of_the_view(diffs, peaks, pair):
    for module in diffs(*pair):
        workload = module["module"].split("/")[0]
        for row in module["figures"]:
            assert row["change_bytes"] == row["b_bytes"] - row["a_bytes"] != 0
            found = [peaks[night, workload, row["memory_space"]] for night in pair]
            if row["figure"] in found[0]:
                assert [figures[row["figure"]] for figures in found] == [
                    row["a_bytes"],
                    row["b_bytes"],
                ]


def test_csv_has_every_buffer(diffs, history):
    out = diff(history, "2026-10-07", "2026-10-08", "--format", "csv")
    found = list(csv.DictReader(io.StringIO(out)))
    expected = [
        (module["module"], row)
        for module in diffs("2026-10-07", "2026-10-08")
        for row in module["buffers"]
    ]
    assert len(found) == len(expected) > 100
    for row, (module, want) in zip(found, expected, strict=True):
        assert (row["module"], row["value"]) == (module, want["value"])
        assert int(row["change_bytes"]) == want["change_bytes"]
        assert int(row["memory_space"]) == want["memory_space"]


def test_csv_of_no_change_has_its_heading(history):
    changed = diff(history, "2026-10-02", "2026-10-03", "--format", "csv")
    same = diff(history, "2026-10-01", "2026-10-02", "--format", "csv")
    assert same.splitlines() == changed.splitlines()[:1]


def test_another_memory_space(history):
    args = ("2026-10-03", "2026-10-04", "--workload", "decode-v5e")
    out = diff(history, *args, "--space", "1")
    assert "The peak changes by -28.02 MiB:" in out
    assert "The peak changes by -32.00 MiB:" in diff(history, *args)


# --- what did not change ------------------------------------------------------------------


def test_unchanged_modules_are_the_same(history, diffs):
    assert diff(history, "2026-10-01", "2026-10-02").splitlines() == [
        f"{workload}/{module}: the same" for workload, module in SERIES.items()
    ]
    for module in diffs("2026-10-01", "2026-10-02"):
        assert module["same"] is True
        assert module["causes"] == module["flags"] == module["figures"] == module["buffers"] == []


def test_many_modules_that_are_the_same_are_a_count(tmp_path, nights):
    for run, night in (("a", "2026-10-09"), ("b", "2026-10-10")):
        copy_night(nights / night / "llama-v5e", tmp_path / run / "llama")
        for number in range(6):
            copy_night(nights / night / "llama-cpu", tmp_path / run / f"eager{number}")
    db = ingest_nights(tmp_path / "many.duckdb", tmp_path, ["a", "b"])
    same, changed, *_ = diff(db, "a", "b").splitlines()
    assert same == "6 modules: the same"
    assert changed.startswith("llama/jit_train_step: no longer rematerialised")
    assert "eager3/jit_train_step: the same" in diff(db, "a", "b", "--wide")
    # Comments above moved the lines of all.
    for path in (tmp_path / "b").rglob("*after_optimizations.txt"):
        path.write_text(re.sub(r"\bline=(\d)", r"line=1\1", path.read_text()))
    db = ingest_nights(tmp_path / "moved.duckdb", tmp_path, ["a", "b"])
    same, changed, *_ = diff(db, "a", "b").splitlines()
    assert same == "6 modules: same but for names, lines or constants, or read from another source"
    with reading(db) as store:
        assert same in Warehouse(store).diff("a", "b")._repr_html_()
    assert changed.startswith("llama/jit_train_step: no longer rematerialised")


def test_a_run_is_the_same_as_itself(history):
    out = diff(history, "2026-10-05", "2026-10-05", "--workload", "llama-cpu")
    assert out == "llama-cpu/jit_train_step: the same\n"


@pytest.mark.parametrize(
    ("a", "b", "only"),
    [
        ("2026-10-06", "2026-10-07", "2026-10-06"),
        ("2026-10-07", "2026-10-08", "2026-10-08"),
    ],
)
def test_a_module_that_only_one_run_has(history, diffs, a, b, only):
    out = diff(history, a, b, "--workload", "llama-cpu")
    assert out.strip() == f"llama-cpu/jit_train_step: only in {only}"
    module = of_module(diffs(a, b), "llama-cpu")
    assert [module["a_run"], module["b_run"]].count(None) == 1
    assert module["same"] is False


def test_a_dump_that_failed_says_nothing_about_shapes(tmp_path, nights):
    broken = copy_night(nights / "2026-10-02", tmp_path / "2026-10-02")
    for file in (broken / "llama-cpu").glob("*after_optimizations*"):
        file.write_text("Segmentation fault\n")
    db = ingest_nights(tmp_path / "failed.duckdb", nights, ["2026-10-01"])
    fill(db, broken)
    out = diff(db, "2026-10-01", "2026-10-02", "--workload", "llama-cpu", "--format", "json")
    (module,) = json.loads(out)
    assert module["causes"] == ["this dump failed"]
    assert module["same"] is False


def test_what_a_damaged_dump_does_not_say_is_not_0(tmp_path, nights):
    damaged = copy_night(nights / "2026-10-02", tmp_path / "2026-10-02")
    for file in (damaged / "llama-v5e").glob("*live-range*"):
        file.unlink()
    for file in (damaged / "llama-v5e").glob("*after_optimizations.txt"):
        file.write_bytes(file.read_bytes()[:100_000])
    db = ingest_nights(tmp_path / "damaged.duckdb", nights, ["2026-10-01"])
    fill(db, damaged)
    out = diff(db, "2026-10-01", "2026-10-02", "--workload", "llama-v5e", "--format", "json")
    (module,) = json.loads(out)
    assert (module["figures"], module["buffers"]) == ([], [])
    assert module["cause"].startswith("this dump is partial")


# --- flags --------------------------------------------------------------------------------


def test_flags_that_differ_are_listed(tmp_path, db):
    for run, level in (("a", "0"), ("b", "4")):
        folder = copy_dump("gpu/decode-h100/module*", tmp_path / run / "decode")
        (options,) = folder.glob("*.debug_options")
        text = options.read_text().replace("autotune_level: 0", f"autotune_level: {level}")
        options.write_text(text + (f"xla_gpu_{run}: true\n" if run == "b" else ""))
        fill(db, tmp_path / run)
    out = diff(db, "a", "b")
    lines = out.strip().splitlines()
    assert lines[:2] == [
        "decode/jit_generate: 2 flags: xla_gpu_autotune_level 0 → 4, xla_gpu_b unset →",
        "  true",
    ]
    assert lines[2] == "- xla_gpu_autotune_level: 0 → 4"
    assert lines[3].startswith("- xla_gpu_b: ")
    assert lines[3].endswith(" → true")
    assert len(lines) == 4
    (module,) = json.loads(diff(db, "a", "b", "--format", "json"))
    assert module["same"] is False
    assert module["flags"] == [
        {"flag": "xla_gpu_autotune_level", "a_value": "0", "b_value": "4"},
        {"flag": "xla_gpu_b", "a_value": None, "b_value": "true"},
    ]
    assert module["buffers"] == []


# --- two modules --------------------------------------------------------------------------


def test_two_modules_by_name(history, diffs):
    a, b = (f"{night}/llama-v5e/jit_train_step" for night in ("2026-10-07", "2026-10-08"))
    (module,) = json.loads(diff(history, a, b, "--format", "json"))
    assert module == of_module(diffs("2026-10-07", "2026-10-08"), "llama-v5e")


def test_two_modules_of_one_run(filled):
    (module,) = json.loads(diff(filled, "llama-v5e/jit", "llama-v5e-jax0.7.0", "-f", "json"))
    assert (module["a_run"], module["b_run"]) == ("tpu", "tpu")
    assert module["causes"] == [
        "compiler 933746096 → 788670714 (282 flags)",
        "packing: -19.2 MiB above the same bound",
    ]
    # One program, compiled by two versions of XLA: it needs the same.
    assert sum(row["change_bytes"] for row in module["buffers"] if not row["memory_space"]) == 0
    changed = [row["figure"] for row in module["figures"] if not row["memory_space"]]
    assert changed == ["fragmentation_bytes", "packing_bytes", "temp_bytes", "total_bytes"]


def test_modules_of_different_devices(filled):
    (module,) = json.loads(diff(filled, "decode8-v5e", "decode-h100", "-f", "json"))
    changes: dict[int, int] = {}
    for row in module["buffers"]:
        space = row["memory_space"]
        changes[space] = changes.get(space, 0) + row["change_bytes"]
    found = rows(
        filled,
        "SELECT memory_space, SUM(CASE workload WHEN 'decode-h100' THEN peak_bytes "
        "ELSE -peak_bytes END) FROM peaks WHERE workload IN ('decode-h100', 'decode8-v5e') "
        "GROUP BY memory_space",
    )
    assert changes == dict(found)


# --- markdown and wrong usage ---------------------------------------------------------------


def test_markdown_has_a_heading_a_module(history):
    out = diff(history, "2026-10-07", "2026-10-08", "--format", "markdown")
    headings = [line for line in out.splitlines() if line.startswith("#")]
    assert headings == [
        "## decode-v5e/jit_generate: the same",
        "## llama-cpu/jit_train_step: only in 2026-10-08",
        "## llama-v5e/jit_train_step: donation lost: 132 MiB of m, v, p",
        "## resnet-h100/jit_train: x: bf16[24,224,224,3] → bf16[32,224,224,3] and 1 more",
    ]
    assert "| peak | 569.65 MiB | 674.96 MiB | +105.31 MiB | +18.5 |" in out.splitlines()


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["2026-10-07", "llama-v5e"], "llama-v5e is not: give two runs or two modules"),
        (["llama-v5e", "2026-10-07"], "llama-v5e is not: give two runs or two modules"),
        (["llama-v5e", "no-such"], "no module fits 'no-such'"),
        (["llama-v5e", "jit_train_step"], "several modules fit 'jit_train_step'"),
        (["llama-v5e", "llama-cpu", "--workload", "llama-v5e"], "--workload needs two runs"),
        (["2026-10-07"], "Missing argument"),
        (
            ["2026-10-07", "2026-10-08", "--workload", "llama"],
            "these runs have no workload 'llama': decode-v5e, llama-cpu, llama-v5e, resnet-h100",
        ),
    ],
)
def test_wrong_usage(history, args, message):
    done = run_memhouse("diff", *args, "--db", history)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in " ".join(done.stderr.replace("│", " ").split())


def test_a_run_that_is_not_there_is_named(history):
    done = run_memhouse("diff", "2026-10-07", "2026-10-77", "--db", history)
    assert done.returncode == 2
    assert "2026-10-77" in done.stderr
