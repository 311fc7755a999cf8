"""The rows that a module's HLO text alone gives, with the columns of the warehouse's tables.

An instruction_id is the instruction's row in the text, as where names are numbered in the
order of the text. A value_id is the value's place in the text: XLA's own numbers are not in it.
"""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...schema.array_shapes.shape_sizes import shape_columns
from .dataflow import Dataflow
from .derived import Derived
from .numbered_program import Ints
from .sizes import Sizes


def exact_tables(derived: Derived) -> dict[str, pa.Table]:
    """The tables that agree with XLA's to the row, but for the order of positions and uses.

    schedule (schedule_time, instruction_id), positions, uses, live_ranges.
    """
    order = derived.schedule.order
    dataflow = derived.dataflow
    return {
        "schedule": pa.table(
            {
                "schedule_time": pa.array(np.arange(len(order)), pa.int32()),
                "instruction_id": pa.array(order, pa.int32()),
            }
        ),
        "positions": _numbered(_defining_first(dataflow), "position_index"),
        "uses": _numbered(dataflow.uses_table(), "use_index"),
        "live_ranges": derived.liveness.ranges_table(),
    }


def value_rows(dataflow: Dataflow, sizes: Sizes) -> pa.Table:
    """The values with their sizes: columns as in `values`, without allocation and offset."""
    slots = dataflow.slots
    nodes, at = np.unique(slots.node[dataflow.defined_at], return_inverse=True)
    texts = pa.array([str(slots.trees.shapes[node]) for node in nodes], pa.large_string())
    details = shape_columns(texts)
    taken = pa.array(at)
    size = pa.array(sizes.size, pa.int64())
    columns = {
        "memory_space": pa.array(sizes.space, pa.int32()),
        "size_bytes": size,
        "logical_bytes": pc.coalesce(details["logical_bytes"].take(taken), size),
        "shape": texts.take(taken),
        "element_type": details["element_type"].take(taken),
    }
    table = dataflow.values_table()
    for name, column in columns.items():
        table = table.append_column(name, column)
    return table


def _defining_first(dataflow: Dataflow) -> pa.Table:
    """The positions by value, the defining one first."""
    table = dataflow.positions_table()
    value = table["value_id"].to_numpy()
    slots, held = dataflow.slots, np.flatnonzero(dataflow.value >= 0)
    held = held[np.argsort(dataflow.value[held], kind="stable")]
    assert len(held) == len(table) <= len(slots)
    order = np.lexsort((held != dataflow.defined_at[value], value))
    return table.take(pa.array(order))


def _numbered(table: pa.Table, column: str) -> pa.Table:
    """The table, sorted by value, with each row's place among its value's rows."""
    value = table["value_id"].to_numpy()
    count = np.bincount(value) if len(value) else np.array([], np.int64)
    place: Ints = np.arange(len(value)) - np.repeat(np.cumsum(count) - count, count)
    return table.add_column(1, column, pa.array(place, pa.int32()))
