"""Reports of real modules, opened in Chromium: whole, readable everywhere, and silent."""

import pytest

from memhouse.queries.cells import human_bytes

from ..support.reports import KINDS, MODULES, OF_NIGHTS, module_of, write_report
from ..support.warehouse import rows

READABLE = 4.5
# One worker writes the reports.
pytestmark = pytest.mark.xdist_group("reports")


def each(kinds):
    """These kinds of reports; `make test` opens the first alone, `.ci/run` opens all."""
    first, *others = kinds
    marked = [pytest.param(kind, marks=pytest.mark.slow) for kind in others]
    return pytest.mark.parametrize("kind", [first, *marked])


of_each_kind, of_each_module = each(KINDS), each(MODULES)


@pytest.fixture(scope="session")
def report(filled, history, tmp_path_factory):
    """Writes the report of a kind, once; its path."""
    folder = tmp_path_factory.mktemp("reports")
    written = {}

    def write(kind):
        if kind not in written:
            db = history if kind in OF_NIGHTS else filled
            written[kind] = write_report(db, kind, folder / f"{kind}.html")
        return written[kind]

    return write


def test_nothing_that_a_reader_does_breaks_it(browser, report):
    """`test_hostile_names_in_reports.py` does the same with reports of all kinds."""
    browser.open(report("tpu"))
    assert browser.console_errors() == []
    browser.use_everything()
    assert browser.console_errors() == []
    assert browser.network_requests() == []


@of_each_module
def test_the_peak_is_that_of_the_warehouse(browser, report, filled, kind):
    browser.open(report(kind))
    _, peak = module_of(filled, kind)
    fact = "document.querySelector('[data-fact=peak]')"
    assert browser.value(f"{fact}.dataset.bytes") == str(peak)
    assert human_bytes(peak) in browser.value(f"{fact}.textContent")
    assert ("≈" in browser.value(f"{fact}.textContent")) == (kind == "estimated")


@of_each_kind
def test_all_text_can_be_read(browser, report, kind):
    browser.open(report(kind), dark=True)
    for dark in (True, False):
        browser.look(dark=dark)
        browser.next_frame()
        texts = browser.value("[...probes.textContrasts(), ...probes.chartTextContrasts()]")
        assert len(texts) > 4
        assert [text for text in texts if text["ratio"] < READABLE] == []
    assert browser.console_errors() == []
    assert browser.network_requests() == []


def test_charts_follow_the_paper(browser, report):
    """A reader who turns the lights off while the report is open sees the charts change."""
    browser.open(report("tpu"))
    light = browser.value("probes.chartTextContrasts().map((text) => text.ink)")
    browser.look(dark=True)
    browser.next_frame()
    dark = browser.value("probes.chartTextContrasts().map((text) => text.ink)")
    assert set(light).isdisjoint(dark)


@of_each_kind
def test_a_telephone_needs_no_sideways_scrolling(browser, report, kind):
    browser.open(report(kind), width=390)
    assert browser.value("probes.tooWide()") == []
    assert browser.value("document.documentElement.scrollWidth") == 390


