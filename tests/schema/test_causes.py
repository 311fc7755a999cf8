"""Which cause is told of which change: on real nights, and on real dumps that were changed."""

import re

from ..support.dumps import copy_dump
from ..support.history import ingest_nights
from ..support.warehouse import fill, reading, rows

# What was changed in the ten nights, and what is told of it.
NIGHTLY = {
    ("decode-v5e", "2026-10-04"): "cache: bf16 → s8 in 4 arguments",
    ("decode-v5e", "2026-10-07"): "cache[0][0]: s8[8,2048,4,128] → s8[8,4096,4,128] and 3 more",
    ("llama-cpu", "2026-10-05"): "no longer rematerialised (jax.checkpoint); "
    "89.1 MiB more saved for backward (zoo.py:40)",
    ("llama-cpu", "2026-10-08"): "rematerialised now (jax.checkpoint); "
    "89.1 MiB less saved for backward (zoo.py:40)",
    # 88 of the 152 MiB are two products of the feed-forward network, on line 41.
    ("llama-v5e", "2026-10-03"): "checkpoint policy: dot_general no longer recomputed; "
    "152 MiB more saved for backward (zoo.py:41)",
    ("llama-v5e", "2026-10-05"): "checkpoint policy: dot_general recomputed now; "
    "152 MiB less saved for backward (zoo.py:41)",
    ("llama-v5e", "2026-10-06"): "x, y: s32[4,1024] → s32[6,1024]",
    ("llama-v5e", "2026-10-07"): "m['layers']['down']: f32[2,1408,512] → f32[3,1408,512] "
    "and 26 more",
    ("llama-v5e", "2026-10-08"): "donation lost: 132 MiB of m, v, p",
    ("llama-v5e", "2026-10-09"): "donated now: 132 MiB of m, v, p",
    ("llama-v5e", "2026-10-10"): "no longer rematerialised (jax.checkpoint); "
    "1.95 GiB more saved for backward (zoo.py:40)",
    ("resnet-h100", "2026-10-05"): "x: bf16[16,224,224,3] → bf16[24,224,224,3] and 1 more",
    ("resnet-h100", "2026-10-08"): "x: bf16[24,224,224,3] → bf16[32,224,224,3] and 1 more",
    ("resnet-h100", "2026-10-10"): "x: bf16[32,224,224,3] → bf16[16,224,224,3] and 1 more",
}


def test_the_causes_of_the_nights_are_what_was_changed(history):
    found = rows(
        history,
        "SELECT workload, run_id, cause FROM history INNER JOIN dumps USING (dump_id) "
        "WHERE cause IS NOT NULL",
    )
    assert {(workload, run): cause for workload, run, cause in found} == NIGHTLY


def test_a_line_has_fewer_than_100_characters(history):
    """Also of dumps that have nothing in common."""
    with reading(history) as store:
        ids = [row["dump_id"] for row in store.rows("SELECT dump_id FROM dumps").to_pylist()]
        found = store.causes([(a, b) for a in ids for b in ids]).to_pylist()
    assert len(found) == len(ids) ** 2
    assert max(len(row["cause"] or "") for row in found) < 100


def test_a_change_back_is_told_as_the_opposite(history):
    with reading(history) as store:
        (pair,) = store.rows(
            "SELECT compared_dump_id, dump_id FROM history WHERE cause LIKE 'donation lost%'"
        ).to_pylist()
        back = store.causes([(pair["dump_id"], pair["compared_dump_id"])])
    assert back["phrases"].to_pylist() == [["donated now: 132 MiB of m, v, p"]]


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
    assert [len(found[run]["phrases"]) for run in ("nothing", "it failed")] == [0, 1]
    assert not any("donat" in phrase for phrase in found["a part"]["phrases"])


def test_out_of_memory_is_told_first(tmp_path, db):
    copy_dump("tpu/llama-v5e/module*", tmp_path / "a/llama")
    oom = copy_dump("tpu/llama7b-oom-v5e/*", tmp_path / "b/llama")
    assert list(oom.glob("*oom*"))
    fill(db, tmp_path / "a", tmp_path / "b")
    with reading(db) as store:
        assert cause_of(store, "a", "b")["phrases"][0] == "XLA runs out of memory now"


def test_a_late_night_changes_the_causes_beside_it(tmp_path, nights):
    """The night in between takes over a part of the change."""
    db = ingest_nights(tmp_path / "late.duckdb", nights, ["2026-10-07", "2026-10-09"])
    query = "SELECT run_id, cause FROM history INNER JOIN dumps USING (dump_id) WHERE workload = "
    assert dict(rows(db, f"{query} 'llama-v5e'"))["2026-10-09"] is None
    fill(db, nights / "2026-10-08")
    assert dict(rows(db, f"{query} 'llama-v5e'")) == {
        "2026-10-07": None,
        "2026-10-08": "donation lost: 132 MiB of m, v, p",
        "2026-10-09": "donated now: 132 MiB of m, v, p",
    }
