"""`memhouse export MODULE FILE --format perfetto`: a trace, whole or not at all."""

import pytest

from ..support.command import run_memhouse
from ..support.traces import read_trace

MODULE = "llama-v5e/jit_train_step"


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("llama.trace", ["--format", "perfetto"]),
        ("llama.csv", ["-f", "perfetto"]),
        ("llama.pftrace", []),
        ("llama.perfetto-trace", []),
    ],
)
def test_the_format_is_told_by_the_option_or_the_ending(filled, tmp_path, name, options):
    done = run_memhouse("export", MODULE, tmp_path / name, *options, "--db", filled)
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr.split() == f"{tmp_path / name}: 972 values in 4 memory spaces".split()
    assert len(read_trace(tmp_path / name)) > 100


def test_the_real_command_and_a_run(history, tmp_path):
    file = tmp_path / "x.pftrace"
    file.write_text("old")
    done = run_memhouse("export", "llama-cpu", file, "--run", "2026-10-01", "--db", history)
    assert (done.returncode, done.stdout) == (0, "")
    assert "memory space 0 (memory)" in [track.name for track in read_trace(file)]
    assert [path.name for path in tmp_path.iterdir()] == [file.name]


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["nope", "x.pftrace"], "no module fits 'nope'"),
        ([MODULE, "x.pftrace", "--run", "nope"], "nope"),
        ([MODULE, "no/folder/x.pftrace"], "there is no folder"),
        ([MODULE, "x.pftrace", "--where", "size_bytes > 1"], "--where: rows are chosen of a view"),
        ([MODULE, "x.pftrace", "--since", "2026-10-01"], "--since: rows are chosen of a view"),
        ([MODULE, "x.pftrace", "--wide"], "--wide: rows are chosen of a view"),
        (["peaks", "x.csv", "--run", "tpu"], "--run: a run is chosen of a module"),
        ([MODULE, "x.pftrace", "--format", "svg"], "'svg' is not"),
    ],
)
def test_wrong_usage(filled, tmp_path, monkeypatch, args, message):
    monkeypatch.chdir(tmp_path)
    done = run_memhouse("export", *args, "--db", filled)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in " ".join(done.stderr.replace("│", " ").split())
    assert list(tmp_path.iterdir()) == []


def test_what_cannot_be_written_leaves_nothing_behind(filled, tmp_path):
    target = tmp_path / "x.pftrace"
    target.mkdir()
    done = run_memhouse("export", MODULE, target, "--db", filled)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(f"error: cannot write {target}: ")
    assert list(tmp_path.iterdir()) == [target]
    assert list(target.iterdir()) == []
