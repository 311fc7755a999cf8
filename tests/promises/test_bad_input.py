"""Files that are cut short, damaged or something else: named, recorded, and in nobody's way."""

import gzip
import io
import os
import random
import shutil
import tarfile
from fnmatch import fnmatch
from pathlib import Path

import pytest
import zstandard

from ..support.command import run_memhouse
from ..support.dumps import DUMPS, content, copy_dump, one_file
from ..support.warehouse import fill, rows
from .night_of_cases import ingest_cases

# A dump in files of its own for each part, and one of before, with all parts in one file.
NEW, OLD = "cpu/jax-0.10.2/module_0018*", "cpu/jax-0.9.0/module_0019*"
GPU, SEED = "gpu/decode-h100/*", "seeds/002*"
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


def becomes(ending):
    return lambda text: content(f"cpu/jax-0.10.2/module_0018*{ending}.txt")


# name: dump, its file, what happens to that; status of the file, line, what the message tells,
# and whether there are then figures of allocations, and of the peak. None: either.
CASES = {
    **{
        f"{name}-cut-{share}": (dump, kind, cut(share), "failed", LAST, "", total, peak)
        for name, dump, kind, total, peak in (
            ("values", NEW, VALUES, True, True),
            ("assignment", NEW, ASSIGNMENT, False, False),
            ("lives", NEW, LIVES, True, False),
            ("hlo", NEW, "hlo", True, True),
        )
        for share in (0.01, 0.35, 0.63, 0.9)
    },
    **{
        f"old-cut-{share}": (OLD, ASSIGNMENT, cut(share), status, LAST, "", total, False)
        for share, status, total in (
            (0.01, "failed", False),
            (0.35, "partial", None),
            (0.63, "partial", None),
            (0.9, "partial", True),
        )
    },
    "values-cut-after-a-line": (NEW, VALUES, cut(0.13, b"\n"), "failed", LAST, "", True, True),
    "values-cut-after-a-value": (
        NEW, VALUES, lambda text: text[: text.index(b"<90 ")], "contradicts", None, "",
        False, False,
    ),
    "assignment-cut-after-a-line": (
        NEW, ASSIGNMENT, cut(0.5, b"\n"), None, None, "", False, False,
    ),
    "lives-cut-after-a-line": (NEW, LIVES, cut(0.4, b"\n"), "failed", LAST, "", True, False),
    "old-cut-after-a-line-of-the-values": (
        OLD, ASSIGNMENT, cut(0.5, b"\n  "), None, None, "", None, False,
    ),
    "old-cut-after-a-line-of-the-schedule": (
        OLD, ASSIGNMENT, cut(0.87, b"\n"), "partial", LAST, "BufferLiveRange:", True, False,
    ),
    # Another file under this name.
    "assignment-is-lives": (
        NEW, ASSIGNMENT, becomes("live-range"), "failed", 1, "BufferAssignment", False, False,
    ),
    "lives-is-hlo": (
        NEW, LIVES, becomes("after_optimizations"), "failed", 1, "HloLiveRange", True, False,
    ),
    "hlo-is-values": (NEW, "hlo", becomes("values"), "failed", 1, "HLO", True, True),
    "report-is-lives": (NEW, REPORT, becomes("live-range"), "failed", 1, "", True, True),
    # No text of a dump.
    "empty": (NEW, LIVES, lambda text: b"", "failed", None, "", True, False),
    "blank": (NEW, LIVES, lambda text: b"\n \n", "failed", None, "", True, False),
    "rubbish": (
        NEW, ASSIGNMENT, lambda text: random.Random(1).randbytes(3000) + b"\n",
        "failed", 1, "", False, False,
    ),
    "zeros": (
        NEW, ASSIGNMENT, lambda text: bytes(99) + b"\n", "failed", 1, "", False, False,
    ),
    "utf-16": (
        NEW, ASSIGNMENT, lambda text: text.decode().encode("utf-16"), "failed", 1, "",
        False, False,
    ),
    "damaged-within": (
        NEW, VALUES, replace(b"<2 constant.5", b"<2 \xff\xfe.5"), "failed", 20, "", True, True,
    ),
    # A damaged byte costs its instruction, and not the text.
    "a-byte-of-an-instruction": (
        NEW, "hlo", replace(b"jit(fft)/fft", b"jit(f\xfft)/fft"), "partial", 240,
        "1 line is not read, whose bytes are not UTF-8", True, True,
    ),
    "pasted-twice": (NEW, ASSIGNMENT, lambda text: text + text, "failed", None, "", False, False),
    # Numbers that cannot be.
    "size-out-of-range": (
        NEW, ASSIGNMENT, replace(b"size 32768,", b"size 99999999999999999999,"),
        "failed", 2, "", False, False,
    ),
    "time-out-of-range": (
        NEW, LIVES, replace(b"x.5{}:0-47", b"x.5{}:0-4294967296"), "failed", 64, "", True, False,
    ),
    "id-out-of-range": (
        NEW, VALUES, replace(b"<0 sort.2", b"<99999999999999999999 sort.2"),
        "failed", 5, "", True, True,
    ),
    # Parts that contradict one another: no figure is better than a wrong one.
    "other-total": (
        NEW, VALUES, replace(b"used: 148383", b"used: 148384"), "contradicts", None,
        "148383 148384", False, False,
    ),
    "lives-of-another": (
        NEW, LIVES, replace(b"    x.5{}:", b"    y.5{}:"), "contradicts", None, "1 y.5{}",
        False, False,
    ),
    "value-beyond-its-allocation": (
        NEW, ASSIGNMENT, replace(b"(size=33280,offset=", b"(size=9933280,offset="),
        None, None, "", False, False,
    ),
    "life-beyond-the-schedule": (
        NEW, LIVES, replace(b"fft.0{}:6-10", b"fft.0{}:6-99"), None, None, "", None, False,
    ),
}  # fmt: skip


