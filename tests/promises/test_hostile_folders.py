"""Folders with whatever may lie there: links, pipes, files that cannot be read or are gone."""

import os
import socket
import subprocess
import sys
import tarfile
import time
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path

import pytest

from memhouse.ingest.sources import files as sources
from memhouse.ingest.sources.files import open_source

from ..support.command import run_memhouse
from ..support.dumps import copy_dump, one_file
from ..support.warehouse import everything, fill, rows

SEED = "seeds/002*"
GOOD = [(".", "002_79ae6c566c7e6550", "ok")]
FOUND = "SELECT workload, module_name, status FROM dumps"


@pytest.fixture
def folder(tmp_path):
    """A folder with a good dump in it."""
    return copy_dump(SEED, tmp_path / "night")


def said_of(db, path):
    (summary,) = fill(db, path)
    assert all("\n" not in problem for problem in summary.problems)
    return summary.problems


def loop(path):
    path.symlink_to(path.name)


def dangling(path):
    path.symlink_to("gone")


def listening(path):
    server = socket.socket(socket.AF_UNIX)
    here = Path.cwd()
    # A socket's whole path may have a hundred bytes, its name in the folder is short.
    os.chdir(path.parent)
    try:
        server.bind(path.name)
    finally:
        os.chdir(here)
        server.close()


def device(path):
    path.symlink_to("/dev/zero")


@pytest.mark.parametrize("make", [loop, dangling, listening, os.mkfifo])
@pytest.mark.parametrize("name", ["x-live-range.txt", "x.tar", "x.tar.gz"])
def test_what_is_no_file_is_named_and_not_waited_for(folder, db, make, name):
    make(folder / name)
    assert said_of(db, folder) == [f"{folder / name}: not a file that can be read"]
    assert rows(db, FOUND) == GOOD


@pytest.mark.parametrize("make", [loop, dangling, listening, device, os.mkfifo])
def test_a_path_that_is_no_file_is_named(tmp_path, make):
    make(tmp_path / "x")
    run = run_memhouse("ingest", "x", cwd=tmp_path)
    (line,) = run.stderr.splitlines()
    assert run.returncode == 1
    assert line.startswith("error: x: not a file") or line.startswith("error: x: there is no")


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has /proc")
def test_a_file_that_fails_in_reading_is_named(tmp_path, db):
    """Named by the user himself, a link is followed wherever it leads."""
    link = tmp_path / "x-live-range.txt"
    link.symlink_to("/proc/self/mem")
    problem, *missing = said_of(db, link)
    assert "x-live-range.txt: the file cannot be read: " in problem
    assert all("is missing" in line for line in missing)


@pytest.fixture
def secret(tmp_path):
    """What lies beside the folder, and whose first line nothing may print."""
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/secret.txt").write_text("ssh-secret\n")
    with tarfile.open(tmp_path / "outside/secret.tar", "w") as tar:
        tar.add(tmp_path / "outside/secret.txt", "x-live-range.txt")
    return tmp_path / "outside"


@pytest.mark.parametrize("command", ["ingest", "doctor"])
@pytest.mark.parametrize(
    ("name", "target", "times"),
    [
        ("x-live-range.txt", "secret.txt", 1),
        ("x.log", "secret.txt", 1),
        ("x.tar", "secret.tar", 1),
        ("deep", "", 1),
        ("deep", "../../..", 1),
        ("x.html", "secret.txt", 0),
        # By another link of the folder.
        ("a/x-live-range.txt", "secret.txt", 1),
    ],
)
def test_a_link_out_of_the_folder_is_counted_and_not_followed(
    folder, secret, command, name, target, times, db
):
    (folder / "a").mkdir()
    (folder / "b").symlink_to("a")
    (folder / name).symlink_to(os.path.relpath(secret / target, (folder / name).parent))
    (folder / "home").symlink_to("b")
    options = ["--db", db] if command == "ingest" else []
    run = run_memhouse(command, folder, *options, env={"COLUMNS": "2000"})
    said = run.stderr + run.stdout
    assert "ssh-secret" not in said
    told = f"error: {folder}: 1 link leads out of the folder, not followed: {name}: name what is"
    assert said.count(told) == times
    if command == "ingest":
        assert run.returncode == times
        assert rows(db, FOUND) == GOOD


def test_many_links_out_of_the_folder_are_one_line(folder, secret, db):
    for number in range(1000):
        (folder / f"{number:04}-live-range.txt").symlink_to(secret / "secret.txt")
    (line,) = said_of(db, folder)
    assert ": 1000 links lead out of the folder, not followed: 0000-live-range.txt, " in line
    assert " and 997 more: " in line


