"""Which Python runs a command, and what its answer says."""

import sys

import pytest

from memhouse.compile.record import find_interpreter, version_labels


@pytest.fixture
def programs(tmp_path):
    """A folder of programs, and the environment whose PATH it is."""

    def write(name, text):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)

    for name in ("python3.12", "env", "srun", "uv", "bash"):
        write(name, "\x7fELF")
    write("torchrun", f"#!{tmp_path}/python3.12\n")
    write("train", "#!/usr/bin/env -S python3.12 -u\n")
    write("job.sh", "#!/bin/bash\npython3.12 train.py\n")
    return tmp_path, {"PATH": str(tmp_path)}


@pytest.mark.parametrize(
    "command",
    [
        "python3.12 train.py",
        "torchrun --nproc-per-node 4 train.py",
        "train --steps 3",
        "env A=1 python3.12 train.py",
        "srun -n 4 env python3.12 train.py",
        "srun torchrun train.py",
    ],
)
def test_the_python_is_found(programs, command):
    folder, environment = programs
    assert find_interpreter(command.split(), environment) == str(folder / "python3.12")


@pytest.mark.parametrize(
    "command",
    # `uv run` takes the Python of its project, not that of PATH.
    [
        "uv run python3.12 train.py",
        "job.sh",
        "bash -c python3.12",
        "gone",
        "srun",
        "python3.9 a.py",
    ],
)
def test_what_cannot_be_told_is_not_guessed(programs, command):
    assert find_interpreter(command.split(), programs[1]) is None


def test_a_python_named_by_its_path():
    assert find_interpreter([sys.executable, "train.py"], {}) == sys.executable


def test_versions():
    answer = ["jax 0.10.2", "libtpu-nightly 0.1", "tensorflow-cpu 2.16", "noise"]
    assert version_labels(answer) == {"jax": "0.10.2", "libtpu": "0.1", "tensorflow": "2.16"}
    assert version_labels(["libtpu 0.2", "libtpu-nightly 0.1"]) == {"libtpu": "0.2"}
    assert version_labels([]) == {}
