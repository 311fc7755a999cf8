"""File names: what they say a file holds, and which are passed over unopened."""

import os

from memhouse.ingest.formats import BY_NAME, by_content, by_name, may_be_renamed
from memhouse.ingest.sources.dump_folder import is_wanted, parse_key
from memhouse.ingest.sources.files import SourceFile
from memhouse.ingest.sources.program import Key

from ..support.dumps import DUMPS, copy_dump
from ..support.warehouse import fill, rows

HELD = [
    (
        "module_0000.jit_train_step.cl_933746096.after_optimizations-buffer-assignment.txt",
        ("module_0000.jit_train_step.cl_933746096", "buffer-assignment", None),
    ),
    (
        "module_0001.jit_f.sm_9.0a_gpu_after_optimizations-buffer-assignment-values.txt",
        ("module_0001.jit_f", "buffer-assignment-values", "sm_9.0a_gpu"),
    ),
    (
        "module_0001.jit_f.sm_80_gpu_after_optimizations-live-range.txt.gz",
        ("module_0001.jit_f", "live-range", "sm_80_gpu"),
    ),
    (
        "module_0001.jit_f.gfx942_gpu_after_optimizations.txt",
        ("module_0001.jit_f", "hlo", "gfx942_gpu"),
    ),
    (
        "module_0001.jit_f.gpu_after_optimizations.txt",
        ("module_0001.jit_f", "hlo", "gpu"),
    ),
    (
        "module_0018.jit_mixed.cpu_after_optimizations-memory-usage-report.txt.zst",
        ("module_0018.jit_mixed", "memory-usage-report", "cpu"),
    ),
    (
        "module_0018.jit_mixed.cpu_after_optimizations.txt",
        ("module_0018.jit_mixed", "hlo", "cpu"),
    ),
    (
        "module_0000.jit_f.cl_12.oom_intermediate_module.txt.gz",
        ("module_0000.jit_f.cl_12", "oom-hlo", None),
    ),
    ("module_0018.jit_f.debug_options", ("module_0018.jit_f", "debug-options", None)),
    ("module_0000.f.cl_12.flagfile.gz", ("module_0000.f.cl_12", "flagfile", None)),
    (
        "module_0000.f.cl_12.target_arguments.txt",
        ("module_0000.f.cl_12", "target-arguments", None),
    ),
    (
        "module_0001.f.gpu_target_config.pbtxt",
        ("module_0001.f", "gpu-target-config", None),
    ),
    (
        "module_0001.f.cpu_after_optimizations.hlo.pb.gz",
        ("module_0001.f", "hlo-proto", "cpu"),
    ),
    (
        "module_0001.f.cl_12.oom_intermediate_module.hlo.pb",
        ("module_0001.f.cl_12", "oom-hlo-proto", None),
    ),
    # Users rename files.
    ("night-live-range.txt", ("night", "live-range", None)),
    ("resnet.cpu_after_optimizations.txt", ("resnet", "hlo", "cpu")),
    ("cpu_after_optimizations.txt", ("", "hlo", "cpu")),
]


def test_a_name_tells_what_the_file_holds():
    for name, expected in HELD:
        stem, format_, target = by_name(name)
        assert (stem, format_.name, target) == expected
        assert is_wanted(name)


STEMS = [
    ("module_0000.jit_f.cl_933746096", None, ("jit_f", 0, "933746096", "tpu")),
    ("module_0012.jit_f", None, ("jit_f", 12, None, "tpu")),
    ("module_0012.jit_f", "cpu", ("jit_f", 12, None, "cpu")),
    ("module_0012.jit_f", "sm_9.0a_gpu", ("jit_f", 12, None, "gpu")),
    ("module_12345.jit_f", "gfx942_gpu", ("jit_f", 12345, None, "gpu")),
    # The module's own name can hold dots, and look like the rest.
    ("module_0003.model.v1.2", "cpu", ("model.v1.2", 3, None, "cpu")),
    ("module_0003.f.cl_1.g.cl_22", None, ("f.cl_1.g", 3, "22", "tpu")),
    ("module_0003.SyncTensorsGraph.42", None, ("SyncTensorsGraph.42", 3, None, "tpu")),
    ("module_0003.a-b__c.[]", "cpu", ("a-b__c.[]", 3, None, "cpu")),
    # A renamed file does not tell its platform.
    ("night", None, ("night", None, None, None)),
    ("night", "cpu", ("night", None, None, "cpu")),
]


