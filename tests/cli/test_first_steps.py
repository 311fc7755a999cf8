"""`memhouse` alone: what is there, and what to type; and wrong names of runs and workloads."""

import duckdb

from ..support.command import run_memhouse
from ..support.console import on_terminal
from ..support.warehouse import fill


def first_steps(**environment):
    """What the command says on standard output; nothing is said elsewhere."""
    done = run_memhouse(**environment)
    assert (done.returncode, done.stderr) == (2, "")
    return done.stdout


def test_without_a_warehouse_it_says_how_to_fill_one(db, tmp_path):
    said = first_steps(cwd=tmp_path)
    for command in ("demo", "record", "ingest", "--help"):
        assert f"memhouse {command}" in said
    assert list(tmp_path.iterdir()) == []
    db.write_text("not a warehouse")
    said = first_steps(cwd=tmp_path)
    assert said.startswith("memhouse.duckdb ")
    assert "memhouse demo" in said
    db.unlink()
    fill(db)
    said = first_steps(cwd=tmp_path)
    assert said.startswith("memhouse.duckdb ")
    assert "memhouse ingest DUMPS" in said


def test_with_a_warehouse_it_says_what_is_in_it(history, tmp_path):
    (tmp_path / "memhouse.duckdb").symlink_to(history)
    said = first_steps(cwd=tmp_path)
    for fact in ("10 runs", "2026-10-10", "2.44 GiB", "llama-v5e/jit_train_step"):
        assert fact in said
    (owners,) = [line for line in said.splitlines() if line.startswith("  memhouse owners")]
    typed, _, _ = owners.strip().removeprefix("memhouse ").partition("  #")
    assert run_memhouse(*typed.split(), "--db", history).returncode == 0
    shown = on_terminal("memhouse", tmp_path)
    assert "memhouse.duckdb: 10 runs" in shown
    assert all(len(line) <= 80 for line in shown.replace("\r", "").splitlines())


def test_a_hostile_name_is_quoted(copied, tmp_path):
    with duckdb.connect(str(copied)) as connection:
        connection.execute("UPDATE dumps SET workload = 'a; $(touch pwned)'")
    assert "memhouse owners 'a; $(touch pwned)/" in first_steps(cwd=tmp_path)


def test_an_unknown_workload_or_run_is_told(history, db):
    """Of a warehouse without dumps no workload is wrong."""
    wrong = [
        (command, "--workload", name)
        for command in ("modules", "peaks", "fragmentation", "kernels", "trends")
        for name in ("no-such", "")
    ]
    wrong += [(command, "--run", "no-such") for command in ("modules", "peaks", "fragmentation")]
    failures = []
    for args in wrong:
        done = run_memhouse(*args, "--db", history)
        if (done.returncode, done.stdout) != (2, "") or repr(args[2]) not in done.stderr:
            failures.append((args, done))
    assert failures == []
    fill(db)
    for command in ("modules", "peaks", "trends"):
        assert run_memhouse(command, "--workload", "any", "--db", db).returncode == 0


def test_doctor_without_a_path_looks_at_the_environment_and_the_warehouse(filled, tmp_path):
    nothing = {"XLA_FLAGS": "--xla_dump_to=d", "JAX_COMPILATION_CACHE_DIR": "c", "PATH": ""}
    done = run_memhouse("doctor", cwd=tmp_path, env=nothing)
    assert (done.returncode, done.stderr) == (0, "")
    said = " ".join(done.stdout.split())
    assert "XLA_FLAGS is --xla_dump_to=d" in said
    assert "no `python` in PATH" in said
    assert "JAX_COMPILATION_CACHE_DIR is c" in said
    assert "There is no warehouse at memhouse.duckdb yet." in said
    done = run_memhouse("doctor", cwd=tmp_path, env={"MEMHOUSE_DB": str(filled)})
    assert "XLA_FLAGS is not set" in done.stdout
    assert "The largest peak now" in done.stdout
