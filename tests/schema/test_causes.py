"""Which cause is told of which change: on real nights, and on real dumps that were changed."""

import re

import pytest

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
DECODE = "gpu/decode-h100/module*"


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


def cause_of(db):
    """The cause of run b against run a, which have one dump each."""
    with reading(db) as store:
        found = store.pairs("a", "b").to_pylist()
        pairs = [(row["a_dump_id"], row["b_dump_id"]) for row in found]
        assert None not in pairs[0]
        return store.causes(pairs).to_pylist()[0]


@pytest.fixture
def twice(tmp_path, db):
    """Ingest a dump as run a, and what `change` makes of it as run b; what is told."""

    def ingest(change, pattern=DECODE, **options):
        for run in ("a", "b"):
            folder = copy_dump(pattern, tmp_path / run / "decode")
            if run == "b":
                change(folder)
            fill(db, tmp_path / run, **{key: value[run] for key, value in options.items()})
        return cause_of(db)

    return ingest


def edit(suffix, old, new):
    """A change: in the file of this suffix."""

    def change(folder):
        (file,) = folder.glob(f"*{suffix}")
        text = file.read_text()
        assert old in text
        file.write_text(text.replace(old, new))

    return change


def test_an_unchanged_dump_has_no_cause(twice):
    found = twice(lambda folder: None)
    assert (found["cause"], found["phrases"]) == (None, [])


def test_one_flag_is_told_with_its_values(twice):
    found = twice(edit("debug_options", "autotune_level: 0", "autotune_level: 4"))
    assert found["cause"] == "flag xla_gpu_autotune_level 0 → 4"


def test_flags_that_name_a_place_are_no_cause(twice):
    found = twice(edit("debug_options", "xla_gpu_autotune_level: 0", "xla_gpu_x_path: 'b'"))
    assert found["cause"] == "flag xla_gpu_autotune_level 0 → unset"


def test_many_flags_are_counted(twice):
    def change(folder):
        (file,) = folder.glob("*debug_options")
        text = file.read_text() + "".join(f"xla_gpu_{name}: true\n" for name in "abc")
        file.write_text(text)

    assert twice(change)["cause"] == ("3 flags: xla_gpu_a unset → true, xla_gpu_b unset → true, …")


def test_a_version_is_told_by_labels_where_files_do_not(twice):
    """The flags' defaults change with the version, so flags are counted only."""
    found = twice(
        edit("debug_options", "autotune_level: 0", "autotune_level: 4"),
        labels={
            "a": {"jax": "0.9.0", "jaxlib": "0.9.0"},
            "b": {"jax": "0.10.2", "jaxlib": "0.10.2"},
        },
    )
    assert found["cause"] == "jax 0.9.0 → 0.10.2 (1 flag)"


def test_a_renamed_function_of_the_same_program_is_told_by_its_name(twice):
    def change(folder):
        for file in folder.iterdir():
            text = file.read_text().replace("jit_generate", "jit_decode")
            file.unlink()
            (folder / file.name.replace("jit_generate", "jit_decode")).write_text(text)

    assert twice(change)["cause"] == "renamed from jit_generate"


def test_source_lines_that_moved_are_no_cause(twice):
    def change(folder):
        (file,) = folder.glob("*gpu_after_optimizations.txt")
        text = file.read_text()
        moved = re.sub(r"(?<= line=)\d+", lambda line: str(int(line[0]) + 7), text)
        assert moved != text
        file.write_text(moved)

    found = twice(change)
    assert found["cause"] is None


def test_a_dump_that_failed_is_told_and_nothing_else(twice):
    def change(folder):
        for file in folder.glob("*after_optimizations*"):
            file.write_text("Segmentation fault\n")

    assert twice(change)["phrases"] == ["this dump failed"]


def test_a_part_that_is_missing_is_no_fact_of_the_program(twice):
    """Without the buffer assignment nothing is known to be donated or saved."""

    def change(folder):
        for file in folder.glob("*buffer-assignment.txt"):
            file.write_text("Segmentation fault\n")

    found = twice(change)
    assert found["phrases"][0] == "this dump is partial"
    assert not any("donat" in phrase for phrase in found["phrases"])


def test_out_of_memory_is_told_first(tmp_path, db):
    copy_dump("tpu/llama-v5e/module*", tmp_path / "a/llama")
    oom = copy_dump("tpu/llama7b-oom-v5e/*", tmp_path / "b/llama")
    assert list(oom.glob("*oom*"))
    fill(db, tmp_path / "a", tmp_path / "b")
    assert cause_of(db)["phrases"][0] == "XLA runs out of memory now"


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
