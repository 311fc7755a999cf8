"""Folders with whatever may lie there: links, pipes, files that cannot be read or are gone."""

import os
import socket
import subprocess
import sys
import tarfile
from contextlib import chdir
from datetime import UTC, datetime
from pathlib import Path

import pytest

from memhouse.ingest.sources import files as sources

from ..support.command import run_memhouse
from ..support.dumps import copy_dump, one_file
from ..support.warehouse import fill, rows
from .night_of_cases import ingest_cases, module_rows

SEED = "seeds/002*"
GOOD = ("002_79ae6c566c7e6550", "ok")
FOUND = "SELECT module_name, status FROM dumps"


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
    # A socket's whole path may have a hundred bytes, its name in the folder is short.
    with socket.socket(socket.AF_UNIX) as server, chdir(path.parent):
        server.bind(path.name)


def device(path):
    path.symlink_to("/dev/zero")


def other_seed():
    return one_file("seeds/000*").read_bytes()


def bad_part(name):
    return lambda folder: (folder / f"{name}-live-range.txt").write_text("what?\n")


def two_dumps(first, second):
    """The same dump under one name, another under another."""

    def rename(folder):
        next(folder.iterdir()).rename(folder / first)
        (folder / second).write_bytes(other_seed())

    return rename


def names_of_other_bytes(folder):
    for name in (b"caf\xe9.txt", b"caf\xe8.txt"):
        Path(os.fsdecode(os.fsencode(folder) + b"/" + name)).write_bytes(other_seed())


def circles(folder):
    (folder / "a").mkdir()
    (folder / "a" / "up").symlink_to(folder)
    (folder / "b").symlink_to("a")


def sparse(folder):
    for name in ("x-live-range.txt", "y-live-range.txt.gz", "notes.txt", "z.tar"):
        with (folder / name).open("wb") as file:
            file.truncate(10 << 30)


def several(folder):
    loop(folder / "a-live-range.txt")
    os.mkfifo(folder / "b.tar")
    (folder / "c.tar.gz").write_bytes(b"no archive")
    (folder / "d-live-range.txt").write_bytes(b"\xff\xfe\n")


ODD = ["a\nb", "a\x1b[31m", "a\tb", "a b ", "a'b\"c", "ä", "a%b", "%x.y"]
PART = "module_{}.jit_f.cpu_after_optimizations-buffer-assignment.txt"
# What is done to the folder of a good dump; how many other dumps are good too; the files named, or
# None where another test looks at them.
CASES = {
    **{
        f"{make.__name__} {name}": (lambda folder, m=make, n=name: m(folder / n), 0, [name])
        for make in (loop, dangling, listening, os.mkfifo)
        for name in ("x-live-range.txt", "x.tar", "x.tar.gz")
    },
    **{f"name {i}": (bad_part(name), 0, None) for i, name in enumerate(ODD)},
    "names of other bytes": (names_of_other_bytes, 2, []),
    "circles": (circles, 0, []),
    "two texts": (two_dumps("a.txt", "a.log"), 1, []),
    "two names": (
        two_dumps("a-buffer-assignment.txt", "a.after_optimizations-buffer-assignment.txt"),
        1,
        [],
    ),
    **{
        f"number {len(number)}": (two_dumps("a.txt", PART.format(number)), 1, [])
        for number in ("7", "000", "9" * 30)
    },
    "sparse": (sparse, 0, None),
    "several": (several, 0, None),
    "good": (Path.exists, 0, []),
}


@pytest.fixture(scope="module")
def night(tmp_path_factory):
    cases = {name: (SEED, do) for name, (do, *_) in CASES.items()}
    return ingest_cases(tmp_path_factory.mktemp("hostile"), cases)


def test_what_is_no_file_is_named_and_not_waited_for(night):
    failures = []
    for name, (_, others, files) in CASES.items():
        is_named = files is None or night.named(name) == files
        if night.statuses(name).count("ok") != 1 + others or not is_named:
            failures.append((name, night.dumps(name), night.named(name)))
    assert failures == []


def test_any_name_makes_one_line(night):
    for number in range(len(ODD)):
        assert len(night.named(f"name {number}")) == 1
    assert all(line.startswith(("error: ", "night: ")) for line in night.said)
    assert all(line.isprintable() for line in night.said)


def test_names_that_differ_in_no_text_are_kept_apart(night):
    query = """SELECT COUNT(DISTINCT dump_id), COUNT(DISTINCT module_id) FROM dumps
        WHERE workload = '{}'"""
    assert rows(night.db, query.format("names of other bytes")) == [(3, 3)]
    assert rows(night.db, query.format("two texts")) == [(2, 2)]
    assert rows(night.db, query.format("two names")) == [(2, 2)]


def test_a_huge_sparse_file_is_refused_unread(night):
    assert "x-live-range.txt:1" in night.named("sparse")


def test_what_lies_beside_changes_no_row(night):
    of_modules = module_rows(night.db)
    assert len(night.named("several")) >= 4
    assert of_modules["several"] == of_modules["good"]


