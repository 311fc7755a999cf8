"""Files that are cut short, damaged or something else: named, recorded, and in nobody's way."""

import gzip
import io
import os
import random
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest
import zstandard

from memhouse.ingest import batches
from memhouse.schema.stores import duckdb_file

from ..support.command import MEMHOUSE, run_memhouse
from ..support.dumps import DUMPS, copy_dump, one_file
from ..support.warehouse import fill, rows

# A dump in files of its own for each part, and one of before, with all parts in one file.
NEW, OLD = "cpu/jax-0.10.2/module_0018*", "cpu/jax-0.9.0/module_0019*"
ASSIGNMENT, VALUES, LIVES = "buffer-assignment", "buffer-assignment-values", "live-range"
REPORT = "memory-usage-report"
LAST = "the last line"


def cut(share, at=b""):
    """The text up to a share of it, there to the next `at`."""

    def damage(text):
        end = int(len(text) * share)
        return text[: text.index(at, end) + len(at)] if at else text[:end]

    return damage


def replace(old, new):
    def damage(text):
        assert old in text
        return text.replace(old, new, 1)

    return damage


def rubbish(text):
    return random.Random(1).randbytes(3000) + b"\n"


def becomes(pattern):
    return lambda text: one_file(pattern).read_bytes()


# name: dump, its file, what happens to that; status of the dump, of the file, line, message,
# and whether there are then figures of allocations, and of the peak.
CASES = {
    **{
        f"{name}-cut-{share}": (
            dump, kind, cut(share), "partial", "failed", LAST, "cut short", total, peak
        )
        for name, dump, kind, total, peak in (
            ("values", NEW, VALUES, True, True),
            ("assignment", NEW, ASSIGNMENT, False, False),
            ("lives", NEW, LIVES, True, False),
            ("hlo", NEW, "hlo", True, True),
        )
        for share in (0.01, 0.1, 0.35, 0.5, 0.63, 0.9)
    },
    **{
        f"old-cut-{share}": (OLD, ASSIGNMENT, cut(share), "partial", status, LAST, "", total, False)
        for share, status, total in (
            (0.01, "failed", False),
            (0.1, "failed", False),
            (0.35, "partial", None),
            (0.5, "partial", None),
            (0.63, "partial", None),
            (0.9, "partial", True),
        )
    },
    "values-cut-after-a-line": (
        NEW, VALUES, cut(0.13, b"\n"), "partial", "failed", LAST, "cut short", True, True,
    ),
    "values-cut-after-a-value": (
        NEW, VALUES, lambda text: text[: text.index(b"<90 ")], "partial", "contradicts", None,
        "values of BufferAssignment are not in Used values", False, False,
    ),
    "assignment-cut-after-a-line": (
        NEW, ASSIGNMENT, cut(0.5, b"\n"), "partial", None, None, "", False, False,
    ),
    "lives-cut-after-a-line": (
        NEW, LIVES, cut(0.4, b"\n"), "partial", "failed", LAST, "cut short", True, False,
    ),
    "old-cut-after-a-line-of-the-values": (
        OLD, ASSIGNMENT, cut(0.5, b"\n  "), "partial", None, None, "", None, False,
    ),
    "old-cut-after-a-line-of-the-schedule": (
        OLD, ASSIGNMENT, cut(0.87, b"\n"), "partial", "partial", LAST,
        "the file ends before 'BufferLiveRange:'", True, False,
    ),
    # Another file under this name.
    "assignment-is-lives": (
        NEW, ASSIGNMENT, becomes("cpu/jax-0.10.2/module_0018*live-range.txt"), "partial",
        "failed", 1, "not a dump of BufferAssignment", False, False,
    ),
    "lives-is-hlo": (
        NEW, LIVES, becomes("cpu/jax-0.10.2/module_0018*after_optimizations.txt"), "partial",
        "failed", 1, "not a dump of HloLiveRange", True, False,
    ),
    "hlo-is-values": (
        NEW, "hlo", becomes("cpu/jax-0.10.2/module_0018*values.txt"), "partial",
        "failed", 1, "not HLO text", True, True,
    ),
    "report-is-lives": (
        NEW, REPORT, becomes("cpu/jax-0.10.2/module_0018*live-range.txt"), "partial",
        "failed", 1, "not a memory usage report", True, True,
    ),
    # No text of a dump.
    "empty": (NEW, LIVES, lambda text: b"", "partial", "failed", None, "is empty", True, False),
    "blank": (NEW, LIVES, lambda text: b"\n \n", "partial", "failed", None, "empty", True, False),
    "rubbish": (NEW, ASSIGNMENT, rubbish, "partial", "failed", 1, "binary", False, False),
    "zeros": (
        NEW, ASSIGNMENT, lambda text: bytes(99) + b"\n", "partial", "failed", 1,
        "the file begins with zeros", False, False,
    ),
    "utf-16": (
        NEW, ASSIGNMENT, lambda text: text.decode().encode("utf-16"), "partial", "failed", 1,
        "binary or damaged", False, False,
    ),
    "damaged-within": (
        NEW, VALUES, replace(b"<2 constant.5", b"<2 \xff\xfe.5"), "partial", "failed", 20,
        "binary or damaged", True, True,
    ),
    "pasted-twice": (
        NEW, ASSIGNMENT, lambda text: text + text, "partial", "failed", None, "", False, False,
    ),
    # Numbers that cannot be.
    "size-out-of-range": (
        NEW, ASSIGNMENT, replace(b"size 32768,", b"size 99999999999999999999,"), "partial",
        "failed", 2, "a number is over", False, False,
    ),
    "time-out-of-range": (
        NEW, LIVES, replace(b"x.5{}:0-47", b"x.5{}:0-4294967296"), "partial", "failed", 64,
        "a number is over", True, False,
    ),
    "id-out-of-range": (
        NEW, VALUES, replace(b"<0 sort.2", b"<99999999999999999999 sort.2"), "partial",
        "failed", 5, "a number is over", True, True,
    ),
    # Parts that contradict one another: no figure is better than a wrong one.
    "other-total": (
        NEW, VALUES, replace(b"used: 148383", b"used: 148384"), "partial", "contradicts", None,
        "the allocations add up to 148383 bytes, 'Total bytes used' says 148384", False, False,
    ),
    "lives-of-another": (
        NEW, LIVES, replace(b"    x.5{}:", b"    y.5{}:"), "partial", "contradicts", None,
        "1 live ranges have no value, the first is that of y.5{}", False, False,
    ),
    "value-beyond-its-allocation": (
        NEW, ASSIGNMENT, replace(b"(size=33280,offset=", b"(size=9933280,offset="), "partial",
        None, None, "", False, False,
    ),
    "life-beyond-the-schedule": (
        NEW, LIVES, replace(b"fft.0{}:6-10", b"fft.0{}:6-99"), "partial", None, None, "",
        None, False,
    ),
}  # fmt: skip
FILE_NAMES = {"hlo": "after_optimizations.txt"}


