"""A project with a suite of JAX: it passes, grows, fails with the right line, is accepted."""

import re
import shutil
from pathlib import Path

import pytest

from ..support.console import write_files
from ..support.pytest_runs import run_pytest_process

pytest.importorskip("jax")
pytestmark = pytest.mark.slow

PAGE = Path(__file__).parents[2] / "docs/pytest.md"


@pytest.fixture
def documented(tmp_path):
    """The project that the documentation shows."""
    write_files(PAGE, tmp_path)
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = -p no:cacheprovider\n")
    return tmp_path


def test_a_line_that_grows_is_found_under_xdist(documented):
    """Two workers measure, and one file is written."""
    shutil.copy(documented / "test_model.py", documented / "test_again.py")
    run_pytest_process(documented, "-n2", "--memory-update", code=0)
    baseline = (documented / "memory-baseline.toml").read_text()
    assert baseline.count("peak_bytes") == 2
    model = documented / "model.py"
    # A new line copies the batch; below it a line that has moved is edited, and grows.
    grown = model.read_text().replace(
        'jnp.tanh(x @ weights["in"])', 'jnp.tanh(more(x) @ weights["in"])'
    )
    more = "def more(x):\n    return jnp.concatenate([x, x[:100]])\n\n\n"
    model.write_text(grown.replace("def loss", f"{more}def loss"))
    printed = run_pytest_process(documented, "-n2", code=1)
    assert "2 failed" in printed
    changed = printed.partition("what changed:\n")[2].splitlines()[0]
    line = 1 + model.read_text().splitlines().index(
        '    hidden = jnp.tanh(more(x) @ weights["in"])'
    )
    assert changed == "  +  2.10 MiB  model.py:8  return jnp.concatenate([x, x[:100]])"
    assert f"model.py:{line}  hidden = jnp.tanh(more(x)" in printed
    assert "(gone)" not in printed
    printed = run_pytest_process(documented, "--memory-update", code=0)
    assert re.search(r"memory-baseline\.toml .* 2 peaks changed", printed)
    assert (documented / "memory-baseline.toml").read_text() != baseline


def test_a_program_that_does_not_fit_fails_with_its_bytes(tmp_path):
    """The function that builds it is in a file beside the test."""
    (tmp_path / "train.py").write_text(
        "import jax\n"
        "def build(*, batch):\n"
        "    x = jax.ShapeDtypeStruct((batch, 1024), 'float32')\n"
        "    return jax.jit(lambda x: x @ x.T), (x,)\n"
    )
    (tmp_path / "test_it.py").write_text(
        "def test_small(memory):\n"
        "    memory.fits('train.py:build', batch=8, memory='1MiB')\n"
        "def test_large(memory):\n"
        "    memory.fits('train.py:build', batch=1024, memory='1MiB')\n"
    )
    printed = run_pytest_process(tmp_path, "-p", "no:cacheprovider", code=1)
    assert "1 failed, 1 passed" in printed
    assert "batch=1024 too large: 8.00 MiB of 1.00 MiB" in printed
