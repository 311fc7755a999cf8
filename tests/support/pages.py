"""The pages whose console blocks are tried, each in a folder; and how their outputs are renewed."""

import difflib
import shutil
import tempfile
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from .console import Command, blocks, replayed, write_files
from .dumps import DATA
from .history import history

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
# What needs a network, an accelerator or a user's own program. All else that cannot run here is a
# block of `sh`, and shows no output.
NOT_HERE = ("pip install", "make ", "python train.py")
_ELIDED = "…"


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


def link_samples(folder: Path) -> Path:
    """Give a folder the samples of a checkout, to run commands in."""
    # Not all of tests/: pytest would load its conftest for a user's tests in this folder.
    (folder / "tests").mkdir(parents=True)
    (folder / "tests" / "data").symlink_to(DATA)
    return folder


def tried(name: str, folder: Path, *, here: bool = False) -> Iterator[tuple[Command, str]]:
    """Each command of a page, and what a terminal shows for it, in a folder with the samples.

    A document that ingests starts with nothing; any other asks the warehouse of the ten nights.
    """
    asked = WITH_COMMANDS[name]
    if not any("memhouse ingest" in command.text for command in chain(*asked)):
        shutil.copy(history(), folder / "memhouse.duckdb")
    for page in PAGES[name]:
        write_files(page, folder)
    yield from replayed(asked, folder, NOT_HERE, here=here)


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
