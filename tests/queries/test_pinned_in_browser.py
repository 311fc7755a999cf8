"""The pinned value and the table of buffers, used as a reader does, in Chromium."""

import pytest

LLAMA = "SELECT module_id FROM dumps WHERE workload = 'llama-v5e'"
# A key in the filter must not be felt.
QUICK_MS = 50


@pytest.fixture
def opened(browser, llama_page):
    browser.open(llama_page)
    return browser


def pinned(browser):
    """What the panel says, by what it says it of."""
    return browser.value(
        """Object.fromEntries([...document.querySelectorAll('#pinned [data-told]')].map(
            (part) => [part.dataset.told, part.innerText]))"""
    )


def heading(browser):
    return browser.value("document.querySelector('#pinned h3')?.textContent ?? null")


def shown(browser):
    return browser.value("document.getElementById('buffers-count').textContent")


def column(browser, title):
    """The texts of a column of the table, in the rows that are drawn."""
    return browser.value(
        """(() => {
            const heads = [...document.querySelectorAll('#buffers th')];
            const at = heads.findIndex((head) => head.textContent === given[0]);
            const rows = [...document.querySelectorAll('#buffers tbody tr')];
            return rows.map((row) => row.cells[at].textContent);
        })()""",
        title,
    )


def type_filter(browser, text):
    return browser.value(
        """(() => {
            const filter = document.getElementById('buffers-filter');
            filter.value = given[0];
            const start = performance.now();
            filter.dispatchEvent(new Event('input'));
            return performance.now() - start;
        })()""",
        text,
    )


def press(browser, key):
    browser.value(
        """document.activeElement.dispatchEvent(
            new KeyboardEvent('keydown', { key: given[0], bubbles: true, cancelable: true }))""",
        key,
    )


def value_of(warehouse, name, shape_index="{}"):
    query = f"""SELECT value_id
        FROM "values" INNER JOIN instructions USING (module_id, instruction_id)
        WHERE module_id = ({LLAMA}) AND instruction = $1 AND shape_index = $2"""
    ((value_id,),) = warehouse.sql(query, params=[name, shape_index]).fetchall()
    return value_id


def test_the_largest_buffer_of_the_peak_is_pinned_at_first(opened):
    assert heading(opened) == "Pinned: all-gather.19"
    assert opened.value("location.hash") == ""


def test_a_link_points_at_a_value(browser, llama_page, warehouse):
    value_id = value_of(warehouse, "bitcast_dynamic-update-slice_fusion.5")
    browser.open(llama_page)
    browser.value(f"location.hash = '#value={value_id}'")
    browser.wait_for(f"memhouse.pinned === {value_id}")
    told = pinned(browser)
    assert "/train/zoo/zoo.py:35 layer" in told["stack"]
    assert "add.510" in told["made"]
    assert "tuple.129" in told["readers"]
    assert {"while.47{2}", "custom-call.6"} < set(told["aliases"].split())
    assert browser.console_errors() == []


def test_an_alias_can_be_pinned_from_another(opened, warehouse):
    opened.value("memhouse.pin(given[0])", value_of(warehouse, "custom-call.6"))
    opened.value(
        """[...document.querySelectorAll('#pinned button')].find(
            (button) => button.textContent === 'while.47{2}').click()"""
    )
    assert opened.value("memhouse.pinned") == value_of(warehouse, "while.47", "{2}")
    assert heading(opened) == "Pinned: while.47{2}"


def test_escape_unpins_and_goes_back_to_the_row(opened):
    opened.value("document.querySelectorAll('#buffers tbody tr')[0].focus()")
    press(opened, "ArrowDown")
    press(opened, "Enter")
    assert heading(opened) == f"Pinned: {column(opened, 'value')[1]}"
    assert opened.value("location.hash") == f"#value={opened.value('memhouse.pinned')}"
    assert opened.value("document.activeElement.id") == "pinned"
    press(opened, "Escape")
    assert heading(opened) is None
    assert "Nothing is pinned" in opened.value("document.getElementById('pinned').textContent")
    assert opened.value("location.hash") == ""
    assert opened.value("document.activeElement.rowIndex") == 2


