"""Which cause is told of which change: on real nights, and on real dumps that were changed."""

import re

from ..support.dumps import copy_dump
from ..support.history import ingest_nights
from ..support.warehouse import fill, reading, rows

# What was changed in the ten nights, and what is told of it.
NIGHTLY = {
    ("decode-v5e", "2026-10-04"): "cache: bf16 → s8 in 4 arguments -32 MiB",
    ("decode-v5e", "2026-10-07"): "cache[0][0]: s8[8,2048,4,128] → s8[8,4096,4,128] and 3 more "
    "+32 MiB",
    ("llama-cpu", "2026-10-05"): "no longer rematerialised (jax.checkpoint, -20 % work) +79.8 MiB",
    ("llama-cpu", "2026-10-08"): "rematerialised now (jax.checkpoint, +25 % work) -79.8 MiB",
    # What is kept, and one line more of what is computed at the peak.
    ("llama-v5e", "2026-10-03"): "checkpoint policy: dot_general no longer recomputed (-13 % work) "
    "+143 MiB; 5 more +51.9 MiB",
    ("llama-v5e", "2026-10-05"): "checkpoint policy: dot_general recomputed now (+15 % work) "
    "-143 MiB (zoo.py:40); 5 more -51.9 MiB",
    # The peak is at another instruction, of which a mask of 96 MiB is live.
    ("llama-v5e", "2026-10-06"): "x, y: 4 → 6 in 2 arguments +105 MiB (zoo.py:41); "
    "select_n +96 MiB (zoo.py:39); 2 more +11.2 MiB",
    ("llama-v5e", "2026-10-07"): "2 → 3 layers in 27 arguments +50.2 MiB",
    ("llama-v5e", "2026-10-08"): "donation lost: m, v, p +132 MiB (zoo.py:31); "
    "dot_general -12.4 MiB (zoo.py:41); 5 more -14.2 MiB",
    ("llama-v5e", "2026-10-09"): "donated now: m, v, p -132 MiB (zoo.py:31); "
    "dot_general +12.4 MiB (zoo.py:41); 5 more +14.2 MiB",
    ("llama-v5e", "2026-10-10"): "no longer rematerialised (jax.checkpoint, -19 % work) "
    "+1.84 GiB (zoo.py:40)",
    ("resnet-h100", "2026-10-05"): "x: bf16[16,224,224,3] → bf16[24,224,224,3] and 1 more "
    "+104 MiB (zoo.py:80); 2 more -2.89 MiB",
    ("resnet-h100", "2026-10-08"): "x: bf16[24,224,224,3] → bf16[32,224,224,3] and 1 more "
    "+104 MiB (zoo.py:80)",
    ("resnet-h100", "2026-10-10"): "x, y: 32 → 16 in 2 arguments -158 MiB (zoo.py:80); "
    "max -40.3 MiB (zoo.py:82); 2 more -6.32 MiB",
}


def test_the_causes_of_the_nights_are_what_was_changed(history):
    found = rows(
        history,
        "SELECT workload, run_id, cause FROM history WHERE cause IS NOT NULL",
    )
    assert {(workload, run): cause for workload, run, cause in found} == NIGHTLY


def test_the_stored_ledger_adds_up_to_the_change_of_the_peak(history):
    found = rows(
        history,
        """SELECT dump_id, trends.change, SUM(causes.change_bytes)
        FROM trends_by_space AS trends
        LEFT JOIN causes USING (dump_id)
        WHERE metric = 'peak_bytes' AND memory_space = 0 AND content_changed GROUP BY ALL""",
    )
    assert len(found) == len(NIGHTLY)
    assert [row for row in found if row[1] != row[2]] == []


def test_between_any_two_dumps_the_ledger_adds_up(history, filled):
    """Also of programs that have nothing in common; a side without figures has no bytes."""
    query = """SELECT ANY_VALUE(dump_id), origin = 'estimated', peak_bytes FROM dumps
        LEFT JOIN modules USING (module_id)
        LEFT JOIN module_memory
            ON module_memory.module_id = dumps.module_id AND memory_space = 0
        GROUP BY dumps.module_id, origin, peak_bytes"""
    for db in (history, filled):
        peaks = {dump: known for dump, *known in rows(db, query)}
        with reading(db) as store:
            found = store.causes([(a, b) for a in peaks for b in peaks]).to_pylist()
        assert len(found) > 100
        for row in found:
            (a_kind, a), (b_kind, b) = peaks[row["a_dump_id"]], peaks[row["b_dump_id"]]
            told = sum(term["change_bytes"] or 0 for term in row["terms"])
            is_comparable = None not in (a, b) and a_kind == b_kind
            assert told == (b - a if is_comparable else 0)
            assert len(row["cause"] or "") < 100


def test_a_change_back_is_told_as_the_opposite(history):
    with reading(history) as store:
        (pair,) = store.rows(
            "SELECT compared_dump_id, dump_id FROM history WHERE cause LIKE 'donation lost%'"
        ).to_pylist()
        there, back = store.causes(
            [tuple(pair.values()), tuple(reversed(pair.values()))]
        ).to_pylist()
    assert there["cause"].startswith("donation lost: m, v, p +132 MiB")
    assert back["cause"].startswith("donated now: m, v, p -132 MiB")
    assert sorted(-term["change_bytes"] for term in there["terms"]) == sorted(
        term["change_bytes"] for term in back["terms"]
    )


