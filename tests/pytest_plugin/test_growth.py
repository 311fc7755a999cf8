"""Growth in projects of their own: the baseline file, what is written to it, and a warehouse."""

import re
import shutil
import tomllib

import pytest

from memhouse.pytest_plugin.baseline import before_in, entries
from memhouse.pytest_plugin.measured import Line, Measured

from ..support.command import run_memhouse
from ..support.dumps import DUMPS
from ..support.pytest_runs import PAD, project, run_pytest, run_pytest_process

GROWTH = """
@pytest.mark.limit_memory(growth="2%")
def test_mixed(memory):
    memory(MIXED)
"""


def peaks(folder, name="memory-baseline.toml"):
    """The peaks that a baseline has, by test and program."""
    found = tomllib.loads((folder / name).read_text())
    return {
        (test.partition("::")[2], program): entry["peak_bytes"]
        for test, programs in found.items()
        for program, entry in programs.items()
    }


def shrink(folder, name="memory-baseline.toml"):
    """Make what a baseline has 5 % smaller: the programs grew by 5.3 % since."""
    file = folder / name
    smaller = re.sub(r"= (\d+)", lambda found: f"= {int(found[1]) * 95 // 100}", file.read_text())
    file.write_text(smaller)


def test_new_accepted_grown_accepted(tmp_path):
    """With the setting that says where the file is."""
    folder = project(tmp_path / "p", GROWTH, settings="memory_baseline = mem/base.toml")
    for options, code in (((), 0), (("--memory-strict",), 1)):
        printed = run_pytest(folder, *options, code=code)
        assert re.search(r"jit_mixed on .* is new: mem/base\.toml", printed)
        assert "pytest --memory-update" in printed
    printed = run_pytest(folder, "--memory-update", code=0)
    assert re.search(r"base\.toml .* 1 peak changed", printed)
    written = (folder / "mem/base.toml").read_text()
    assert len(written.splitlines()) < 20
    shrink(folder, "mem/base.toml")
    printed = run_pytest(folder, code=1)
    assert re.search(r"jit_mixed grew by 7\.2\d KiB \(\+5\.3 %\).* 2%", printed)
    assert re.search(r"before: 137\.35 KiB.*mem/base\.toml", printed)
    run_pytest(folder, "--memory-update", code=0)
    # The same tests write the same text.
    assert (folder / "mem/base.toml").read_text() == written
    printed = run_pytest(folder, "--memory-update", code=0)
    assert re.search(r"base\.toml has 1 peak, (?!1)", printed)


def test_a_new_program_above_its_limit_says_both(tmp_path):
    """To accept it would not be enough."""
    tests = GROWTH.replace("limit_memory(", 'limit_memory("1 KiB", ')
    printed = run_pytest(project(tmp_path / "p", tests), "--memory-strict", code=1)
    assert re.search(r"jit_mixed on .* is new: memory-baseline\.toml", printed)
    assert re.search(r"143\.58 KiB .* 1 KiB", printed)


@pytest.mark.slow
def test_what_is_written(tmp_path):
    """Only tests that pass; tests that are gone go; what did not run stays, and other platforms."""
    tests = f"""
{GROWTH}
@pytest.mark.limit_memory("1 KiB", growth="2%")
def test_too_large(memory):
    memory(MIXED)

class TestClass:
    @pytest.mark.limit_memory(growth="2%")
    @pytest.mark.parametrize("times", [1, 2])
    def test_times(self, memory, times):
        for _ in range(times):
            memory(MIXED)

@pytest.mark.xdist_group("one")
@pytest.mark.limit_memory(growth="1 KiB")
def test_grouped(memory):
    memory(MIXED)
"""
    folder = project(tmp_path / "p", tests)
    entry = {"peak_bytes": 1}
    gone = ("test_it.py::test_gone", "test_it.py::TestClass::test_times[3]", "test_no.py::test_x")
    stays = 'test_it.py::test_mixed"."jit_mixed on gpu, hbm'
    text = "".join(f'["{test}"."jit_f on cpu, hbm"]\npeak_bytes = 1\n' for test in gone)
    text += f'["{stays}"]\npeak_bytes = 1\n'
    (folder / "memory-baseline.toml").write_text(text)
    grouped = ("-n2", "--dist", "loadgroup")
    printed = run_pytest_process(folder, "--memory-update", *grouped, code=1)
    assert "test_it.py::test_gone: jit_f on cpu, hbm: 1 B → none" in printed
    program = "jit_mixed on an unknown platform, hbm"
    size = peaks(folder)["test_mixed", program]
    assert peaks(folder) == {
        ("test_mixed", "jit_mixed on gpu, hbm"): entry["peak_bytes"],
        ("test_mixed", program): size,
        ("TestClass::test_times[1]", program): size,
        ("TestClass::test_times[2]", program): size,
        ("TestClass::test_times[2]", "jit_mixed #2 on an unknown platform, hbm"): size,
        ("test_grouped", program): size,
    }
    # Without groups the tests have the same names.
    run_pytest(folder, "--deselect", "test_it.py::test_too_large", code=0)
    # What did not run is there all the same.
    before = peaks(folder)
    run_pytest(folder, "--memory-update", "test_it.py::TestClass", code=0)
    assert peaks(folder) == before


DAMAGED = (
    "<<<<<<< HEAD\n",
    "peak_bytes = 3\n",
    '["a"."b"]\npeak_bytes = "many"\n',
    '["a"."b"]\npeak_bytes = 1\nowners = 3\n',
    '["a"."b"]\npeak_bytes = 1\nowners."x" = "y"\n',
    "\x00",
)


