"""File names: what they say a file holds, and which are passed over unopened."""

import os

import pytest

from memhouse.ingest.formats import DumpName, FileKind, kind_of, may_be_renamed, parse_stem
from memhouse.ingest.sources.dump_folder import find_dumps, is_wanted
from memhouse.ingest.sources.files import SourceFile

from ..support.dumps import DUMPS, copy_dump
from ..support.warehouse import fill, rows


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (
            "module_0000.jit_train_step.cl_933746096.after_optimizations-buffer-assignment.txt",
            FileKind("module_0000.jit_train_step.cl_933746096", "buffer-assignment", None),
        ),
        (
            "module_0001.jit_f.sm_9.0a_gpu_after_optimizations-buffer-assignment-values.txt",
            FileKind("module_0001.jit_f", "buffer-assignment-values", "sm_9.0a_gpu"),
        ),
        (
            "module_0001.jit_f.sm_80_gpu_after_optimizations-live-range.txt.gz",
            FileKind("module_0001.jit_f", "live-range", "sm_80_gpu"),
        ),
        (
            "module_0001.jit_f.gfx942_gpu_after_optimizations.txt",
            FileKind("module_0001.jit_f", "hlo", "gfx942_gpu"),
        ),
        (
            "module_0001.jit_f.gpu_after_optimizations.txt",
            FileKind("module_0001.jit_f", "hlo", "gpu"),
        ),
        (
            "module_0018.jit_mixed.cpu_after_optimizations-memory-usage-report.txt.zst",
            FileKind("module_0018.jit_mixed", "memory-usage-report", "cpu"),
        ),
        (
            "module_0018.jit_mixed.cpu_after_optimizations.txt",
            FileKind("module_0018.jit_mixed", "hlo", "cpu"),
        ),
        (
            "module_0000.jit_f.cl_12.oom_intermediate_module.txt.gz",
            FileKind("module_0000.jit_f.cl_12", "oom-hlo", None),
        ),
        ("module_0018.jit_f.debug_options", FileKind("module_0018.jit_f", "debug-options", None)),
        ("module_0000.f.cl_12.flagfile.gz", FileKind("module_0000.f.cl_12", "flagfile", None)),
        (
            "module_0000.f.cl_12.target_arguments.txt",
            FileKind("module_0000.f.cl_12", "target-arguments", None),
        ),
        (
            "module_0001.f.gpu_target_config.pbtxt",
            FileKind("module_0001.f", "gpu-target-config", None),
        ),
        # Users rename files.
        ("night-live-range.txt", FileKind("night", "live-range", None)),
        ("resnet.cpu_after_optimizations.txt", FileKind("resnet", "hlo", "cpu")),
        ("cpu_after_optimizations.txt", FileKind("", "hlo", "cpu")),
    ],
)
def test_a_name_tells_what_the_file_holds(name, expected):
    assert kind_of(name) == expected
    assert is_wanted(name)


@pytest.mark.parametrize(
    ("stem", "target", "expected"),
    [
        ("module_0000.jit_f.cl_933746096", None, DumpName("jit_f", 0, "933746096", "tpu")),
        ("module_0012.jit_f", None, DumpName("jit_f", 12, None, "tpu")),
        ("module_0012.jit_f", "cpu", DumpName("jit_f", 12, None, "cpu")),
        ("module_0012.jit_f", "sm_9.0a_gpu", DumpName("jit_f", 12, None, "gpu")),
        ("module_12345.jit_f", "gfx942_gpu", DumpName("jit_f", 12345, None, "gpu")),
        # The module's own name can hold dots, and look like the rest.
        ("module_0003.model.v1.2", "cpu", DumpName("model.v1.2", 3, None, "cpu")),
        ("module_0003.f.cl_1.g.cl_22", None, DumpName("f.cl_1.g", 3, "22", "tpu")),
        ("module_0003.SyncTensorsGraph.42", None, DumpName("SyncTensorsGraph.42", 3, None, "tpu")),
        ("module_0003.a-b__c.[]", "cpu", DumpName("a-b__c.[]", 3, None, "cpu")),
        # A renamed file does not tell its platform.
        ("night", None, DumpName("night", None, None, None)),
        ("night", "cpu", DumpName("night", None, None, "cpu")),
    ],
)  # fmt: skip
def test_a_stem_tells_the_module(stem, target, expected):
    assert parse_stem(stem, target) == expected


