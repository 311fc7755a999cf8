"""Devices as users name them: what libtpu calls them, their memory, and how much of it is left."""

import re
from pathlib import Path

import pytest

from memhouse import UsageError
from memhouse import open as open_warehouse
from memhouse.ingest.readers.compiler_settings import read_tpu_target
from memhouse.ingest.readers.lines import split_lines
from memhouse.queries.arguments import parse_device_memory

from ..support.command import run_memhouse
from ..support.dumps import DATA, copy_dump
from ..support.warehouse import fill, rows

TARGETS = DATA / "devices/targets"
DOCS = Path(__file__).parents[2] / "docs/devices.md"
MIB, GIB = 2**20, 2**30


def target(name):
    return read_tpu_target(split_lines((TARGETS / f"{name}.target_arguments.txt").read_bytes()))


# What libtpu 0.0.52 and, for `-old`, 0.0.11.1 wrote for each topology.
KINDS = {
    "TPU v2": ("v2", "v2-old"),
    "TPU v3": ("v3", "v3-old"),
    "TPU v4": ("v4", "v4-old"),
    "TPU v4 core": ("v4-core",),
    "TPU v5e": ("v5e",),
    "TPU v5p": ("v5p", "v5p-old"),
    "TPU v5p core": ("v5p-core",),
    "TPU v6e": ("v6e", "v6e-old"),
    "TPU7x": ("7x",),
}
# The sum of the allocations of the largest program that libtpu 0.0.52 compiled.
LARGEST = {
    "v2": 8033081344,
    "v3": 16623015936,
    "v4-core": 16371876864,
    "v4": 33012253696,
    "v5e": 16908222976,
    "v5p": 102784463872,
    "v5p-core": 51257967616,
    "v6e": 33544905728,
    "7x": 101723304960,
}


def test_every_release_names_the_same_chip():
    found = {kind: {target(name)["device_kind"] for name in KINDS[kind]} for kind in KINDS}
    assert found == {kind: {kind} for kind in KINDS}


def test_headroom_is_negative_where_xla_runs_out_of_memory():
    """XLA refuses a program of 4 KiB more, so the headroom is 1 to 3 MiB off at most."""
    headroom = {name: target(name)["device_memory_bytes"] - LARGEST[name] for name in LARGEST}
    assert [name for name, left in headroom.items() if not MIB < left < 3 * MIB] == []


def test_the_docs_have_the_same_facts():
    found = {
        row[0]: int(row[1].replace(",", ""))
        for row in re.findall(
            r"^\| (TPU ?\w+(?: core)?) \|.*\| ([\d,]+) \|$", DOCS.read_text(), re.M
        )
    }
    known = [target(file.name.partition(".")[0]) for file in TARGETS.iterdir()]
    assert found == {d["device_kind"]: d["device_memory_bytes"] for d in known}


# --- headroom -------------------------------------------------------------------------------


def test_headroom_is_what_the_reserved_memory_leaves(filled):
    found = rows(
        filled,
        "SELECT workload, memory_space, oom, headroom_bytes, "
        "device_memory_bytes - reserved_bytes "
        "FROM peaks_by_space AS peaks INNER JOIN dumps USING (dump_id, workload, oom) "
        "WHERE peaks.run_id = 'tpu' ORDER BY ALL",
    )
    assert len(found) > 6
    for _, memory_space, oom, headroom, expected in found:
        assert headroom == (expected if memory_space == 0 else None)
        if memory_space == 0:
            assert (headroom < 0) == oom


# --- --device-memory ------------------------------------------------------------------------


def memory(db):
    return [size for (size,) in rows(db, "SELECT DISTINCT device_memory_bytes FROM dumps")]


def test_a_user_knows_better(tmp_path, db):
    folder = copy_dump("cpu/jax-0.9.0/*", tmp_path / "night")
    assert run_memhouse("ingest", folder, "--db", db).returncode == 0
    assert memory(db) == [None]
    done = run_memhouse("ingest", folder, "--db", db, "--device-memory", "16GiB")
    assert (done.returncode, memory(db)) == (0, [16 * GIB])
    # Ingesting the same path again changes nothing.
    done = run_memhouse("ingest", folder, "--db", db)
    assert "2 unchanged" in done.stderr
    assert memory(db) == [16 * GIB]
    # The library takes bytes too.
    with open_warehouse(db) as warehouse:
        warehouse.ingest(folder, device_memory=12345)
    assert memory(db) == [12345]


def test_a_user_may_give_back_what_the_table_says(tmp_path, db):
    folder = copy_dump("tpu/flash-v5e/module*", tmp_path / "night")
    fill(db, folder, device_memory_bytes=8 * GIB)
    assert memory(db) == [8 * GIB]
    fill(db, folder, run_id="again")
    assert sorted(memory(db)) == [8 * GIB, 16909336576]


def test_sizes_of_memory():
    sizes = {"16GiB": 16 * GIB, "95 G": 95 * GIB, "15.75G": 63 * GIB // 4, "100 B": 100}
    assert {text: parse_device_memory(text, "x") for text in sizes} == sizes
    for text in ("16GB", "16", "", "-1GiB", "0B", "0", "9999999P", "x", 0, -5):
        with pytest.raises(UsageError):
            parse_device_memory(text, "x")


def test_one_file_describes_the_device_of_a_whole_folder(tmp_path, db):
    """XLA may number it as another module; two that differ say nothing of a third program."""
    for night, devices in (("one", ["module_0000.f"]), ("two", ["module_0000.f", "module_0001.g"])):
        folder = copy_dump("tpu/flash-v5e/*", tmp_path / night)
        copy_dump("cpu/jax-0.10.2/module_0018*", folder)
        (own,) = folder.glob("*.target_arguments.txt")
        for number, device in enumerate(devices):
            text = own.read_text() + "\n" * number
            (folder / f"{device}.cl_933746096.target_arguments.txt").write_text(text)
        own.unlink()
        fill(db, folder)
    query = "SELECT run_id, platform, device_kind FROM dumps ORDER BY ALL"
    assert rows(db, query) == [
        ("one", "cpu", None), ("one", "tpu", "TPU v5e"), ("two", "cpu", None), ("two", "tpu", None),
    ]  # fmt: skip
    assert rows(db, "SELECT COUNT(*) FROM peaks WHERE headroom_bytes > 0") == [(1,)]