def test_a_stem_tells_the_module():
    for stem, target, (name, number, compiler, platform) in STEMS:
        assert parse_key("w", stem, target) == Key(
            "w", name, number, platform, name=stem, target=target, compiler=compiler
        )


NOT_OURS = [
    "module_0002.jit_f.wrapped_kernel_module.ir-with-opt.ll",
    "module_0002.jit_f.obj-file.wrapped_kernel_module.o",
    "module_0002.jit_f.before_optimizations.txt",
    "module_0002.jit_f.cpu_after_optimizations_before_buffer_assignment.txt",
    "module_0002.jit_f.after_codegen.txt",
    "module_0002.jit_f.before_optimizations.hlo.pb",
    "module_0002.jit_f.cpu_after_optimizations_before_buffer_assignment.hlo.pb",
    "module_0002.jit_f.after_optimizations_after_buffer_assignment.hlo.pb",
    "module_0002.jit_f.after_codegen.hlo.pb",
    "module_0002.jit_f.after_optimizations-memory-usage-report.pb",
    "module_0002.jit_f.cpu_after_optimizations.txt.bak",
    "module_0002.jit_f.0001.spmd.after_flatten.before_cse.hlo.pb",
    "module_0002.jit_f.sm_9.0a_gpu.ptx",
    "module_0002.jit_f.thunk_schedule.txt",
    "notes.tar.md",
    "memory_analysis.json",
    ".night.txt",
    "kernel.mlir",
]


def test_a_name_that_is_not_ours_is_passed_over_but_a_renamed_file_is_worth_a_look():
    for name in NOT_OURS:
        assert by_name(name) is None
        assert not may_be_renamed(name)
        assert not is_wanted(name)
    for name in ("night", "night.txt", "my.model.log", "f.hlo", "f.txt.gz", "f.gz"):
        assert by_name(name) is None
        assert may_be_renamed(name)


def test_thousands_of_other_files_are_not_opened(tmp_path, db, monkeypatch):
    folder = copy_dump("cpu/jax-0.10.2/module_0002.*after_opt*", tmp_path / "night")
    for number in range(300):
        stem = f"module_{number:04}.jit_f"
        for ending in ("0007.cse.after_x.before_y.txt", "ir-no-opt.ll", "ptx"):
            (folder / f"{stem}.{ending}").write_text("HloModule no\n")
    # Who opens this one waits for ever.
    os.mkfifo(folder / "module_0002.jit_broadcast_in_dim.before_optimizations.txt")
    opened = []
    read = SourceFile.read

    def recording_read(self, *args):
        opened.append(self.name)
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
        assert limit is not None or self.name != "notes.txt"
        return read(self, limit)

    monkeypatch.setattr(SourceFile, "read", limited_read)
    (summary,) = fill(db, tmp_path / "night")
    assert (summary.dumps, summary.problems) == (1, [])


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


def test_what_a_file_begins_with_tells_its_format():
    assert by_content(b"\n HloModule jit_f, is_scheduled=true") is BY_NAME["hlo"]
    assert by_content(b"Total bytes used: 12") is BY_NAME["buffer-assignment-values"]
    assert by_content(b"#!/bin/sh") is None


def test_of_two_formats_one_file_name_fits_one_only():
    for path in DUMPS.rglob("module_*"):
        name = path.name.removesuffix(".gz")
        fitting = [f.name for f in BY_NAME.values() if f.pattern.match(name)]
        assert len(fitting) <= 1, name
