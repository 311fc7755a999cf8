"""What a path holds, what it answers, and what ingest says of a path without dumps."""

import tarfile

import pytest

import memhouse
from memhouse.ingest.dry_run import examine
from memhouse.ingest.formats import by_name, other_by_name
from memhouse.ingest.nothing_found import nothing_found

from ..support.binaries import MIXED, without_assignment
from ..support.command import run_memhouse
from ..support.dumps import DATA, content, copy_dump
from ..support.warehouse import fill, rows

CPU, TPU, GPU = "cpu/jax-0.10.2/*", "tpu/flash-v5e/*", "gpu/decode-h100/*"
STEM = "module_0002.jit_f"
QUESTIONS = (
    "the peak, and when it is: exactly",
    "the peak: as an estimate at least",
    "which Python line owns the bytes",
)


KINDS = [
    (f"{STEM}.before_optimizations.txt", "before-optimizations"),
    (f"{STEM}.before_optimizations.hlo.pb", "before-optimizations"),
    (
        f"{STEM}.cpu_after_optimizations_before_buffer_assignment.txt",
        "before-buffer-assignment",
    ),
    (
        f"{STEM}.cl_9.after_optimizations_after_buffer_assignment.hlo.pb",
        "after-buffer-assignment",
    ),
    (f"{STEM}.after_codegen.txt", "after-codegen"),
    (f"{STEM}.oom_top_memory_consuming_instructions", "oom-list"),
    (f"{STEM}.cpu_after_optimizations-memory-usage-report.pb", "usage-report-pb"),
    (f"{STEM}.0007.spmd.after_flatten.before_cse.txt", "passes"),
    (f"{STEM}.obj-file.wrapped_kernel_module.o", "object"),
    (f"{STEM}.wrapped_kernel_module.ir-with-opt.ll", "llvm"),
    (f"{STEM}.sm_9.0a_gpu.ptx", "llvm"),
    (f"{STEM}.thunk_sequence.txt", "thunks"),
    ("vm.trace.json.gz", "trace"),
    ("manifest.ocdbt", "checkpoint"),
    ("model.safetensors", "checkpoint"),
    ("jit_f-0123abcd-cache", "cache"),
    ("memory.prof", "pprof"),
]


def test_a_name_tells_what_other_files_hold():
    for name, kind in KINDS:
        assert by_name(name) is None
        assert other_by_name(name).name == kind


def files(found):
    return {row["name"]: (row["files"], row["ingest"]) for row in found.files.to_pylist()}


def answers(found):
    return {row["question"]: row["answer"] for row in found.questions.to_pylist()}


def test_a_whole_dump_answers_what_it_can(tmp_path):
    copy_dump(CPU, tmp_path)
    found = memhouse.doctor(tmp_path)
    assert (found.programs, found.platforms, found.problems) == (3, {"cpu": 3}, [])
    assert files(found)["hlo"] == (3, "reads")
    assert files(found)["live-range"] == (3, "reads")
    assert files(found)["object"] == (1, "-")
    assert files(found)["llvm"] == (2, "-")
    assert answers(found) == {
        "what is allocated, and where": "yes",
        "the peak, and when it is: exactly": "yes",
        "the peak: as an estimate at least": "yes",
        "which Python line owns the bytes": "yes",
        "which compiler flags differ": "1 of 3",
        "how full the device is": "no",
        "what the memory spaces are called": "yes",
        "which compiler pass defined a buffer": "no",
    }


def test_what_is_missing_is_told(tmp_path):
    yes, no = ("yes",) * 3, ("no",) * 3
    missing = {
        (): yes,
        # Derived from the schedule.
        ("-live-range.txt",): yes,
        ("-live-range.txt", "after_optimizations.txt"): no,
        ("-buffer-assignment.txt", "-values.txt", "-live-range.txt"): ("no", "yes", "yes"),
    }
    for number, (gone, expected) in enumerate(missing.items()):
        folder = copy_dump("cpu/jax-0.10.2/module_0018*", tmp_path / str(number))
        for ending in gone:
            for path in folder.glob(f"*{ending}"):
                path.unlink()
        found = examine(folder)
        told = answers(found)
        assert tuple(told[question] for question in QUESTIONS) == expected, gone
        for row in found.questions.to_pylist():
            assert (row["why"] is None) == (row["answer"] == "yes")


