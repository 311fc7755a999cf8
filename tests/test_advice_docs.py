"""The pages on advice are whole: each kind of finding has one. `test_pages.py` runs them."""

import ast
from pathlib import Path

ROOT = Path(__file__).parents[1]
INDEX = ROOT / "docs" / "advise.md"
PAGES = sorted((ROOT / "docs" / "advice").glob("*.md"))


def kinds():
    """The kinds that findings are given, from the finders' own text."""
    for file in (ROOT / "advice").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "Finding":
                (kind,) = (each.value for each in node.keywords if each.arg == "kind")
                yield ast.literal_eval(kind)


def test_each_kind_has_a_page_and_each_page_a_kind():
    """Its heading names the kind, and the list of kinds leads to it."""
    headings = {page.name: page.read_text().splitlines()[0] for page in PAGES}
    named = {kind: name for name, said in headings.items() for kind in said.split("`")[1::2]}
    assert named.keys() == set(kinds())
    index = INDEX.read_text()
    assert [kind for kind, page in named.items() if f"[`{kind}`](advice/{page})" not in index] == []
