"""Reports in a notebook, and a site on disk and on a server, in Chromium."""

import re
import time
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest

import memhouse

from ..support.dumps import one_file

READY = "document.documentElement.dataset.ready === 'yes'"
# The page in a notebook is in a frame of its own.
FRAME = "document.querySelector('iframe').contentDocument"
HEADLINE = "document.querySelector('[data-fact=peak]').textContent"
CHARTS = "Bokeh.documents.length > 0 && memhouse.model('memory_timeline') !== null"


@pytest.fixture(scope="module")
def site(history, tmp_path_factory):
    """The site of the ten nights. Only read it."""
    folder = tmp_path_factory.mktemp("site") / "pages"
    with memhouse.open(history, read_only=True) as warehouse:
        warehouse.report_site(folder)
    return folder


def wait_until(browser, expression):
    until = time.monotonic() + 30
    while not browser.value(expression):
        assert time.monotonic() < until, f"never true: {expression}"
        time.sleep(0.05)


def follow(browser, link):
    """Click a link, and wait for the page that it leads to."""
    before = browser.driver.current_url
    browser.value("document.querySelector(given[0]).click()", link)
    wait_until(browser, f"location.href !== {before!r} && {READY}")


def shown_in_a_notebook(browser, value, folder):
    """A value as a cell's output: a page with what the value says of itself."""
    page = folder / "notebook.html"
    html = value._repr_html_()
    page.write_text(f"<!DOCTYPE html><html data-ready=yes><meta charset=utf-8>{html}</html>")
    browser.open(page)
    wait_until(browser, READY.replace("document.", f"{FRAME}?.", 1))


def test_a_notebook_shows_a_report(browser, history, tmp_path):
    with memhouse.open(history, read_only=True) as warehouse:
        report = warehouse.report("decode-v5e", run="2026-10-07")
    shown_in_a_notebook(browser, report, tmp_path)
    assert browser.value(HEADLINE.replace("document", FRAME)) == "99.04 MiB"
    assert browser.value(f"{FRAME}.querySelectorAll('.chart > *').length") > 0
    assert browser.console_errors() == []
    assert browser.network_requests() == []


def test_a_notebook_shows_a_chart_alone(browser, history, tmp_path, monkeypatch):
    monkeypatch.setenv("BOKEH_RESOURCES", "inline")
    with memhouse.open(history, read_only=True) as warehouse:
        chart, *_ = warehouse.report("decode-v5e").charts()
    shown_in_a_notebook(browser, chart, tmp_path)
    assert browser.value(f"{FRAME}.querySelectorAll('.chart > *').length") > 0
    assert browser.console_errors() == []


def test_a_module_that_was_read_has_a_report(tmp_path):
    module = memhouse.read(one_file("cpu/jax-0.10.2/module_0018*after_optimizations.txt"))
    page = module.report().save(tmp_path / "x.html").read_text()
    assert module.name in page
    assert "\N{ALMOST EQUAL TO}" in page


@pytest.mark.slow
@pytest.mark.parametrize("is_served", [False, True], ids=["disk", "server"])
def test_a_site_is_linked_both_ways(browser, site, is_served):
    browser.open(site / "index.html")
    with served(site) as address:
        if is_served:
            browser.driver.get(f"{address}/index.html")
            wait_until(browser, READY)
        first = browser.driver.current_url
        follow(browser, "#site-pages a[href*='decode-v5e']")
        assert browser.value(HEADLINE) == "99.04 MiB"
        assert browser.value(CHARTS)
        follow(browser, ".back a")
        assert browser.driver.current_url == first
        assert browser.console_errors() == []
        asked = browser.network_requests()
    assert all(url.startswith(address) for url in asked)
    assert bool(asked) == is_served


@contextmanager
def served(folder):
    """A folder on a server of this machine: its address."""

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *args):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=folder))
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.mark.slow
def test_the_charts_are_bokehs_models(history):
    from bokeh.models import UIElement

    with memhouse.open(history, read_only=True) as warehouse:
        reports = [
            warehouse.report("decode-v5e"),
            warehouse.report_history("decode-v5e"),
            warehouse.report_diff("2026-10-07", "2026-10-08", workload="llama-v5e"),
        ]
    for report in reports:
        charts = list(report.charts())
        assert charts
        assert all(isinstance(chart.model, UIElement) for chart in charts)
        # A report can be written twice.
        assert unpacked(report.html()) == unpacked(report.html())


def unpacked(page):
    """The page without the compressed models: Bokeh numbers them on and on in a process."""
    found, count = re.subn(r">[A-Za-z0-9+/=]{200,}<", "><", page)
    assert count
    return re.sub(r"\bp\d+\b|[0-9a-f]{8}-[0-9a-f-]{27}", "p", found)


def test_a_report_is_a_page_still_after_a_chart_was_saved_by_bokeh(history, tmp_path):
    """Bokeh keeps what it saved in a document of its own."""
    from bokeh.io import save
    from bokeh.resources import INLINE

    with memhouse.open(history, read_only=True) as warehouse:
        report = warehouse.report("decode-v5e")
    before = report.html()
    timeline, address_map, *_ = report.charts()
    save(timeline.model, tmp_path / "x.html", resources=INLINE, title="x")
    assert len(report.html()) == pytest.approx(len(before), rel=0.01)
    assert "srcdoc" in address_map._repr_html_()
