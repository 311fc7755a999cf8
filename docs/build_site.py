"""Builds the site of the documentation, and fails if there is a warning: a broken link, say.

`python docs/build_site.py FOLDER` writes it to FOLDER, by default `site`. The pages lie in the site
as they lie in the repository, so a link between two of them is right on GitHub and on the site.
Beside them lie those of `GENERATED`, which are not in the repository.
"""

import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

import nbformat
import zstandard

from memhouse.docs.command_reference import reference
from memhouse.docs.data_dictionary import pages, thirty_questions

ROOT = Path(__file__).parents[1]
# What is a page beside docs/; README.md is the first.
PAGES = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "benchmarks/README.md")
NOTEBOOK = ROOT / "docs/notebooks/it-grew.ipynb"
# The charts of a notebook.
_FRAME = re.compile(r"<iframe.*?</iframe>\n?", re.DOTALL)


def build(site: Path) -> None:
    """Write the site to a folder, whose contents go. Raises CalledProcessError."""
    with tempfile.TemporaryDirectory() as folder:
        lay_out(Path(folder))
        command = [sys.executable, "-m", "zensical", "build", "--strict"]
        subprocess.run(command, cwd=folder, check=True)
        shutil.rmtree(site, ignore_errors=True)
        shutil.move(Path(folder) / "site", site)


def lay_out(folder: Path) -> None:
    """Put there the settings, the pages, and the package whose docstrings are a page."""
    shutil.copy(ROOT / "docs/zensical.toml", folder)
    shutil.copytree(
        ROOT / "docs",
        folder / "pages/docs",
        ignore=shutil.ignore_patterns("zensical.toml", "*.py", "__pycache__"),
    )
    for page in PAGES:
        (folder / "pages" / page).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / page, folder / "pages" / page)
    for page, text in GENERATED.items():
        (folder / "pages" / page).parent.mkdir(exist_ok=True)
        (folder / "pages" / page).write_text(text())
    package = folder / "packages/memhouse"
    package.mkdir(parents=True)
    # Not the whole checkout: .venv/typed, which `make lint` makes, leads back to it without an end.
    for part in [*ROOT.glob("*.py"), *(file.parent for file in ROOT.glob("*/__init__.py"))]:
        (package / part.name).symlink_to(part)


def notebook_page() -> str:
    """The notebook, executed, as Markdown."""
    with tempfile.TemporaryDirectory() as folder:
        return page_of(executed(Path(folder)))


def page_of(notebook: nbformat.NotebookNode) -> str:
    """A notebook as Markdown, without charts: a page of the site loads nothing."""
    parts = []
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            parts.append(cell.source)
            continue
        parts.append(f"```python\n{cell.source}\n```")
        for output in cell.outputs:
            # A blank line would end the HTML, which Markdown takes as it is.
            html = re.sub(r"\n\s*\n", "\n", _FRAME.sub("", output["data"]["text/html"]))
            parts.append(f"<div>\n{html}\n</div>")
    return "\n\n".join(parts) + "\n"


def executed(folder: Path) -> nbformat.NotebookNode:
    """The notebook with its outputs; the folder gets the ten nights and the warehouse."""
    from nbclient import NotebookClient

    with (ROOT / "tests/data/nightly.tar.zst").open("rb") as packed:
        reader = zstandard.ZstdDecompressor(max_window_size=2**27).stream_reader(packed)
        with tarfile.open(fileobj=reader, mode="r|") as tar:
            tar.extractall(folder, filter="data")
    os.environ["IPYTHONDIR"] = str(folder / "ipython")
    notebook: nbformat.NotebookNode = nbformat.read(NOTEBOOK, 4)  # type: ignore[no-untyped-call]
    NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(folder)}}).execute()
    return notebook


# Pages that are made of code and of the notebook, and how.
GENERATED = {
    **{f"docs/{page}": text for page, text in pages().items()},
    "docs/thirty-questions.md": thirty_questions,
    "docs/reference/cli.md": reference,
    "docs/notebooks/it-grew.md": notebook_page,
}


if __name__ == "__main__":
    build(Path(sys.argv[1] if len(sys.argv) > 1 else "site"))
