"""`memhouse report`: which page is written, to which file, and what is said of it."""

import os
import re
import resource
import signal
import subprocess

import pytest

from ..support.command import MEMHOUSE, run_memhouse
from ..support.dumps import copy_dump

TITLE = re.compile(r"<title>(.*)</title>")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty folder to be in."""
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path / "here"


def test_the_file_is_named_after_what_it_shows(history, folder):
    named = {
        ("llama-v5e", "--run", "2026-10-01"): "llama-v5e.jit_train_step.2026-10-01.html",
        ("2026-10-07", "2026-10-08", "--workload", "decode-v5e"):
            "2026-10-07..2026-10-08.decode-v5e.html",
        ("2026-10-07/decode-v5e", "2026-10-08/decode-v5e"):
            "2026-10-07_decode-v5e..2026-10-08_decode-v5e.html",
        ("--history", "--workload", "decode-v5e"): "history.decode-v5e.html",
    }  # fmt: skip
    for arguments, name in named.items():
        done = run_memhouse("report", *arguments, "--db", history)
        assert (done.returncode, done.stdout) == (0, "")
        assert re.fullmatch(rf"{re.escape(name)}: [\d.]+ [KM]iB, .*\n", done.stderr)
        (file,) = folder.iterdir()
        assert file.name == name
        if "llama-v5e" in arguments:
            assert "306.98 MiB" in done.stderr
            assert TITLE.search(file.read_text())[1] == "llama-v5e/jit_train_step"
        file.unlink()


def test_where_a_report_may_be_written(history, folder):
    """To an empty file through a link, over an older one, to a device or standard output."""
    pages = ("2026-10-07/decode-v5e", "2026-10-08/decode-v5e", "--db", history)
    (folder / "real.html").touch()
    (folder / "link.html").symlink_to("real.html")
    (folder / "nowhere").symlink_to("/dev/null")
    for name in ("link.html", "real.html", "nowhere"):
        done = run_memhouse("report", *pages, "-o", name)
        assert done.returncode == 0, done.stderr
    assert (folder / "link.html").is_symlink()
    assert (folder / "nowhere").is_symlink()
    assert TITLE.search((folder / "real.html").read_text())
    (folder / "train.py").write_text("import jax\n")
    done = run_memhouse("report", *pages, "-o", "train.py")
    assert done.returncode == 2
    assert "train.py" in done.stderr
    assert run_memhouse("report", "--site", "train.py", "--db", history).returncode == 1
    assert (folder / "train.py").read_text() == "import jax\n"
    (folder / "x.html").mkdir()
    done = run_memhouse("report", *pages, "-o", "x.html")
    assert (done.returncode, done.stdout) == (1, "")
    assert "x.html" in done.stderr
    assert len(list(folder.iterdir())) == 5
    shown = run_memhouse("report", *pages, "-o", "-")
    assert (shown.returncode, shown.stderr) == (0, "")
    assert shown.stdout.startswith("<!DOCTYPE html>")
    assert shown.stdout.rstrip().endswith("</html>")


def test_what_does_not_go_together_is_told_and_nothing_is_written(history, folder):
    wrong = {
        (): "--history",
        ("a", "b", "--run", "x"): "--run",
        ("a", "b", "--space", "1"): "--space",
        ("a", "--workload", "w"): "--workload",
        ("a", "--branch", "w"): "--branch",
        ("a", "--history"): "--history",
        ("--history", "--run", "x"): "--run",
        ("a", "--site", "d"): "--site",
        ("--site", "d", "-o", "x"): "--output",
        ("--site", "d", "--history"): "--history",
        ("a", "-o", "none/x.html"): "none",
        ("nothing-like-it",): "'nothing-like-it'",
        ("llama-v5e", "--run", "x"): "'x'",
    }
    failures = []
    for arguments, named in wrong.items():
        done = run_memhouse("report", *arguments, "--db", history)
        if (done.returncode, done.stdout) != (2, "") or named not in done.stderr:
            failures.append((arguments, done.returncode, done.stderr))
    assert failures == []
    assert list(folder.iterdir()) == []


def test_a_space_without_buffers_is_told(history, folder):
    done = run_memhouse("report", "decode-v5e", "--space", "9", "--db", history)
    assert (done.returncode, done.stdout) == (0, "")
    assert "memory space 9" in done.stderr
    (page,) = folder.iterdir()
    assert "memory space 9" in page.read_text()


@pytest.mark.slow
@pytest.mark.parametrize("target", [["decode-v5e", "-o", "x.html"], ["--site", "pages"]])
def test_a_full_disk_leaves_no_half_page(history, folder, target):
    def limit():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))

    command = [MEMHOUSE, "report", *target, "--db", history]
    # Else Python 3.11 may leave half of a module's bytecode behind.
    environment = os.environ | {"PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=60, preexec_fn=limit
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert re.fullmatch(r"error: [^\n]*File too large[^\n]*\n", done.stderr)
    assert [file for file in folder.rglob("*") if file.is_file()] == []


def test_hostile_workloads_name_a_file_here(db, folder, tmp_path):
    copy_dump("cpu/jax-0.10.2/module_0018*", tmp_path / "night" / "..;$(id) <b>")
    assert run_memhouse("ingest", tmp_path / "night", "--db", db).returncode == 0
    done = run_memhouse("report", "$(id)", "--db", db)
    assert done.returncode == 0, done.stderr
    (file,) = folder.iterdir()
    assert re.fullmatch(r"_id_b_\.[\w.-]+\.html", file.name)
