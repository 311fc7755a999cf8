"""Advice in a report, used as a reader does, in Chromium: a finding lights its buffers."""

import json
from dataclasses import replace

import pytest

from memhouse.queries.advise import advise
from memhouse.queries.reporting.module import advice_cards
from memhouse.queries.reporting.module.module_report import module_report

from ..support.command import run_memhouse
from ..support.hostile_names import NAMES
from ..support.reports import module_of
from ..support.warehouse import reading, rows, writing

READABLE = 4.5
# The night in which donation was lost, and the one in which rematerialisation was.
NOT_DONATED, NOT_REMATERIALISED = "2026-10-08", "2026-10-10"
BUTTON = "document.querySelector('#advice button')"
PRESSED = (
    "[...document.querySelectorAll('#advice button')].map((b) => b.getAttribute('aria-pressed'))"
)
LIT = "memhouse.model('map_lit').data"
TEXTS = ("title", "source", "write", "why")
SECTION = "document.getElementById('what-to-change')"


@pytest.fixture(scope="session")
def night(history, tmp_path_factory):
    """Writes the report of llama-v5e in a night, once; its path."""
    folder = tmp_path_factory.mktemp("advice")

    def write(run):
        page = folder / f"{run}.html"
        if not page.exists():
            done = run_memhouse("report", "llama-v5e", "--run", run, "-o", page, "--db", history)
            assert done.returncode == 0, done.stderr
        return page

    return write


def told(history, run):
    """What `memhouse advise` says of the night: its findings."""
    done = run_memhouse("advise", "llama-v5e", "--run", run, "--format", "json", "--db", history)
    return json.loads(done.stdout)


def boxes(browser):
    """What is outlined in the map: left, right, bottom and top of each."""
    lit = browser.value(LIT)
    return list(zip(*(lit[side] for side in ("left", "right", "bottom", "top")), strict=True))


@pytest.mark.parametrize("run", [NOT_DONATED, NOT_REMATERIALISED])
def test_cards_say_what_the_command_says(browser, night, history, run):
    browser.open(night(run))
    cards = browser.value(
        """[...document.querySelectorAll('#advice > li')].map((card) => [
            card.querySelector('.saving')?.dataset.bytes ?? null,
            ...['h3 bdi', 'p.note', 'code', 'dd:last-of-type'].map(
                (part) => card.querySelector(part)?.textContent ?? null)])"""
    )
    findings = told(history, run)
    assert cards == [
        [each["saving_bytes"] and str(each["saving_bytes"]), *map(each.get, TEXTS)]
        for each in findings
    ]
    assert findings[0]["saving_bytes"] > 100 << 20


def test_a_saving_has_its_grade(browser, night):
    browser.open(night(NOT_DONATED))
    saving = browser.value("document.querySelector('#advice .saving').textContent")
    assert saving == "-105.31 MiB (expected, ± 1% of the new peak)"
    assert "The peak is 674.96 MiB at time 402" in browser.value(f"{SECTION}.innerText")


def test_a_press_lights_the_buffers_and_the_next_puts_them_out(browser, night, history):
    browser.open(night(NOT_DONATED))
    pinned = boxes(browser)
    browser.value(f"{BUTTON}.click()")
    ids = ", ".join(map(str, told(history, NOT_DONATED)[0]["value_ids"]))
    ((size,),) = rows(
        history,
        f"""SELECT SUM(size_bytes) FROM "values" INNER JOIN dumps USING (module_id)
        WHERE (run_id, workload) = ('{NOT_DONATED}', 'llama-v5e') AND value_id IN ({ids})""",
    )
    # Arguments and outputs are there throughout, each in an allocation of its own.
    assert sum(top - bottom for _, _, bottom, top in boxes(browser)) == size
    assert browser.value(PRESSED)[0] == "true"
    assert "donate p, m and v" in browser.value("document.getElementById('advice-lit').innerText")
    browser.value(f"{BUTTON}.click()")
    assert boxes(browser) == pinned
    assert "true" not in browser.value(PRESSED)
    assert browser.value("document.getElementById('advice-lit').textContent") == ""


def test_a_buffer_is_lit_for_all_its_life(browser, night, history):
    """Residuals are written in a loop, and stand in its result at the peak."""
    browser.open(night(NOT_REMATERIALISED))
    browser.value(f"{BUTTON}.click()")
    ((peak_time, length),) = rows(
        history,
        f"""SELECT peak_time, schedule_length FROM module_memory
        INNER JOIN modules USING (module_id) INNER JOIN dumps USING (module_id)
        WHERE (run_id, workload) = ('{NOT_REMATERIALISED}', 'llama-v5e') AND memory_space = 0""",
    )
    lit = boxes(browser)
    assert len(lit) == 26
    assert all(left <= peak_time < right < length for left, right, _, _ in lit)


def test_the_map_is_seen_and_leads_back(browser, night):
    browser.open(night(NOT_DONATED))
    browser.value(f"{BUTTON}.scrollIntoView()")
    browser.value(f"{BUTTON}.click()")
    seen = """(() => { const { top, bottom } = given[0].getBoundingClientRect();
        return top >= 0 && bottom <= innerHeight; })()"""
    chart = browser.driver.find_element("css selector", "[data-model=address_map]")
    button = browser.driver.find_element("css selector", "#advice button")
    assert browser.value(seen, chart)
    assert not browser.value(seen, button)
    browser.value("document.querySelector('#advice-lit button:last-child').click()")
    assert browser.value(seen, button)
    assert browser.value(f"document.activeElement === {BUTTON}")