def test_what_is_no_value_pins_nothing(opened):
    assert opened.value("memhouse.pin(987654321)") is False
    assert heading(opened) == "Pinned: all-gather.19"


def test_the_buffers_at_the_peak_add_up_to_it(opened, warehouse):
    ((count,),) = warehouse.sql(
        f"SELECT COUNT(*) FROM _counted_buffers "
        f"WHERE module_id = ({LLAMA}) AND memory_space = 0 AND is_peak"
    ).fetchall()
    assert shown(opened) == f"{count} of 464 buffers, 306.98 MiB of the peak"
    opened.value("document.getElementById('buffers-at-peak').click()")
    assert shown(opened).startswith("464 of 464 buffers, ")


def test_a_page_of_rows_is_drawn_and_more_on_request(opened):
    assert len(column(opened, "value")) == 50
    opened.value("document.getElementById('buffers-more').click()")
    assert len(column(opened, "value")) == 100


def test_the_filter_filters_by_all_words(opened):
    assert type_filter(opened, "REMAT 8,1024,1408") < QUICK_MS
    assert set(column(opened, "pass")) == {"rematerialised"}
    assert set(column(opened, "shape")) == {"bf16[8,1024,1408]"}
    assert shown(opened).startswith(f"{len(column(opened, 'value'))} of 464 buffers, ")
    type_filter(opened, "no such buffer")
    assert shown(opened) == "0 of 464 buffers, 0 B of the peak"
    assert opened.console_errors() == []


@pytest.mark.parametrize("title", ["size", "of peak", "source", "life", "value"])
def test_each_column_sorts_both_ways(opened, title):
    opened.value("document.getElementById('buffers-at-peak').click()")
    click = """[...document.querySelectorAll('#buffers th button')].find(
        (button) => button.textContent === given[0]).click()"""
    opened.value(click, title)
    sort = "document.querySelector('#buffers th[aria-sort]').ariaSort"
    first, texts = opened.value(sort), column(opened, title)
    opened.value(click, title)
    assert {first, opened.value(sort)} == {"ascending", "descending"}
    assert column(opened, title)[0] != texts[0]


def test_print_has_the_first_fifty(opened):
    opened.value("document.getElementById('buffers-more').click()")
    opened.look(media="print")
    visible = """[...document.querySelectorAll('#buffers tbody tr')].filter(
        (row) => row.checkVisibility()).length"""
    assert opened.value(visible) == 50


def test_a_click_on_a_row_zooms_the_map_to_the_buffer(opened, warehouse):
    opened.value("document.querySelectorAll('#buffers tbody tr')[1].click()")
    opened.next_frame()
    value_id = opened.value("memhouse.pinned")
    ((start, end),) = warehouse.sql(
        f"SELECT start_time, end_time FROM live_ranges "
        f"WHERE module_id = ({LLAMA}) AND value_id = {value_id}"
    ).fetchall()
    left, right = opened.value("probes.range('address_map')")
    assert left < start < end < right
    assert right - left < 3 * (end - start)
    assert opened.value("document.querySelector('#buffers [aria-current]').rowIndex") == 2


def test_a_click_in_the_map_pins_what_is_there(opened):
    opened.value("memhouse.unpin()")
    row = opened.value("memhouse.values.rowOf(memhouse.values.first)")
    place = opened.value(f"memhouse.values.place({row})")
    x, y = ((place[a] + place[b]) / 2 for a, b in (("left", "right"), ("bottom", "top")))
    point = opened.value("probes.point('address_map', given[0], given[1])", x, y)
    opened.click(point["x"], point["y"])
    opened.wait_for("memhouse.pinned !== null")
    assert heading(opened).startswith("Pinned: ")


def test_the_panel_comes_into_sight_with_the_map_above_it(opened):
    opened.value("document.querySelectorAll('#buffers tbody tr')[1].click()")
    top = opened.value("document.getElementById('pinned').getBoundingClientRect().top")
    assert 0 <= top <= opened.value("innerHeight") / 2