@pytest.fixture(scope="module")
def night(tmp_path_factory):
    """All cases as workloads of one run, with two that are fine: what was said, the warehouse."""
    folder = tmp_path_factory.mktemp("bad") / "night"
    for name, (dump, kind, damage, *_) in CASES.items():
        copy_dump(dump, folder / name)
        path = damaged_file(folder, name, kind)
        path.write_bytes(damage(path.read_bytes()))
    copy_dump("cpu/jax-0.10.2/*", folder / "a-fine-one")
    copy_dump("tpu/flash-v5e/*", folder / "z-fine-one")
    db = folder.parent / "night.duckdb"
    return run_memhouse("ingest", "--db", db, folder), db


def damaged_file(folder, workload, kind):
    (path,) = (folder / workload).glob(f"*{FILE_NAMES.get(kind, f'-{kind}.txt')}")
    return path


def test_all_are_named_and_none_stops_the_others(night):
    run, db = night
    assert run.returncode == 1
    assert run.stdout == ""
    assert "Traceback" not in run.stderr
    assert rows(db, "SELECT COUNT(DISTINCT workload) FROM dumps") == [(len(CASES) + 2,)]
    query = "SELECT workload, status, COUNT(*) FROM dumps WHERE ends_with(workload, 'fine-one')"
    assert rows(db, f"{query} GROUP BY ALL ORDER BY 1") == [
        ("a-fine-one", "ok", 3),
        ("z-fine-one", "ok", 1),
    ]


