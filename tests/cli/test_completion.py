"""Completion of names from the warehouse, by the shells' own protocol and in real shells."""

import fcntl
import os
import pty
import select
import shutil
import subprocess
import termios
import time

import pytest

from ..promises.test_busy import held
from ..support.command import MEMHOUSE, run_memhouse
from ..support.made_runs import make_run

HOSTILE = ["$(touch pwned)", "`touch pwned`", "a; touch pwned", "it's", "-rf", "a\nb", "*", "a|b"]
HARMLESS = ["my run", "my other run", "host:1", "host:2", "tonight@2026-10-08", "日本"]


@pytest.fixture(scope="module")
def named(tmp_path_factory):
    """A warehouse whose runs have all kinds of names."""
    db = tmp_path_factory.mktemp("named") / "named.duckdb"
    for day, name in enumerate(HARMLESS + HOSTILE):
        branch = {"branch": "topic/one"} if name == "my run" else {}
        make_run(db, name, {"a/jit_f": 1}, day=day, **branch)
    return db


def completed(*words, shell="bash", cwd=None, **environment):
    """What a shell is answered for these words, the last of which is not finished."""
    typed = {
        "COMP_WORDS": "\n".join(["memhouse", *words]),
        "COMP_CWORD": str(len(words)),
        "_TYPER_COMPLETE_ARGS": " ".join(["memhouse", *words]),
        "_TYPER_COMPLETE_FISH_ACTION": "get-args",
    }
    # Completion widens the terminal; what is set here is put back.
    asked = {"_MEMHOUSE_COMPLETE": f"complete_{shell}", "COLUMNS": "80", **typed, **environment}
    done = run_memhouse(cwd=cwd, env=asked)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


NIGHTS = [f"2026-10-{day:02}" for day in range(10, 0, -1)]
FITS = {
    ("owners", "de"): ["decode-v5e"],
    ("owners", "--by", "scope", "res"): ["resnet-h100"],
    ("owners", "--callers=1", "res"): ["resnet-h100"],
    ("peaks", "--run", ""): NIGHTS,
    ("peaks", "--workload", "llama-c"): ["llama-cpu"],
    ("diff", "2026-10-01", "2026-10-1"): ["2026-10-10"],
    ("prune", "2026-10-01", "2026-10-02", "2026-10-03", "2026-10-1"): ["2026-10-10"],
    ("diff", "2026-10-01", "2026-10-02", ""): [],
    ("views", "saved"): ["saved_for_backward"],
    ("tables", "run_l"): ["run_labels"],
    ("export", "metr"): ["metrics"],
    ("owners", "--by", "s"): ["source", "scope"],
    ("owners", "--wi"): ["--wide"],
    ("lake", "va"): ["vacuum"],
    ("ow",): ["owners"],
    ("owners", "nothing"): [],
}


