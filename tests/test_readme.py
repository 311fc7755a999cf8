"""The README and `docs/lake.md` tell the truth: their commands run, and print what they say."""

from pathlib import Path

import pytest

from .support.console import Command, blocks, replayed

ROOT = Path(__file__).parents[1]
# What needs a network, an accelerator or a user's own program.
NOT_HERE = ("pip install", "make ", "python train.py")


@pytest.mark.parametrize(("document", "least"), [("README.md", 10), ("docs/lake.md", 5)])
def test_a_document_shows_only_what_happens(samples, document, least):
    """Block by block, in one folder: a reader who types along sees the same."""
    ran = 0
    for command, shown in replayed(blocks(ROOT / document), samples, NOT_HERE):
        assert command.matches(shown), f"$ {command.text}\n{shown}"
        ran += 1
    assert ran > least


@pytest.mark.parametrize(
    ("output", "shown", "matches"),
    [
        (["a 1.2 s"], "a 3.4 s\r\n", True),
        (["a", "…", "d"], "a\r\nb\r\nc\r\nd\r\n", True),
        (["a"], "\x1b[1ma\x1b[0m  \r\n", True),
        (["a"], "b\r\n", False),
        (["a"], "a\r\nb\r\n", False),
        ([], "b\r\n", False),
        ([], "", True),
    ],
)
def test_what_differs_is_noticed(output, shown, matches):
    assert Command("true", output).matches(shown) is matches
