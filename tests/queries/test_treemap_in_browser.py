"""The treemap, used as a reader does, in Chromium: enter and leave owners, by mouse and keys."""

import pytest

from memhouse.queries.reporting.module.module_report import module_report

from ..support.reports import module_of
from ..support.warehouse import reading, writing


@pytest.fixture
def opened(browser, llama_page):
    browser.open(llama_page)
    return browser


def state(browser):
    return browser.value("memhouse.treemap.state()")


def largest(browser):
    """The largest owner that can be entered, and where its middle is in the window."""
    rect = max(
        (rect for rect in state(browser)["rects"] if rect["kind"] == 2),
        key=lambda rect: (rect["right"] - rect["left"]) * (rect["bottom"] - rect["top"]),
    )
    frame = browser.frame("treemap")
    width = browser.value("memhouse.model('treemap').x_range.end")
    x = (rect["left"] + rect["right"]) / 2 / width * frame["width"]
    return rect, frame["left"] + x, frame["top"] + (rect["top"] + rect["bottom"]) / 2


def press(browser, *keys):
    browser.value(
        """given[0].forEach((key) => document.getElementById('treemap-by').closest('figure')
            .querySelector('.chart')
            .dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true })))""",
        keys,
    )


def labels(browser):
    return [each for each in browser.value("memhouse.model('treemap_tiles').data.label") if each]


def path(browser):
    return browser.value(
        "[...document.querySelectorAll('#treemap-path button')].map((b) => b.textContent)"
    )


def test_a_click_enters_an_owner_and_the_path_leaves_it(opened):
    peak = int(opened.value("document.querySelector('[data-fact=peak]').dataset.bytes"))
    assert state(opened)["sizeBytes"] == peak
    assert path(opened) == ["peak 306.98 MiB"]
    rect, x, y = largest(opened)
    opened.click(x, y)
    inside = state(opened)
    assert inside["shown"] == rect["owner"]
    assert inside["sizeBytes"] < peak
    assert len(path(opened)) == 2
    opened.value("document.querySelector('#treemap-path button').click()")
    assert state(opened)["shown"] == 0
    assert opened.console_errors() == []


def test_keys_choose_enter_and_leave(opened):
    press(opened, "ArrowRight")
    said = opened.value("document.getElementById('treemap-said').textContent")
    assert "% of the peak" in said
    press(opened, "Enter")
    assert state(opened)["shown"] > 0
    press(opened, "Escape")
    assert state(opened)["shown"] == 0


def test_the_switch_shows_other_owners(opened):
    by_scope = labels(opened)
    opened.value(
        """(() => {
            const by = document.getElementById('treemap-by');
            by.value = 'source';
            by.dispatchEvent(new Event('change'));
        })()"""
    )
    assert state(opened)["by"] == "source"
    assert labels(opened) != by_scope
    assert any(label.startswith("llama_v5e.py") or ".py" in label for label in labels(opened))


def test_a_narrow_page_has_a_layout_of_its_own(browser, llama_page):
    browser.open(llama_page, width=390)
    rects = state(browser)["rects"]
    assert max(rect["right"] for rect in rects) == browser.value(
        "memhouse.model('treemap').x_range.end"
    )
    assert browser.value("memhouse.data.treemap.widths.narrow") == 350
    assert max(rect["right"] for rect in rects) == 350


def tooltip(browser):
    """The text of bokeh's hover box, which lies in a tree of its own."""
    return browser.value("document.querySelector('.bk-Tooltip')?.shadowRoot.textContent ?? ''")


def test_the_hover_tells_owner_size_and_share(opened):
    _, x, y = largest(opened)
    opened.hover([(x, y)])
    assert "% of the peak" in tooltip(opened)


def test_a_hostile_name_is_text(opened):
    opened.value(
        """(() => {
            const strings = memhouse.data.treemap.strings;
            strings.forEach((name, at) => { strings[at] = `<img src=x onerror="ran=1">${name}`; });
            memhouse.treemap.show(0);
        })()"""
    )
    _, x, y = largest(opened)
    opened.hover([(x, y), (x + 1, y + 1)])
    press(opened, "ArrowRight", "Enter")
    assert "<img src=x" in tooltip(opened)
    assert "<img src=x" in path(opened)[1]
    assert opened.value("typeof ran") == "undefined"
    assert (
        opened.value("document.querySelector('.bk-Tooltip').shadowRoot.querySelector('img')")
        is None
    )


@pytest.mark.slow
def test_names_of_thousands_of_characters_do_not_hold_the_page_up(browser, copied, tmp_path):
    module_id, _ = module_of(copied, "cpu")
    with writing(copied) as store:
        store.connection.execute(
            f"""UPDATE instructions SET op_name = repeat('long', 2500) || op_name,
                instruction = repeat('W', 10000) || instruction
            WHERE module_id = {module_id}"""
        )
    with reading(copied) as store:
        page = module_report(store, module_id).save(tmp_path / "long.html")
    browser.open(page, width=390)
    assert browser.console_errors() == []
    assert browser.value("performance.now()") < 10_000
    assert max(map(len, labels(browser))) < 200
    assert browser.value("document.documentElement.scrollWidth") == 390
