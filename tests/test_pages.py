"""The README and the pages of docs/ tell the truth: their commands run, and print what they say."""

import pytest

from .support.console import Command
from .support.pages import NOT_HERE, WITH_COMMANDS, renewed, tried


@pytest.mark.parametrize("name", WITH_COMMANDS)
def test_a_document_shows_only_what_happens(name, samples):
    """Block by block, in one folder: a reader who types along sees the same; else make approve."""
    for command, shown in tried(name, samples):
        assert command.matches(shown), f"$ {command.text}\n{shown}"


def test_most_documents_with_commands_are_tried():
    """A change of how blocks are found would leave them out in silence."""
    commands = [c for asked in WITH_COMMANDS.values() for b in asked for c in b]
    kept_out = [c for c in commands if any(word in c.text for word in NOT_HERE)]
    assert len(kept_out) < len(commands) / 5
    assert {"README.md", "docs/lake.md", "docs/tutorial.md", "docs/advise.md"} <= {*WITH_COMMANDS}


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


def test_an_output_is_renewed_where_it_changed():
    command = Command("true", ["one word is wrong", "…", "the end"])
    assert renewed(command, "one word was wrong\nmore\nthe end") == [
        *("one word was wrong", "…", "the end")
    ]
    assert renewed(command, "quite different") == ["quite different"]
