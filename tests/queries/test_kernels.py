"""`kernels`: what kernels take for themselves, beside how much they may."""

import pytest

import memhouse
from memhouse import UsageError

from ..support.command import run_memhouse
from ..support.dumps import DATA, copy_dump
from ..support.warehouse import fill, rows

MIB = 2**20
# `pallas_call(…, vmem_limit_bytes=60 MiB)` on a TPU v5e, by libtpu 0.0.52.
OWN_LIMIT = DATA / "devices/own-limit"


def kernels(db, *arguments, **options):
    with memhouse.open(db, read_only=True) as warehouse:
        return warehouse.kernels(*arguments, **options).table.to_pylist()


def test_a_kernel_may_take_the_chips_default_unless_it_has_a_limit_of_its_own(filled, db):
    found = kernels(filled, "flash-v5e")
    assert len(found) == 3
    for row in found:
        assert (row["space"], row["is_lower_bound"]) == ("vmem", True)
        assert row["scoped_bytes"] == row["block_bytes"] + row["scratch_bytes"] > 0
        assert row["headroom_bytes"] == 16 * MIB - row["scoped_bytes"]
        assert (row["limit_bytes"], "TPU v5e" in row["limit_from"]) == (16 * MIB, True)
        assert row["source"] == "zoo.py:101"
    fill(db, OWN_LIMIT)
    (row,) = kernels(db)
    assert (row["kernel"], row["count"], row["scoped_bytes"]) == ("kern4608", 1, 36 * MIB)
    assert (row["limit_bytes"], row["limit_from"]) == (60 * MIB, "vmem_limit_bytes")


def test_collectives_are_one_row_and_reserve_hbm(filled):
    (row,) = kernels(filled, "resnet-v5e")
    assert (row["kernel"], row["count"], row["space"]) == ("all-reduce", 29, "hbm")
    assert (row["scoped_bytes"], row["is_lower_bound"]) == (64 * MIB, False)
    assert (row["limit_bytes"], row["limit_from"], row["share"]) == (None, None, None)


def test_without_a_module_the_latest_of_each_series(history):
    found = kernels(history)
    assert {row["run"] for row in found} == {"2026-10-10"}
    counts = {(row["workload"], row["kernel"]): row["count"] for row in found}
    ((expected,),) = rows(
        history,
        "SELECT COUNT(*) FROM kernels WHERE run_id = '2026-10-10' AND workload = 'decode-v5e'",
    )
    assert counts["decode-v5e", "all-reduce"] == expected
    assert {row["run"] for row in kernels(history, run="2026-10-01")} == {"2026-10-01"}


def test_a_limit_is_not_invented(tmp_path, db):
    """Neither flags nor a known device: what a kernel reserves is all that is known."""
    folder = copy_dump("tpu/resnet-v5e/*after_optimizations*", tmp_path / "night")
    copy_dump("tpu/flash-v5e/*after_optimizations*", tmp_path / "night/flash")
    fill(db, folder)
    found = {(row["kernel"], row["space"]): row for row in kernels(db)}
    assert found["all-reduce", "hbm"]["scoped_bytes"] == 64 * MIB
    assert {(row["limit_bytes"], row["limit_from"]) for row in found.values()} == {(None, None)}


def test_the_trend_of_the_largest(tmp_path, db):
    """What the compiler says is not compared with a bound."""
    used = '"used_scoped_memory_configs":['
    for day, size in (("2026-01-01", 0), ("2026-01-02", 40), ("2026-01-03", 50)):
        folder = tmp_path / day
        folder.mkdir()
        said = f'{used}{{"memory_space":"1","offset":"0","size":"{size * MIB}"}}'
        for file in OWN_LIMIT.iterdir():
            text = file.read_text()
            (folder / file.name).write_text(text.replace(used, said) if size else text)
        fill(db, folder)
    found = rows(
        db,
        "SELECT memory_space, scoped_bytes, is_bound, headroom_bytes, previous_bytes, change_bytes "
        "FROM kernel_trends ORDER BY run_id",
    )
    assert found == [
        (1, 36 * MIB, True, 24 * MIB, None, None),
        (1, 40 * MIB, False, 20 * MIB, None, None),
        (1, 50 * MIB, False, 10 * MIB, 40 * MIB, 10 * MIB),
    ]


def test_what_is_not_there_is_wrong_usage_and_no_kernel_is_none(filled):
    for arguments, argument in ((("nothing",), "module"), ((), "run")):
        with pytest.raises(UsageError, match="'nothing'") as error:
            kernels(filled, *arguments, **({} if arguments else {"run": "nothing"}))
        assert error.value.argument == argument
    assert kernels(filled, run="cpu") == []
    done = run_memhouse("kernels", "--run", "cpu", "--db", filled)
    assert (done.returncode, bool(done.stdout + done.stderr)) == (0, True)


_STEPS = """001: kCustomKernel [source | sink] f grid: [8, 1, 1] threads: [128, 1, 1]  \
shared_memory: {} bytes
"""
_OF_STEPS = """thunk_metadata {
  thunk_info {
    profile_annotation: "loop_gather_fusion"
    thunk_id: 1
  }
  thunk_kind: "kCustomKernel"
}
"""


def test_the_shared_memory_of_a_gpus_kernels(tmp_path, db):
    """It is in the runtime's list of steps, and what that says is part of the program."""
    folder = copy_dump("gpu/decode-h100/*", tmp_path / "night")
    fill(db, folder, run_id="without")
    assert kernels(db, run="without") == []
    (name,) = (each.name.partition(".sm_")[0] for each in folder.glob("*.sm_*optimizations.txt*"))
    (folder / f"{name}.thunk_sequence.txt").write_text(_STEPS.format(192 * 2**10))
    (folder / f"{name}.thunk_metadata.txt").write_text(_OF_STEPS)
    (result,) = fill(db, folder, run_id="with")
    assert result.new_modules == 1
    (row,) = kernels(db, run="with")
    assert (row["first_instruction"], row["space"]) == ("loop_gather_fusion", "shared")
    assert (row["scoped_bytes"], row["headroom_bytes"]) == (192 * 2**10, 35 * 2**10)
    (folder / f"{name}.thunk_sequence.txt").write_bytes(b"\xff")
    fill(db, folder, run_id="damaged")
    told = rows(db, "SELECT message FROM dump_files WHERE message LIKE 'the shared memory%'")
    assert told == [
        ("the shared memory of kernels is not known: the runtime's list of steps is not UTF-8",)
    ]
