"""The table of all buffers of a module, and what a page tells of each value."""

from typing import Any

import numpy as np
import pyarrow as pa

from ..queries.catalogue import statement
from ..schema.store import Store
from .page import MISSING, Html, differences, packed, templates, whole

# The table of all buffers of a module, which the page draws page by page.

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


# All that is known of each value, for the panel that shows the one that is pinned.

# Of a value that more instructions read, these are named and the rest is counted.
NAMED_READERS = 20


def value_details(
    store: Store, module_id: int, memory_space: int, buffers: pa.Table
) -> dict[str, Any]:
    """The values of a memory space and what they refer to, packed for `pages/values.js`.

    `buffers` are those of `module_buffers`. values, instructions, frames (of Python) and
    allocations are columns by name; an instruction or a frame is referred to by its row. The
    readers of a value are as many entries of `readers` as `named_readers` says, after those of
    the values before it, and `readers_count` says how many there are in all. `first` is the value
    that fills most of the peak.
    """
    values = store.rows(statement("report.values"), [module_id, memory_space])
    instructions = store.rows(statement("report.instructions"), [module_id, memory_space])
    frames = store.rows(statement("report.frames"), [module_id])
    allocations = store.rows(statement("report.allocations"), [module_id, memory_space])
    readers = store.rows(statement("report.readers"), [module_id, memory_space, NAMED_READERS])
    of_value = _rows_of(readers["value_id"], values["value_id"])
    count = np.zeros(len(values), np.int64)
    count[of_value] = whole(readers["readers"])
    made_by = _rows_of(values["instruction_id"], instructions["instruction_id"])
    origin = _rows_of(values["origin_instruction_id"], instructions["instruction_id"])
    return {
        "values": packed(values.drop_columns(["instruction_id", "origin_instruction_id"]))
        | {
            "made_by": differences(made_by),
            "origin": differences(origin),
            "named_readers": differences(np.bincount(of_value, minlength=len(values))),
            "readers_count": differences(count),
        },
        "readers": differences(_rows_of(readers["instruction_id"], instructions["instruction_id"])),
        "instructions": packed(instructions.drop_columns(["instruction_id", "stack_frame_id"]))
        | {
            "frame": differences(_rows_of(instructions["stack_frame_id"], frames["stack_frame_id"]))
        },
        "frames": packed(frames.select(["function", "place"]))
        | {"caller": differences(_rows_of(frames["parent_frame_id"], frames["stack_frame_id"]))},
        "allocations": packed(allocations)
        | {"base": differences(_bases(allocations["allocation_index"], buffers))},
        "first": _largest_at_peak(buffers),
    }


def pinned_panel(
    details: dict[str, Any], space: str, schedule_length: int, *, is_estimated: bool
) -> Html:
    """The panel `#pinned`: a value's stack, maker, readers and aliases, of `value_details`.

    `space` names the memory space. The page's scripts pin a value by `memhouse.pin(value_id)`.
    """
    told = {"space": space, "schedule_length": schedule_length, "is_estimated": is_estimated}
    return Html(
        templates().get_template("pinned.html").render(),
        scripts=("columns.js", "values.js", "pinned.js"),
        data={"values": details | told},
    )


def _rows_of(wanted: pa.ChunkedArray, ids: pa.ChunkedArray) -> np.ndarray:
    """The row of each wanted id among the sorted `ids`; MISSING where no row has the id."""
    known = whole(ids)
    sought = whole(wanted)
    if not len(known):
        return np.full(len(sought), MISSING)
    rows = np.minimum(np.searchsorted(known, sought), len(known) - 1)
    return np.where(known[rows] == sought, rows, MISSING)


def _bases(allocations: pa.ChunkedArray, buffers: pa.Table) -> np.ndarray:
    """Where each allocation begins in the map; MISSING if no buffer is in it."""
    bases = np.full(len(allocations), MISSING)
    begins = whole(buffers["address"]) - whole(buffers["offset_bytes"])
    bases[_rows_of(buffers["allocation_index"], allocations)] = begins
    return bases


def _largest_at_peak(buffers: pa.Table) -> int:
    counted = whole(buffers["peak_counted_bytes"])
    return int(whole(buffers["value_id"])[counted.argmax()]) if counted.any() else MISSING
