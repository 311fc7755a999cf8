"""`memhouse report`: which page is written, to which file, and what is said of it."""

import re
import resource
import signal
import subprocess
import sys

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


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        (["llama-v5e"], "llama-v5e.jit_train_step.html"),
        (["llama-v5e", "--run", "2026-10-07"], "llama-v5e.jit_train_step.2026-10-07.html"),
        (["2026-10-07", "2026-10-08"], "2026-10-07..2026-10-08.html"),
        (["2026-10-07", "2026-10-08", "--workload", "llama-v5e"],
         "2026-10-07..2026-10-08.llama-v5e.html"),
        (["2026-10-07/llama-v5e", "2026-10-08/llama-v5e"],
         "2026-10-07_llama-v5e..2026-10-08_llama-v5e.html"),
        (["--history"], "history.html"),
        (["--history", "--workload", "decode-v5e"], "history.decode-v5e.html"),
    ],
)  # fmt: skip
def test_the_file_is_named_after_what_it_shows(history, folder, arguments, name):
    done = run_memhouse("report", *arguments, "--db", history)
    assert (done.returncode, done.stdout) == (0, "")
    assert [file.name for file in folder.iterdir()] == [name]
    assert re.match(rf"{re.escape(name)}: [\d.]+ [KM]iB, ", done.stderr)
    assert len(done.stderr.splitlines()) == 1


def test_the_note_tells_the_peak(history, folder):
    done = run_memhouse(
        "report", "llama-v5e", "--run", "2026-10-01", "-o", "x.html", "--db", history
    )
    assert re.fullmatch(r"x\.html: [\d.]+ [KM]iB, .*306\.98 MiB.*\n", done.stderr)
    assert TITLE.search((folder / "x.html").read_text())[1] == "llama-v5e/jit_train_step"


def test_a_report_is_written_over_an_older_one(history, folder):
    for run in ("2026-10-01", "2026-10-02"):
        done = run_memhouse("report", "decode-v5e", "--run", run, "-o", "x.html", "--db", history)
        assert done.returncode == 0, done.stderr
    assert [file.name for file in folder.iterdir()] == ["x.html"]


def test_an_empty_file_can_be_filled(history, folder):
    (folder / "x.html").touch()
    assert run_memhouse("report", "decode-v5e", "-o", "x.html", "--db", history).returncode == 0
    assert TITLE.search((folder / "x.html").read_text())


def test_a_file_that_is_no_report_is_not_written_over(history, folder):
    (folder / "train.py").write_text("import jax\n")
    done = run_memhouse("report", "decode-v5e", "-o", "train.py", "--db", history)
    assert done.returncode == 2
    assert "train.py is not a report of memhouse" in done.stderr
    assert (folder / "train.py").read_text() == "import jax\n"


def test_a_dash_is_standard_output(history):
    run = run_memhouse("report", "decode-v5e", "-o", "-", "--db", history)
    assert (run.returncode, run.stderr) == (0, "")
    assert run.stdout.startswith("<!DOCTYPE html>")
    assert run.stdout.rstrip().endswith("</html>")


def test_a_link_is_followed_and_a_device_stays(history, folder):
    (folder / "real.html").touch()
    (folder / "link.html").symlink_to("real.html")
    (folder / "nowhere").symlink_to("/dev/null")
    for name in ("link.html", "nowhere"):
        assert run_memhouse("report", "decode-v5e", "-o", name, "--db", history).returncode == 0
        assert (folder / name).is_symlink()
    assert TITLE.search((folder / "real.html").read_text())


@pytest.mark.slow
def test_a_site_tells_what_was_written(history, folder):
    first = run_memhouse("report", "--site", "pages", "--db", history)
    said = r"pages/index\.html: 5 pages written, 0 unchanged, [\d.]+ MiB in all\n"
    assert (first.returncode, first.stdout) == (0, "")
    assert re.fullmatch(said, first.stderr)
    again = run_memhouse("report", "--site", "pages", "--db", history)
    assert "0 pages written, 5 unchanged" in again.stderr


