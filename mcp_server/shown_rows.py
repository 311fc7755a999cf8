"""The rows of the library as answers show them: few columns, the newest first."""

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa

from ..queries.result import Rows, without_layout
from .bounded import Part


def pick(rows: Rows, columns: Sequence[str]) -> Part:
    """These columns of the rows, as far as there are any, and what marks estimates."""
    names = [*columns, *(mark for mark in ("is_guess", "origin") if mark not in columns)]
    there = [name for name in names if name in rows.table.column_names]
    return Part(rows.table.select(there), rows.empty)


def newest_first(rows: Rows) -> Rows:
    """The rows from the last to the first: what is left out is old."""
    return replace(rows, table=rows.table.take(pa.array(range(len(rows) - 1, -1, -1), pa.int64())))


def with_program(rows: Rows) -> Rows:
    """The rows whose column `module` is WORKLOAD/NAME, as arguments take it; ids are texts.

    A number above 2**53 does not survive in every client.
    """
    table = rows.table
    both = zip(table["workload"].to_pylist(), table["module"].to_pylist(), strict=True)
    names = pa.array([f"{workload}/{module}" for workload, module in both], pa.string())
    place = table.column_names.index("module")
    table = table.set_column(place, "module", names)
    if "module_id" in table.column_names:
        place = table.column_names.index("module_id")
        table = table.set_column(place, "module_id", table["module_id"].cast(pa.string()))
    return replace(rows, table=table)


def plain_shapes(rows: Rows) -> Rows:
    """The rows with shapes without their layouts."""
    table = rows.table
    shapes = [shape and without_layout(shape) for shape in table["shape"].to_pylist()]
    place = table.column_names.index("shape")
    return replace(rows, table=table.set_column(place, "shape", pa.array(shapes, pa.string())))
