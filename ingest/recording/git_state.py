"""The commit that a recorded command was run at."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from .asked import Asked

_OID, _HEAD = "# branch.oid ", "# branch.head "


def ask_git(folder: Path, environment: Mapping[str, str]) -> Asked:
    """Ask git for the state of the checkout that the folder is in."""
    return Asked(
        # Files that git does not know are no change of the program: logs, checkpoints.
        ["git", "status", "--porcelain=v2", "--branch", "--untracked-files=no"],
        # Git must not lock the index that the command may use.
        {**environment, "GIT_OPTIONAL_LOCKS": "0"},
        folder,
    )


def git_labels(answer: Iterable[str]) -> dict[str, str]:
    """The labels commit, branch and dirty; none outside a checkout, no branch if detached."""
    found: dict[str, str] = {}
    dirty = False
    for line in answer:
        if line.startswith(_OID):
            found["commit"] = line.removeprefix(_OID)
        elif line.startswith(_HEAD):
            found["branch"] = line.removeprefix(_HEAD)
        elif not line.startswith("#"):
            dirty = True
    if found.get("branch") == "(detached)":
        del found["branch"]
    # A repository without a commit.
    if found.get("commit") == "(initial)":
        del found["commit"]
    return {**found, "dirty": str(dirty).lower()} if "commit" in found else found
