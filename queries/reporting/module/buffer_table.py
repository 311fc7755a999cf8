"""The table of all buffers of a module, which the page draws page by page."""

import pyarrow as pa

from ..packed_columns import packed
from ..page import Html, templates

_COLUMNS = (
    "value_id",
    "allocation_index",
    "category",
    "size_bytes",
    "padding_bytes",
    "peak_counted_bytes",
    "start_time",
    "end_time",
)


def buffer_table(buffers: pa.Table, peak_time: int | None) -> Html:
    """The table `#buffers` of the buffers of `module_buffers`: sorted, filtered and pinned from.

    The table takes names and sources from `value_details`, so the page needs `pinned_panel`
    before it. `pages/buffer_table.js` draws the rows, because a browser is slow with thousands of
    them. Bokeh's table does not serve screen readers, print and dark paper.
    """
    listed = buffers.select(_COLUMNS).sort_by([("value_id", "ascending")])
    return Html(
        templates().get_template("buffer_table.html").render(),
        scripts=("columns.js", "values.js", "buffer_table.js"),
        data={"buffers": {"columns": packed(listed), "peak_time": peak_time}},
    )
