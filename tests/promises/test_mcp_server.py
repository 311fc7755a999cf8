"""A server stays open for hours: nights are ingested meanwhile, and what goes wrong is told."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ..support.agent import agent
from ..support.command import MEMHOUSE, run_memhouse, run_process
from .test_busy import held, let_go


@pytest.mark.slow
def test_an_ingest_does_not_wait_for_a_server(own, nights, tmp_path):
    with agent(own, tmp_path / "stderr") as asked:
        assert len(asked.ask("runs").rows("runs")) == 10
        night = nights / "2026-10-10"
        done = run_memhouse("ingest", night, "--run", "more", "--wait", "0", "--db", own)
        assert done.returncode == 0, done.stderr
        assert len(asked.ask("runs").rows("runs")) == 11


ASKED = (("runs", {}), ("sql", {"query": "SELECT 1"}))


@pytest.mark.slow
def test_what_happens_to_the_warehouse_is_told(own, tmp_path):
    """Another process writes to it; it vanishes; it is damaged."""
    # A server starts all the same: the agent's client starts it whenever it likes.
    with held(own) as holder, agent(own, tmp_path / "stderr") as asked:
        for tool, arguments in ASKED:
            # Not which process: a command line may hold secrets.
            assert str(holder.pid) not in asked.error(tool, **arguments)
        let_go(holder)
        holder.wait(10)
        for tool, arguments in ASKED:
            assert not asked.ask(tool, **arguments).failed
        moved = shutil.move(own, tmp_path / "moved.duckdb")
        for tool, arguments in ASKED:
            assert str(own) in asked.error(tool, **arguments)
        shutil.move(moved, own)
        assert not asked.ask("runs").failed
        with Path(own).open("r+b") as file:
            file.write(b"\0" * 20_000)
        for tool, arguments in ASKED:
            assert "\n" not in asked.error(tool, **arguments)


def test_without_a_warehouse_or_the_package_no_server_starts(history, tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "text").write_text("no database" * 1000)
    for name in ("absent.duckdb", "folder", "text", ""):
        done = run_memhouse("mcp", "--db", name, cwd=tmp_path)
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr.startswith("error: ")
        assert (name or "--db") in done.stderr
        assert done.stderr.count("\n") == 1
    (tmp_path / "sitecustomize.py").write_text("import sys\nsys.modules['mcp'] = None\n")
    done = run_process("mcp", "--db", history, env={"PYTHONPATH": str(tmp_path)})
    assert (done.returncode, done.stdout) == (1, "")
    assert "pip install 'memhouse[mcp]'" in done.stderr
    assert done.stderr.count("\n") == 1


def test_only_its_client_ends_a_server(history):
    """What is no message does not."""
    ping = '{"jsonrpc": "2.0", "id": 1, "method": "ping"}\n'
    done = run_process("mcp", "--db", history, stdin=f"what?\n{ping}")
    assert done.returncode == 0
    assert '"id":1' in done.stdout


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="asks /proc for processes")
def test_a_server_that_is_killed_leaves_no_query_behind(history, tmp_path):
    """The process of a query ends by itself."""
    script = tmp_path / "ask.py"
    script.write_text(ASK)
    command = [sys.executable, script, MEMHOUSE, history]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.stdout.splitlines() == ["running", "gone"], done.stderr


# Asks for a query of 2 s, kills the server, and looks for the query's process.
ASK = """
import json, subprocess, sys, time
from pathlib import Path

def messages():
    hello = {"protocolVersion": "2025-06-18", "capabilities": {},
             "clientInfo": {"name": "test", "version": "1"}}
    query = "SELECT LEVENSHTEIN(REPEAT('a', 200000), REPEAT('b', 200000))"
    call = {"name": "sql", "arguments": {"query": query, "seconds": 2}}
    yield {"id": 1, "method": "initialize", "params": hello}
    yield {"method": "notifications/initialized"}
    yield {"id": 2, "method": "tools/call", "params": call}

server = subprocess.Popen([sys.argv[1], "mcp", "--db", sys.argv[2]],
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE)
for message in messages():
    server.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\\n")
    server.stdin.flush()
    if "id" in message and message["id"] == 1:
        server.stdout.readline()

def any_child():
    tasks = Path(f"/proc/{server.pid}/task").glob("*/children")
    return [child for task in tasks for child in task.read_text().split()]

end = time.monotonic() + 20
while not (found := any_child()) and time.monotonic() < end:
    time.sleep(0.05)
time.sleep(1)
print("running" if Path(f"/proc/{found[0]}/stat").exists() else "over")
server.kill()
server.wait()
end = time.monotonic() + 10

def runs(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False

while runs(found[0]) and time.monotonic() < end:
    time.sleep(0.1)
print("still there" if runs(found[0]) else "gone")
"""
