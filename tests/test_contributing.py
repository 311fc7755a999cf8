"""CONTRIBUTING's recipes are complete: a copy of the checkout that follows them works."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from .support.console import commands_of

ROOT = Path(__file__).parents[1]
RECIPE = re.compile(r"^### (.*?)\n(.*?)(?=^##|\Z)", re.MULTILINE | re.DOTALL)
BLOCK = re.compile(r"^```(\w+)(?: (\S+))?\n(.*?)^```", re.MULTILINE | re.DOTALL)
NOT_COPIED = shutil.ignore_patterns(".git", ".venv", "build", "*.egg-info", ".*_cache", "*.duckdb")


def recipes():
    """The recipes that have something to follow, by their headings."""
    text = (ROOT / "CONTRIBUTING.md").read_text()
    found = {heading: BLOCK.findall(body) for heading, body in RECIPE.findall(text)}
    return {heading: blocks for heading, blocks in found.items() if blocks}


def apply(change, file):
    """Make the change that a diff without line numbers shows; `@@` skips to further down."""
    text = file.read_text()
    for part in change.split("@@\n"):
        lines = part.splitlines()
        old = "\n".join(line[1:] for line in lines if line[0] != "+")
        new = "\n".join(line[1:] for line in lines if line[0] != "-")
        assert text.count(old) == 1, f"{file.name} has not just one\n{old}"
        text = text.replace(old, new)
    file.write_text(text)


def run(command, copy):
    """What a command prints that belongs to the copy, not to the checkout."""
    words = shlex.split(command.text, comments=True)
    main = [sys.executable, "-c", "from memhouse.cli import main; main()"]
    if words[0] == "memhouse":
        command_line = [*main, *words[1:]]
    else:
        command_line = ["/bin/sh", "-c", command.text]
    done = subprocess.run(
        command_line,
        cwd=copy,
        env=os.environ | {"PYTHONPATH": str(copy.parent)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def follow(heading, tmp_path):
    """Do what a recipe says in a copy of the checkout; the copy."""
    copy = Path(shutil.copytree(ROOT, tmp_path / "memhouse", ignore=NOT_COPIED))
    for language, path, text in recipes()[heading]:
        if language == "diff":
            apply(text, copy / path)
        elif language == "console":
            for command in commands_of(text):
                shown = run(command, copy)
                assert command.matches(shown), f"$ {command.text}\n{shown}"
        else:
            assert not (copy / path).exists()
            (copy / path).write_text(text)
    return copy


@pytest.mark.slow
@pytest.mark.parametrize("heading", sorted(recipes()))
def test_a_recipe_is_complete(heading, tmp_path):
    follow(heading, tmp_path)


def test_there_is_a_recipe_for_everything_that_is_often_added():
    often = {"Add a format", "Add a view", "Add a question", "Add a column", "Add a metric"}
    assert often | {"Add a chart or a section to a report"} <= set(recipes())