WRONG = {
    "nothing": ([], "name a module, two runs or modules to compare, --history, or --site DIR"),
    "a run of two": (["a", "b", "--run", "x"], "a comparison does not take --run"),
    "a space of two": (["a", "b", "--space", "1"], "a comparison does not take --space"),
    "a workload of one": (["a", "--workload", "w"], "a module's report does not take --workload"),
    "a branch of one": (["a", "--branch", "w"], "a module's report does not take --branch"),
    "the history of one": (["a", "--history"], "--history does not take a module"),
    "the history of a run": (["--history", "--run", "x"], "--history does not take --run"),
    "a site of one": (["a", "--site", "d"], "--site does not take a module"),
    "a site in a file": (["--site", "d", "-o", "x"], "--site does not take --output"),
    "both": (["--site", "d", "--history"], "--history does not take --site"),
    "no folder": (["a", "-o", "none/x.html"], "there is no folder none"),
    "no module": (["nothing-like-it"], "no module fits 'nothing-like-it'"),
    "no run": (["llama-v5e", "--run", "x"], "there is no run 'x'"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_does_not_go_together_is_one_line(history, folder, case):
    arguments, said = WRONG[case]
    done = run_memhouse("report", *arguments, "--db", history)
    told = " ".join(done.stderr.replace("│", " ").split())
    assert (done.returncode, done.stdout) == (2, "")
    assert said in told
    assert list(folder.iterdir()) == []


def test_a_folder_in_the_place_of_the_file(history, folder):
    (folder / "x.html").mkdir()
    done = run_memhouse("report", "decode-v5e", "-o", "x.html", "--db", history)
    assert (done.returncode, done.stdout) == (1, "")
    assert (
        done.stderr == "error: cannot write x.html: Is a directory: it is a folder, name a file\n"
    )
    assert [file.name for file in folder.iterdir()] == ["x.html"]


def test_a_file_in_the_place_of_the_site(history, folder):
    (folder / "pages").write_text("a file")
    done = run_memhouse("report", "--site", "pages", "--db", history)
    assert done.returncode == 1
    told = "Not a directory: a file is where a folder must be, name another folder"
    assert re.fullmatch(rf"error: cannot make pages[/\w]*: {told}\n", done.stderr)


def test_a_space_without_buffers_is_told(history, folder):
    done = run_memhouse("report", "decode-v5e", "--space", "9", "--db", history)
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr.endswith("KiB, no peak is known of memory space 9\n")
    (page,) = folder.iterdir()
    assert "This module has no buffers in memory space 9." in page.read_text()


@pytest.mark.slow
@pytest.mark.parametrize("target", [["decode-v5e", "-o", "x.html"], ["--site", "pages"]])
def test_a_full_disk_leaves_no_half_page(history, folder, target):
    def limit():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))

    command = [MEMHOUSE, "report", *target, "--db", history]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, preexec_fn=limit)
    assert (done.returncode, done.stdout) == (1, "")
    assert re.fullmatch(r"error: cannot write \S+: File too large: make room.*\n", done.stderr)
    assert [file for file in folder.rglob("*") if file.is_file()] == []


@pytest.mark.parametrize("package", ["bokeh", "jinja2", "squarify"])
@pytest.mark.parametrize("target", [["decode-v5e"], ["--history"], ["--site", "pages"]])
def test_a_missing_package_is_one_line(history, folder, package, target, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    done = run_memhouse("report", *target, "--db", history)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == ("error: install what reports need: pip install 'memhouse[report]'\n")
    assert list(folder.iterdir()) == []


def test_hostile_workloads_name_a_file_here(db, folder, tmp_path):
    copy_dump("cpu/jax-0.10.2/module_0018*", tmp_path / "night" / "..;$(id) <b>")
    assert run_memhouse("ingest", tmp_path / "night", "--db", db).returncode == 0
    done = run_memhouse("report", "$(id)", "--db", db)
    assert done.returncode == 0, done.stderr
    (file,) = folder.iterdir()
    assert re.fullmatch(r"_id_b_\.[\w.-]+\.html", file.name)


def test_help_fits_a_terminal():
    said = run_memhouse("report", "--help", env={"COLUMNS": "80"}).stdout
    assert max(map(len, said.splitlines())) <= 80
    # Typer 0.20 does not tell which arguments may be left out.
    assert re.search(r"report \[OPTIONS\] (MODULE B|\[MODULE\] \[B\])", said)