def test_the_answers_are_what_ingest_finds(tmp_path, db):
    """An older document holds its live ranges; a text that is not scheduled gives an estimate."""
    for pattern, exact, estimate in (
        ("cpu/jax-0.9.0/module_0019*", "yes", "yes"),
        ("seeds/00[0-9]*", "4 of 5", "yes"),
        ("cpu/jax-0.4.23/module_0009*after_optimizations.txt", "no", "yes"),
    ):
        folder = copy_dump(pattern, tmp_path / pattern.replace("/", "-").replace("*", ""))
        told = answers(examine(folder))
        assert told["the peak, and when it is: exactly"] == exact, pattern
        assert told["the peak: as an estimate at least"] == estimate, pattern


def test_programs_of_the_compilation_cache_are_recognised(tmp_path):
    whole = MIXED.read_bytes()
    (tmp_path / "module_0007.jit_f.after_optimizations.hlo.pb").write_bytes(
        without_assignment(whole)
    )
    (problem,) = examine(tmp_path).problems
    assert "compilation cache" in problem
    (tmp_path / "module_0007.jit_f.after_optimizations.hlo.pb").write_bytes(whole)
    assert (examine(tmp_path).hints, examine(tmp_path).problems) == ([], [])


def test_a_session_answers_what_its_modules_hold():
    found = examine(DATA / "session")
    told = answers(found)
    assert found.programs > 0
    assert told["the peak, and when it is: exactly"] == "yes"
    assert told["which compiler flags differ"] == "no"


def test_an_archive_is_looked_into(tmp_path):
    folder = copy_dump(CPU, tmp_path / "night")
    with tarfile.open(tmp_path / "night.tar.gz", "w:gz") as archive:
        archive.add(folder, arcname="night")
    found, plain = examine(tmp_path / "night.tar.gz"), examine(folder)
    assert found.programs == plain.programs
    assert files(found) == files(plain)


def test_a_renamed_file_is_told_by_its_content(tmp_path):
    (seed,) = copy_dump("seeds/002*", tmp_path).iterdir()
    (tmp_path / "notes.txt").write_text("Buy milk.\n")
    (tmp_path / "bad.txt.gz").write_bytes(b"damaged")
    found = examine(tmp_path)
    assert files(found) == {"buffer-assignment": (1, "reads"), "other": (2, "-")}
    assert ["bad.txt.gz" in problem for problem in found.problems] == [True]
    assert examine(seed).programs == 1


