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
    assert re.fullmatch(rf"{run}: 2 dumps, 2 new modules, .* in \d\.\d s\n", done.stderr)
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
        for _ in range(3)
    ]
    for process in started:
        process.communicate(timeout=60)
    assert [process.returncode for process in started] == [0, 0, 0]
    assert rows(place / "m.duckdb", "SELECT COUNT(DISTINCT run_id) FROM dumps") == [(3,)]


def copies(place):
    """Commands that compile a module 0000 of one name: a small program, and a larger one."""
    folder = place / "dumps/cpu/jax-0.10.2"
    folder.mkdir(parents=True)
    for file in (DUMPS / "cpu/jax-0.10.2").glob("module_0018*"):
        name = file.name.replace("module_0018.jit_mixed", "module_0000.jit_convert_element_type")
        (folder / name).write_bytes(file.read_bytes())
    larger = place / "larger.py"
    larger.write_text(
        re.sub(
            r"^DUMPS = .*$",
            f"DUMPS = Path({str(place / 'dumps')!r})",
            COMPILER.read_text(),
            flags=re.M,
        )
    )
    return [
        shlex.join(map(str, words)) for words in (compiling(SMALL), [sys.executable, larger, SMALL])
    ]


@pytest.mark.slow
def test_processes_of_a_command_do_not_overwrite_each_other(place):
    """Their programs are in order of their size, whoever is first."""
    both = copies(place)
    for script in (both, both[::-1]):
        assert record(place, *shell(" && ".join(script))).returncode == 0
    found = rows(
        place / "m.duckdb",
        "SELECT workload, total_bytes FROM dumps JOIN module_memory USING (module_id) ORDER BY ALL",
    )
    assert found == [("sh", 8), ("sh", 8), ("sh/2", 148383), ("sh/2", 148383)]
    # XLA writes the flags into one file for both.
    assert rows(place / "m.duckdb", "SELECT COUNT(*) FROM dumps WHERE flags_id IS NULL") == [(0,)]


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
    assert re.search(r"^memory ran out: memhouse oom sh-2\S+ says why$", done.stderr, re.MULTILINE)
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
    assert "kept/night is not empty" in again.stderr


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


@pytest.mark.parametrize("target", ["-", "gs://bucket/dumps", "sponge"])
def test_dumps_that_go_where_nothing_can_be_read(place, target):
    done = record(place, "echo", "ran", env={"XLA_FLAGS": f"--xla_dump_to={target}"})
    assert (done.returncode, done.stdout) == (2, "")
    assert f"XLA_FLAGS dumps to {target}" in " ".join(done.stderr.replace("│", "").split())


@pytest.mark.slow
def test_what_cannot_be_ingested_is_kept(place):
    """The warehouse becomes unreadable while the command runs."""
    breaks = f"{shlex.join(map(str, compiling(SMALL)))}; yes 'not a warehouse' | head -c9999 >"
    done = record(place, *shell(f"{breaks} m.duckdb"), options=["--label", "night=a b"])
    assert done.returncode == 1
    error, note = done.stderr.splitlines()
    assert error == f"error: {place}/m.duckdb is not a DuckDB database: name another file"
    again = shlex.split(note.partition(": ")[2])
    again[again.index("--db") + 1] = str(place / "other.duckdb")
    assert run_memhouse(*again[1:]).returncode == 0
    assert rows(place / "other.duckdb", "SELECT value FROM run_labels WHERE key = 'night'") == [
        ("a b",)
    ]
    (place / "m.duckdb").unlink()
    failed = record(place, *shell(f"{breaks} m.duckdb; exit 5"))
    assert failed.returncode == 5


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--only", "("], "not a regular expression"),
        (["--run", ""], "it is empty"),
        (["--replace"], "it needs --run NAME"),
        (["--db", "nowhere/m.duckdb"], "there is no folder nowhere"),
        (["--label", "x"], "KEY=VALUE"),
    ],
)
def test_what_is_wrong_is_said_before_the_command_runs(place, options, said):
    done = record(place, "echo", "ran", options=options)
    assert (done.returncode in (1, 2), done.stdout) == (True, "")
    assert said in done.stderr


def test_a_file_that_is_no_warehouse_is_told_before_the_command_runs(place):
    (place / "m.duckdb").write_text("not a warehouse" * 1000)
    done = record(place, "echo", "ran")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.endswith("m.duckdb is not a DuckDB database: name another file\n")


def test_a_run_that_is_there_is_told_before_the_command_runs(place):
    assert record(place, *compiling(SMALL), options=["--run", "A"]).returncode == 0
    done = record(place, "echo", "ran", options=["--run", "A"])
    assert (done.returncode, done.stdout) == (2, "")
    said = " ".join(done.stderr.replace("│", "").split())
    assert "run 'A' is there already: name another run, or replace it with --replace" in said
    assert record(place, "echo", "ran", options=["--run", "B"]).stdout == "ran\n"


def test_an_empty_database_is_filled(place):
    duckdb.connect(str(place / "m.duckdb")).close()
    assert record(place, *compiling(SMALL), options=["--run", "A"]).returncode == 0


def test_a_run_is_replaced_only_by_other_dumps(place):
    """XLA writes the temporary folder into the flags."""
    options = ["--run", "A", "--replace"]
    assert record(place, *compiling(MIXED), options=options).returncode == 0
    again = record(place, *compiling(MIXED), options=options)
    assert again.stderr.startswith("A: 1 dump, 0 new modules, 1 unchanged")
    other = record(place, *compiling(SMALL), options=options)
    assert other.returncode == 0
    assert other.stderr.startswith("replaced run A: 1 dump and 1 module of ")
    assert rows(place / "m.duckdb", PROGRAMS) == [("fake_compiler", "jit_convert_element_type")]