def test_a_damaged_baseline_is_named(tmp_path):
    """It fails only the tests that need it, and is not written over."""
    folder = project(tmp_path / "p", GROWTH + "\ndef test_other():\n    pass\n")
    for text in DAMAGED:
        (folder / "memory-baseline.toml").write_text(text)
        printed = run_pytest(folder, "--memory-update", code=4)
        (line,) = [line for line in printed.splitlines() if line]
        assert line.startswith(f"ERROR: {folder}/memory-baseline.toml: ")
        assert ('["a"."b"]' in line) == ("many" in text or "owners" in text)
        assert "--memory-update" in line
        assert (folder / "memory-baseline.toml").read_text() == text
    printed = run_pytest(folder, code=1)
    assert "memory-baseline.toml: " in printed
    assert "1 failed, 1 passed" in printed
    assert "Traceback" not in printed
    (folder / "file").write_text("no folder")
    printed = run_pytest(folder, "--memory-update", "--memory-baseline", "file/b.toml", code=4)
    assert "file/b.toml" in printed
    assert "Traceback" not in printed


def measured(*lines):
    total = sum(line.size_bytes for line in lines)
    return Measured("jit_f", "cpu", "hbm", 0, total, False, lines)


def changes(before, after):
    """What changed from one to the other, as a failing test lists it."""
    tests = {"test": entries([before])}
    found = before_in(tests, "baseline.toml", "test", after)
    return [(each.change_bytes, each.owner) for each in found.what_changed().owners]


def test_a_line_is_told_by_what_it_says():
    """A line that moved is the same, and one that was edited is if it is much like it was."""
    before = measured(
        Line("m.py:10", "m.py: h = x @ w", 5000), Line("m.py:11", "m.py: y = f(h)", 4000)
    )
    assert changes(before, measured(*(before.lines[::-1]))) == []
    moved = measured(
        Line("m.py:20", "m.py: h = x @ w", 5150), Line("m.py:21", "m.py: y = g(h)", 4000)
    )
    assert changes(before, moved) == [(150, "m.py:20  h = x @ w")]
    rewritten = measured(Line("m.py:9", "m.py: a = x", 3000), Line("m.py:10", "m.py: b = a", 7000))
    assert changes(before, rewritten) == [
        (7000, "m.py:10  b = a"),
        (-5000, "m.py: h = x @ w (gone)"),
        (-4000, "m.py: y = f(h) (gone)"),
        (3000, "m.py:9  a = x"),
    ]


def test_lines_that_say_the_same_are_summed():
    same = "m.py: h = tanh(h @ w)"
    before = measured(Line("m.py:10", same, 5000), Line("m.py:12", same, 5000))
    assert entries([before])["jit_f on cpu, hbm"]["owners"] == {same: 10000}
    after = measured(Line("m.py:12", same, 5300), Line("m.py:10", same, 5000))
    assert changes(before, after) == [(300, "m.py:12  h = tanh(h @ w)")]


def test_what_the_baseline_leaves_out_is_no_change():
    before = measured(Line("a", "a", 10000), Line("b", "b", 50))
    after = measured(Line("a", "a", 10500), Line("b", "b", 50))
    assert changes(before, after) == [(500, "a")]


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory):
    """A warehouse with a run of two TPU programs that have one name."""
    folder = tmp_path_factory.mktemp("warehouse")
    shutil.copytree(DUMPS / "tpu/flash-v5e", folder / "tpu/flash-v5e")
    shutil.copytree(PAD.parent, folder / "tpu/pad-v5e")
    run_memhouse("ingest", folder / "tpu", "--db", folder / "w.duckdb")
    return folder / "w.duckdb"


@pytest.mark.slow
def test_growth_since_a_run_of_a_warehouse(tmp_path, warehouse):
    folder = project(
        tmp_path / "p",
        """
@pytest.mark.limit_memory(growth="2%", workload="flash-v5e")
def test_same(memory):
    memory(FLASH)

@pytest.mark.limit_memory(growth="2%", workload="flash-v5e")
def test_grown(memory):
    memory(PAD)

@pytest.mark.limit_memory(growth="2%")
def test_several(memory):
    memory(FLASH)

@pytest.mark.limit_memory(growth="2%")
def test_new(memory):
    memory(MIXED)
""",
    )
    printed = run_pytest(folder, "--memhouse-db", str(warehouse), code=1)
    assert "2 failed, 2 passed in" in printed
    assert "jit__lambda grew by 32.91 GiB" in printed
    assert "  before: 96.00 MiB, in run tpu of /" in printed
    assert "  cause: " in printed
    assert re.search(r"jit__lambda of flash-v5e, pad-v5e: .*workload=", printed)
    assert re.search(r"::test_new: jit_mixed on an unknown platform, hbm is new: .*w\.d", printed)


def test_a_warehouse_that_is_not_there_fails_what_needs_it(tmp_path):
    folder = project(tmp_path / "p", GROWTH)
    printed = run_pytest(folder, "--memhouse-db", "no.duckdb", code=1)
    assert "no.duckdb" in printed.partition("FAILURES")[2]
    assert "Traceback" not in printed
    printed = run_pytest(folder, "--memhouse-db", "no.duckdb", "--memory-update", code=4)
    assert re.search(r"ERROR: .*--memory-update.*--memhouse-db", printed)
    assert not (folder / "no.duckdb").exists()
