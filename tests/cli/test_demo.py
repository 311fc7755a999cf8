"""`memhouse demo`: five commands on dumps that the package holds."""

import shlex
import tarfile

import pytest
import zstandard

from memhouse.cli.demo.walk import _ARCHIVE, STEPS

from ..support.command import run_memhouse
from ..support.dumps import DATA
from ..support.warehouse import rows

ROOT = DATA.parents[1]
PACKED = ROOT / "cli/demo" / _ARCHIVE


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """A folder in which the demo ran, and what it said."""
    folder = tmp_path_factory.mktemp("demo")
    return folder, run_memhouse("demo", cwd=folder, env={"MEMHOUSE_DB": "mine.duckdb"})


def files_of(archive):
    """The files of a packed archive, by the path within the nights."""
    with archive.open("rb") as packed:
        reader = zstandard.ZstdDecompressor(max_window_size=2**27).stream_reader(packed)
        with tarfile.open(fileobj=reader, mode="r|") as tar:
            return {
                member.name.removeprefix("nightly/"): tar.extractfile(member).read()
                for member in tar
                if member.isfile()
            }


def test_the_samples_are_real_dumps_and_small():
    ours, all_nights = files_of(PACKED), files_of(DATA / "nightly.tar.zst")
    assert ours
    assert ours.items() <= all_nights.items()
    assert PACKED.stat().st_size < 300_000


def test_five_commands_run_and_say_what_the_text_beside_them_says(demo):
    _, done = demo
    assert (done.returncode, done.stderr) == (0, "")
    steps = done.stdout.split("\n[")[1:]
    assert len(steps) == len(STEPS) == 5
    peaks, owners, trends, diff, advice = steps
    assert "vmem" in peaks
    assert "headroom" in peaks
    assert "(arguments)" in owners
    assert "cache[0][0]: s8[8,2048,4,128] → s8[8,4096,4,128]" in trends
    assert "x, y: 4 → 6 in 2 arguments" in trends
    assert "2 → 3 layers" in trends
    assert "donation lost" in trends
    assert "alias          131.90 MiB         0 B" in diff
    assert "1. -105.31 MiB" in advice
    assert "grew by 105.31 MiB" in trends


def test_each_command_prints_what_it_prints_when_typed(demo):
    folder, done = demo
    for typed, *_ in STEPS:
        command = f"memhouse {typed} --db memhouse-demo.duckdb"
        real = run_memhouse(*shlex.split(command)[1:], cwd=folder)
        assert f"$ {command}\n{real.stderr}{real.stdout}" in done.stdout


def test_what_comes_next_can_be_typed(demo):
    folder, done = demo
    of_demo = [line for line in done.stdout.splitlines() if line.startswith("  memhouse ")][:2]
    for line in of_demo:
        typed, _, _ = line.strip().removeprefix("memhouse ").partition("  #")
        answer = run_memhouse(*typed.split(), cwd=folder)
        # `check` fails: the training step grew.
        assert answer.returncode == int("check" in typed), answer.stderr
        assert "donation lost" in answer.stdout


def test_a_second_demo_says_the_same_and_no_other_warehouse_is_touched(demo):
    folder, first = demo
    again = run_memhouse("demo", ".", cwd=folder)
    assert (again.returncode, again.stdout) == (0, first.stdout)
    assert rows(folder / "memhouse-demo.duckdb", "SELECT COUNT(*) FROM runs") == [(4,)]
    assert [file.name for file in folder.iterdir()] == ["memhouse-demo.duckdb"]


def test_a_file_of_the_user_is_left_alone(filled, tmp_path):
    mine = tmp_path / "memhouse-demo.duckdb"
    mine.write_bytes(filled.read_bytes())
    done = run_memhouse("demo", cwd=tmp_path)
    assert done.returncode == 2
    assert "memhouse-demo.duckdb" in done.stderr
    assert mine.read_bytes() == filled.read_bytes()
    mine.write_text("not a warehouse")
    done = run_memhouse("demo", cwd=tmp_path)
    assert done.returncode == 1
    assert "memhouse-demo.duckdb" in done.stderr
    assert mine.read_text() == "not a warehouse"
