"""The report of a history in Chromium: its charts move together, steps unfold, names filter."""

import pytest

from memhouse.queries.reporting.over_runs.history_report import history_report

from ..support.warehouse import reading


@pytest.fixture(scope="module")
def page(history, tmp_path_factory):
    """The ten nights' report: the file."""
    with reading(history) as store:
        return history_report(store).save(tmp_path_factory.mktemp("history") / "history.html")


def test_zooming_one_chart_zooms_all(browser, page):
    browser.open(page)
    ranges = "['steps_0', 'steps_3'].map((name) => memhouse.model(name).x_range.start)"
    assert browser.value(ranges) == [-0.5, -0.5]
    frame = browser.frame("steps_0")
    browser.zoom(frame["left"] + 0.8 * frame["width"], frame["top"] + frame["height"] / 2)
    first, last = browser.value(ranges)
    assert first == last > -0.5


def test_the_filter_filters(browser, page):
    browser.open(page)
    shown = "[...document.querySelectorAll('.cards figure')].filter((e) => !e.hidden).length"
    write = """(() => {
        const input = document.getElementById('series-filter');
        input.value = given[0];
        input.dispatchEvent(new Event('input'));
    })()"""
    for text, count in (("LLAMA", 2), ("nothing", 0), ("", 4)):
        browser.value(write, text)
        assert browser.value(shown) == count


def test_a_step_unfolds(browser, page):
    browser.open(page)
    browser.value("document.querySelector('details.step summary').click()")
    shown = browser.value("document.querySelector('details.step').innerText")
    for part in ("By source line", "By scope", "By buffer", "zoo.py:"):
        assert part in shown


def test_hovering_tells_the_run_and_why(browser, page):
    browser.open(page)
    frame = browser.frame("steps_0")
    place = (frame["left"] + 0.97 * frame["width"], frame["top"] + frame["height"] / 2)
    browser.hover([(place[0] - 9, place[1]), place])
    told = browser.wait_for(
        """(() => {
            const texts = [];
            const visit = (root) => {
                for (const each of root.querySelectorAll("*")) {
                    const { shadowRoot: inner } = each;
                    if (each.matches(".bk-Tooltip")) texts.push(inner.textContent);
                    if (inner) visit(inner);
                }
            };
            visit(document);
            return texts.join("");
        })()"""
    )
    assert "2026-10-10" in told
    assert "▲ +1.88 GiB" in told
    assert "no longer rematerialised (jax.checkpoint)" in told
