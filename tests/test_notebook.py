"""The notebook of the documentation leads to the fix; `make docs` makes a page of it."""

import nbformat
import pytest

from memhouse.docs.build_site import NOTEBOOK, executed, page_of


def test_the_notebook_is_saved_without_outputs():
    cells = nbformat.read(NOTEBOOK, as_version=4).cells
    assert [cell.source for cell in cells if cell.get("outputs")] == []


@pytest.mark.slow
def test_the_notebook_leads_to_the_fix_and_its_page_has_no_charts(tmp_path):
    notebook = executed(tmp_path)
    shown = [str(cell.outputs) for cell in notebook.cells if cell.cell_type == "code"]
    assert "2.44 GiB" in shown[1]
    assert "-1.88 GiB" in shown[-2]
    assert "pass" in shown[-2]
    assert str(shown).count("<iframe") == 4
    page = page_of(notebook)
    assert "<iframe" not in page
    assert all(cell.source in page for cell in notebook.cells)
    assert page.count("<table") >= len(shown)
