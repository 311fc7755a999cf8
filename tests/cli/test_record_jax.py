"""`memhouse record` around real JAX programs on CPU: what users do, and what they see."""

import os
import subprocess
import sys

import pytest

from ..support.command import run_memhouse
from ..support.warehouse import rows

pytest.importorskip("jax", reason="jax is not installed")
pytestmark = pytest.mark.slow

STEP = """
import sys
import jax, jax.numpy as jnp

@jax.jit
def step(x):
    return (x @ x).sum()

print(step(jnp.ones((64, 64))))
"""
TWO = """
import multiprocessing

def work(size):
    import jax, jax.numpy as jnp
    def step(x):
        return (x @ x).sum()
    jax.jit(step)(jnp.ones((size, size)))

if __name__ == "__main__":
    multiprocessing.set_start_method("spawn")
    both = [multiprocessing.Process(target=work, args=(size,)) for size in (64, 32)]
    for process in both:
        process.start()
    for process in both:
        process.join()
"""
PEAKS = (
    "SELECT workload, peak_bytes FROM dumps JOIN module_memory USING (module_id) "
    "WHERE module_name = 'jit_step' ORDER BY ALL"
)


@pytest.fixture
def place(tmp_path, monkeypatch):
    (tmp_path / "tmp").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    monkeypatch.setenv("JAX_PLATFORMS", "cpu")
    monkeypatch.delenv("XLA_FLAGS", raising=False)
    monkeypatch.delenv("JAX_COMPILATION_CACHE_DIR", raising=False)
    return tmp_path


def record(place, script, *options, env=None):
    (place / "train.py").write_text(script)
    args = ["record", "--db", place / "m.duckdb", *options, "--", sys.executable, "train.py"]
    done = run_memhouse(*args, cwd=place, env=env)
    assert list((place / "tmp").iterdir()) == []
    return done


def test_a_program(place):
    """It fails in the end."""
    import jax

    done = record(place, STEP + "sys.exit('no more data')")
    assert (done.returncode, done.stdout) == (1, "262144.0\n")
    assert done.stderr.startswith("no more data\n")
    ((workload, peak),) = rows(place / "m.duckdb", PEAKS)
    assert (workload, peak >= 64 * 64 * 4) == ("train", True)
    found = dict(rows(place / "m.duckdb", "SELECT key, value FROM run_labels"))
    assert found["jax"] == jax.__version__
    assert found["command"].endswith("train.py")


def test_a_program_that_uses_the_compilation_cache(place):
    """The first recording compiles what the cache holds, as `docs/record.md` says.

    With XLA's time in the names of its dumps the cache has other keys.
    """
    cache = {
        "JAX_COMPILATION_CACHE_DIR": str(place / "cache"),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
    }
    (place / "train.py").write_text(STEP)
    subprocess.run([sys.executable, "train.py"], cwd=place, env=os.environ | cache, check=True)
    number = len(list((place / "cache").glob("*-cache")))
    assert number
    first = record(place, STEP, env=cache)
    assert (first.returncode, first.stdout) == (0, "262144.0\n")
    assert "CACHE" not in first.stderr
    assert len(rows(place / "m.duckdb", "SELECT * FROM dumps")) == number
    assert len(list((place / "cache").glob("*-cache"))) == 2 * number
    again = record(place, STEP, env=cache)
    assert (again.returncode, again.stdout) == (0, first.stdout)
    # JAX may warn of what it took before.
    told = next(it for it in again.stderr.splitlines() if it.startswith("nothing to ingest"))
    assert {str(number), "JAX_ENABLE_COMPILATION_CACHE=false"} <= set(told.split())
    forced = record(place, STEP, env=cache | {"JAX_ENABLE_COMPILATION_CACHE": "false"})
    assert f"{number} dumps" in forced.stderr
    assert "compilation cache" not in forced.stderr


def test_one_module_of_two_processes(place):
    assert record(place, TWO, "--only", "step$").returncode == 0
    (small, small_peak), (large, large_peak) = sorted(
        rows(place / "m.duckdb", PEAKS), key=lambda found: found[1]
    )
    assert {small, large} == {"train", "train/2"}
    assert large_peak > small_peak
    assert rows(place / "m.duckdb", "SELECT DISTINCT module_name FROM dumps") == [("jit_step",)]