def test_a_map_that_was_zoomed_elsewhere_shows_what_is_lit(browser, night):
    browser.open(night(NOT_DONATED))
    # The temps lie above all arguments and outputs.
    browser.value("memhouse.zoomTo({left: 380, right: 450, bottom: 5e8, top: 6e8})")
    browser.value(f"{BUTTON}.click()")
    low, high = browser.value("probes.range('address_map', 'y')")
    assert any(bottom < high and top > low for _, _, bottom, top in boxes(browser))


@pytest.mark.parametrize("key", ["\ue007", " "], ids=["Enter", "Space"])
def test_keys_do_what_a_click_does(browser, night, key):
    browser.open(night(NOT_DONATED))
    button = browser.driver.find_element("css selector", "#advice button")
    button.send_keys(key)
    assert browser.value(PRESSED)[0] == "true"
    button.send_keys(key)
    assert browser.value(PRESSED)[0] == "false"


def test_a_pin_puts_a_finding_out(browser, night):
    browser.open(night(NOT_DONATED))
    browser.value(f"{BUTTON}.click()")
    buffer = browser.value("probes.largeBuffer(0)")
    place = browser.value(
        "probes.point('address_map', given[0], given[1])", buffer["x"], buffer["y"]
    )
    browser.click(place["x"], place["y"])
    assert browser.value("memhouse.pinned") == buffer["value"]
    assert "true" not in browser.value(PRESSED)
    assert len(boxes(browser)) == 1


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (390, True)])
def test_it_can_be_read_everywhere(browser, night, width, dark):
    browser.open(night(NOT_DONATED), width=width, dark=dark)
    browser.value(f"{BUTTON}.click()")
    assert [t for t in browser.value("probes.textContrasts()") if t["ratio"] < READABLE] == []
    assert browser.value("probes.tooWide()") == []
    assert browser.value("document.documentElement.scrollWidth") <= width
    assert browser.console_errors() == []
    assert browser.network_requests() == []


def test_paper_has_no_buttons(browser, night):
    browser.open(night(NOT_DONATED), media="print")
    assert "Why" in browser.value(f"{SECTION}.innerText")
    assert not browser.value(f"{BUTTON}.checkVisibility()")


def test_without_a_saving_it_says_what_the_peak_is(browser, llama_page):
    browser.open(llama_page)
    text = browser.value(f"{SECTION}.innerText")
    assert "The peak is 306.98 MiB at time 438: 205.63 MiB of temps" in text
    assert "No change is known that would surely lower it." in text
    assert browser.value("document.querySelector('#advice .saving')") is None


def test_estimates_are_marked_and_have_no_map_to_light(browser, filled, tmp_path):
    with reading(filled) as store:
        module_id, _ = module_of(filled, "estimated")
        page = module_report(store, module_id).save(tmp_path / "page.html")
    browser.open(page)
    saving = browser.value("document.querySelector('#advice .saving').textContent")
    assert saving == "≈-160.00 MiB (estimated)"
    assert "The peak is ≈640.31 MiB" in browser.value(f"{SECTION}.innerText")
    assert browser.value(PRESSED) == []
    assert browser.console_errors() == []


def test_another_memory_space_has_none(filled):
    with reading(filled) as store:
        report = module_report(store, module_of(filled, "tpu")[0], memory_space=1)
    assert "What to change" not in [section.title for section in report.sections]


def test_without_live_ranges_there_is_none(copied):
    module_id, _ = module_of(copied, "tpu")
    with writing(copied) as store:
        store.connection.execute(
            f"""UPDATE module_memory SET peak_bytes = NULL, peak_time = NULL
            WHERE module_id = {module_id}"""
        )
    with reading(copied) as store:
        report = module_report(store, module_id)
    assert "What to change" not in [section.title for section in report.sections]


def test_names_are_text(browser, history, tmp_path, monkeypatch):
    """Titles, lines and sentences hold names of arguments and instructions."""

    def poisoned(*asked):
        found = advise(*asked)
        (finding, *_) = found.findings
        findings = (
            replace(finding, title=name, source=name, write=name, why=name) for name in NAMES
        )
        return replace(found, findings=tuple(findings))

    monkeypatch.setattr(advice_cards, "advise", poisoned)
    with reading(history) as store:
        page = module_report(store, "llama-v5e", NOT_DONATED).save(tmp_path / "page.html")
    browser.open(page)
    for place in range(len(NAMES)):
        browser.value(f"document.querySelectorAll('#advice button')[{place}].click()")
    assert browser.value("window.hacked === undefined")
    assert browser.value("document.querySelectorAll('#advice > li').length") == len(NAMES)
    inside = "'#advice :is(script, img, svg, iframe, meta, base, link, style, textarea)'"
    assert browser.value(f"document.querySelectorAll({inside}).length") == 0
    assert browser.console_errors() == []
    assert browser.network_requests() == []