@pytest.mark.parametrize("name", CASES)
def test_a_bad_file_is_named_and_recorded(night, tmp_path, name):
    run, db = night
    dump, kind, damage, dump_status, status, line, message, _, _ = CASES[name]
    assert rows(db, f"SELECT status FROM dumps WHERE workload = '{name}'") == [(dump_status,)]
    query = f"""SELECT kind, path, dump_files.status, line, message
        FROM dump_files INNER JOIN dumps USING (dump_id)
        WHERE workload = '{name}' AND dump_files.status NOT IN ('ok', 'missing')"""
    ((found_kind, path, found_status, found_line, said),) = rows(db, query)
    assert message in said
    where = db.parent / "night" / path
    where = where if found_line is None else f"{where}:{found_line}"
    assert f"error: {where}: {said}" in run.stderr.splitlines()
    if status is not None:
        assert (found_kind, found_status) == (kind, status)
    if line == LAST:
        copy_dump(dump, tmp_path / name)
        line = len(damage(damaged_file(tmp_path, name, kind).read_bytes()).splitlines())
    if line is not None:
        assert found_line == line


@pytest.mark.parametrize("name", CASES)
def test_there_are_only_figures_that_the_rest_supports(night, name):
    _, db = night
    *_, total, peak = CASES[name]
    found = rows(
        db, f"SELECT total_bytes, temp_bytes, peak_bytes, padding_bytes, fragmentation_bytes, "
        f"peak_bytes <= total_bytes FROM peaks WHERE workload = '{name}'"
    )  # fmt: skip
    allocations, peaks = [row[:2] for row in found], [row[2:] for row in found]
    if total is not None:
        assert any(figure is not None for row in allocations for figure in row) == total
    assert any(figure is not None for row in peaks for figure in row) == peak
    assert all(row[-1] is not False for row in peaks)


@pytest.mark.parametrize("name", CASES)
def test_what_could_be_read_is_kept(night, name):
    _, db = night
    query = """SELECT COUNT(*) > 0 FROM instructions INNER JOIN dumps USING (module_id)
        WHERE workload = '{}' AND instruction = '{}'"""
    instruction = "x.5" if CASES[name][0] == NEW else "x.2"
    (kept,) = rows(db, query.format(name, instruction))[0]
    assert kept or rows(db, query.format(name, "x.1"))[0][0]


@pytest.mark.parametrize("missing", [ASSIGNMENT, VALUES, LIVES])
def test_a_missing_part_is_named(tmp_path, db, missing):
    folder = copy_dump(NEW, tmp_path / "night")
    damaged_file(tmp_path, "night", missing).unlink()
    # With HLO text what is missing can be worked out.
    next(folder.glob("*after_optimizations.txt")).unlink()
    (summary,) = fill(db, folder)
    (problem,) = summary.problems
    assert f"module_0018.jit_mixed.*-{missing}.txt: " in problem
    assert "is missing" in problem
    assert rows(db, "SELECT status FROM dumps") == [("partial",)]


def test_parts_that_were_cut_off_are_named(tmp_path, db):
    folder = copy_dump(OLD, tmp_path / "night")
    path = damaged_file(tmp_path, "night", ASSIGNMENT)
    path.write_bytes(cut(0.05, b"\n")(path.read_bytes()))
    (summary,) = fill(db, folder)
    assert ["Used values is missing" in problem for problem in summary.problems] == [True, False]
    assert ["HloLiveRange is missing" in problem for problem in summary.problems] == [False, True]
    assert rows(db, "SELECT status FROM dumps") == [("partial",)]


def test_without_a_usage_report_nothing_is_amiss(tmp_path, db):
    folder = copy_dump(NEW, tmp_path / "night")
    damaged_file(tmp_path, "night", REPORT).unlink()
    (summary,) = fill(db, folder)
    assert summary.problems == []
    assert rows(db, "SELECT status, space_name FROM peaks") == [("ok", None)]