def damaged_file(folder, kind):
    (path,) = folder.glob("*after_optimizations.txt" if kind == "hlo" else f"*-{kind}.txt")
    return path


def damage(kind, do):
    def damage_file(folder):
        path = damaged_file(folder, kind)
        path.write_bytes(do(path.read_bytes()))

    return damage_file


def without(*kinds):
    return lambda folder: [damaged_file(folder, kind).unlink() for kind in kinds]


def write(name, text):
    return lambda folder: (folder / name).write_bytes(text)


def link(name):
    return lambda folder: (folder / name).symlink_to(folder / "gone")


def packed(kind, ending, pack):
    """The file under this ending, packed or spoiled."""

    def replace_file(folder):
        plain = damaged_file(folder, kind) if kind else next(folder.iterdir())
        plain.with_name(f"{plain.name}.{ending}").write_bytes(pack(plain.read_bytes()))
        plain.unlink()

    return replace_file


def in_two_parts(compress):
    return lambda text: compress(text[:2000]) + compress(text[2000:])


def with_packed(pack):
    """Beside each file, the same packed or spoiled."""
    return lambda folder: [
        file.with_name(f"{file.name}.gz").write_bytes(pack(file.read_bytes()))
        for file in list(folder.iterdir())
    ]


def with_windows_line_ends(folder):
    for path in folder.iterdir():
        path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))


def as_folders_named_like_dumps(folder):
    shutil.copytree(folder, folder / "y.tar")
    (path,) = folder.glob("*.txt")
    (folder / "x-live-range.txt").mkdir()
    path.rename(folder / "x-live-range.txt" / path.name)


def with_a_name_that_is_no_unicode(folder):
    name = os.fsencode(folder) + b"/caf\xe9.txt"
    Path(os.fsdecode(name)).write_bytes(one_file("seeds/000*").read_bytes())


