"""The documentation holds together: its links lead somewhere, and it builds as a site."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from memhouse.cli.reference import reference

from .support.browser import browser, missing

ROOT = Path(__file__).parents[1]
BESIDE_DOCS = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "benchmarks/README.md")
PAGES = sorted([*(ROOT / name for name in BESIDE_DOCS), *(ROOT / "docs").rglob("*.md")])
NAMES = [str(page.relative_to(ROOT)) for page in PAGES]
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


def anchors(page):
    """What GitHub makes of the headings of a page, to lead to them."""
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    for heading in re.findall(r"^#+ (.*)", text, re.MULTILINE):
        said = re.sub(r"\]\([^)]*\)", "]", heading)
        yield re.sub(r"[^\w\- ]", "", said.lower()).replace(" ", "-")


def test_each_page_is_in_the_navigation_once():
    settings = tomllib.loads((ROOT / "docs/zensical.toml").read_text())
    assert sorted(listed(settings["project"]["nav"])) == sorted(NAMES)


def test_each_link_leads_to_a_file_and_a_heading():
    """As GitHub shows the files; the site is built with checks of its own."""
    lost = []
    for page in PAGES:
        for link in LINK.findall(CODE.sub("", page.read_text())):
            path, _, anchor = link.partition("#")
            target = (page.parent / path).resolve() if path else page
            is_there = target.exists() and (not anchor or anchor in anchors(target))
            if not re.match(r"https?:", link) and not is_there:
                lost.append(f"{page}: {link}")
    assert lost == []


def test_the_reference_of_commands_is_current():
    there = (ROOT / "docs/reference/cli.md").read_text()
    assert there == reference(), "run `make docs`"


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The folder of the site."""
    folder = tmp_path_factory.mktemp("docs") / "site"
    command = [sys.executable, ROOT / "docs/build_site.py", folder]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.mark.slow
@pytest.mark.scheduled
def test_the_site_builds_without_a_warning(site):
    """The settings ask for that; what is shown is whole, down to the methods' docstrings."""
    assert {page.relative_to(site).with_suffix("") for page in site.rglob("*.html")} >= {
        Path(name).with_suffix("") for name in NAMES if not name.endswith("README.md")
    }
    shown = (site / "docs/reference/python-api.html").read_text()
    assert 'id="memhouse.Warehouse.owners"' in shown


@pytest.mark.slow
@pytest.mark.skipif(missing() is not None, reason=str(missing()))
@pytest.mark.scheduled
def test_a_page_fits_a_phone_and_asks_nothing_of_a_network(site):
    pages = [page for page in sorted(site.rglob("*.html")) if page.name != "404.html"]
    with browser() as opened:
        opened.look(width=390)
        for page in pages:
            opened.driver.get(page.as_uri())
            wide = opened.driver.execute_script(
                "return document.documentElement.scrollWidth - window.innerWidth"
            )
            assert wide <= 0, page
        # The browser's own first tab is of chrome://.
        assert [url for url in opened.network_requests() if url.startswith("http")] == []
