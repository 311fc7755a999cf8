"""`limit_memory` in projects of their own: what it judges, and what it says."""

import re

import pytest

from ..support.dumps import DATA
from ..support.pytest_runs import project, run_pytest, run_pytest_process

OWN_LIMIT = DATA / "devices/own-limit/module_0018.jit_double.cl_1014260217.after_optimizations.txt"


def outcomes(printed):
    """Each test's outcome by its name, as `-rA` lists them."""
    found = re.findall(r"^(PASSED|FAILED|ERROR|XFAIL|SKIPPED) \S*?::(\S+)", printed, re.MULTILINE)
    return {name: outcome.lower() for outcome, name in found}


def test_a_program_over_its_limit_fails_with_its_owners(tmp_path):
    folder = project(
        tmp_path / "p",
        """
@pytest.mark.limit_memory("64 MiB")
def test_flash(memory):
    memory(FLASH)
""",
    )
    printed = run_pytest(folder, code=1)
    for fact in ("jit__lambda", "32.00 MiB", "64 MiB", "96.00 MiB", "hbm", "tpu"):
        assert fact in printed
    owners = printed.partition("owns the peak:\n")[2].partition("=====")[0].splitlines()
    assert owners[0].split()[:3] == ["48.00", "MiB", "50.0%"]
    assert len(owners) <= 6
    told = printed.partition("FAILURES")[2].splitlines()
    assert max(map(len, told)) <= 80


def test_which_limits_hold(tmp_path):
    """The closest marker of each memory space; in modules, classes, unittest and parameters."""
    folder = project(
        tmp_path / "p",
        """
pytestmark = pytest.mark.limit_memory("64 MiB")

def test_module_fails(memory):
    memory(FLASH)

@pytest.mark.limit_memory("1 GiB")
def test_closest_passes(memory):
    memory(FLASH)

@pytest.mark.limit_memory("1 GiB")
@pytest.mark.limit_memory("64 MiB", space="vmem")
def test_both_spaces_fails(memory):
    memory(FLASH)

@pytest.mark.limit_memory("1 GiB", space=0)
@pytest.mark.limit_memory("1 GiB", space="VMEM")
def test_names_of_spaces_passes(memory):
    memory(FLASH)

@pytest.mark.limit_memory("200 MiB")
class TestClass:
    def test_of_class_passes(self, memory):
        memory(FLASH)

    @pytest.mark.parametrize("program", [FLASH, PAD], ids=["flash", "pad"])
    def test_parameter(self, memory, program):
        memory(program)

class Unit(unittest.TestCase):
    @pytest.fixture(autouse=True)
    def given(self, memory):
        self.memory = memory

    def test_unit_fails(self):
        self.memory(FLASH)

    @pytest.mark.limit_memory("1 GiB")
    def test_unit_passes(self):
        self.memory(FLASH)

    def test_own_failure_fails(self):
        self.memory(FLASH)
        self.assertEqual(1, 2)
""",
    )
    printed = run_pytest(folder, "-rA", code=1)
    found = outcomes(printed)
    assert found["TestClass::test_parameter[flash]"] == "passed"
    assert found["TestClass::test_parameter[pad]"] == "failed"
    told = {name: found[name] for name in found if "parameter" not in name}
    assert len(told) == 8
    for name, outcome in told.items():
        assert outcome == ("passed" if name.endswith("passes") else "failed"), name
    assert "48.00 MiB" in printed
    assert "112.00 MiB of vmem" in printed
    assert "AssertionError: 1 != 2" in printed


def test_a_kernel_is_judged_if_it_takes_more_than_the_arrays_in_its_memory(tmp_path):
    folder = project(
        tmp_path / "p",
        f"""
@pytest.mark.limit_memory("1 MiB", space="vmem")
def test_over(memory):
    memory(Path({str(OWN_LIMIT)!r}))

@pytest.mark.limit_memory("36 MiB", space="vmem")
def test_at_its_limit(memory):
    memory(Path({str(OWN_LIMIT)!r}))
""",
    )
    printed = run_pytest(folder, "-rA", code=1)
    assert outcomes(printed) == {"test_over": "failed", "test_at_its_limit": "passed"}
    assert "≈36.00 MiB of vmem in a kernel" in printed


def test_what_is_not_judged(tmp_path):
    """A test that fails by itself says only that; without the marker nothing is held."""
    folder = project(
        tmp_path / "p",
        """
@pytest.mark.limit_memory("1 KiB")
def test_own_failure(memory):
    memory(MIXED)
    assert "own" == "failure"

@pytest.mark.limit_memory("1 KiB")
def test_skipped(memory):
    memory(MIXED)
    pytest.skip("not today")

@pytest.mark.xfail
@pytest.mark.limit_memory("1 KiB")
def test_expected(memory):
    memory(MIXED)

def test_figures(memory):
    module = memory(FLASH.read_bytes())
    assert (module.name, module.platform) == ("jit__lambda", "tpu")
    assert len(module.owners(limit=1)) == 2
    assert module.peaks().arrow()["space"].to_pylist() == ["hbm", "vmem"]
""",
    )
    printed = run_pytest(folder, "-rA", code=1)
    assert outcomes(printed)["test_own_failure"] == "failed"
    assert "1 failed, 1 passed, 1 skipped, 1 xfailed" in printed
    assert "1 KiB more" not in printed


