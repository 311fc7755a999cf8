"""`memhouse` alone: what is there, and what to type."""

import pytest

from ..support.command import run_memhouse
from ..support.console import on_terminal
from ..support.warehouse import fill


def first_steps(**environment):
    """What the command says on standard output; nothing is said elsewhere."""
    done = run_memhouse(**environment)
    assert (done.returncode, done.stderr) == (2, "")
    return done.stdout


def test_without_a_warehouse_it_says_how_to_fill_one(tmp_path):
    said = first_steps(cwd=tmp_path)
    assert said.splitlines() == [
        "There is no warehouse at memhouse.duckdb yet. Type one of these:",
        "",
        "  memhouse demo                       # five commands on real dumps",
        "  memhouse record -- python train.py  # run it, and keep what XLA compiles",
        "  memhouse ingest DUMPS               # dumps that are already there",
        "",
        "`memhouse --help` lists all commands.",
    ]
    assert list(tmp_path.iterdir()) == []


def test_with_a_warehouse_it_says_what_is_in_it(history, tmp_path):
    said = first_steps(cwd=tmp_path, env={"MEMHOUSE_DB": str(history)})
    assert f"{history}: 10 runs, the newest 2026-10-10.\n" in said
    assert "peak now: 2.44 GiB, llama-v5e/jit_train_step of run 2026-10-10.\n" in said
    (owners,) = [line for line in said.splitlines() if line.startswith("  memhouse owners")]
    typed, _, _ = owners.strip().removeprefix("memhouse ").partition("  #")
    assert run_memhouse(*typed.split(), "--db", history).returncode == 0


def test_it_fits_a_terminal(history, tmp_path):
    (tmp_path / "memhouse.duckdb").symlink_to(history)
    shown = on_terminal("memhouse", tmp_path)
    assert "memhouse.duckdb: 10 runs" in shown
    assert all(len(line) <= 80 for line in shown.replace("\r", "").splitlines())


def test_a_warehouse_without_runs(db, tmp_path):
    fill(db)
    said = first_steps(cwd=tmp_path)
    assert said.startswith("memhouse.duckdb holds no runs yet.")
    assert "memhouse ingest DUMPS" in said


def test_what_is_no_warehouse_is_told(db, tmp_path):
    db.write_text("not a warehouse")
    said = first_steps(cwd=tmp_path)
    assert said.startswith("memhouse.duckdb is not a DuckDB database: name another file\n")
    assert "memhouse demo" in said


def test_a_hostile_name_is_quoted(filled, db, tmp_path):
    import shutil

    import duckdb

    shutil.copy(filled, db)
    with duckdb.connect(str(db)) as connection:
        connection.execute("UPDATE dumps SET workload = 'a; $(touch pwned)'")
    said = first_steps(cwd=tmp_path)
    assert "memhouse owners 'a; $(touch pwned)/" in said


@pytest.mark.parametrize("name", ["no-such", ""])
@pytest.mark.parametrize("command", ["modules", "peaks", "fragmentation", "kernels", "trends"])
def test_an_unknown_workload_is_told(history, command, name):
    done = run_memhouse(command, "--workload", name, "--db", history)
    assert (done.returncode, done.stdout) == (2, "")
    assert f"there is no workload '{name}'" in " ".join(done.stderr.split())


@pytest.mark.parametrize("command", ["modules", "peaks", "fragmentation"])
def test_an_unknown_run_is_told(history, command):
    done = run_memhouse(command, "--run", "no-such", "--db", history)
    assert (done.returncode, done.stdout) == (2, "")
    assert "there is no run 'no-such': see `memhouse runs`" in done.stderr


@pytest.mark.parametrize("command", ["modules", "peaks", "trends"])
def test_a_warehouse_without_dumps_has_no_wrong_workload(db, command):
    fill(db)
    assert run_memhouse(command, "--workload", "any", "--db", db).returncode == 0