@pytest.mark.parametrize(
    "name",
    [
        "module_0002.jit_f.wrapped_kernel_module.ir-with-opt.ll",
        "module_0002.jit_f.obj-file.wrapped_kernel_module.o",
        "module_0002.jit_f.before_optimizations.txt",
        "module_0002.jit_f.cpu_after_optimizations_before_buffer_assignment.txt",
        "module_0002.jit_f.after_codegen.txt",
        "module_0002.jit_f.cpu_after_optimizations.hlo.pb",
        "module_0002.jit_f.cpu_after_optimizations.txt.bak",
        "module_0002.jit_f.0001.spmd.after_flatten.before_cse.txt",
        "module_0002.jit_f.sm_9.0a_gpu.ptx",
        "module_0002.jit_f.thunk_sequence.txt",
        "notes.tar.md",
        "memory_analysis.json",
        ".night.txt",
        "kernel.mlir",
    ],
)
def test_a_name_that_is_not_ours_is_passed_over(name):
    assert kind_of(name) is None
    assert not may_be_renamed(name)
    assert not is_wanted(name)


@pytest.mark.parametrize(
    "name", ["night", "night.txt", "my.model.log", "f.hlo", "f.txt.gz", "f.gz"]
)
def test_a_renamed_file_is_worth_a_look(name):
    assert kind_of(name) is None
    assert may_be_renamed(name)


def test_every_sample_file_is_known():
    unknown = {
        path.name
        for run in ("cpu", "gpu", "tpu")
        for path in (DUMPS / run).rglob("*.*")
        if path.is_file() and kind_of(path.name) is None
    }
    assert {name.split(".", 2)[-1] for name in unknown if name.startswith("module_")} == {
        "obj-file.wrapped_broadcast_kernel_module.o",
        "wrapped_broadcast_kernel_module.ir-no-opt.ll",
        "wrapped_broadcast_kernel_module.ir-with-opt.ll",
    }


def test_thousands_of_other_files_are_not_opened(tmp_path, db, monkeypatch):
    folder = copy_dump("cpu/jax-0.10.2/module_0002.*after_opt*", tmp_path / "night")
    for number in range(1000):
        stem = f"module_{number:04}.jit_f"
        for ending in ("0007.cse.after_x.before_y.txt", "ir-no-opt.ll", "ptx"):
            (folder / f"{stem}.{ending}").write_text("HloModule no\n")
    # Who opens this one waits for ever.
    os.mkfifo(folder / "module_0002.jit_broadcast_in_dim.before_optimizations.txt")
    opened = []
    read = SourceFile.read

    def recording_read(self, *args):
        opened.append(self.path.name)
        return read(self, *args)

    monkeypatch.setattr(SourceFile, "read", recording_read)
    (summary,) = fill(db, folder)
    assert (summary.dumps, summary.problems) == (1, [])
    assert len(opened) == 5
    assert all(".cpu_after_optimizations" in name for name in opened)


def test_of_a_file_that_may_be_renamed_only_the_start_is_read(tmp_path, db, monkeypatch):
    copy_dump("seeds/002*", tmp_path / "night")
    (tmp_path / "night/notes.txt").write_bytes(b"no dump" * 1_000_000)
    read = SourceFile.read

    def limited_read(self, limit=None):
        assert limit is not None or self.path.name != "notes.txt"
        return read(self, limit)

    monkeypatch.setattr(SourceFile, "read", limited_read)
    (summary,) = fill(db, tmp_path / "night")
    assert (summary.dumps, summary.problems) == (1, [])


def test_files_of_one_module_make_one_dump(tmp_path):
    folder = copy_dump("cpu/jax-0.10.2/module_0002.*after_opt*", tmp_path)
    files = [
        SourceFile(path.relative_to(folder), path, 0.0, path.stat().st_size)
        for path in folder.iterdir()
    ]
    (dump,) = find_dumps(files, pytest.fail)
    assert (dump.workload, dump.stem) == (".", "module_0002.jit_broadcast_in_dim")
    assert sorted(dump.files) == [
        "buffer-assignment",
        "buffer-assignment-values",
        "hlo",
        "live-range",
        "memory-usage-report",
    ]


def test_two_targets_of_one_name_are_two_dumps(tmp_path, db):
    # The same script, run on CPU and then on GPU, into one folder.
    folder = copy_dump("cpu/jax-0.10.2/module_0018*", tmp_path / "night")
    for path in copy_dump("gpu/decode-h100/module_*after_opt*", tmp_path / "gpu").iterdir():
        path.rename(folder / path.name.replace("module_0001.jit_generate", "module_0018.jit_mixed"))
    (summary,) = fill(db, folder)
    assert (summary.dumps, summary.problems) == (2, [])
    assert sorted(rows(db, "SELECT platform, peak_bytes FROM peaks")) == [
        ("cpu", 148052),
        ("gpu", 104862044),
    ]