# Wrong arguments, and what is named of them.
MISTAKES = {
    '"1 furlong"': "'1 furlong'",
    '"2 GB"': "'2 GB'",
    "2.5": "2.5",
    "": "growth=",
    'growth="2 percent"': "'2 percent'",
    "growth=2": "growth",
    '"1 MiB", grwoth="2%"': "'grwoth'",
    '"1 MiB", "2%"': "2",
    '"1 MiB", space=None': "space",
    '"1 MiB", workload="x"': "workload",
}


def test_wrong_arguments_are_one_line_each(tmp_path):
    """They are told before the test runs, with its place."""
    tests = "".join(
        f"@pytest.mark.limit_memory({given})\ndef test_{number}(memory):\n    raise SystemExit\n"
        for number, given in enumerate(MISTAKES)
    )
    printed = run_pytest(project(tmp_path / "p", tests), code=1)
    assert f"{len(MISTAKES)} errors" in printed
    told = re.findall(r"^test_it\.py:(\d+): @pytest\.mark\.limit_memory: (.+)$", printed, re.M)
    assert [int(line) for line, _ in told] == [7 + 3 * number for number in range(len(MISTAKES))]
    for (_, said), named in zip(told, MISTAKES.values(), strict=True):
        assert named in said


def test_a_check_that_cannot_fail_fails(tmp_path):
    folder = project(
        tmp_path / "p",
        """
@pytest.mark.limit_memory("1 GiB")
def test_nothing(memory):
    pass

@pytest.mark.limit_memory("1 GiB", space="vmem")
def test_no_such_space(memory):
    memory(MIXED)
""",
    )
    printed = run_pytest(folder, code=1)
    assert "limit_memory: " in printed
    assert re.search(r"jit_mixed .*'vmem'.* hbm", printed)
    assert "2 failed" in printed


def test_what_is_no_program_is_an_error_in_the_test(tmp_path):
    folder = project(
        tmp_path / "p",
        """
def test_nothing(memory):
    memory(None)

def test_not_jitted(memory):
    memory(lambda x: x, 1)

def test_no_file(memory):
    memory("nowhere.hlo")
""",
    )
    printed = run_pytest(folder, code=1)
    assert "3 failed" in printed
    assert printed.count("E       memhouse.") == 3
    for named in ("found None", "jax.jit(f)", "'nowhere.hlo'"):
        assert named in printed
    # Of memhouse's own frames none is shown.
    assert "plugin.py" not in printed
    assert "jax_objects.py" not in printed


@pytest.mark.parametrize("has_memray", [False, True])
def test_the_marker_of_pytest_memray_is_left_to_it(tmp_path, has_memray):
    """It has a marker of this name, with sizes that are not ours and no fixture."""
    folder = project(
        tmp_path / "p", '@pytest.mark.limit_memory("24 MB")\ndef test_heap():\n    pass\n'
    )
    register = (
        "def pytest_configure(config):\n    config.pluginmanager.register(object(), 'memray')"
    )
    (folder / "conftest.py").write_text(register if has_memray else "")
    run_pytest(folder, code=0 if has_memray else 1)


def test_a_fixture_of_the_users_own_wins(tmp_path):
    folder = project(
        tmp_path / "p",
        """
@pytest.fixture
def memory():
    return "mine"

def test_own(memory):
    assert memory == "mine"
""",
    )
    run_pytest(folder, code=0)


UNNEEDED = ("memhouse.warehouse", "memhouse.ingest", "duckdb", "pyarrow", "tomllib")


def test_unused_it_imports_and_says_nothing(tmp_path):
    """What is asked for is asked at the end of a run with a test that uses nothing of it."""
    folder = project(tmp_path / "p", "def test_it():\n    pass\n")
    (folder / "conftest.py").write_text(
        f"""
import sys

def pytest_unconfigure(config):
    print("imported:", [name for name in {UNNEEDED} if name in sys.modules])
    print("has the plugin:", config.pluginmanager.hasplugin("memhouse"))
"""
    )
    # Of other plugins that are installed here, none may import it instead.
    others = ("-p", "no:hypothesispytest", "-p", "no:anyio", "-p", "no:platformdirs")
    with_it = run_pytest_process(folder, *others, "-s", code=0)
    without = run_pytest_process(folder, *others, "-s", "-p", "no:memhouse", code=0)
    assert "imported: ['tomllib']" in without or "imported: []" in without
    assert "has the plugin: True" in with_it
    assert "has the plugin: False" in without
    names = re.compile(r"plugins: .*\n| in [\d.]+s|has the plugin: \w+")
    assert names.sub("", with_it) == names.sub("", without)
