"""The notebook of the documentation shows what memhouse says today."""

import pytest

from .support.notebooks import NOTEBOOK, PAGE, executed, page, saved, told

LARGEST = 300_000


@pytest.mark.slow
@pytest.mark.scheduled
def test_the_notebook_says_what_is_saved(tmp_path):
    assert told(executed(tmp_path)) == told(saved())


def test_the_notebook_is_small_and_its_page_is_made_of_it():
    assert PAGE.read_text() == page(saved()), "make docs"
    assert NOTEBOOK.stat().st_size < LARGEST
    assert NOTEBOOK.read_text().count("<iframe") == 4
    assert "<iframe" not in PAGE.read_text()


def test_the_notebook_leads_to_the_fix():
    shown = [str(cell) for cell in told(saved())]
    assert "2.44 GiB" in shown[1]
    assert "-1.88 GiB" in shown[-2]
    assert "pass" in shown[-2]