def test_of_a_dump_without_a_readable_file_nothing_is_known(tmp_path, db):
    folder = tmp_path / "night"
    folder.mkdir()
    path = folder / "module_0003.jit_f.cpu_after_optimizations-live-range.txt"
    path.write_bytes(b"")
    (summary,) = fill(db, folder)
    assert summary.failed == 1
    query = "SELECT module_name, module_number, status, module_id FROM dumps"
    assert rows(db, query) == [("jit_f", 3, "failed", None)]
    assert rows(db, "SELECT COUNT(*) FROM modules") == [(0,)]


@pytest.mark.parametrize("ending", ["flagfile", "debug_options", "gpu_target_config.pbtxt"])
def test_bad_settings_cost_no_figure(tmp_path, db, ending):
    folder = copy_dump("gpu/decode-h100/*", tmp_path / "night")
    (folder / f"module_0001.jit_generate.{ending}").write_text("one: 1\nwhat?\n")
    (summary,) = fill(db, folder)
    (problem,) = summary.problems
    assert problem.startswith(f"{folder}/module_0001.jit_generate.{ending}:")
    assert "what?" in problem or "one: 1" in problem
    assert rows(db, "SELECT status, peak_bytes > 0 FROM peaks") == [("partial", True)]


@pytest.mark.parametrize("pattern", [NEW, OLD, "tpu/flash-v5e/*", "seeds/000*", "seeds/001*"])
def test_windows_line_ends_are_read(filled, tmp_path, db, pattern):
    folder = copy_dump(pattern, tmp_path / "night")
    for path in folder.iterdir():
        path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    (summary,) = fill(db, folder)
    assert summary.problems == []
    query = """SELECT module_name, memory_space, space_name, total_bytes, peak_bytes, peak_time,
        padding_bytes, peak_instruction FROM peaks ORDER BY ALL"""
    assert set(rows(db, query)) <= set(rows(filled, query))
    assert rows(db, "SELECT status FROM dumps") == [("ok",)]


@pytest.mark.parametrize(
    ("ending", "spoil"),
    [
        ("gz", lambda text: gzip.compress(text)[:-500]),
        ("gz", lambda text: gzip.compress(text)[:5]),
        ("gz", lambda text: gzip.compress(text)[:3000] + b"x" * 100 + gzip.compress(text)[3100:]),
        ("gz", lambda text: text),
        ("gz", lambda text: b""),
        ("zst", lambda text: zstandard.compress(text)[:-500]),
        ("zst", lambda text: text),
        ("zst", lambda text: b""),
    ],
)
def test_bad_compression_is_named(tmp_path, db, ending, spoil):
    folder = copy_dump("gpu/decode-h100/*", tmp_path / "night")
    (plain,) = folder.glob(f"*-{VALUES}.txt")
    path = plain.with_name(f"{plain.name}.{ending}")
    path.write_bytes(spoil(plain.read_bytes()))
    plain.unlink()
    (summary,) = fill(db, folder)
    (problem,) = summary.problems
    assert problem.startswith(f"{path}: the file ")
    assert rows(db, "SELECT status, peak_bytes > 0 FROM peaks") == [("partial", True)]


def archive_of(folder):
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w:gz") as archive:
        archive.add(folder, arcname=folder.name)
    return data.getvalue()