def cause_of(store, a, b):
    """The cause of run b against run a, which have one dump each."""
    found = store.pairs(a, b).to_pylist()
    pairs = [(row["a_dump_id"], row["b_dump_id"]) for row in found]
    assert None not in pairs[0]
    return store.causes(pairs).to_pylist()[0]


def edited(suffix, change):
    """A change: of the text of the file with this suffix."""

    def edit(folder):
        (file,) = folder.glob(f"*{suffix}")
        text = file.read_text()
        assert change(text) != text
        file.write_text(change(text))

    return edit


def replaced(suffix, old, new):
    return edited(suffix, lambda text: text.replace(old, new))


def renamed(folder):
    for file in folder.iterdir():
        text = file.read_text().replace("jit_generate", "jit_decode")
        file.unlink()
        (folder / file.name.replace("jit_generate", "jit_decode")).write_text(text)


def crashed(what):
    def change(folder):
        for file in folder.glob(f"*{what}*"):
            file.write_text("Segmentation fault\n")

    return change


FLAGS = "".join(f"xla_gpu_{name}: true\n" for name in "abc")
MORE = replaced("debug_options", "autotune_level: 0", "autotune_level: 4")
# What is changed of a dump, and what is told of it.
CHANGES = {
    "nothing": (lambda folder: None, None),
    "a flag": (MORE, "flag xla_gpu_autotune_level 0 → 4"),
    # A flag that names a place is no cause.
    "a place": (
        replaced("debug_options", "xla_gpu_autotune_level: 0", "xla_gpu_x_path: 'b'"),
        "flag xla_gpu_autotune_level 0 → unset",
    ),
    "many flags": (
        edited("debug_options", lambda text: text + FLAGS),
        "3 flags: xla_gpu_a unset → true, xla_gpu_b unset → true, …",
    ),
    # It is told by labels where files do not; its flags' defaults change, so they are counted only.
    "a version": (MORE, "jax 0.9.0 → 0.10.2 (1 flag)"),
    "a name": (renamed, "renamed from jit_generate"),
    "source lines": (
        edited(
            "gpu_after_optimizations.txt",
            lambda text: re.sub(r"(?<= line=)\d+", lambda line: str(int(line[0]) + 7), text),
        ),
        None,
    ),
    "it failed": (crashed("after_optimizations"), "this dump failed"),
    # Without the buffer assignment nothing is known to be donated or saved.
    "a part": (crashed("-buffer-assignment.txt"), "this dump is partial"),
}


def test_each_change_of_a_dump_has_its_cause(tmp_path, db):
    copy_dump("gpu/decode-h100/module*", tmp_path / "a/decode")
    copy_dump("gpu/decode-h100/module*", tmp_path / "old/decode")
    fill(db, tmp_path / "a")
    fill(db, tmp_path / "old", labels=dict.fromkeys(("jax", "jaxlib"), "0.9.0"))
    for run, (change, _) in CHANGES.items():
        change(copy_dump("gpu/decode-h100/module*", tmp_path / run / "decode"))
        versions = dict.fromkeys(("jax", "jaxlib"), "0.10.2") if run == "a version" else {}
        fill(db, tmp_path / run, labels=versions)
    with reading(db) as store:
        found = {run: cause_of(store, "old" if run == "a version" else "a", run) for run in CHANGES}
    told = {run: row["cause"] for run, row in found.items()}
    # Besides, as far as it is known.
    assert told.pop("a part").startswith("this dump is partial")
    assert told == {run: cause for run, (_, cause) in CHANGES.items() if run != "a part"}
    assert [len(found[run]["terms"]) for run in ("nothing", "it failed")] == [0, 1]
    assert not any("donat" in term["term"] for term in found["a part"]["terms"])


def test_out_of_memory_is_told_first(tmp_path, db):
    copy_dump("tpu/llama-v5e/module*", tmp_path / "a/llama")
    oom = copy_dump("tpu/llama7b-oom-v5e/*", tmp_path / "b/llama")
    assert list(oom.glob("*oom*"))
    fill(db, tmp_path / "a", tmp_path / "b")
    with reading(db) as store:
        assert cause_of(store, "a", "b")["terms"][0]["term"] == "XLA runs out of memory now"


def test_a_late_night_changes_the_causes_beside_it(tmp_path, nights):
    """The night in between takes over a part of the change."""
    db = ingest_nights(tmp_path / "late.duckdb", nights, ["2026-10-07", "2026-10-09"])
    query = "SELECT run_id, cause FROM history WHERE workload = "
    assert dict(rows(db, f"{query} 'llama-v5e'"))["2026-10-09"] is None
    fill(db, nights / "2026-10-08")
    assert dict(rows(db, f"{query} 'llama-v5e'")) == {
        "2026-10-07": None,
        "2026-10-08": NIGHTLY["llama-v5e", "2026-10-08"],
        "2026-10-09": NIGHTLY["llama-v5e", "2026-10-09"],
    }