H100 = "module_0001.jit_generate"
PARTS = "module_0018.jit_mixed.*-"
CUT_GZIP = gzip.compress(b"BufferAssignment:\n" * 99)[:-30]
# name: the dump, what happens to its folder; the statuses of its dumps, and the files named.
OTHERS = {
    # With HLO text what is missing can be worked out.
    **{
        f"without-{kind}": (NEW, without(kind, "hlo"), ["partial"], [f"{PARTS}{kind}.txt"])
        for kind in (ASSIGNMENT, VALUES, LIVES)
    },
    "without-a-usage-report": (NEW, without(REPORT), ["ok"], []),
    "a-lone-empty-file": (
        "none*", write("module_0003.jit_f.cpu_after_optimizations-live-range.txt", b""),
        ["failed"], ["module_0003.jit_f.cpu_after_optimizations-live-range.txt"],
    ),
    **{
        f"bad-{ending}": (
            GPU, write(f"{H100}.{ending}", b"one: 1\nwhat?\n"), ["partial"],
            [f"{H100}.{ending}:{line}"],
        )
        for ending, line in (("flagfile", 1), ("debug_options", 2), ("gpu_target_config.pbtxt", 2))
    },
    **{
        f"bad-{name}": (
            GPU, packed(VALUES, ending, pack), ["partial"], [f"*-{VALUES}.txt.{ending}"],
        )
        for name, ending, pack in (
            ("gz-cut", "gz", lambda text: gzip.compress(text)[:-500]),
            ("gz-cut-in-its-head", "gz", lambda text: gzip.compress(text)[:5]),
            ("gz-damaged", "gz",
             lambda text: gzip.compress(text)[:3000] + b"x" * 100 + gzip.compress(text)[3100:]),
            ("gz-plain", "gz", bytes),
            ("gz-empty", "gz", lambda text: b""),
            ("zst-cut", "zst", lambda text: zstandard.compress(text)[:-500]),
            ("zst-plain", "zst", bytes),
            ("zst-empty", "zst", lambda text: b""),
        )
    },
    **{
        f"windows-{number}": (pattern, with_windows_line_ends, ["ok"], [])
        for number, pattern in enumerate((NEW, OLD, "tpu/flash-v5e/*", "seeds/000*", "seeds/001*"))
    },
    "gz-in-parts": (SEED, packed("", "gz", in_two_parts(gzip.compress)), ["ok"], []),
    "zst-in-parts": (SEED, packed("", "zst", in_two_parts(zstandard.compress)), ["ok"], []),
    "plain-and-packed": (OLD, with_packed(gzip.compress), ["ok"], []),
    # The plain one is read.
    "plain-and-packed-badly": (NEW, with_packed(lambda text: b"damaged"), ["ok"], []),
    "a-bad-archive": (SEED, write("a.tar.gz", b"no archive"), ["ok"], ["a.tar.gz"]),
    "a-renamed-text": (NEW, write("jit_f.txt.gz", CUT_GZIP), ["ok"], ["jit_f.txt.gz"]),
    "notes": (NEW, write("notes.txt", b"What we tried today.\n"), ["ok"], []),
    "a-link-to-nothing": (SEED, link("notes.txt"), ["ok"], ["notes.txt"]),
    "a-link-to-no-part": (SEED, link("l-live-range.txt"), ["ok"], ["l-live-range.txt"]),
    "a-link-to-no-flags": (SEED, link("module_0.f.flagfile"), ["ok"], ["module_0.f.flagfile"]),
    "folders": (SEED, as_folders_named_like_dumps, ["ok", "ok"], []),
    "no-unicode": (SEED, with_a_name_that_is_no_unicode, ["ok", "ok"], []),
}  # fmt: skip


@pytest.fixture(scope="module")
def night(tmp_path_factory):
    """All cases as workloads of one run, with one that is fine."""
    cases = {name: (dump, damage(kind, do)) for name, (dump, kind, do, *_) in CASES.items()}
    others = {name: (dump, do) for name, (dump, do, *_) in OTHERS.items()}
    fine = {"a-fine-one": ("tpu/flash-v5e/*", Path.exists)}
    return ingest_cases(tmp_path_factory.mktemp("bad"), {**cases, **others, **fine})


