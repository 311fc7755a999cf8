"""`memhouse record`: the command runs as without it, and what it compiled is a run."""

import os
import pty
import re
import shlex
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import duckdb
import pytest

from ..support.command import MEMHOUSE, run_memhouse
from ..support.dumps import DUMPS
from ..support.warehouse import rows

COMPILER = Path(__file__).parents[1] / "support/fake_compiler.py"
MIXED = "cpu/jax-0.10.2/module_0018*"
TPU = "tpu/flash-v5e/module_*"
SMALL = "cpu/jax-0.10.2/module_0000*"
PROGRAMS = "SELECT workload, module_name FROM dumps ORDER BY ALL"


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder to run in, with a folder of its own for temporary files."""
    (tmp_path / "tmp").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    for name in ("XLA_FLAGS", "JAX_COMPILATION_CACHE_DIR", "JAX_ENABLE_COMPILATION_CACHE"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def record(place, *args, options=(), stdin=None, env=None):
    return run_memhouse(
        "record", "--db", place / "m.duckdb", *options, "--", *args, cwd=place, stdin=stdin, env=env
    )


def compiling(*patterns):
    return [sys.executable, COMPILER, *patterns]


def shell(script):
    return ["/bin/sh", "-c", script]


def left(place):
    """What is left of the temporary files."""
    return list((place / "tmp").iterdir())


def labels(place):
    return dict(rows(place / "m.duckdb", "SELECT key, value FROM run_labels"))


# --- what it records ------------------------------------------------------------------------


def test_what_a_command_compiles_is_a_run(place):
    done = record(place, *compiling(MIXED, SMALL))
    assert done.returncode == 0
    assert rows(place / "m.duckdb", PROGRAMS) == [
        ("fake_compiler", "jit_convert_element_type"),
        ("fake_compiler", "jit_mixed"),
    ]
    ((run, source, seconds),) = rows(
        place / "m.duckdb", "SELECT run_id, source, epoch(ingested_at - run_at) FROM runs"
    )
    assert re.fullmatch(r"fake_compiler-\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d", run)
    assert source == shlex.join(map(str, compiling(MIXED, SMALL)))
    assert 0 <= seconds < 60
    assert re.fullmatch(rf"{run}: 2 \w+, 2 .*\n", done.stderr)
    assert left(place) == []


@pytest.mark.slow
def test_the_users_flags_stay(place):
    said = record(place, *compiling(SMALL), env={"XLA_FLAGS": "--xla_cpu_max_isa=AVX"}).stdout
    assert said.startswith("--xla_cpu_max_isa=AVX --xla_dump_hlo_as_proto=true ")
    (place / "flags").write_text("--xla_cpu_max_isa=SSE4_2\n")
    said = record(place, *compiling(SMALL), env={"XLA_FLAGS": "flags"}).stdout
    assert said.startswith("--xla_cpu_max_isa=SSE4_2 --xla_dump_hlo_as_proto=true ")


@pytest.mark.slow
def test_a_run_is_labelled_with_what_made_it(place):
    git = ["git", "-c", "user.name=n", "-c", "user.email=e"]
    script = place / "train.py"
    script.write_text(COMPILER.read_text().replace("__file__", repr(str(COMPILER))))
    for words in (["init", "-b", "topic"], ["add", "train.py"], ["commit", "-m", "first"]):
        subprocess.run([*git, *words], cwd=place, check=True, capture_output=True)
    commit = subprocess.run(["git", "rev-parse", "HEAD"], cwd=place, capture_output=True, text=True)
    done = record(place, sys.executable, script, SMALL, options=["--label", "night=1"])
    assert done.returncode == 0
    found = labels(place)
    assert (
        found.items()
        >= {
            "commit": commit.stdout.strip(),
            "branch": "topic",
            "dirty": "false",
            "suite": "train",
            "night": "1",
            "command": shlex.join([sys.executable, str(script), SMALL]),
        }.items()
    )
    assert found["host"]
    script.write_text(script.read_text() + "# changed\n")
    record(place, sys.executable, script, MIXED, options=["--label", "host="])
    newest = "SELECT key, value FROM run_labels SEMI JOIN (SELECT * FROM runs WHERE run_seq = 2)"
    found = dict(rows(place / "m.duckdb", f"{newest} USING (run_id)"))
    assert found["dirty"] == "true"
    assert "host" not in found


@pytest.mark.slow
def test_versions_are_those_of_the_commands_python(place):
    """A Python of another environment, with packages of its own."""
    for package, version in (("jax", "0.9.9"), ("libtpu_nightly", "0.1.dev2")):
        metadata = place / f"packages/{package}-{version}.dist-info/METADATA"
        metadata.parent.mkdir(parents=True)
        name = package.replace("_", "-")
        metadata.write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    # A file named like a module is not run by the question for versions.
    (place / "importlib.py").write_text("open('ran', 'w')")
    other = place / "python3"
    other.write_text(
        f'#!/bin/sh\nPYTHONPATH={place}/packages exec {shlex.quote(sys.executable)} "$@"\n'
    )
    other.chmod(0o755)
    assert record(place, other, COMPILER, SMALL).returncode == 0
    found = labels(place)
    assert (found["jax"], found["libtpu"]) == ("0.9.9", "0.1.dev2")
    assert not (place / "ran").exists()


@pytest.mark.slow
def test_two_commands_of_one_second_are_two_runs(place):
    """Both are recorded: neither becomes part of the other's run."""
    started = [
        subprocess.Popen(
            [MEMHOUSE, "record", "--db", place / "m.duckdb", "--", *compiling(SMALL)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        for _ in range(2)
    ]
    for process in started:
        process.communicate(timeout=60)
    assert [process.returncode for process in started] == [0, 0]
    assert rows(place / "m.duckdb", "SELECT COUNT(DISTINCT run_id) FROM dumps") == [(2,)]


@pytest.mark.slow
def test_the_warehouse_is_not_held_while_the_command_runs(place):
    ingest = [MEMHOUSE, "ingest", "--db", place / "m.duckdb", "--wait", "0"]
    dumps = DUMPS / "cpu/jax-0.9.0"
    inner = shlex.join(map(str, [*ingest, dumps]))
    script = f"{inner} && {shlex.join(map(str, compiling(SMALL)))}"
    assert record(place, *shell(script)).returncode == 0
    assert rows(place / "m.duckdb", "SELECT COUNT(*) FROM runs") == [(2,)]


def test_out_of_memory_is_hinted_at(place):
    done = record(place, *shell(f"{shlex.join(map(str, compiling(TPU, '--oom')))}; exit 1"))
    assert done.returncode == 1
    assert re.search(r"memhouse oom sh-2\S+\n", done.stderr)
    assert rows(place / "m.duckdb", "SELECT oom FROM dumps") == [(True,)]


# --- where the dumps are --------------------------------------------------------------------


@pytest.mark.slow
def test_dumps_are_kept_where_the_user_says(place):
    done = record(place, *compiling(MIXED), options=["--keep", "kept/night", "--only", "mi[xX]ed"])
    assert done.returncode == 0
    assert "--xla_dump_hlo_module_re=mi[xX]ed" in done.stdout
    folder = place / "kept/night/fake_compiler"
    assert all(file.name.startswith("module_0018.jit_mixed.") for file in folder.iterdir())
    assert rows(place / "m.duckdb", "SELECT source FROM runs") == [("kept/night",)]
    again = record(place, *compiling(MIXED), options=["--keep", "kept/night"])
    assert (again.returncode, again.stdout) == (2, "")
    assert "kept/night" in again.stderr


@pytest.mark.slow
def test_of_the_users_own_dump_folder_only_what_is_new_is_ingested(place):
    own = {"XLA_FLAGS": "--xla_dump_to=mine"}
    subprocess.run(
        compiling(MIXED), cwd=place, env=os.environ | own, check=True, stdout=subprocess.DEVNULL
    )
    done = record(place, *compiling(SMALL), env=own)
    assert done.returncode == 0
    assert "include_timestamp" not in done.stdout
    assert rows(place / "m.duckdb", PROGRAMS) == [("fake_compiler", "jit_convert_element_type")]
    assert len(list((place / "mine").glob("module_0018*"))) > 3
    assert left(place) == []


@pytest.mark.slow
def test_what_cannot_be_ingested_is_kept(place):
    """The warehouse becomes unreadable while the command runs."""
    breaks = f"{shlex.join(map(str, compiling(SMALL)))}; yes 'not a warehouse' | head -c9999 >"
    done = record(place, *shell(f"{breaks} m.duckdb"), options=["--label", "night=a b"])
    assert done.returncode == 1
    error, note = done.stderr.splitlines()
    assert error.startswith(f"error: {place}/m.duckdb ")
    again = shlex.split(note.partition(": ")[2])
    again[again.index("--db") + 1] = str(place / "other.duckdb")
    assert run_memhouse(*again[1:]).returncode == 0
    assert rows(place / "other.duckdb", "SELECT value FROM run_labels WHERE key = 'night'") == [
        ("a b",)
    ]
    (place / "m.duckdb").unlink()
    failed = record(place, *shell(f"{breaks} m.duckdb; exit 5"))
    assert failed.returncode == 5


def test_what_is_wrong_is_said_before_the_command_runs(place):
    (place / "text.duckdb").write_text("not a warehouse" * 1000)
    assert record(place, *compiling(SMALL), options=["--run", "A"]).returncode == 0
    wrong = {
        ("--only", "("): "--only",
        ("--run", ""): "--run",
        ("--replace",): "--run NAME",
        ("--db", "nowhere/m.duckdb"): "nowhere",
        ("--label", "x"): "KEY=VALUE",
        ("--db", "text.duckdb"): "text.duckdb",
        ("--run", "A"): "'A'",
    }
    failures = []
    for options, named in wrong.items():
        done = record(place, "echo", "ran", options=options)
        if (done.returncode not in (1, 2)) or done.stdout or named not in done.stderr:
            failures.append((options, done))
    # Where nothing can be read from.
    for target in ("-", "gs://bucket/dumps", "sponge"):
        done = record(place, "echo", "ran", env={"XLA_FLAGS": f"--xla_dump_to={target}"})
        if (done.returncode, done.stdout) != (2, "") or target not in done.stderr:
            failures.append((target, done))
    assert failures == []
    assert record(place, "echo", "ran", options=["--run", "B"]).stdout == "ran\n"


def test_an_empty_database_is_filled(place):
    duckdb.connect(str(place / "m.duckdb")).close()
    assert record(place, *compiling(SMALL), options=["--run", "A"]).returncode == 0


def test_a_run_is_replaced_only_by_other_dumps(place):
    """XLA writes the temporary folder into the flags."""
    options = ["--run", "A", "--replace"]
    assert record(place, *compiling(MIXED), options=options).returncode == 0
    again = record(place, *compiling(MIXED), options=options)
    assert re.match(r"A: 1 \w+, 0 [\w ]+, 1 unchanged", again.stderr)
    other = record(place, *compiling(SMALL), options=options)
    assert other.returncode == 0
    assert other.stderr.startswith("replaced run A")
    assert rows(place / "m.duckdb", PROGRAMS) == [("fake_compiler", "jit_convert_element_type")]


@pytest.mark.slow
def test_a_run_made_meanwhile_is_not_replaced(place):
    compile_mixed, compile_small = (shlex.join(map(str, compiling(p))) for p in (MIXED, SMALL))
    inner = shlex.join([str(MEMHOUSE), "record", "--db", "m.duckdb", "--run", "A", "--"])
    done = record(
        place, *shell(f"{compile_mixed}; {inner} {compile_small}"), options=["--run", "A"]
    )
    assert done.returncode == 1
    assert "memhouse ingest" in done.stderr
    assert list((place / "tmp").rglob("*module_0018*")) != []
    assert rows(place / "m.duckdb", PROGRAMS) == [("fake_compiler", "jit_convert_element_type")]


# --- when there is nothing to record --------------------------------------------------------


def test_nothing_compiled(place):
    cache = {"JAX_COMPILATION_CACHE_DIR": "c"}
    tries = [
        ("exit 0", {}, [], "XLA_FLAGS"),
        ("exit 3", {}, [], "3"),
        ("exit 0", {}, ["--only", "step"], "step"),
        ("exit 0", cache, [], "JAX_ENABLE_COMPILATION_CACHE=false"),
    ]
    for number, (script, env, options, named) in enumerate(tries):
        done = record(place, *shell(script), env=env, options=[*options, "--run", str(number)])
        assert done.returncode == int(script.split()[1])
        assert done.stderr.startswith("nothing to ingest: ")
        assert named in done.stderr
        # Else the run before would be judged in its place.
        assert len(rows(place / "m.duckdb", "SELECT run_id FROM runs")) == number + 1
    assert run_memhouse("check", "--db", place / "m.duckdb").returncode == 3
    assert left(place) == []


@pytest.mark.slow
def test_cached_programs_are_named(place):
    done = record(place, *compiling(MIXED, "--cached"))
    assert "compilation cache" in done.stderr
    assert rows(place / "m.duckdb", "SELECT COUNT(*) FROM dumps") == [(0,)]
    (place / "m.duckdb").unlink()
    cached = shlex.join(map(str, compiling(MIXED, "--cached")))
    done = record(place, *shell(f"{cached}; {shlex.join(map(str, compiling(SMALL)))}"))
    assert "jit_mixed (1)" in done.stderr
    assert rows(place / "m.duckdb", PROGRAMS) == [("sh", "jit_convert_element_type")]


# --- the command runs as without it ---------------------------------------------------------


@pytest.mark.slow
def test_a_cache_is_told_of_only_where_its_programs_cannot_be_told(place):
    """On CPU each program from the cache leaves a file; elsewhere that was not tried."""
    cache = {"JAX_COMPILATION_CACHE_DIR": "c"}
    assert "CACHE" not in record(place, *compiling(SMALL), env=cache).stderr
    told = record(place, *compiling(TPU), env=cache)
    assert "JAX_COMPILATION_CACHE_DIR" in told.stderr


def test_streams_are_passed_through_byte_by_byte(place):
    sent = bytes(range(256)) * 4096
    done = subprocess.run(
        [MEMHOUSE, "record", "--", *shell("cat; echo told >&2")],
        input=sent,
        capture_output=True,
        cwd=place,
        timeout=60,
    )
    assert done.stdout == sent
    assert done.stderr.startswith(b"told\n")


def test_open_files_are_passed_on(place):
    reader, writer = os.pipe()
    os.write(writer, b"given")
    os.close(writer)
    done = subprocess.run(
        [MEMHOUSE, "record", "--", sys.executable, "-c", f"print(open({reader}).read())"],
        pass_fds=[reader],
        capture_output=True,
        cwd=place,
        timeout=60,
    )
    assert done.stdout == b"given\n"


def test_the_exit_status_is_the_commands(place):
    """With dashes before the command, and without."""
    (place / "no-interpreter").write_text("#!/no/such/program\n")
    (place / "no-interpreter").chmod(0o755)
    statuses = {
        (*shell("exit 7"),): 7,
        ("no-such-command",): 127,
        ("/etc/passwd",): 126,
        ("./no-interpreter",): 126,
        ("true", "--help-of-its-own", "-h", "--db"): 0,
    }
    for command, status in statuses.items():
        assert record(place, *command).returncode == status, command
    assert run_memhouse("record", *shell("exit 7"), cwd=place).returncode == 7
    assert run_memhouse("record", "true", "-h", "--db", cwd=place).returncode == 0
    assert left(place) == []


def test_what_a_command_compiled_before_it_was_killed_is_a_run(place):
    done = record(place, *shell(f"{shlex.join(map(str, compiling(SMALL)))}; kill -9 $$"))
    assert done.returncode == 128 + signal.SIGKILL
    assert rows(place / "m.duckdb", PROGRAMS) == [("sh", "jit_convert_element_type")]


# Says when it is ready, and how often it was interrupted.
WAITS = """
import signal, sys, time
count = 0
def interrupted(number, frame):
    global count
    count += 1
signal.signal(getattr(signal, sys.argv[1]), interrupted)
print("ready", flush=True)
end = time.monotonic() + 30
while not count and time.monotonic() < end:
    time.sleep(0.02)
time.sleep(0.3)
print("count", count, flush=True)
sys.exit(9)
"""


def waiting(place, name):
    """The command that compiles, waits for a signal and says how often it came."""
    (place / "waits.py").write_text(WAITS)
    return shell(
        f"{shlex.join(map(str, compiling(SMALL)))}; "
        f"exec {shlex.quote(sys.executable)} waits.py {name}"
    )


def test_a_signal_is_sent_on_and_what_was_compiled_is_ingested(place):
    process = subprocess.Popen(
        [MEMHOUSE, "record", "--db", "m.duckdb", "--", *waiting(place, "SIGTERM")],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=place,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None
    while process.stdout.readline() != "ready\n":
        pass
    process.send_signal(signal.SIGTERM)
    said, told = process.communicate(timeout=60)
    assert said == "count 1\n"
    assert process.returncode == 9
    assert " 1 new module" in told
    assert left(place) == []


@pytest.mark.slow
def test_ctrl_c_reaches_the_command_once(place):
    """On a terminal, which sends the signal to both."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(place)
        os.execv(
            MEMHOUSE, ["memhouse", "record", "--db", "m.duckdb", "--", *waiting(place, "SIGINT")]
        )
    said = b""
    sent = False
    with suppress(OSError):  # The terminal is closed.
        while piece := os.read(terminal, 4096):
            said += piece
            if b"ready" in said and not sent:
                os.write(terminal, b"\x03")
                sent = True
    _, status = os.waitpid(pid, 0)
    assert b"count 1" in said
    assert b" 1 new module" in said
    assert os.waitstatus_to_exitcode(status) == 9


@pytest.mark.slow
def test_an_ignored_signal_stays_ignored(place):
    """`nohup` and shells that start a job in the background ignore signals for it."""
    command = shlex.join([str(MEMHOUSE), "record", "--", *shell("kill -HUP $$; echo on")])
    script = f"trap '' HUP; exec {command}"
    done = subprocess.run(shell(script), capture_output=True, text=True, cwd=place, timeout=60)
    assert (done.stdout, done.returncode) == ("on\n", 0)