def test_a_path_that_is_no_file_is_named(tmp_path):
    for make in (loop, dangling, listening, device, os.mkfifo):
        make(tmp_path / make.__name__)
        run = run_memhouse("ingest", make.__name__, cwd=tmp_path)
        assert run.returncode == 1
        assert run.stderr.startswith(f"error: {make.__name__}: ")
        assert run.stderr.count("\n") == 1
    run = run_memhouse("ingest", "x" * 5000, cwd=tmp_path)
    assert run.returncode in (1, 2)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has /proc")
def test_a_file_that_fails_in_reading_is_named(tmp_path, db):
    """Named by the user himself, a link is followed wherever it leads."""
    link = tmp_path / "x-live-range.txt"
    link.symlink_to("/proc/self/mem")
    problem, *_ = said_of(db, link)
    assert "x-live-range.txt: " in problem


@pytest.fixture
def secret(tmp_path):
    """What lies beside the folder, and whose first line nothing may print."""
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/secret.txt").write_text("ssh-secret\n")
    with tarfile.open(tmp_path / "outside/secret.tar", "w") as tar:
        tar.add(tmp_path / "outside/secret.txt", "x-live-range.txt")
    return tmp_path / "outside"


def test_a_link_out_of_the_folder_is_counted_and_not_followed(folder, secret, db):
    (folder / "a").mkdir()
    (folder / "b").symlink_to("a")
    (folder / "home").symlink_to("b")
    # The last is reached by another link of the folder.
    for name, target in {
        "x-live-range.txt": "secret.txt",
        "x.log": "secret.txt",
        "x.tar": "secret.tar",
        "deep": "",
        "top": "../../..",
        "a/x-live-range.txt": "secret.txt",
    }.items():
        (folder / name).symlink_to(os.path.relpath(secret / target, (folder / name).parent))
    (folder / "x.html").symlink_to(secret / "secret.txt")
    for command, *options in (["ingest", "--db", db], ["doctor"]):
        run = run_memhouse(command, folder, *options, env={"COLUMNS": "2000"})
        said = run.stderr + run.stdout
        assert "ssh-secret" not in said
        assert said.count(f"error: {folder}: 6 links") == 1
        assert "x.html" not in said
        if command == "ingest":
            assert run.returncode == 1
    assert rows(db, FOUND) == [GOOD]


def test_many_links_out_of_the_folder_are_one_line(folder, secret, db):
    for number in range(50):
        (folder / f"{number:02}-live-range.txt").symlink_to(secret / "secret.txt")
    (line,) = said_of(db, folder)
    assert "50 links" in line
    assert "47 more" in line


def test_links_within_the_folder_are_followed(tmp_path, db):
    """Also where the folder that the user names is a link itself."""
    copy_dump(SEED, tmp_path / "real/night/w")
    (tmp_path / "real/night/v").symlink_to("w")
    (file,) = (tmp_path / "real/night/w").iterdir()
    (tmp_path / "real/night/u").mkdir()
    (tmp_path / "real/night/u" / file.name).symlink_to(file)
    (tmp_path / "night").symlink_to("real/night")
    assert said_of(db, tmp_path / "night") == []
    assert rows(db, "SELECT workload FROM dumps ORDER BY ALL") == [("u",), ("v",)]


def test_links_that_lead_in_circles_are_followed_once(night):
    assert night.dumps("circles") == [GOOD]


@pytest.fixture
def removed(folder):
    """Python's own rmtree is not up to folders so deep."""
    yield
    subprocess.run(["rm", "-rf", folder], check=True)


@pytest.mark.slow
def test_deep_folders_are_read_and_too_deep_ones_named(folder, db, removed):
    with chdir(folder):
        for _ in range(1500):
            os.mkdir("d")  # noqa: PTH102
            os.chdir("d")
        Path("x.txt").write_bytes(other_seed())
    with chdir(folder):
        for _ in range(50):
            os.mkdir("e" * 200)  # noqa: PTH102
            os.chdir("e" * 200)
    (problem,) = said_of(db, folder)
    assert str(folder) in problem
    assert [status for _, status in rows(db, FOUND)] == ["ok", "ok"]


def test_files_that_vanish_are_named(folder, db, monkeypatch):
    """Between finding and reading a file anything may happen to it."""
    (folder / "x-live-range.txt").write_text("HloLiveRange (max 1):\n")
    real = sources.pieces

    def vanish(raw, name, size):
        if name.startswith("x-"):
            raise FileNotFoundError(2, "No such file or directory")
        return real(raw, name, size)

    monkeypatch.setattr(sources, "pieces", vanish)
    problem, *_ = said_of(db, folder)
    assert problem.startswith(f"{folder}/x-live-range.txt: ")
    assert "No such file or directory" in problem
    assert set(rows(db, FOUND)) == {GOOD, ("x", "failed")}


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
    assert "4194304" in problem
    assert set(rows(db, FOUND)) == {GOOD, ("x", "failed")}


def test_a_folder_of_any_name_and_time_is_a_run(tmp_path, db):
    folder = Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9"))
    (path,) = copy_dump(SEED, folder).iterdir()
    for modified in (0, -(10**9), 10**13):
        os.utime(path, (modified, modified))
        (summary,) = fill(db, folder, run_id=str(modified))
        assert summary.problems == []
        year = rows(db, "SELECT MAX(compiled_at) FROM runs")[0][0].astimezone(UTC).year
        assert datetime.min.year <= year <= datetime.max.year
    assert rows(db, "SELECT DISTINCT status FROM dumps") == [("ok",)]
