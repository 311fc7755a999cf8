"""Pages in Chromium, used as a reader does: whole, readable everywhere, silent, and in use."""

import pytest

import memhouse
from memhouse.report.diff_report import diff_report
from memhouse.report.history_report import history_report
from memhouse.report.module_report import module_report
from memhouse.schema.readable import human_bytes

from ..support.reports import KINDS, MODULES, OF_NIGHTS, module_of, write_report
from ..support.warehouse import reading, rows, writing

# One worker has the browser.
pytestmark = pytest.mark.xdist_group("pages")
READABLE = 4.5
# The night in which donation was lost, and the one in which rematerialisation was.
NOT_DONATED, NOT_REMATERIALISED = "2026-10-08", "2026-10-10"
LLAMA = "SELECT module_id FROM dumps WHERE workload = 'llama-v5e'"
PEAK = "document.querySelector('[data-fact=peak]')"
TABLE = "document.querySelectorAll('#buffers tbody tr')"
COUNT = "document.getElementById('buffers-count').textContent"


def assert_silent(browser):
    assert browser.console_errors() == []
    assert browser.network_requests() == []


def click(browser, selector):
    browser.value("document.querySelector(given[0]).click()", selector)


def press(browser, *keys):
    """Press keys on what has the focus."""
    browser.value(
        """given[0].forEach((key) => document.activeElement.dispatchEvent(
            new KeyboardEvent('keydown', { key, bubbles: true, cancelable: true })))""",
        keys,
    )


def choose(browser, name, choice, event="change"):
    browser.value(
        """(() => {
            const control = document.getElementById(given[0]);
            control.value = given[1];
            control.dispatchEvent(new Event(given[2]));
        })()""",
        name,
        choice,
        event,
    )


def middle_of(browser, chart):
    frame = browser.frame(chart)
    return frame["left"] + frame["width"] / 2, frame["top"] + frame["height"] / 2


def column(browser, title):
    """The texts of a column of the table of buffers, in the rows that are drawn."""
    return browser.value(
        """(() => {
            const heads = [...document.querySelectorAll('#buffers th')];
            const at = heads.findIndex((head) => head.textContent === given[0]);
            return [...document.querySelectorAll('#buffers tbody tr')].map(
                (row) => row.cells[at].textContent);
        })()""",
        title,
    )


def heading(browser):
    """What is pinned."""
    return browser.value("document.querySelector('#pinned h3')?.textContent ?? null")


def tooltip(browser):
    """The text of bokeh's hover box, which lies in a tree of its own."""
    return browser.value(
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


def value_of(warehouse, name, shape_index="{}"):
    ((value_id,),) = warehouse.sql(
        f"""SELECT value_id
        FROM "values" INNER JOIN instructions USING (module_id, instruction_id)
        WHERE module_id = ({LLAMA}) AND instruction = $1 AND shape_index = $2""",
        params=[name, shape_index],
    ).fetchall()
    return value_id


@pytest.mark.slow
def test_a_page_is_silent_and_has_the_figures_of_the_warehouse(browser, llama_page, warehouse):
    """In the headline, the timeline, the map and the table."""
    browser.open(llama_page)
    ((peak, time, count, largest),) = warehouse.sql(
        f"""SELECT peak_bytes, peak_time,
            (SELECT COUNT(*) FROM peak_buffers_by_space AS counted
                WHERE counted.module_id = module_memory.module_id AND memory_space = 0),
            (SELECT MAX(size_bytes) FROM "values" WHERE memory_space = 0
                AND "values".module_id = module_memory.module_id
                AND allocation_index IS NOT NULL)
        FROM module_memory WHERE module_id = ({LLAMA}) AND memory_space = 0"""
    ).fetchall()
    assert browser.value(f"{PEAK}.dataset.bytes") == str(peak)
    assert browser.value("probes.coveredBytes(given[0])", time) == peak
    stacks = "memhouse.model('memory_timeline_stacks').data"
    assert browser.value(f"Math.max(...{stacks}[Object.keys({stacks}).at(-1)])") == peak
    assert browser.value(COUNT).startswith(f"{count} of 464 ")
    assert human_bytes(peak) in browser.value(COUNT)
    assert column(browser, "size")[0] == human_bytes(largest)
    assert_silent(browser)


# --- all kinds of pages -----------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_of_page_can_be_read_on_each_paper_and_telephone(
    browser, filled, history, tmp_path, kind
):
    page = write_report(history if kind in OF_NIGHTS else filled, kind, tmp_path / f"{kind}.html")
    browser.open(page, dark=True)
    # A reader who turns the lights on while the page is open sees all of it change.
    for dark in (True, False):
        browser.look(dark=dark)
        browser.next_frame()
        told = browser.value("[...probes.textContrasts(), ...probes.chartTextContrasts()]")
        assert len(told) > 4
        assert [text for text in told if text["ratio"] < READABLE] == []
    if kind in MODULES:
        _, peak = module_of(filled, kind)
        assert browser.value(f"{PEAK}.dataset.bytes") == str(peak)
        said = browser.value(f"{PEAK}.textContent")
        assert human_bytes(peak) in said
        assert ("≈" in said) == (kind == "estimated")
    assert_silent(browser)
    browser.open(page, width=390)
    assert browser.value("probes.tooWide()") == []
    assert browser.value("document.documentElement.scrollWidth") == 390


