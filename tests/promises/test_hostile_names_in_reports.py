"""Names from dumps are data: nothing that a report shows can run, load or change the page."""

import re
import shutil
from html.parser import HTMLParser

import pytest

from memhouse.schema.readable import one_line

from ..support.hostile_names import NAMES, poison
from ..support.reports import KINDS, MODULES, OF_NIGHTS, module_of, write_report

# One worker writes the reports, and has the browser.
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("hostile reports")]

# What no name may add to a page.
ELEMENTS = "script, iframe, object, embed, base, link, meta, img, style, title, form, textarea"


@pytest.fixture(scope="session")
def reports(filled, history, tmp_path_factory):
    """Writes the report of a kind with good and with hostile names, once: both paths."""
    folder = tmp_path_factory.mktemp("hostile")
    hostile, written = {}, {}

    def write(kind):
        good = history if kind in OF_NIGHTS else filled
        if good not in hostile:
            hostile[good] = shutil.copy(good, folder / f"{good.stem}.duckdb")
            poison(hostile[good])
        if kind not in written:
            # Ids are those of before.
            of = module_of(good, kind)[0] if kind in MODULES else None
            written[kind] = (
                write_report(good, kind, folder / f"{kind}.html", of),
                write_report(hostile[good], kind, folder / f"hostile-{kind}.html", of),
            )
        return written[kind]

    return write


@pytest.mark.parametrize(
    "kind", [pytest.param(k, marks=[pytest.mark.slow] * (k != "tpu")) for k in KINDS]
)
def test_nothing_runs_or_loads_or_is_added(browser, reports, kind):
    good, bad = reports(kind)
    # Advice, which has a script, is left out where shapes cannot be read.
    advice = "Number(document.getElementById('advice') !== null)"
    count = f"document.querySelectorAll('{ELEMENTS}').length - {advice}"
    browser.open(good)
    elements = browser.value(count)
    browser.open(bad)
    browser.use_everything()
    assert browser.value("window.hacked === undefined")
    assert browser.console_errors() == []
    assert browser.network_requests() == []
    assert browser.value(count) == elements
    leads = browser.value("probes.addresses().filter((each) => !/^#|^data:,$/.test(each))")
    assert [lead for lead in leads if not is_of_the_site(lead)] == []


def is_of_the_site(address):
    """A relative path of plain letters: pages of a site lead to each other."""
    return re.fullmatch(r"(\.\./)?[\w%.-]+(/[\w%.-]+)*(#[\w=-]*)?", address) is not None


def test_names_are_shown_as_they_are(browser, reports):
    _, bad = reports("tpu")
    browser.open(bad)
    text = browser.value("document.body.textContent")
    assert [name for name in NAMES if one_line(name) not in text] == []


class Addresses(HTMLParser):
    """The addresses in a page's HTML that a browser would load."""

    def __init__(self):
        super().__init__()
        self.found = []

    def handle_starttag(self, tag, attrs):
        loads = ("src", "href", "srcset", "action", "poster", "data")
        self.found += [
            value
            for name, value in attrs
            if name in loads and not (value.startswith("#") or value == "data:,")
        ]

    def handle_data(self, data):
        is_style = self.cdata_elem == "style"
        self.found += re.findall(r"url\([^)]*\)|@import[^;]*", data) if is_style else []


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param(k, marks=[pytest.mark.slow] * (k != "tpu"))
        for k in (*MODULES, "history", "diff")
    ],
)
def test_no_resource_is_named(reports, kind):
    for path in reports(kind):
        page = Addresses()
        page.feed(path.read_text())
        assert page.found == []


def test_a_name_that_ran_would_be_seen(browser, tmp_path):
    """What the first test relies on."""
    page = tmp_path / "page.html"
    for name in NAMES:
        if re.match("<(img|svg)|</", name):
            page.write_text(f"<!DOCTYPE html><html data-ready=yes><title>x</title><p>{name}</p>")
            browser.open(page)
            assert not browser.value("window.hacked === undefined"), name