@pytest.mark.parametrize(
    ("name", "spoil"),
    [
        ("night.tar.gz", lambda data: data[: len(data) // 2]),
        ("night.tar.gz", lambda data: b"no archive"),
        ("night.tar.gz", lambda data: b""),
        ("night.tar", lambda data: gzip.decompress(data)[:20_000]),
        ("night.tar", lambda data: b"no archive" * 100),
        ("night.tar.zst", lambda data: zstandard.compress(gzip.decompress(data))[:-100]),
        ("night.tar.zst", lambda data: data),
    ],
)
def test_a_broken_archive_is_named_and_nothing_taken(tmp_path, db, name, spoil):
    path = tmp_path / name
    path.write_bytes(spoil(archive_of(copy_dump("gpu/decode-h100/*", tmp_path / "night"))))
    (summary,) = fill(db, path)
    assert [problem.split(":")[0] for problem in summary.problems] == [str(path)]
    assert rows(db, "SELECT * FROM dumps") == []


def test_a_broken_archive_does_not_stop_the_rest(tmp_path, db):
    folder = copy_dump("seeds/002*", tmp_path / "night")
    (folder / "a.tar.gz").write_bytes(b"no archive")
    (summary,) = fill(db, folder)
    assert len(summary.problems) == 1
    assert rows(db, "SELECT status FROM dumps") == [("ok",)]


@pytest.mark.parametrize(
    ("path", "said", "run_id"),
    [
        ("gone", "gone: there is no such file or folder", None),
        ("empty", "empty: there are no memory dumps of XLA here", "empty"),
        ("other", "other: there are no memory dumps of XLA here", "other"),
        ("other/notes.txt", "other/notes.txt: this is not a memory dump of XLA", None),
        ("other/empty.txt", "other/empty.txt: ", None),
        ("other.tar", "other.tar: ", "other"),
    ],
)
def test_a_path_without_dumps_is_named(tmp_path, path, said, run_id):
    """A folder or archive is a run all the same: on that night nothing was compiled."""
    (tmp_path / "empty").mkdir()
    (tmp_path / "other").mkdir()
    (tmp_path / "other/notes.txt").write_text("Buy milk.\n")
    (tmp_path / "other/empty.txt").touch()
    with tarfile.open(tmp_path / "other.tar", "w") as archive:
        archive.add(tmp_path / "other", arcname="other")
    run = run_memhouse("ingest", path, cwd=tmp_path)
    assert (run.returncode, run.stdout) == (1, "")
    error, *notes = run.stderr.splitlines()
    assert error.startswith(f"error: {said}")
    empty = [] if run_id is None else [f"run '{run_id}' has no programs: nothing was compiled"]
    assert notes == empty


def test_one_bad_path_does_not_stop_the_others(tmp_path):
    seed = one_file("seeds/002*")
    run = run_memhouse("ingest", "gone", seed, cwd=tmp_path)
    assert run.returncode == 1
    assert run.stderr.splitlines()[0] == "error: gone: there is no such file or folder"
    assert "1 dump" in run.stderr
    assert rows(tmp_path / "memhouse.duckdb", "SELECT run_id FROM runs") == [(seed.stem,)]


@pytest.mark.parametrize("name", ["left-live-range.txt", "notes.txt", "module_0.f.flagfile"])
def test_a_broken_link_stops_nothing(tmp_path, db, name):
    folder = copy_dump("seeds/002*", tmp_path / "night")
    (folder / name).symlink_to(tmp_path / "gone")
    fill(db, folder)
    assert rows(db, "SELECT status FROM dumps WHERE starts_with(module_name, '002')") == [("ok",)]


@pytest.mark.parametrize("name", ["left-live-range.txt", "notes.txt"])
def test_a_pipe_in_the_folder_is_not_waited_for(tmp_path, db, name):
    folder = copy_dump("seeds/002*", tmp_path / "night")
    os.mkfifo(folder / name)
    command = [MEMHOUSE, "ingest", "--db", db, "--jobs", "1", folder]
    subprocess.run(command, timeout=60, capture_output=True)
    assert rows(db, "SELECT status FROM dumps WHERE starts_with(module_name, '002')") == [("ok",)]


def test_a_folder_with_a_dumps_name_is_a_folder(tmp_path, db):
    folder = copy_dump("seeds/002*", tmp_path / "night" / "x-live-range.txt")
    shutil.copytree(folder, tmp_path / "night" / "y.tar")
    (summary,) = fill(db, tmp_path / "night")
    assert (summary.dumps, summary.problems) == (2, [])


def test_two_dumps_of_one_kind_and_name_are_not_mixed(tmp_path, db):
    # The same module plain and compressed: one dump, read once.
    folder = copy_dump(OLD, tmp_path / "night")
    path = damaged_file(tmp_path, "night", ASSIGNMENT)
    path.with_name(f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes()))
    (summary,) = fill(db, folder)
    assert (summary.dumps, summary.problems) == (1, [])


def test_a_name_that_is_no_unicode_stops_nothing(tmp_path, db):
    folder = copy_dump("seeds/002*", tmp_path / "night")
    seed = one_file("seeds/000*").read_bytes()
    Path(os.fsdecode(os.fsencode(folder) + b"/caf\xe9.txt")).write_bytes(seed)
    (summary,) = fill(db, folder)
    assert summary.dumps == 2
    assert rows(db, "SELECT status FROM dumps") == [("ok",), ("ok",)]


@pytest.mark.parametrize(
    ("ending", "compress"), [("gz", gzip.compress), ("zst", zstandard.compress)]
)
def test_a_file_compressed_in_parts_is_read_whole(tmp_path, db, ending, compress):
    folder = copy_dump("seeds/002*", tmp_path / "night")
    (path,) = folder.iterdir()
    text = path.read_bytes()
    path.with_name(f"{path.name}.{ending}").write_bytes(
        compress(text[:2000]) + compress(text[2000:])
    )
    path.unlink()
    (summary,) = fill(db, folder)
    assert summary.problems == []
    assert rows(db, "SELECT status, peak_bytes FROM peaks") == [("ok", 41943072)]


@pytest.mark.parametrize("arguments", [[""], [DUMPS / "seeds", "--run", ""]])
def test_a_variable_that_is_not_set_names_nothing(db, arguments):
    run = run_memhouse("ingest", *arguments, "--db", db)
    assert (run.returncode, run.stdout) == (2, "")
    assert "it is empty" in run.stderr
    assert not db.exists()


def test_a_bucket_is_no_folder(db):
    run = run_memhouse("ingest", "gs://bucket/dumps", "--db", db)
    assert (run.returncode, run.stdout) == (2, "")
    assert "gs://bucket/dumps is a URL" in run.stderr
    assert not db.exists()


def test_a_renamed_text_that_cannot_be_looked_at_is_told(tmp_path, db):
    night = copy_dump(NEW, tmp_path / "night")
    (night / "jit_f.txt.gz").write_bytes(gzip.compress(b"BufferAssignment:\n" * 99)[:-30])
    (night / "notes.txt").write_text("What we tried today.\n")
    (summary,) = fill(db, night)
    (problem,) = summary.problems
    assert problem.startswith(f"{night / 'jit_f.txt.gz'}: the file cannot be read: ")
    assert rows(db, "SELECT status FROM dumps") == [("ok",)]


def test_of_a_file_that_is_there_plain_and_packed_the_plain_one_is_read(tmp_path, db):
    night = copy_dump(NEW, tmp_path / "night")
    for file in list(night.iterdir()):
        night.joinpath(f"{file.name}.gz").write_bytes(b"damaged")
    (summary,) = fill(db, night)
    assert (summary.problems, summary.dumps) == ([], 1)
    assert rows(db, "SELECT COUNT(*) FROM dump_files WHERE path LIKE '%.gz'") == [(0,)]


def test_a_file_in_an_archive_is_named_with_the_archive(tmp_path, db):
    night = copy_dump(NEW, tmp_path / "night")
    (lives,) = night.glob(f"*{LIVES}.txt")
    lives.write_bytes(b"no dump\n")
    (night / "jit_f.txt.gz").write_bytes(gzip.compress(b"BufferAssignment:\n" * 99)[:-30])
    archive = tmp_path / "night.tar"
    with tarfile.open(archive, "w") as tar:
        tar.add(night, "night")
    (summary,) = fill(db, archive)
    assert [problem.split(": ")[0] for problem in summary.problems] == [
        f"{archive}/jit_f.txt.gz",
        f"{archive}/{lives.name}:1",
    ]


def test_many_tiny_dumps_are_written_some_at_a_time(tmp_path, db, monkeypatch):
    monkeypatch.setattr(batches, "_BATCH_DUMPS", 3)
    written = []
    monkeypatch.setattr(duckdb_file, "forget_blocks", lambda *_: written.append(True))
    for number in range(8):
        copy_dump(NEW, tmp_path / "night" / str(number))
    (summary,) = fill(db, tmp_path / "night")
    assert (summary.dumps, summary.new_modules, len(written)) == (8, 1, 3)
    assert rows(db, "SELECT COUNT(*) FROM dumps") == [(8,)]