def test_what_fits(own, named, tmp_path):
    """The warehouse is the variable's, that of the folder, or the one that the line names."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    found = {words: completed(*words, cwd=elsewhere, MEMHOUSE_DB=str(own)) for words in FITS}
    assert found == FITS
    line = ["--db", str(own), "--callers=1", "res"]
    assert completed("owners", *line, cwd=elsewhere) == ["resnet-h100"]
    assert own == tmp_path / "memhouse.duckdb"
    assert completed("owners", "res", cwd=tmp_path) == ["resnet-h100"]
    assert completed("trends", "--branch", "", MEMHOUSE_DB=str(named)) == ["topic/one"]


def test_names_that_a_shell_could_run_are_left_out(named):
    for shell in ("bash", "zsh", "fish"):
        found = "\n".join(completed("peaks", "--run", "", shell=shell, MEMHOUSE_DB=str(named)))
        assert [name for name in HOSTILE[:4] if name in found] == []
        assert "host:1" in found
        assert "tonight@2026-10-08" in found


def test_without_a_warehouse_nothing_fits_and_nothing_is_made(tmp_path):
    (tmp_path / "damaged.duckdb").write_bytes(b"\0" * 50_000)
    (tmp_path / "text.duckdb").write_text("not a database")
    before = {file: file.read_bytes() for file in tmp_path.iterdir()}
    for db in (*before, tmp_path / "none.duckdb", tmp_path):
        for shell, answer in (("bash", []), ("zsh", ["_files"]), ("fish", [])):
            found = completed("owners", "", shell=shell, cwd=tmp_path, MEMHOUSE_DB=str(db))
            assert found in (answer, [""]), (db, shell)
    assert {file: file.read_bytes() for file in tmp_path.iterdir()} == before


def test_what_is_read_stays_as_it_is_and_is_not_waited_for(own, tmp_path):
    before = own.read_bytes()
    assert completed("owners", "", MEMHOUSE_DB=str(own))
    assert own.read_bytes() == before
    assert list(tmp_path.iterdir()) == [own]
    with held(own):
        assert completed("owners", "", MEMHOUSE_DB=str(own)) == []


# In a real shell: what is typed before TAB, the command's words then.
TYPED = [
    ("memhouse peaks --run my\\ r", ["memhouse", "peaks", "--run", "my run"]),
    ("memhouse peaks --run host:2", ["memhouse", "peaks", "--run", "host:2"]),
    ("memhouse peaks --run tonight@20", ["memhouse", "peaks", "--run", "tonight@2026-10-08"]),
    ("memhouse peaks --run toni", ["memhouse", "peaks", "--run", "tonight@2026-10-08"]),
    ("memhouse label my\\ o", ["memhouse", "label", "my other run"]),
    ("memhouse view", ["memhouse", "views"]),
]
SHELLS = {
    "bash": (["bash", "--norc", "--noprofile", "-i"], 'eval "$({source})"'),
    "zsh": (
        ["zsh", "-f", "-i"],
        'bindkey -e; autoload -Uz compinit; compinit -u; eval "$({source})"',
    ),
    "fish": (["fish", "--no-config", "-i"], "{source} | source"),
}


def typed_in(shell, lines, db, folder):
    """What a shell prints that is started on a terminal, and typed to."""
    command, set_up = SHELLS[shell]
    source = f"env _MEMHOUSE_COMPLETE=source_{shell} memhouse"
    environment = {k: v for k, v in os.environ.items() if not k.startswith("COMP_")} | {
        "PATH": f"{MEMHOUSE.parent}{os.pathsep}{os.environ['PATH']}",
        "MEMHOUSE_DB": str(db),
        "TERM": "dumb" if shell == "zsh" else "xterm",
        "HOME": str(folder),
    }
    leader, follower = pty.openpty()
    process = subprocess.Popen(
        command,
        stdin=follower,
        stdout=follower,
        stderr=follower,
        cwd=folder,
        env=environment,
        start_new_session=True,
        # fish wants a terminal that is its own.
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
    )
    os.close(follower)
    shown = ""

    def read_until(text, seconds):
        nonlocal shown
        end = time.monotonic() + seconds
        while text not in shown and time.monotonic() < end:
            if select.select([leader], [], [], 0.1)[0]:
                shown += os.read(leader, 65536).decode(errors="replace")

    try:
        os.write(leader, f"{set_up.format(source=source)}; echo rea''dy\n".encode())
        read_until("ready", 30)
        answers = []
        for line in lines:
            shown = ""
            os.write(leader, f"{line}\t".encode())
            # The answer of the completion changes the line; then it is printed, not run.
            read_until("\0", 4)
            os.write(leader, b"\x01printf '<%s>' \x05; echo do''ne\n")
            read_until("done", 30)
            answers.append(shown)
        return answers
    finally:
        process.kill()
        process.wait()
        os.close(leader)


@pytest.mark.slow
@pytest.mark.scheduled
@pytest.mark.parametrize("shell", SHELLS)
def test_in_a_real_shell(named, tmp_path, shell):
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    answers = typed_in(shell, [line for line, _ in TYPED], named, tmp_path)
    for (line, words), shown in zip(TYPED, answers, strict=True):
        assert "".join(f"<{word}>" for word in words) in shown, f"{line}: {shown}"
    assert not (tmp_path / "pwned").exists()
