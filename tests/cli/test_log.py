"""`memhouse log`: what changed a warehouse, and the order in which runs entered."""

import json
import os
import shutil

import pytest

import memhouse as library

from ..support.command import run_memhouse
from ..support.warehouse import everything

# Each command, and what it enters: action, run and host.
STEPS: list[tuple[list[str], list[tuple[str, str, str | None]]]] = [
    (["ingest", "{}/2026-10-07"], [("ingest", "2026-10-07", None)]),
    (["ingest", "{}/2026-10-07"], []),
    (["ingest", "{}/2026-10-08"], [("ingest", "2026-10-08", None)]),
    (["ingest", "{}/2026-10-09", "--run", "job", "--host", "h0"], [("ingest", "job", "h0")]),
    (
        ["ingest", "{}/2026-10-10", "--run", "job", "--host", "h0", "--replace"],
        [("replace", "job", "h0")],
    ),
    (
        ["label", "2026-10-07", "2026-10-08", "commit=a1"],
        [("label", "2026-10-07", None), ("label", "2026-10-08", None)],
    ),
    (["check", "--run", "2026-10-08", "--accept", "agreed"], [("accept", "2026-10-08", None)] * 2),
    (["prune", "2026-10-07"], [("prune", "2026-10-07", None)]),
    (["prune", "2026-10-08", "--dry-run"], []),
    (["trends"], []),
]


def test_what_changes_it_is_an_entry_and_nothing_else(db, nights):
    entered = []
    for args, entries in STEPS:
        done = run_memhouse(*(arg.format(nights) for arg in args), "--db", db)
        assert done.returncode == 0, done.stderr
        entered += entries
        with library.open(db, read_only=True) as warehouse:
            told = warehouse.log().arrow().to_pylist()
        numbers = [row["entry"] for row in told]
        assert numbers == [*range(len(told), 0, -1)]
        # A command that writes compacts a small file that has much free room.
        said = [(row["action"], row["run"], row["host"]) for row in reversed(told)]
        assert [row for row in said if row[0] != "compact"] == entered, args
    assert {row["detail"] for row in told if row["action"] == "accept"} == {
        "llama-v5e/jit_train_step: agreed",
        "resnet-h100/jit_train: agreed",
    }
    assert {row["tool_version"] for row in told} == {library.__version__}


def test_what_fails_is_no_entry(own):
    before = everything(own)["journal"]
    for args in (["prune", "none"], ["label", "none", "a=b"], ["ingest", "none"]):
        assert run_memhouse(*args, "--db", own).returncode != 0
    assert everything(own)["journal"] == before


def test_the_newest_entries_come_first(history):
    done = run_memhouse("log", "-n", "2", "-f", "json", "--db", history)
    shown = json.loads(done.stdout)
    assert [(row["entry"], row["run"]) for row in shown] == [(10, "2026-10-10"), (9, "2026-10-09")]
    assert run_memhouse("log", "-n", "0", "--db", history).returncode == 2


def test_a_run_names_the_hosts_of_its_parts(tmp_path, nights, monkeypatch):
    monkeypatch.setattr("socket.gethostname", lambda: "this-machine")
    db = tmp_path / "memhouse.duckdb"
    dumps = shutil.copytree(nights / "2026-10-06" / "llama-cpu", tmp_path / "dumps")
    for host in (["--host", "h1"], ["--host"], ["--host=h0"]):
        done = run_memhouse("ingest", dumps, "--db", db, "--run", "2026-10-06", *host)
        assert done.returncode == 0, done.stderr
    with library.open(db, read_only=True) as warehouse:
        (run,) = warehouse.runs().arrow().to_pylist()
        found = {row["workload"] for row in warehouse.modules().arrow().to_pylist()}
    assert (run["hosts"], run["dumps"]) == ("h0, h1, this-machine", 3)
    assert found == {"h0", "h1", "this-machine"}
    assert "h0, h1 and this-machine" in run_memhouse("runs", "--db", db).stdout


def test_a_night_without_programs_is_a_run(db, nights, tmp_path):
    empty = tmp_path / "night"
    shutil.copytree(nights / "2026-10-06/llama-cpu", empty)
    assert run_memhouse("ingest", empty, "--db", db).returncode == 0
    shutil.rmtree(empty)
    empty.mkdir()
    for _ in range(2):  # The second time it is there already.
        done = run_memhouse("ingest", empty, "--db", db)
        assert (done.returncode, done.stdout) == (1, "")
        assert str(empty) in done.stderr
    with library.open(db, read_only=True) as warehouse:
        counts = warehouse.runs().arrow()["dumps"].to_pylist()
        entered = warehouse.log().arrow()["run"].to_pylist()
    assert counts == [1, 0]
    assert len(entered) == 2
    assert entered[0].startswith("night@")


@pytest.mark.parametrize("tonight", [0, pytest.param(4_000_000_000, marks=pytest.mark.slow)])
def test_times_of_files_order_nothing(db, nights, tmp_path, tonight):
    """Containers and archives give every file one time; a clock may be wrong."""
    runs = {"yesterday": ("2026-10-09", 2_000_000_000), "tonight": ("2026-10-10", tonight)}
    for name, (night, modified) in runs.items():
        folder = shutil.copytree(nights / night / "llama-v5e", tmp_path / name / "llama-v5e").parent
        for file in folder.rglob("*"):
            os.utime(file, (modified, modified))
        assert run_memhouse("ingest", folder, "--db", db).returncode == 0
    with library.open(db, read_only=True) as warehouse:
        ordered = warehouse.runs().arrow()["run"].to_pylist()
        query = "SELECT run_id, epoch(compiled_at) AS at FROM runs ORDER BY run_seq"
        compiled = warehouse.sql(query).arrow().to_pylist()
        judged = warehouse.check(max_growth=["2%"])
    assert ordered == [*runs]
    assert [(row["run_id"], row["at"]) for row in compiled] == [
        (name, modified) for name, (_, modified) in runs.items()
    ]
    assert (judged.run_id, judged.passes) == ("tonight", False)
