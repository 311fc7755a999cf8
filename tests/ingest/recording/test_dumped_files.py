"""The files of a recorded command: those of several processes, and of JAX's cache."""

import pytest

from memhouse.compile.record import cached_modules, link_new, remember, tell_processes_apart


def write(folder, *files):
    """Write files that are given as `NAME SIZE`; the size is 1 unless given."""
    for file in files:
        name, _, size = file.partition(" ")
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(b"x" * int(size or 1))
    return folder


def names(folder):
    return sorted(str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file())


def test_the_files_of_one_process_lose_their_times(tmp_path):
    write(
        tmp_path,
        "1795321767427949.module_0000.jit_f.cpu_after_optimizations.txt",
        "1795321767427949.module_0000.jit_f.before_optimizations.txt",
        "1795321767999999.module_0001.jit_f.cpu_after_optimizations.txt",
        "module_0000.jit_f.debug_options",
        "1795321777.peak_memory_tensors.txt",
    )
    tell_processes_apart(tmp_path)
    assert names(tmp_path) == [
        "1795321777.peak_memory_tensors.txt",
        "module_0000.jit_f.before_optimizations.txt",
        "module_0000.jit_f.cpu_after_optimizations.txt",
        "module_0000.jit_f.debug_options",
        "module_0001.jit_f.cpu_after_optimizations.txt",
    ]


@pytest.mark.parametrize("swapped", [False, True])
def test_processes_are_in_order_of_their_programs_size(tmp_path, swapped):
    first, second = ("1795321767000001", "1795321767000002")[:: -1 if swapped else 1]
    stem = "module_0003.jit_f.cl_933746096"
    write(
        tmp_path,
        f"{first}.{stem}.after_optimizations.txt 10",
        f"{first}.{stem}.flagfile 500",
        f"{second}.{stem}.after_optimizations.txt 20",
        f"{second}.{stem}.flagfile",
        f"{stem}.debug_options",
        # Only one process has this one.
        f"{second}.module_0004.jit_g.sm_9.0a_gpu_after_optimizations.txt",
    )
    tell_processes_apart(tmp_path)
    assert names(tmp_path) == [
        f"2/{stem}.after_optimizations.txt",
        f"2/{stem}.debug_options",
        f"2/{stem}.flagfile",
        f"{stem}.after_optimizations.txt",
        f"{stem}.debug_options",
        f"{stem}.flagfile",
        "module_0004.jit_g.sm_9.0a_gpu_after_optimizations.txt",
    ]
    assert (tmp_path / f"{stem}.flagfile").stat().st_size == 500


def test_programs_of_two_processes_may_have_one_number(tmp_path):
    write(
        tmp_path,
        "1795321767000001.module_0000.jit_a.b.cpu_after_optimizations.txt",
        "1795321767000002.module_0000.jit_a.cpu_after_optimizations.txt",
    )
    tell_processes_apart(tmp_path)
    assert names(tmp_path) == [
        "module_0000.jit_a.b.cpu_after_optimizations.txt",
        "module_0000.jit_a.cpu_after_optimizations.txt",
    ]


def test_what_came_from_the_cache(tmp_path):
    write(
        tmp_path,
        "module_0000.jit_cached.after_optimizations.hlo.pb",
        "module_0000.jit_cached.debug_options",
        "module_0002.jit_text.v2.after_optimizations.txt",
        "module_0002.jit_text.v2.after_optimizations.hlo.pb",
        "2/module_0000.jit_cached.after_optimizations.hlo.pb",
        # The processors of these are in the names, or XLA wrote other stages.
        "module_0004.jit_cpu.cpu_after_optimizations.hlo.pb",
        "module_0006.jit_gpu.sm_9.0a_gpu_after_optimizations.hlo.pb",
        "module_0008.jit_tpu.cl_933746096.after_optimizations.hlo.pb",
        "module_0008.jit_tpu.cl_933746096.before_optimizations.hlo.pb",
        "module_0010.jit_old.after_optimizations.txt",
        "module_0010.jit_old.after_optimizations-buffer-assignment.txt",
    )
    assert cached_modules(tmp_path) == {
        tmp_path: {"module_0000.jit_cached", "module_0002.jit_text.v2"},
        tmp_path / "2": {"module_0000.jit_cached"},
    }


def test_only_what_is_new_is_linked(tmp_path):
    own = write(tmp_path / "own", "a.txt", "b.txt", "deep/c.txt")
    before = remember(own)
    write(own, "b.txt 2", "deep/d.txt")
    to = tmp_path / "to"
    link_new(own, before, to)
    assert names(to) == ["b.txt", "deep/d.txt"]
    assert (to / "b.txt").read_bytes() == b"xx"
    assert remember(tmp_path / "nowhere") == {}
