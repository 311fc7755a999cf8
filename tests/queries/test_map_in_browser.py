"""The map of addresses in Chromium: its colours, what it lights, and small buffers."""


def choose(browser, way):
    browser.value(
        "(([select]) => { select.value = given[0]; select.dispatchEvent(new Event('change')); })"
        "([document.getElementById('map-colour')])",
        way,
    )


def legend(browser):
    return browser.value("document.getElementById('address_map-legend').textContent")


def test_the_colours_follow_the_switch(browser, llama_page):
    browser.open(llama_page)
    colours = "[...memhouse.model('map_rectangles').data.colour].join()"
    by_pass = browser.value(colours)
    assert "backward" in legend(browser)
    choose(browser, "category")
    assert "temp" in legend(browser)
    assert browser.value(colours) != by_pass


def test_values_light_up(browser, llama_page):
    browser.open(llama_page)
    browser.value("memhouse.light([...memhouse.model('map_rectangles').data.value_id].slice(0, 2))")
    assert browser.value("memhouse.model('map_lit').data.left.length") == 2


def test_zooming_to_a_buffer_shows_it_and_its_neighbours(browser, llama_page):
    browser.open(llama_page)
    browser.value("memhouse.zoomTo({ left: 100, right: 200, bottom: 1e8, top: 1.1e8 })")
    start, end = browser.value(
        "[memhouse.model('memory_timeline').x_range.start,"
        " memhouse.model('memory_timeline').x_range.end]"
    )
    assert (start, end) == (75, 225)
    browser.wait_for("memhouse.model('address_map_small').visible")
    assert not browser.value("memhouse.model('address_map_merged').visible")
    assert browser.console_errors() == []


def test_the_timeline_keeps_its_peak(browser, llama_page):
    browser.open(llama_page)
    peak = browser.value("Number(document.querySelector('[data-fact=peak]').dataset.bytes)")
    columns = browser.value("Object.keys(memhouse.model('memory_timeline_stacks').data)")
    shown = f"Math.max(...memhouse.model('memory_timeline_stacks').data['{columns[-1]}'])"
    assert browser.value(shown) == peak