def test_links_within_the_folder_are_followed(tmp_path, db):
    """Also where the folder that the user names is a link itself."""
    copy_dump(SEED, tmp_path / "real/night/w")
    (tmp_path / "real/night/v").symlink_to("w")
    (file,) = (tmp_path / "real/night/w").iterdir()
    (tmp_path / "real/night/u").mkdir()
    (tmp_path / "real/night/u" / file.name).symlink_to(file)
    (tmp_path / "night").symlink_to("real/night")
    assert said_of(db, tmp_path / "night") == []
    assert [workload for workload, *_ in rows(db, f"{FOUND} ORDER BY ALL")] == ["u", "v"]


def test_a_huge_sparse_file_is_refused_unread(folder, db):
    for name in ("x-live-range.txt", "y-live-range.txt.gz", "notes.txt", "z.tar"):
        with (folder / name).open("wb") as file:
            file.truncate(10 << 30)
    started = time.monotonic()
    said = "\n".join(said_of(db, folder))
    assert time.monotonic() - started < 10
    assert said.count("x-live-range.txt:1: the file begins with zeros, it was never written") == 1
    assert set(GOOD) < set(rows(db, FOUND))


def test_links_that_lead_in_circles_are_followed_once(folder, db):
    (folder / "a").mkdir()
    (folder / "a" / "up").symlink_to(folder)
    (folder / "b").symlink_to("a")
    assert said_of(db, folder) == []
    assert rows(db, FOUND) == GOOD


@pytest.fixture
def removed(folder):
    """Python's own rmtree is not up to folders so deep."""
    yield
    subprocess.run(["rm", "-rf", folder], check=True)


def test_deep_folders_are_read(folder, db, removed):
    here = Path.cwd()
    os.chdir(folder)
    try:
        for _ in range(1500):
            os.mkdir("d")  # noqa: PTH102
            os.chdir("d")
        Path("x.txt").write_bytes(one_file("seeds/000*").read_bytes())
    finally:
        os.chdir(here)
    assert said_of(db, folder) == []
    assert len(rows(db, FOUND)) == 2


def test_folders_too_deep_to_read_are_named(folder, db, removed):
    here = Path.cwd()
    os.chdir(folder)
    try:
        for _ in range(50):
            os.mkdir("d" * 200)  # noqa: PTH102
            os.chdir("d" * 200)
    finally:
        os.chdir(here)
    (problem,) = said_of(db, folder)
    assert "the folder cannot be read: File name too long" in problem
    assert rows(db, FOUND) == GOOD


def test_a_name_that_is_too_long_is_not_there(tmp_path):
    run = run_memhouse("ingest", "x" * 5000, cwd=tmp_path)
    assert run.returncode in (1, 2)
    assert "Traceback" not in run.stderr


def test_files_that_vanish_are_named(folder, db, monkeypatch):
    """Between finding and reading a file anything may happen to it."""
    (folder / "x-live-range.txt").write_text("HloLiveRange (max 1):\n")
    real = sources.pieces

    def vanish(raw, name, size):
        if name.startswith("x-"):
            raise FileNotFoundError(2, "No such file or directory")
        return real(raw, name, size)

    monkeypatch.setattr(sources, "pieces", vanish)
    problem, *missing = said_of(db, folder)
    assert (
        problem == f"{folder}/x-live-range.txt: the file cannot be read: No such file or directory"
    )
    assert all("is missing" in line for line in missing)
    assert set(rows(db, FOUND)) == {*GOOD, (".", "x", "failed")}


def test_a_file_that_vanishes_at_once_is_named(folder, monkeypatch):
    monkeypatch.setattr(os.path, "isfile", lambda path: True)
    (folder / "x-live-range.txt").symlink_to("gone")
    said = []
    found = list(open_source(folder, lambda name: True, ExitStack(), said.append))
    assert [file.path.name for file in found] == ["002_79ae6c566c7e6550.txt"]
    assert said == [
        f"{folder}/x-live-range.txt: the file cannot be read: No such file or directory"
    ]


def test_a_file_that_grows_is_read_to_a_bound(folder, monkeypatch, db):
    (folder / "x-live-range.txt").write_text("HloLiveRange (max 1):\n")
    monkeypatch.setattr(sources, "MAX_TEXT_BYTES", 1 << 22)
    real = sources.pieces

    def grow(raw, name, size):
        yield from real(raw, name, size)
        while name.startswith("x-"):
            yield b"x" * size

    monkeypatch.setattr(sources, "pieces", grow)
    problem, *_ = said_of(db, folder)
    assert "the file holds more than 4194304 bytes" in problem
    assert set(rows(db, FOUND)) == {*GOOD, (".", "x", "failed")}