def test_all_are_named_and_none_stops_the_others(night):
    assert night.status == 1
    assert night.dumps("a-fine-one") == [("jit__lambda", "ok")]
    failures = []
    for name, (_, _, statuses, files) in OTHERS.items():
        named = night.named(name)
        as_said = len(named) == len(files) and all(map(fnmatch, named, files))
        if night.statuses(name) != statuses or not as_said:
            failures.append((name, night.statuses(name), named))
    assert failures == []


def test_a_bad_file_is_named_and_recorded(night):
    query = """SELECT workload, dumps.status, kind, path, dump_files.status, line, message
        FROM dump_files INNER JOIN dumps USING (dump_id)
        WHERE dump_files.status NOT IN ('ok', 'missing')
        ORDER BY dump_files.status = 'failed'"""
    recorded = {workload: row for workload, *row in rows(night.db, query)}
    failures = []
    for name, (_, kind, _, status, line, facts, _, _) in CASES.items():
        dump_status, *found, path, found_status, found_line, message = recorded[name]
        path = night.folder / path
        where = path if found_line is None else f"{path}:{found_line}"
        if line == LAST:
            line = len(path.read_bytes().splitlines())
        if not (
            dump_status == "partial"
            and f"error: {where}: {message}" in night.said
            and (status is None or (found, found_status) == ([kind], status))
            and line in (None, found_line)
            and all(fact in message for fact in facts.split())
        ):
            failures.append((name, recorded[name]))
    assert failures == []


def test_damage_costs_no_more_than_what_is_damaged(night):
    query = """SELECT COUNT(opcode) FROM instructions JOIN dumps USING (module_id)
        WHERE workload = '{}'"""
    ((damaged,),), ((whole,),) = (
        rows(night.db, query.format(name)) for name in ("a-byte-of-an-instruction", "notes")
    )
    assert damaged == whole - 1 > 100
    # Damaged flags say nothing of the program.
    query = """SELECT DISTINCT program_id IS NOT NULL FROM modules JOIN dumps USING (module_id)
        WHERE workload IN ('bad-flagfile', 'bad-debug_options', 'bad-gpu_target_config.pbtxt')"""
    assert rows(night.db, query) == [(True,)]


def test_there_are_only_figures_that_the_rest_supports(night):
    found = rows(
        night.db, """SELECT workload, COALESCE(total_bytes, temp_bytes) IS NOT NULL,
            COALESCE(peak_bytes, padding_bytes, fragmentation_bytes) IS NOT NULL,
            peak_bytes > total_bytes FROM peaks"""
    )  # fmt: skip
    failures = []
    for name, (*_, total, peak) in CASES.items():
        of_case = [row[1:] for row in found if row[0] == name]
        totals, peaks = any(row[0] for row in of_case), any(row[1] for row in of_case)
        if total not in (None, totals) or peak != peaks or any(row[2] for row in of_case):
            failures.append((name, of_case))
    with_peak = {row[0] for row in found if row[2]}
    bad = {name for name in OTHERS if name.startswith(("bad-", "gz-", "zst-"))}
    assert bad - with_peak == set()
    assert failures == []


def test_what_could_be_read_is_kept(night):
    query = """SELECT DISTINCT workload FROM instructions INNER JOIN dumps USING (module_id)
        WHERE instruction IN ('x.1', 'x.2', 'x.5')"""
    assert set(CASES) - {workload for (workload,) in rows(night.db, query)} == set()


def test_windows_line_ends_change_no_figure(night, filled):
    query = """SELECT module_name, memory_space, space_name, total_bytes, peak_bytes, peak_time,
        padding_bytes, peak_instruction FROM peaks_by_space AS peaks {} ORDER BY ALL"""
    found = rows(night.db, query.format("WHERE starts_with(workload, 'windows')"))
    assert len(found) >= 5
    assert set(found) <= set(rows(filled, query.format("")))


