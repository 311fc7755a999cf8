"""The documentation holds together: its links lead somewhere, and it builds as a site."""

import os.path
import re
import subprocess
import sys
import tomllib
from functools import cache
from pathlib import Path

import pytest

from memhouse.docs.build_site import GENERATED, PAGES

ROOT = Path(__file__).parents[1]
SAVED = [*PAGES, *(str(page.relative_to(ROOT)) for page in (ROOT / "docs").rglob("*.md"))]
NAMES = sorted([*SAVED, *GENERATED])
# It takes long to make, and links to nothing.
OF_NOTEBOOK = "docs/notebooks/it-grew.md"
LINK = re.compile(r"\]\(([^)\s]+)\)")
CODE = re.compile(r"^```.*?^```|`[^`\n]*`", re.MULTILINE | re.DOTALL)


def listed(entries):
    """The pages that a list of the navigation names, and those of the lists in it."""
    for entry in entries:
        (below,) = entry.values()
        if isinstance(below, str):
            yield below
        else:
            yield from listed(below)


@cache
def text_of(name):
    return GENERATED[name]() if name in GENERATED else (ROOT / name).read_text()


def anchors(name):
    """What GitHub makes of the headings of a page, to lead to them."""
    text = re.sub(r"^```.*?^```", "", text_of(name), flags=re.MULTILINE | re.DOTALL)
    for heading in re.findall(r"^#+ (.*)", text, re.MULTILINE):
        said = re.sub(r"\]\([^)]*\)", "]", heading)
        yield re.sub(r"[^\w\- ]", "", said.lower()).replace(" ", "-")


def test_each_page_is_in_the_navigation_once():
    settings = tomllib.loads((ROOT / "docs/zensical.toml").read_text())
    assert sorted(listed(settings["project"]["nav"])) == NAMES


def test_each_link_leads_to_a_file_and_a_heading():
    """As GitHub shows the files; only a page of docs/ leads to one that `make docs` generates."""
    lost = []
    for name in NAMES:
        text = "" if name == OF_NOTEBOOK else CODE.sub("", text_of(name))
        for link in LINK.findall(text):
            path, _, anchor = link.partition("#")
            target = os.path.normpath(Path(name).parent / path) if path else name
            is_made = target in GENERATED and name.startswith("docs/")
            is_there = (ROOT / target).exists() or is_made
            is_right = is_there and (not anchor or anchor in anchors(target))
            if not re.match(r"https?:", link) and not is_right:
                lost.append(f"{name}: {link}")
    assert lost == []


def test_what_is_generated_is_not_saved():
    assert [name for name in GENERATED if (ROOT / name).exists()] == []


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The folder of the site."""
    folder = tmp_path_factory.mktemp("docs") / "site"
    command = [sys.executable, ROOT / "docs/build_site.py", folder]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.mark.slow
def test_the_site_builds_without_a_warning(site):
    """The settings ask for that; what is shown is whole, down to the methods' docstrings."""
    assert {page.relative_to(site).with_suffix("") for page in site.rglob("*.html")} >= {
        Path(name).with_suffix("") for name in NAMES if not name.endswith("README.md")
    }
    shown = (site / "docs/reference/python-api.html").read_text()
    assert 'id="memhouse.warehouse.Warehouse.owners"' in shown
