"""What a step changed at the peak, by source, by scope and buffer by buffer."""

import pyarrow as pa
import pyarrow.compute as pc

from ....schema.stores.base import Store
from ...cells import counted, mark_estimated
from ...diff import BUFFER, changed_buffers, changed_owners
from ...result import Rows
from ..page import Table
from .series_events import Event

# The rows of a table; the others are summed.
_MOST_ROWS = 12
_TITLES = {"source": "By source line", "scope": "By scope", BUFFER: "By buffer"}
_COLUMNS = ("change_bytes", "what", "shape", "source", "operation", "pass", "value", "is_guess")


def step_diff(store: Store, event: Event, memory_space: int, *, with_buffers: bool) -> list[Table]:
    """What changed in an event whose module_ids are known: a table for each kind of owner.

    The rows of each table add up to the change of the peak.
    """
    if event.module_ids is None:
        return []
    changed = changed_owners(store, *event.module_ids, [by for by in _TITLES if by != BUFFER])
    if with_buffers:
        changed[BUFFER] = changed_buffers(store, *event.module_ids)
    tables = []
    for by, rows in changed.items():
        rows = rows.filter(pc.equal(rows["memory_space"], memory_space))
        if len(rows):
            rows = _largest(rows.drop_columns(["memory_space"]), by)
            if event.is_estimated:
                rows = mark_estimated(rows, [n for n in rows.column_names if "_bytes" in n])
            tables.append(Table(Rows(rows), _TITLES[by]))
    return tables


def _largest(rows: pa.Table, by: str) -> pa.Table:
    """The largest changes, and the sum of the others in one row."""
    if by == BUFFER:
        rows = rows.select(_COLUMNS)
        named = "what"
    else:
        named = rows.column_names[1]
        rows = rows.select(["change_bytes", named, "a_bytes", "b_bytes"])
        rows = rows.rename_columns(["change_bytes", named, "before_bytes", "after_bytes"])
    if len(rows) <= _MOST_ROWS + 1:
        return rows
    rest = rows.slice(_MOST_ROWS)
    summed = {
        name: pc.sum(rest[name]).as_py() or 0 for name in rest.column_names if "_bytes" in name
    }
    summed[named] = counted(len(rest), "smaller change")
    last = pa.Table.from_pylist([summed], schema=rows.schema)
    return pa.concat_tables([rows.slice(0, _MOST_ROWS), last])
