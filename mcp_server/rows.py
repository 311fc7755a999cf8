"""Rows of the library as answers show them: few columns, the newest row first."""

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from ..queries.result import Rows, without_layout
from .answer import Part, exact_size

# `answer_json` turns these columns into the marks ≈ and ? of cells.
_MARKS = ("is_guess", "origin")


def pick(rows: Rows, columns: Sequence[str]) -> Part:
    """The part with those of the columns that the rows have, and with the columns of marks."""
    names = [*columns, *(mark for mark in _MARKS if mark not in columns)]
    existing = [name for name in names if name in rows.table.column_names]
    return Part(rows.table.select(existing), rows.empty)


def newest_first(rows: Rows) -> Rows:
    """The rows in reverse order, so that the oldest are dropped if not all fit."""
    return replace(rows, table=rows.table.take(pa.array(reversed(range(len(rows))), pa.int64())))


def with_full_names(rows: Rows) -> Rows:
    """The rows with WORKLOAD/NAME, which arguments accept, as `module`, and ids as strings.

    Clients that read numbers as doubles would round an id above 2**53.
    """
    table = rows.table
    names = pc.binary_join_element_wise(table["workload"], table["module"], "/")
    rows = with_column(rows, "module", names)
    if "module_id" in table.column_names:
        rows = with_column(rows, "module_id", table["module_id"].cast(pa.string()))
    return rows


def without_layouts(rows: Rows) -> Rows:
    """The rows with shapes that have no layout."""
    shapes = [shape and without_layout(shape) for shape in rows.table["shape"].to_pylist()]
    return with_column(rows, "shape", pa.array(shapes, pa.string()))


def with_column(rows: Rows, name: str, values: pa.Array | pa.ChunkedArray) -> Rows:
    """The rows with other values in the column `name`."""
    index = rows.table.column_names.index(name)
    return replace(rows, table=rows.table.set_column(index, name, values))


def in_memory_space(rows: Rows, memory_space: int) -> Rows:
    """The rows of one memory space."""
    if "memory_space" not in rows.table.column_names:
        return rows
    is_in_space = pc.equal(rows.table["memory_space"], memory_space)
    return replace(rows, table=rows.table.filter(is_in_space))


def caption_and_total(rows: Rows) -> list[str]:
    """The caption, which names the module, and what `counted_bytes` add up to."""
    if not len(rows):
        return [rows.caption]
    total = exact_size(sum(rows.table["counted_bytes"].to_pylist()))
    reason = "since values that share memory count once"
    return [rows.caption, f"together {total}: counted adds up to this, {reason}"]
