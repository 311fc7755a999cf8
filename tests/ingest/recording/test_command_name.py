"""What a command is called."""

import pytest

from memhouse.compile.record import command_name


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("python train.py", "train"),
        ("python -u jobs/train.py --config eval.yaml", "train"),
        ("torchrun --nproc-per-node 8 train.py", "train"),
        ("python -m models.train --steps 3", "models.train"),
        ("python -m torch.distributed.run train.py", "train"),
        ("./train.sh", "train"),
        ("/opt/bin/train", "train"),
        ("python -c pass", "python"),
        ("bazel run //models:train", "bazel"),
        ("./a b.py", "b"),
        ("./..", "command"),
        ("./größe.py", "größe"),
        ("./my%train$.py", "my_train"),
    ],
)
def test_a_command_is_named_after_its_script(command, name):
    assert command_name(command.split(" ")) == name