@pytest.mark.slow
def test_an_error_a_request_and_what_cannot_be_read_would_be_seen(browser, tmp_path):
    """What the other tests rely on."""
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


# --- a module's page --------------------------------------------------------------------


@pytest.mark.slow
def test_a_page_is_printed_whole_and_black_on_white(browser, llama_page):
    """Print waits for no frame: what it needs is there once it is announced."""
    browser.open(llama_page, dark=True)
    ink = "memhouse.model('memory_timeline').below[0].axis_label_text_color"
    on_screen = browser.value(ink)
    browser.value("dispatchEvent(new Event('beforeprint'))")
    assert browser.value(ink) == "#000" != on_screen
    browser.value("dispatchEvent(new Event('afterprint'))")
    assert browser.value(ink) == on_screen
    click(browser, "#buffers-more")
    browser.look(dark=True, media="print")
    browser.next_frame()
    assert browser.value("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert [t for t in browser.value("probes.textContrasts()") if t["ratio"] < READABLE] == []
    # The first fifty buffers, and no table wider than the paper.
    assert browser.value(f"[...{TABLE}].filter((row) => row.checkVisibility()).length") == 50
    browser.look(width=703, media="print")
    browser.next_frame()
    assert browser.value("document.documentElement.scrollWidth") <= 703
    assert browser.print().startswith(b"%PDF")


@pytest.mark.slow
def test_the_map_and_the_timeline_move_together(browser, llama_page):
    ranges = "[probes.range('address_map'), probes.range('memory_timeline')]"
    for turned in ("address_map", "memory_timeline"):
        browser.open(llama_page)
        (start, end), same = browser.value(ranges)
        assert same == [start, end]
        browser.zoom(*middle_of(browser, turned))
        (near, far), same = browser.value(ranges)
        assert same == [near, far]
        assert start < near < far < end
    # Near to it small buffers are drawn one by one.
    browser.value("memhouse.zoomTo({ left: 100, right: 200, bottom: 1e8, top: 1.1e8 })")
    browser.wait_for("memhouse.model('address_map_small').visible")
    assert not browser.value("memhouse.model('address_map_merged').visible")
    choose(browser, "map-colour", "category")
    assert "temp" in browser.value("document.getElementById('address_map-legend').textContent")
    assert_silent(browser)


@pytest.mark.slow
def test_a_buffer_is_pinned_by_map_row_key_link_and_alias(browser, llama_page, warehouse):
    browser.open(llama_page)
    assert heading(browser).endswith("all-gather.19"), "the largest of the peak is pinned at first"
    assert browser.value("memhouse.pin(987654321)") is False
    browser.value("memhouse.unpin()")
    buffer = browser.value("probes.largeBuffer(5)")
    place = browser.value(
        "probes.point('address_map', given[0], given[1])", buffer["x"], buffer["y"]
    )
    browser.click(place["x"], place["y"])
    browser.wait_for("document.querySelector('#pinned h3')")
    assert browser.value("memhouse.pinned") == buffer["value"]

    # Enter pins a row and zooms the map to its buffer; Escape unpins, and goes back to the row.
    browser.value(f"{TABLE}[0].focus()")
    press(browser, "ArrowDown")
    press(browser, "Enter")
    assert column(browser, "value")[1] in heading(browser)
    pinned = browser.value("memhouse.pinned")
    ((start, end),) = warehouse.sql(
        f"""SELECT start_time, end_time FROM live_ranges WHERE module_id = ({LLAMA})
        AND value_id = {pinned}"""
    ).fetchall()
    left, right = browser.value("probes.range('address_map')")
    assert left < start < end < right
    assert browser.value("location.hash") == f"#value={pinned}"
    press(browser, "Escape")
    assert heading(browser) is None
    assert browser.value("document.activeElement.rowIndex") == 2

    value_id = value_of(warehouse, "bitcast_dynamic-update-slice_fusion.5")
    browser.value(f"location.hash = '#value={value_id}'")
    browser.wait_for(f"memhouse.pinned === {value_id}")
    told = browser.value(
        """Object.fromEntries([...document.querySelectorAll('#pinned [data-told]')].map(
            (part) => [part.dataset.told, part.innerText]))"""
    )
    assert "/train/zoo/zoo.py:35 layer" in told["stack"]
    assert "add.510" in told["made"]
    assert "tuple.129" in told["readers"]
    assert {"while.47{2}", "custom-call.6"} < set(told["aliases"].split())
    browser.value(
        """[...document.querySelectorAll('#pinned button')].find(
            (button) => button.textContent === 'while.47{2}').click()"""
    )
    assert browser.value("memhouse.pinned") == value_of(warehouse, "while.47", "{2}")
    assert_silent(browser)


@pytest.mark.slow
def test_the_table_of_buffers_filters_sorts_and_unfolds(browser, llama_page):
    browser.open(llama_page)
    assert len(column(browser, "value")) == 50
    click(browser, "#buffers-more")
    assert len(column(browser, "value")) == 100

    # By all words, and in a field that is typed in.
    choose(browser, "buffers-filter", "REMAT 8,1024,1408", "input")
    assert set(column(browser, "pass")) == {"rematerialised"}
    assert set(column(browser, "shape")) == {"bf16[8,1024,1408]"}
    assert browser.value(COUNT).startswith(f"{len(column(browser, 'value'))} of 464 ")
    choose(browser, "buffers-filter", "", "input")

    click(browser, "#buffers-at-peak")
    assert browser.value(COUNT).startswith("464 of 464 ")
    sort = "document.querySelector('#buffers th[aria-sort]').ariaSort"
    for title in ("size", "source"):
        button = """[...document.querySelectorAll('#buffers th button')].find(
            (button) => button.textContent === given[0]).click()"""
        browser.value(button, title)
        first, told = browser.value(sort), column(browser, title)
        browser.value(button, title)
        assert {first, browser.value(sort)} == {"ascending", "descending"}
        assert column(browser, title)[0] != told[0], title
    assert_silent(browser)


def treemap(browser):
    return browser.value("memhouse.treemap.state()")


def largest_owner(browser):
    """The largest owner that can be entered, and where its middle is in the window."""
    rect = max(
        (rect for rect in treemap(browser)["rects"] if rect["kind"] == 2),
        key=lambda rect: (rect["right"] - rect["left"]) * (rect["bottom"] - rect["top"]),
    )
    frame = browser.frame("treemap")
    width = browser.value("memhouse.model('treemap').x_range.end")
    x = (rect["left"] + rect["right"]) / 2 / width * frame["width"]
    return rect, frame["left"] + x, frame["top"] + (rect["top"] + rect["bottom"]) / 2


def press_in_treemap(browser, *keys):
    browser.value(
        """given[0].forEach((key) => document.getElementById('treemap-by').closest('figure')
            .querySelector('.chart')
            .dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true })))""",
        keys,
    )


def labels(browser):
    return [each for each in browser.value("memhouse.model('treemap_tiles').data.label") if each]


@pytest.mark.slow
def test_the_treemap_is_entered_and_left_by_mouse_and_keys(browser, llama_page):
    browser.open(llama_page)
    peak = int(browser.value(f"{PEAK}.dataset.bytes"))
    assert treemap(browser)["sizeBytes"] == peak
    rect, x, y = largest_owner(browser)
    browser.hover([(x, y)])
    assert "% of the peak" in tooltip(browser)
    browser.click(x, y)
    assert treemap(browser)["shown"] == rect["owner"]
    assert treemap(browser)["sizeBytes"] < peak
    click(browser, "#treemap-path button")
    assert treemap(browser)["shown"] == 0

    press_in_treemap(browser, "ArrowRight")
    said = browser.value("document.getElementById('treemap-said').textContent")
    assert "% of the peak" in said
    press_in_treemap(browser, "Enter")
    assert treemap(browser)["shown"] > 0
    press_in_treemap(browser, "Escape")
    assert treemap(browser)["shown"] == 0

    choose(browser, "treemap-by", "source")
    assert any(".py" in label for label in labels(browser))

    # A narrow page has a layout of its own.
    browser.open(llama_page, width=390)
    rights = [rect["right"] for rect in treemap(browser)["rects"]]
    assert max(rights) == browser.value("memhouse.model('treemap').x_range.end") == 350


def flame(browser):
    return browser.value("memhouse.flame.state()")


def press_in_flame(browser, *keys):
    browser.value("document.getElementById('flame').focus()")
    press(browser, *keys)


@pytest.mark.slow
def test_the_flame_graph_zooms_by_mouse_and_keys_and_searches(browser, llama_page):
    browser.open(llama_page)
    peak = int(browser.value(f"{PEAK}.dataset.bytes"))
    assert flame(browser)["sizeBytes"] == peak
    # The widths of a row add up to those of the row above, where all of it is drawn.
    widths = browser.value(
        """[...document.querySelectorAll('#flame [aria-level="2"]')].map(
            (bar) => bar.getBoundingClientRect().width)"""
    )
    whole = browser.value("document.getElementById('flame').clientWidth")
    assert sum(widths) == pytest.approx(whole, rel=0.01)
    press_in_flame(browser, "ArrowDown", "ArrowRight", "Enter")
    assert 0 < flame(browser)["sizeBytes"] < peak
    said = "document.getElementById('flame-said').textContent"
    assert "% of the peak" in browser.value(said)
    press_in_flame(browser, "Escape")
    assert flame(browser)["sizeBytes"] == peak
    click(browser, "#flame [aria-level='2']")
    assert flame(browser)["shown"] > 0
    click(browser, "#flame .above")
    assert flame(browser)["shown"] == 0

    choose(browser, "flame-search", "dot_general", "input")
    assert browser.value("document.querySelectorAll('#flame .lit').length") > 0
    assert "frames: " in browser.value(said)
    for way in browser.value(
        "[...document.getElementById('flame-by').options].map((o) => o.value)"
    ):
        choose(browser, "flame-by", way)
        assert flame(browser)["sizeBytes"] == peak
    assert_silent(browser)


@pytest.mark.slow
def test_names_of_thousands_of_characters_are_shortened(browser, copied, tmp_path):
    module_id, _ = module_of(copied, "cpu")
    with writing(copied) as store:
        store.connection.execute(
            f"""UPDATE instructions SET op_name = repeat('long', 2500) || op_name,
                instruction = repeat('W', 10000) || instruction
            WHERE module_id = {module_id}"""
        )
        page = module_report(store, module_id).save(tmp_path / "long.html")
    browser.open(page, width=390)
    assert max(map(len, labels(browser))) < 200
    assert browser.value("document.documentElement.scrollWidth") == 390
    assert_silent(browser)


# --- advice in a module's page ----------------------------------------------------------

BUTTON = "document.querySelector('#advice button')"
PRESSED = (
    "[...document.querySelectorAll('#advice button')].map((b) => b.getAttribute('aria-pressed'))"
)
SECTION = "document.getElementById('what-to-change').innerText"


@pytest.fixture(scope="module")
def night(history, tmp_path_factory):
    """The report of llama-v5e in a night: its page, and what is advised first."""
    folder = tmp_path_factory.mktemp("advice")

    def write(run):
        with memhouse.open(history, read_only=True) as warehouse:
            page = warehouse.report("llama-v5e", run=run).save(folder / f"{run}.html")
            return page, warehouse.advise("llama-v5e", run=run).findings[0]

    return write


def boxes(browser):
    """What is outlined in the map: left, right, bottom and top of each."""
    lit = browser.value("memhouse.model('map_lit').data")
    return list(zip(*(lit[side] for side in ("left", "right", "bottom", "top")), strict=True))


@pytest.mark.slow
def test_a_finding_lights_its_buffers_until_it_is_put_out(browser, night, history):
    page, finding = night(NOT_DONATED)
    browser.open(page)
    saving = "document.querySelector('#advice .saving')"
    assert browser.value(f"{saving}.dataset.bytes") == str(finding.saving_bytes)
    assert browser.value(f"{saving}.textContent").startswith("-105.31 MiB")
    assert "674.96 MiB" in browser.value(SECTION)
    pinned = boxes(browser)
    browser.value(f"{BUTTON}.click()")
    ids = ", ".join(map(str, finding.value_ids))
    ((size,),) = rows(
        history,
        f"""SELECT SUM(size_bytes) FROM "values" INNER JOIN dumps USING (module_id)
        WHERE (run_id, workload) = ('{NOT_DONATED}', 'llama-v5e') AND value_id IN ({ids})""",
    )
    # Arguments and outputs are there throughout, each in an allocation of its own.
    assert sum(top - bottom for _, _, bottom, top in boxes(browser)) == size
    assert browser.value(PRESSED)[0] == "true"
    assert "p, m and v" in browser.value("document.getElementById('advice-lit').innerText")

    # A key puts it out, and so does the button beside the map, which leads back.
    browser.driver.find_element("css selector", "#advice button").send_keys(" ")
    assert boxes(browser) == pinned
    assert "true" not in browser.value(PRESSED)
    browser.value(f"{BUTTON}.click()")
    click(browser, "#advice-lit button:last-child")
    assert browser.value(f"document.activeElement === {BUTTON}")


# --- pages of a history, of a diff, of a site, and in a notebook ------------------------


@pytest.mark.slow
def test_a_history_zooms_filters_unfolds_and_tells_why(browser, history, tmp_path):
    with reading(history) as store:
        page = history_report(store).save(tmp_path / "history.html")
    browser.open(page)
    frame = browser.frame("steps_0")
    place = (frame["left"] + 0.97 * frame["width"], frame["top"] + frame["height"] / 2)
    browser.hover([(place[0] - 9, place[1]), place])
    told = tooltip(browser)
    for each in ("2026-10-10", "▲ +1.88 GiB", "jax.checkpoint"):
        assert each in told

    ranges = "['steps_0', 'steps_3'].map((name) => memhouse.model(name).x_range.start)"
    browser.zoom(frame["left"] + 0.8 * frame["width"], frame["top"] + frame["height"] / 2)
    first, last = browser.value(ranges)
    assert first == last > -0.5
    choose(browser, "series-filter", "LLAMA", "input")
    shown = "[...document.querySelectorAll('.cards figure')].filter((e) => !e.hidden).length"
    assert browser.value(shown) == 2

    click(browser, "details.step summary")
    assert "zoo.py:" in browser.value("document.querySelector('details.step').innerText")
    assert browser.value("document.querySelectorAll('details.step[open] table').length") == 3
    assert_silent(browser)


@pytest.mark.slow
def test_switches_and_zoom_move_both_sides_of_a_diff(browser, history, tmp_path):
    with reading(history) as store:
        diff = diff_report(store, "2026-10-07", NOT_DONATED, "llama-v5e")
        page = diff.save(tmp_path / "diff.html")
    browser.open(page)
    choose(browser, "waterfall-by", "buffer")
    names = browser.value("memhouse.model('waterfall_bars').data.name")
    assert "came zoo.py:31 add f32[3,512,1408]" in names
    legend = "document.getElementById('address_map_b-legend').textContent"
    assert "131.90 MiB" in browser.value(legend)
    choose(browser, "map_a-colour", "pass")
    assert "optimizer" in browser.value(legend)
    moved = browser.value(
        "(memhouse.model('address_map_a').y_range.setv({start: 1e8, end: 2e8}),"
        " memhouse.model('address_map_b').y_range.start)"
    )
    assert moved == 1e8
    assert_silent(browser)


READY = "document.documentElement.dataset.ready === 'yes'"
# The page in a notebook is in a frame of its own.
FRAME = "document.querySelector('iframe').contentDocument"


def wait_until(browser, expression):
    """Wait on a page that has no probes."""
    from selenium.webdriver.support.wait import WebDriverWait

    WebDriverWait(browser.driver, 30).until(lambda _: browser.value(expression))


@pytest.mark.slow
def test_pages_of_a_site_draw_with_its_one_bokeh(browser, history, tmp_path):
    with memhouse.open(history, read_only=True) as warehouse:
        warehouse.report_site(tmp_path)
    browser.open(next(tmp_path.glob("modules/decode-v5e*.html")))
    assert "99.04 MiB" in browser.value(f"{PEAK}.textContent")
    assert browser.value("memhouse.model('memory_timeline') !== null")
    assert_silent(browser)


@pytest.mark.slow
def test_a_notebook_shows_a_report_and_a_chart_alone(browser, history, tmp_path, monkeypatch):
    """A value as a cell's output: a page with what the value says of itself."""
    monkeypatch.setenv("BOKEH_RESOURCES", "inline")
    with memhouse.open(history, read_only=True) as warehouse:
        report = warehouse.report("decode-v5e", run="2026-10-07")
    for value in (report, next(report.charts())):
        page = tmp_path / "notebook.html"
        html = value._repr_html_()
        page.write_text(f"<!DOCTYPE html><html data-ready=yes><meta charset=utf-8>{html}</html>")
        browser.open(page)
        wait_until(browser, READY.replace("document.", f"{FRAME}?.", 1))
        assert browser.value(f"{FRAME}.querySelectorAll('.chart > *').length") > 0
        if value is report:
            assert browser.value(PEAK.replace("document", FRAME) + ".textContent") == "99.04 MiB"
        assert_silent(browser)
