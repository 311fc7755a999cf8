"""The pages whose console blocks and Python prompts are tried, each in a folder; and how their
outputs are renewed.
"""

import difflib
import doctest
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import chdir
from itertools import chain
from pathlib import Path
from typing import Any

from .console import Command, blocks, replayed, write_files
from .dumps import DATA
from .history import history

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
# What needs a network, an accelerator or a user's own program. All else that cannot run here is a
# block of `sh`, and shows no output.
NOT_HERE = ("pip install", "make ", "python train.py")
_ELIDED = "…"
_PROMPTS = re.compile(r"^```pycon\n(.*?)^```", re.MULTILINE | re.DOTALL)


def _read_together() -> Iterator[tuple[str, list[Path]]]:
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


PAGES = dict(_read_together())
WITH_COMMANDS = {
    name: asked for name, pages in PAGES.items() if (asked := list(chain(*map(blocks, pages))))
}

WITH_PROMPTS = {
    str(page.relative_to(ROOT)): page
    for page in chain.from_iterable(PAGES.values())
    if _PROMPTS.search(page.read_text())
}


def link_samples(folder: Path) -> Path:
    """Give a folder the samples of a checkout, to run commands in."""
    # Not all of tests/: pytest would load its conftest for a user's tests in this folder.
    (folder / "tests").mkdir(parents=True)
    (folder / "tests" / "data").symlink_to(DATA)
    return folder


def tried(name: str, folder: Path) -> Iterator[tuple[Command, str]]:
    """Each command of a page, and what a terminal shows for it, in a folder with the samples.

    A document that ingests starts with nothing; any other asks the warehouse of the ten nights.
    """
    asked = WITH_COMMANDS[name]
    if not any("memhouse ingest" in command.text for command in chain(*asked)):
        _copy_nights(folder)
    for page in PAGES[name]:
        write_files(page, folder)
    yield from replayed(asked, folder, NOT_HERE)


def _copy_nights(folder: Path) -> None:
    shutil.copy(history(), folder / "memhouse.duckdb")


def renew(name: str) -> None:
    """Write into a page what its commands show today. What was left out (`…`) stays left out."""
    with tempfile.TemporaryDirectory() as folder:
        for command, shown in tried(name, link_samples(Path(folder) / "checkout")):
            if not command.matches(shown):
                before = "\n".join([f"$ {command.text}", *command.output])
                after = "\n".join([f"$ {command.text}", *renewed(command, shown)])
                for page in PAGES[name]:
                    page.write_text(page.read_text().replace(before, after))


def renewed(command: Command, shown: str) -> list[str]:
    """The output to show: its lines as they are now, or all lines if it has others."""
    lines = command.lines(shown)
    output = [
        line
        if line == _ELIDED or line in lines
        else next(iter(difflib.get_close_matches(line, lines, 1)), line)
        for line in command.output
    ]
    return output if Command(command.text, output).matches(shown) else lines


class _Differences(doctest.DocTestRunner):
    """Collects the examples that print something else than shown, with what they print."""

    def __init__(self) -> None:
        super().__init__(verbose=False)
        self.found: list[tuple[doctest.Example, str]] = []

    def report_failure(
        self, out: Any, test: doctest.DocTest, example: doctest.Example, got: str
    ) -> None:
        self.found.append((example, got))

    def report_unexpected_exception(
        self, out: Any, test: doctest.DocTest, example: doctest.Example, exc_info: Any
    ) -> None:
        raise exc_info[1]


def changed_examples(page: Path, folder: Path) -> list[tuple[doctest.Example, str]]:
    """The examples of a page's `pycon` blocks that print something else, and what they print.

    The blocks run in order, in one session in a folder, which has the warehouse of the ten nights
    if they name it. Raises what an example raises.
    """
    text = page.read_text()
    if '"memhouse.duckdb"' in text:
        _copy_nights(folder)
    # Blank lines in place of the prose keep the numbers of lines.
    lines = ["\n"] * text.count("\n")
    for block in _PROMPTS.finditer(text):
        start = text.count("\n", 0, block.start(1))
        shown = block[1].splitlines(keepends=True)
        lines[start : start + len(shown)] = shown
    test = doctest.DocTestParser().get_doctest("".join(lines), {}, page.name, str(page), 0)
    runner = _Differences()
    with chdir(folder):
        runner.run(test)
    return runner.found


def renew_examples(page: Path) -> None:
    """Write into a page what its examples print today."""
    with tempfile.TemporaryDirectory() as folder:
        changed = changed_examples(page, link_samples(Path(folder) / "checkout"))
    lines = page.read_text().splitlines(keepends=True)
    for example, got in reversed(changed):
        start = example.lineno + example.source.count("\n")
        lines[start : start + example.want.count("\n")] = [got]
    page.write_text("".join(lines))