def test_it_prints_black_on_white(browser, report):
    browser.open(report("tpu"), dark=True)
    browser.look(dark=True, media="print")
    browser.next_frame()
    assert browser.value("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert [t for t in browser.value("probes.textContrasts()") if t["ratio"] < READABLE] == []
    assert browser.print().startswith(b"%PDF")


def test_charts_are_printed_whole_and_with_the_colours_of_paper(browser, report):
    """Print waits for no frame: what it needs is there once it is announced."""
    browser.open(report("tpu"), dark=True)
    widest = "Math.max(...[...document.querySelectorAll('.chart')].map((c) => c.clientWidth))"
    zooms = "[...document.querySelectorAll('.chart')].map((c) => Number(c.style.zoom))"
    ink = "memhouse.model('memory_timeline').below[0].axis_label_text_color"
    width, on_screen = browser.value(widest), browser.value(ink)
    browser.value("dispatchEvent(new Event('beforeprint'))")
    assert all(0 < zoom * width <= 701 for zoom in browser.value(zooms))
    assert (browser.value(ink), on_screen) == ("#000", "#e8eaed")
    browser.value("dispatchEvent(new Event('afterprint'))")
    assert set(browser.value(zooms)) == {0}
    assert browser.value(ink) == on_screen


def test_no_table_is_wider_than_a_printed_page(browser, report):
    browser.open(report("tpu"), width=703, media="print")
    assert browser.value("document.documentElement.scrollWidth") <= 703


MAP, TIMELINE = "address_map", "memory_timeline"
THE_RANGES = "[probes.range('address_map'), probes.range('memory_timeline')]"


def middle_of(browser, chart):
    frame = browser.frame(chart)
    return frame["left"] + frame["width"] / 2, frame["top"] + frame["height"] / 2


@pytest.mark.parametrize("turned", [MAP, TIMELINE])
def test_the_map_and_the_timeline_zoom_together(browser, report, turned):
    browser.open(report("tpu"))
    (start, end), same = browser.value(THE_RANGES)
    assert same == [start, end]
    browser.zoom(*middle_of(browser, turned))
    (near, far), same = browser.value(THE_RANGES)
    assert same == [near, far]
    assert start < near < far < end


def test_dragging_over_the_map_zooms_into_what_is_dragged_over(browser, report):
    browser.open(report("tpu"))
    x, y = middle_of(browser, MAP)
    (start, end), _ = browser.value(THE_RANGES)
    width = browser.frame(MAP)["width"]
    browser.drag((x - width / 4, y - 100), (x + width / 4, y + 100))
    browser.next_frame()
    (near, far), same = browser.value(THE_RANGES)
    assert same == [near, far]
    assert (far - near) / (end - start) == pytest.approx(0.5, abs=0.02)


@pytest.mark.parametrize("rank", [0, 5])
def test_a_click_in_the_map_pins_the_buffer(browser, report, filled, rank):
    browser.open(report("tpu"))
    browser.value("memhouse.unpin()")
    buffer = browser.value("probes.largeBuffer(given[0])", rank)
    place = browser.value(
        "probes.point(given[0], given[1], given[2])", MAP, buffer["x"], buffer["y"]
    )
    browser.move(place["x"], place["y"])
    ((name,),) = rows(
        filled,
        f"""SELECT instruction FROM "values"
        INNER JOIN instructions USING (module_id, instruction_id)
        WHERE module_id = {module_of(filled, "tpu")[0]} AND value_id = {buffer["value"]}""",
    )
    browser.wait_for("document.querySelector('.map-hover')?.innerText.includes(given[0])", name)
    browser.click(place["x"], place["y"])
    browser.wait_for("document.querySelector('#pinned h3')?.innerText.includes(given[0])", name)
    assert browser.value("memhouse.pinned") == buffer["value"]


@of_each_module
def test_the_map_leaves_out_no_byte_of_the_peak(browser, report, filled, kind):
    if kind == "estimated":
        pytest.skip("an estimate has no addresses, and no map")
    browser.open(report(kind))
    module_id, peak = module_of(filled, kind)
    ((time,),) = rows(
        filled,
        f"""SELECT peak_time FROM module_memory
        WHERE module_id = {module_id} AND memory_space = 0""",
    )
    assert browser.value("probes.coveredBytes(given[0])", time) == peak


def shown_rows(browser):
    return browser.value(
        "[...document.querySelectorAll('#buffers tbody tr')].map((r) => r.innerText)"
    )


def test_a_filter_filters_the_buffers(browser, report):
    browser.open(report("tpu"))
    count = "document.getElementById('buffers-count').textContent"
    all_of_them = browser.value(count)
    field = browser.driver.find_element("id", "buffers-filter")
    field.send_keys("transpose")
    browser.wait_for(f"{count} !== given[0]", all_of_them)
    found = shown_rows(browser)
    assert found
    assert all("transpose" in row for row in found)
    field.clear()
    field.send_keys("no buffer is called so")
    browser.wait_for(f"{count}.startsWith('0 of')")
    assert shown_rows(browser) == []


def test_the_largest_buffer_comes_first(browser, report, filled):
    browser.open(report("tpu"))
    first = "document.querySelector('#buffers tbody tr td').textContent"
    module_id, _ = module_of(filled, "tpu")
    ((largest, smallest),) = rows(
        filled,
        f"""SELECT max(size_bytes), min(size_bytes) FROM "values"
        WHERE module_id = {module_id} AND memory_space = 0 AND allocation_index IS NOT NULL""",
    )
    assert browser.value(first) == human_bytes(largest)
    browser.value("document.querySelector('#buffers th button').click()")
    assert browser.value(first) == human_bytes(smallest)


def test_a_row_pins_its_buffer(browser, report):
    browser.open(report("tpu"))
    row = "document.querySelectorAll('#buffers tbody tr')[3]"
    name = browser.value(f"{row}.querySelector('.name').textContent")
    pinned = "document.getElementById('pinned').innerText"
    assert name not in browser.value(f"{pinned}.split('\\n')[0]")
    browser.value(f"{row}.click()")
    assert name in browser.value(pinned)
    assert "Python stack" in browser.value(pinned)


def test_an_error_and_a_request_would_be_seen(browser, tmp_path):
    """What the tests above rely on."""
    page = tmp_path / "page.html"
    page.write_text(
        "<!DOCTYPE html><html data-ready=yes><meta name=viewport "
        "content='width=device-width'><body><img src='http://127.0.0.1:9/none.png'>"
        "<p style='color: #777777; background: #808080'>grey</p>"
        "<div style='width: 500px; height: 1px'></div>"
        "<script>Promise.reject(new Error('unhandled')); undefined.broken</script>"
    )
    browser.open(page, width=390)
    errors = "\n".join(browser.console_errors())
    assert "unhandled" in errors
    assert "undefined" in errors
    assert browser.network_requests() == ["http://127.0.0.1:9/none.png"]
    assert browser.value("probes.textContrasts()[0].ratio") < 2
    assert browser.value("probes.tooWide().length") == 1
