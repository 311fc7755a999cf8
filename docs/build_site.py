"""Builds the site of the documentation, and fails if there is a warning: a broken link, say.

`python docs/build_site.py FOLDER` writes it to FOLDER, by default `site`. The pages lie in the site
as they lie in the repository, so a link between two of them is right on GitHub and on the site.
"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
# What is a page beside docs/; README.md is the first.
PAGES = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "benchmarks/README.md")


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
        ignore=shutil.ignore_patterns("zensical.toml", "build_site.py", "__pycache__"),
    )
    for page in PAGES:
        (folder / "pages" / page).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / page, folder / "pages" / page)
    package = folder / "packages/memhouse"
    package.mkdir(parents=True)
    # Not the whole checkout: .venv/typed, which `make lint` makes, leads back to it without an end.
    for part in [*ROOT.glob("*.py"), *(file.parent for file in ROOT.glob("*/__init__.py"))]:
        (package / part.name).symlink_to(part)


if __name__ == "__main__":
    build(Path(sys.argv[1] if len(sys.argv) > 1 else "site"))