def test_a_run_made_meanwhile_is_not_replaced(place):
    compile_mixed, compile_small = (shlex.join(map(str, compiling(p))) for p in (MIXED, SMALL))
    inner = shlex.join([str(MEMHOUSE), "record", "--db", "m.duckdb", "--run", "A", "--"])
    done = record(
        place, *shell(f"{compile_mixed}; {inner} {compile_small}"), options=["--run", "A"]
    )
    assert done.returncode == 1
    assert "holds other dumps" in done.stderr
    assert "what was compiled is not ingested, but kept in" in done.stderr
    assert rows(place / "m.duckdb", PROGRAMS) == [("fake_compiler", "jit_convert_element_type")]


# --- when there is nothing to record --------------------------------------------------------


@pytest.mark.parametrize(
    ("script", "env", "options", "said"),
    [
        ("exit 0", {}, [], "XLA compiled no program, or the command sets XLA_FLAGS itself"),
        ("exit 3", {}, [], "the command ended with status 3 before XLA compiled a program"),
        ("exit 0", {}, ["--only", "step"], "no program was compiled whose name matches --only st"),
        ("exit 0", {"JAX_COMPILATION_CACHE_DIR": "c"}, [], "JAX_ENABLE_COMPILATION_CACHE=false"),
    ],
)
def test_nothing_compiled(place, script, env, options, said):
    done = record(place, *shell(script), env=env, options=options)
    assert done.returncode == int(script.split()[1])
    assert done.stderr.startswith("nothing to ingest: ")
    assert done.stderr.count("\n") == 2
    assert said in done.stderr
    # Else the run before would be judged in its place.
    assert rows(place / "m.duckdb", "SELECT COUNT(*) FROM runs") == [(1,)]
    assert run_memhouse("check", "--db", place / "m.duckdb").returncode == 3
    assert left(place) == []


@pytest.mark.slow
def test_cached_programs_are_named(place):
    done = record(place, *compiling(MIXED, "--cached"))
    assert "JAX took the program from its compilation cache" in done.stderr
    assert rows(place / "m.duckdb", "SELECT COUNT(*) FROM dumps") == [(0,)]
    (place / "m.duckdb").unlink()
    cached = shlex.join(map(str, compiling(MIXED, "--cached")))
    done = record(place, *shell(f"{cached}; {shlex.join(map(str, compiling(SMALL)))}"))
    assert "took them from its compilation cache: jit_mixed (1)" in done.stderr
    assert rows(place / "m.duckdb", PROGRAMS) == [("sh", "jit_convert_element_type")]


# --- the command runs as without it ---------------------------------------------------------


def test_a_cache_is_told_of_only_where_its_programs_cannot_be_told(place):
    """On CPU each program from the cache leaves a file; elsewhere that was not tried."""
    cache = {"JAX_COMPILATION_CACHE_DIR": "c"}
    assert "CACHE" not in record(place, *compiling(SMALL), env=cache).stderr
    assert "if JAX took programs from JAX_COMPI" in record(place, *compiling(TPU), env=cache).stderr


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


@pytest.mark.parametrize(
    ("command", "status"),
    [
        (shell("exit 7"), 7),
        (shell("kill -9 $$"), 137),
        (["no-such-command"], 127),
        (["/etc/passwd"], 126),
        (["./no-interpreter"], 126),
        (["true", "--help-of-its-own", "-h", "--db"], 0),
    ],
)
def test_the_exit_status_is_the_commands(place, command, status):
    (place / "no-interpreter").write_text("#!/no/such/program\n")
    (place / "no-interpreter").chmod(0o755)
    assert record(place, *command).returncode == status
    without_dashes = run_memhouse("record", *command, cwd=place)
    assert without_dashes.returncode == status
    assert left(place) == []


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


@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT", "SIGUSR1", "SIGHUP"])
def test_a_signal_is_sent_on_and_what_was_compiled_is_ingested(place, name):
    process = subprocess.Popen(
        [MEMHOUSE, "record", "--db", "m.duckdb", "--", *waiting(place, name)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=place,
        text=True,
        start_new_session=True,
        # Below `nohup` a process inherits that SIGHUP is ignored.
        preexec_fn=lambda: signal.signal(getattr(signal, name), signal.SIG_DFL),
    )
    assert process.stdout is not None
    while process.stdout.readline() != "ready\n":
        pass
    process.send_signal(getattr(signal, name))
    said, told = process.communicate(timeout=60)
    assert said == "count 1\n"
    assert process.returncode == 9
    assert "1 dump, 1 new module" in told
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
    assert b"1 dump, 1 new module" in said
    assert os.waitstatus_to_exitcode(status) == 9


@pytest.mark.slow
def test_a_command_that_dies_of_ctrl_c(place):
    process = subprocess.Popen(
        [MEMHOUSE, "record", "--db", "m.duckdb", "--", *shell("echo ready; exec sleep 30")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=place,
        start_new_session=True,
    )
    assert process.stdout.readline() == b"ready\n"
    os.killpg(process.pid, signal.SIGINT)
    _, told = process.communicate(timeout=60)
    assert process.returncode == 130
    assert told.startswith(b"nothing to ingest: the command ended with status 130")
    assert left(place) == []


def test_an_ignored_signal_stays_ignored(place):
    """`nohup` and shells that start a job in the background ignore signals for it."""
    command = shlex.join([str(MEMHOUSE), "record", "--", *shell("kill -HUP $$; echo on")])
    script = f"trap '' HUP; exec {command}"
    done = subprocess.run(shell(script), capture_output=True, text=True, cwd=place, timeout=60)
    assert (done.stdout, done.returncode) == ("on\n", 0)