@pytest.mark.parametrize(
    "name", ["a\nb", "a\x1b[31m", "a\tb", "a b ", "a'b\"c", "ä", "a%b", "%x.y"]
)
def test_any_name_makes_one_line(folder, db, name):
    (folder / f"{name}-live-range.txt").write_text("what?\n")
    (folder / f"{name}.txt").write_bytes(one_file("seeds/000*").read_bytes())
    problem, *_ = said_of(db, folder)
    assert "not a dump of HloLiveRange" in problem
    assert len(problem.splitlines()) == 1
    assert [status for *_, status in rows(db, f"{FOUND} ORDER BY status")].count("ok") == 1


def test_names_that_differ_in_no_text_are_kept_apart(folder, db):
    for name in (b"caf\xe9.txt", b"caf\xe8.txt"):
        Path(os.fsdecode(os.fsencode(folder) + b"/" + name)).write_bytes(
            one_file("seeds/000*").read_bytes()
        )
    assert said_of(db, folder) == []
    assert rows(db, "SELECT COUNT(*), COUNT(DISTINCT dump_id) FROM dumps") == [(3, 3)]


def test_a_folder_whose_name_is_no_utf8_is_a_run(tmp_path, db):
    folder = Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9"))
    copy_dump(SEED, folder)
    assert said_of(db, folder) == []
    assert rows(db, FOUND) == GOOD


@pytest.mark.parametrize("modified", [0, -(10**9), 10**13])
def test_any_time_stamp_is_read(folder, db, modified):
    (path,) = folder.iterdir()
    os.utime(path, (modified, modified))
    if path.stat().st_mtime != modified:
        pytest.skip("this file system has no such times")
    assert said_of(db, folder) == []
    year = rows(db, "SELECT compiled_at FROM runs")[0][0].astimezone(UTC).year
    assert datetime.min.year <= year <= datetime.max.year


@pytest.mark.parametrize("number", ["7", "000", "9" * 30])
def test_any_module_number_is_read(tmp_path, db, number):
    folder = tmp_path / "night"
    folder.mkdir()
    name = f"module_{number}.jit_f.cpu_after_optimizations-buffer-assignment.txt"
    (folder / name).write_bytes(one_file(SEED).read_bytes())
    assert said_of(db, folder) == []
    assert [status for *_, status in rows(db, FOUND)] == ["ok"]


def test_two_texts_of_one_kind_and_name_are_two_dumps(tmp_path, db):
    folder = tmp_path / "night"
    folder.mkdir()
    (folder / "a.txt").write_bytes(one_file("seeds/000*").read_bytes())
    (folder / "a.log").write_bytes(one_file("seeds/002*").read_bytes())
    assert said_of(db, folder) == []
    assert rows(db, "SELECT COUNT(*), COUNT(DISTINCT module_id) FROM dumps") == [(2, 2)]


def test_two_names_of_one_kind_are_two_dumps(tmp_path, db):
    folder = tmp_path / "night"
    folder.mkdir()
    for name, seed in (("a-buffer-assignment.txt", "seeds/000*"),
                       ("a.after_optimizations-buffer-assignment.txt", "seeds/002*")):  # fmt: skip
        (folder / name).write_bytes(one_file(seed).read_bytes())
    assert said_of(db, folder) == []
    assert rows(db, "SELECT COUNT(*), COUNT(DISTINCT module_id) FROM dumps") == [(2, 2)]


def test_what_lies_beside_changes_no_row(folder, db, tmp_path):
    """All of the above at once: the good dump's rows are those of a clean ingest."""
    clean = tmp_path / "clean.duckdb"
    fill(clean, copy_dump(SEED, tmp_path / "clean" / "night"))
    loop(folder / "a-live-range.txt")
    os.mkfifo(folder / "b.tar")
    (folder / "c.tar.gz").write_bytes(b"no archive")
    (folder / "d-live-range.txt").write_bytes(b"\xff\xfe\n")
    fill(db, folder)
    of_runs = {"runs", "run_parts", "journal"}
    bulk = set(everything(db)) - of_runs - {"dumps", "dump_files", "history", "view_set"}
    assert {name: everything(db)[name] for name in bulk} == {
        name: everything(clean)[name] for name in bulk
    }