PASTED = """\
/* What XLA said last night.
 *   allocation 0: 0x7f001200, size 32768, parameter 0, shape f32[256,32] at ShapeIndex {}:
 *    value: <3 parameter @0> (size=32768,offset=0): f32[256,32]{1,0}
 *   allocation 1: size 128, output shape is |f32[32]|, maybe-live-out:
 *   allocation 2: size 4, preallocated-temp
 */
int main() { return 0; }
"""
# name: the text; the total and how many allocations, None if nothing is read.
ALONE = {
    "main.cc": (PASTED, 32900, 3),
    "x-buffer-assignment.txt": (PASTED, 32900, 3),
    "no-heading.txt": (PASTED[PASTED.index("*  ") :], 32900, 3),
    "gap.cc": (PASTED.replace("allocation 1", "allocation 7"), None, 3),
    "odd.cc": (PASTED.replace("temp", "heap"), None, 2),
    "cut.cc": (PASTED[: PASTED.index(", preallocated")], 32900, 3),
    "cut-within.cc": (PASTED[: PASTED.index("ocation 2")], None, 2),
    "cut-before.cc": (PASTED[: PASTED.index("size 4")], None, 2),
    "y-buffer-assignment.txt": ("Buy milk.\n", None, None),
    "notes.md": ("Buy milk.\n", None, None),
    "z-memory-usage-report.txt": ("Buy milk.\n", None, None),
    "old-report.txt": (
        "Total bytes used: 3000 (2.9KiB)\nAllocations sorted by size:\n"
        "   1.95KiB( 65%);   1000B; allocation 0: size 1.95KiB, preallocated-temp:\n"
        "   2.85KiB( 97%);     80B; allocation 1: size 920B, parameter 0, shape |f32[230]|\n",
        3000, 2,
    ),
    "report-memory-usage-report.txt": (
        content("tpu/flash-v5e/*-memory-usage-report.txt").decode(), 100707328, 0,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ALONE)
def test_doctor_says_of_one_file_what_ingest_does(tmp_path, db, name):
    """Whoever pasted it, into what: both read it, or neither does."""
    text, total, allocations = ALONE[name]
    path = tmp_path / name
    path.write_text(text)
    found = examine(path)
    (summary,) = fill(db, path)
    is_read = "SELECT COUNT(*) FROM dumps WHERE module_id IS NOT NULL"
    assert rows(db, is_read) == [(found.programs,)]
    assert found.programs == (allocations is not None)
    assert (found.programs == 1) or found.problems or summary.problems
    if found.programs:
        query = "SELECT SUM(total_bytes) FILTER (memory_space = 0) FROM module_memory"
        assert rows(db, query) == [(total,)]
        assert rows(db, "SELECT COUNT(*) FROM allocations") == [(allocations,)]


def test_ingest_says_what_a_folder_holds_instead(tmp_path):
    folders = {
        "XLA_FLAGS=": [],
        "HLO before optimizations (2)": [
            f"{STEM}.before_optimizations.txt",
            "module_0003.jit_g.before_optimizations.txt",
        ],
        "memory usage reports in binary (1)": [
            f"{STEM}.cpu_after_optimizations-memory-usage-report.pb"
        ],
        "data of a checkpoint (2)": ["manifest.ocdbt", "_METADATA"],
        "flags (1)": [f"{STEM}.debug_options"],
    }
    for number, (said, names) in enumerate(folders.items()):
        night = tmp_path / str(number)
        night.mkdir()
        for name in names:
            (night / name).write_bytes(b"\0")
        problem = nothing_found(night)
        assert problem.startswith(f"{night}: ")
        assert said in problem
        assert "\n" not in problem
    (night / "a.md").touch()
    (summary,) = fill(tmp_path / "memhouse.duckdb", night)
    assert summary.problems == [nothing_found(night)]


def test_ingest_names_the_file_to_give_instead(tmp_path):
    night = copy_dump("cpu/jax-0.10.2/module_0018*", tmp_path / "night")
    other = night / "module_0018.jit_mixed.before_optimizations.hlo.pb"
    other.write_bytes(b"\x0a\x00")
    final = night / "module_0018.jit_mixed.cpu_after_optimizations.txt"
    assert nothing_found(other).startswith(f"{other}: ")
    assert str(final) in nothing_found(other)
    run = run_memhouse("ingest", other, cwd=tmp_path)
    assert run.returncode == 1
    assert run.stderr == f"error: {nothing_found(other)}\n"


def test_the_command_prints_files_and_questions(tmp_path):
    night = copy_dump("cpu/jax-0.10.2/module_0018*", tmp_path / "night")
    run = run_memhouse("doctor", night)
    assert (run.returncode, run.stderr) == (0, "")
    assert "HloLiveRange (*-live-range.txt)" in run.stdout
    assert "1 program: cpu 1" in run.stdout
    assert "how full the device is" in run.stdout
    assert not (tmp_path / "memhouse.duckdb").exists()


def test_the_command_fails_where_there_is_nothing_to_ingest(tmp_path):
    (tmp_path / "empty").mkdir()
    for name in ("empty", "gone"):
        run = run_memhouse("doctor", name, cwd=tmp_path)
        assert (run.returncode, run.stdout) == (1, "")
        assert run.stderr.startswith(f"error: {name}: ")
        assert len(run.stderr.splitlines()) == 1
