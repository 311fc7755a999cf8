"""The pages on advice are whole: each kind of finding has one. `test_pages.py` runs them."""

import ast
from itertools import chain
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
INDEX = ROOT / "docs" / "advise.md"
PAGES = sorted((ROOT / "docs" / "advice").glob("*.md"))


def kinds():
    """The kinds that findings are given, from the finders' own text."""
    for file in (ROOT / "queries" / "advising").glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "Finding":
                (kind,) = (each.value for each in node.keywords if each.arg == "kind")
                yield ast.literal_eval(kind)


@pytest.mark.parametrize("kind", sorted(set(kinds())))
def test_each_kind_has_a_page(kind):
    """Its heading names the kind, and the list of kinds leads to it."""
    (page,) = (page for page in PAGES if f"`{kind}`" in page.read_text().splitlines()[0])
    assert f"[`{kind}`](advice/{page.name})" in INDEX.read_text()


def test_no_page_is_on_a_kind_that_is_gone():
    named = chain(*(page.read_text().splitlines()[0].split("`")[1::2] for page in PAGES))
    assert set(named) == set(kinds())
