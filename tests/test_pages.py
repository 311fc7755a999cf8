"""The README and the pages of docs/ tell the truth: their commands run, and print what they say."""

import re

import pytest

from .support.pages import (
    DOCS,
    NOT_HERE,
    ROOT,
    WITH_COMMANDS,
    WITH_PROMPTS,
    changed_examples,
    tried,
)

# What they ingest or compile takes long.
DEAR = {"docs/advise.md", "docs/how-to/many-hosts.md", "docs/pytest.md", "docs/tutorial.md"}


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.slow] if name in DEAR else [])
        for name in WITH_COMMANDS
    ],
)
def test_a_document_shows_only_what_happens(name, samples):
    """Block by block, in one folder: a reader who types along sees the same; else make approve."""
    for command, shown in tried(name, samples):
        assert command.matches(shown), f"$ {command.text}\n{shown}"


@pytest.mark.parametrize("name", WITH_PROMPTS)
def test_the_examples_of_a_page_print_what_it_shows(name, samples):
    """In one session, as a reader types along; else make approve."""
    changed = changed_examples(WITH_PROMPTS[name], samples)
    assert [(example.source, got) for example, got in changed] == []


def test_the_code_that_a_page_names_exists():
    text = re.sub(r"\s+", " ", (DOCS / "how-attribution-works.md").read_text())
    named = {
        name
        for sentence in re.findall(r"In the code: (.*?)\.(?: |$)", text)
        for name in re.findall(r"`(\w+)`", sentence)
    }
    packages = [file.parent for file in ROOT.glob("*/__init__.py")]
    code = "\n".join(file.read_text() for folder in packages for file in folder.rglob("*.py"))
    defined = set(re.findall(r"^ *(?:def|class) (\w+)", code, re.MULTILINE))
    assert len(named) > 25
    assert named - defined == set()


def test_most_documents_with_commands_are_tried():
    """A change of how blocks are found would leave them out in silence."""
    commands = [c for asked in WITH_COMMANDS.values() for b in asked for c in b]
    kept_out = [c for c in commands if any(word in c.text for word in NOT_HERE)]
    assert len(kept_out) < len(commands) / 5
    assert {*WITH_COMMANDS} >= DEAR
    assert sum(not command.matches("something else\r\n") for command in commands) > 100
