"""The README and the pages of docs/ tell the truth: their commands run, and print what they say."""

import shutil
from itertools import chain
from pathlib import Path

import pytest

from .support.console import Command, blocks, replayed, write_files

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
# What needs a network, an accelerator or a user's own program. All else that cannot run here is a
# block of `sh`, and shows no output.
NOT_HERE = ("pip install", "make ", "python train.py")


def read_together():
    """The documents, by the name of the first of those that are tried in one folder.

    The pages of `docs/advice/` ask the warehouse of `docs/advise.md`. Any other stands alone.
    """
    yield "README.md", [ROOT / "README.md"]
    followed = {"advise.md": sorted((DOCS / "advice").glob("*.md"))}
    following = set(chain(*followed.values()))
    for page in sorted(DOCS.rglob("*.md")):
        if page not in following:
            name = str(page.relative_to(DOCS))
            yield f"docs/{name}", [page, *followed.get(name, ())]


PAGES = dict(read_together())
WITH_COMMANDS = {
    name: asked for name, pages in PAGES.items() if (asked := list(chain(*map(blocks, pages))))
}


@pytest.mark.parametrize("name", WITH_COMMANDS)
def test_a_document_shows_only_what_happens(name, samples, request):
    """Block by block, in one folder: a reader who types along sees the same.

    A document that ingests starts with nothing; any other asks the warehouse of the ten nights.
    """
    asked = WITH_COMMANDS[name]
    if not any("memhouse ingest" in command.text for command in chain(*asked)):
        shutil.copy(request.getfixturevalue("history"), samples / "memhouse.duckdb")
    for page in PAGES[name]:
        write_files(page, samples)
    for command, shown in replayed(asked, samples, NOT_HERE):
        assert command.matches(shown), f"$ {command.text}\n{shown}"


def test_most_documents_with_commands_are_tried():
    """A change of how blocks are found would leave them out in silence."""
    tried = [c for asked in WITH_COMMANDS.values() for b in asked for c in b]
    kept_out = [c for c in tried if any(word in c.text for word in NOT_HERE)]
    assert len(kept_out) < len(tried) / 5
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