def test_of_a_dump_without_a_readable_file_nothing_is_known(night):
    query = """SELECT module_name, module_number, module_id FROM dumps
        WHERE workload = 'a-lone-empty-file'"""
    assert rows(night.db, query) == [("jit_f", 3, None)]


def archive_of(folder):
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as archive:
        archive.add(folder, arcname=folder.name)
    return data.getvalue()


def test_a_broken_archive_is_named_and_nothing_taken(tmp_path, db):
    night = copy_dump(GPU, tmp_path / "night")
    whole = archive_of(night)
    broken = {
        "cut.tar.gz": gzip.compress(whole)[: len(whole) // 20],
        "text.tar.gz": b"no archive",
        "empty.tar.gz": b"",
        "cut.tar": whole[:20_000],
        "text.tar": b"no archive" * 100,
        "cut.tar.zst": zstandard.compress(whole)[:-100],
    }
    for name, text in broken.items():
        (tmp_path / name).write_bytes(text)
    summaries = fill(db, *(tmp_path / name for name in broken))
    told = [problem.split(":")[0] for summary in summaries for problem in summary.problems]
    assert told == [str(tmp_path / name) for name in broken]
    assert rows(db, "SELECT * FROM dumps") == []


def test_paths_without_dumps_are_named_and_stop_nothing(tmp_path, db):
    """An empty folder is a run: on that night nothing was compiled. One of other files is not.

    It may be named by mistake, and would be the newest run, unless a date or `--run` tells more.
    """
    (tmp_path / "empty").mkdir()
    (tmp_path / "other").mkdir()
    (tmp_path / "other/notes.txt").write_text("Buy milk.\n")
    (tmp_path / "other/blank.txt").touch()
    (tmp_path / "packed.tar").write_bytes(archive_of(tmp_path / "other"))
    seed = one_file(SEED)
    bad = ["gone", "empty", "other", "other/notes.txt", "other/blank.txt", "packed.tar"]
    run = run_memhouse("ingest", "--db", db, *bad, seed, cwd=tmp_path)
    assert (run.returncode, run.stdout) == (1, "")
    errors = [line for line in run.stderr.splitlines() if line.startswith("error: ")]
    assert [error.split(":")[1].strip() for error in errors] == bad
    assert {run_id for (run_id,) in rows(db, "SELECT run_id FROM runs")} == {*("empty", seed.stem)}
    assert run.stderr.count("--run other would store it") == 1
    shutil.copytree(tmp_path / "other", tmp_path / "2026-10-01")
    run_memhouse("ingest", "--db", db, "2026-10-01", cwd=tmp_path)
    run_memhouse("ingest", "--db", db, "other", "--run", "other", cwd=tmp_path)
    found = {run_id for (run_id,) in rows(db, "SELECT run_id FROM runs WHERE run_id <> 'empty'")}
    assert found == {"2026-10-01", "other", seed.stem}
    assert rows(db, "SELECT run_id, status FROM dumps") == [(seed.stem, "ok")]


def test_what_names_no_path_is_refused(db):
    for arguments in ([""], [DUMPS / "seeds", "--run", ""], ["gs://bucket/dumps"]):
        run = run_memhouse("ingest", *arguments, "--db", db)
        assert (run.returncode, run.stdout) == (2, "")
        assert str(arguments[0]) in run.stderr or "--run" in arguments
    assert not db.exists()


def test_a_file_in_an_archive_is_named_with_the_archive(tmp_path, db):
    night = copy_dump(NEW, tmp_path / "night")
    lives = damaged_file(night, LIVES)
    lives.write_bytes(b"no dump\n")
    (night / "jit_f.txt.gz").write_bytes(CUT_GZIP)
    archive = tmp_path / "night.tar"
    archive.write_bytes(archive_of(night))
    (summary,) = fill(db, archive)
    assert [problem.split(": ")[0] for problem in summary.problems] == [
        f"{archive}/jit_f.txt.gz",
        f"{archive}/{lives.name}:1",
    ]
