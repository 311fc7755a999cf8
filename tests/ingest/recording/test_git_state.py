"""The labels that git's answer gives."""

import pytest

from memhouse.compile.record import git_labels

COMMIT = "# branch.oid 1234abcd"


@pytest.mark.parametrize(
    ("answer", "labels"),
    [
        ([], {}),
        (
            [COMMIT, "# branch.head main", "# branch.upstream origin/main"],
            {"commit": "1234abcd", "branch": "main", "dirty": "false"},
        ),
        (
            [COMMIT, "# branch.head topic/a", "1 .M N... 100644 100644 100644 1 1 train.py"],
            {"commit": "1234abcd", "branch": "topic/a", "dirty": "true"},
        ),
        ([COMMIT, "# branch.head (detached)"], {"commit": "1234abcd", "dirty": "false"}),
        (["# branch.oid (initial)", "# branch.head main"], {"branch": "main"}),
    ],
)
def test_labels(answer, labels):
    assert git_labels(answer) == labels
