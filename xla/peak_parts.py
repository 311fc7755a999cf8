"""What the main memory holds at its peak, in groups that two programs can be compared by."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .opcodes import COLLECTIVE_ENDS, COLLECTIVES, NUMBER
from .program import NONE, Ints
from .runs import ints, masked, places_of

# The largest groups have a row each, if they have at least this share of the peak.
_MOST_PARTS = 400
_LEAST_SHARE = 1e-4
CATEGORIES = ("argument", "output", "constant", "other", "temp")
_TEXTS = ("category", "role", "pass", "owner", "operation", "shape", "source")


def peak_parts(tables: Mapping[str, pa.Table]) -> pa.Table | None:
    """The rows of `peak_parts` without module_id; None if the module has no peak.

    The bytes add up to peak_bytes of the main memory: as in the view `buffers`, of values that
    share addresses the first in address order counts for them.
    """
    peak_time = main_memory(tables).get("peak_time")
    if peak_time is None:
        return None
    value, size, category = at_peak(tables, peak_time)
    columns = _columns(tables, value) | {"category": category}
    encoded = [columns[name].dictionary_encode() for name in _TEXTS]
    codes = np.stack([pc.fill_null(column.indices, NONE).to_numpy() for column in encoded])
    groups, first, group = np.unique(codes, axis=1, return_index=True, return_inverse=True)
    sums = np.zeros(groups.shape[1], np.int64)
    np.add.at(sums, group.ravel(), size)
    counts = np.bincount(group.ravel(), minlength=groups.shape[1])
    order = np.argsort(-sums, kind="stable")
    kept = order[:_MOST_PARTS]
    kept = kept[sums[kept] >= _LEAST_SHARE * sums.sum()]
    rest = order[len(kept) :]
    # The small groups together: a row for each category.
    of_category, place = np.unique(groups[0][rest], return_inverse=True)
    rest_sums, rest_counts = np.zeros((2, len(of_category)), np.int64)
    np.add.at(rest_sums, place.ravel(), sums[rest])
    np.add.at(rest_counts, place.ravel(), counts[rest])
    without = pa.nulls(len(of_category), pa.string())
    rows = {
        name: pa.concat_arrays(
            [
                columns[name].take(pa.array(first[kept])),
                encoded[0].dictionary.take(pa.array(of_category)) if not number else without,
            ]
        )
        for number, name in enumerate(_TEXTS)
    }
    rows["buffers"] = pa.array(np.append(counts[kept], rest_counts), pa.int32())
    rows["counted_bytes"] = pa.array(np.append(sums[kept], rest_sums), pa.int64())
    table = pa.table(rows).filter(pc.greater(pa.array(rows["counted_bytes"]), 0))
    return table.add_column(0, "part", pa.array(range(len(table)), pa.int32()))


def main_memory(tables: Mapping[str, pa.Table]) -> dict[str, Any]:
    """The figures of the main memory; none if the module has no such."""
    figures = tables["module_memory"]
    spaces = figures["memory_space"].to_pylist()
    return figures.slice(spaces.index(0), 1).to_pylist()[0] if 0 in spaces else {}


def at_peak(tables: Mapping[str, pa.Table], time: int) -> tuple[Ints, Ints, pa.Array]:
    """The place in `values` of what is live at the peak, its bytes and its category.

    The place is NONE of an allocation that no value is known to be for.
    """
    values, allocations = tables["values"], tables["allocations"]
    temps, extent = _temps_at(tables, time)
    is_temp, is_thread_local, *marks = (
        masked(allocations[name])
        for name in ("is_temp", "is_thread_local", "is_parameter", "maybe_live_out", "is_constant")
    )
    whole = np.flatnonzero((ints(allocations["memory_space"]) == 0) & ~is_temp & ~is_thread_local)
    place = places_of(ints(values["value_id"]), ints(allocations["value_id"])[whole])
    category = np.select([mark[whole] for mark in marks], range(len(marks)), len(marks))
    category = np.append(np.full(len(temps), CATEGORIES.index("temp")), category)
    sizes = ints(allocations["size_bytes"])[whole]
    names = pa.array(CATEGORIES, pa.string()).take(pa.array(category))
    return np.append(temps, place), np.append(extent, sizes), names


def _temps_at(tables: Mapping[str, pa.Table], time: int) -> tuple[Ints, Ints]:
    """The values in the main memory's temps at a time, and the bytes that each counts for."""
    values, allocations, ranges = (
        tables[name] for name in ("values", "allocations", "live_ranges")
    )
    is_temp = masked(allocations["is_temp"]) & (ints(allocations["memory_space"]) == 0)
    temps = ints(allocations["allocation_index"])[is_temp]
    place = places_of(ints(ranges["value_id"]), ints(values["value_id"]))
    start, end = (np.append(ints(ranges[name]), NONE)[place] for name in ("start_time", "end_time"))
    allocation, low, size = (
        ints(values[name]) for name in ("allocation_index", "offset_bytes", "size_bytes")
    )
    held = np.isin(allocation, temps) & (allocation != NONE)
    at = np.flatnonzero(held & (start != NONE) & (start <= time) & (time <= end))
    allocation, low, size = allocation[at], low[at], size[at]
    order = np.lexsort((at, -size, low, allocation))
    at, allocation, low, size = (column[order] for column in (at, allocation, low, size))
    # Allocations laid end to end, so that one running maximum serves them all.
    length = int((low + size).max(initial=0))
    low = low + np.unique(allocation, return_inverse=True)[1] * length
    high = low + size
    covered = np.maximum.accumulate(np.append(0, high))[:-1]
    return at, np.maximum(high - np.maximum(low, covered), 0)


def _columns(tables: Mapping[str, pa.Table], value: Ints) -> dict[str, pa.Array]:
    """What describes the values at these places; null where nothing is known."""
    values = _selected(tables["values"], _OF_VALUES).take(pa.array(value, mask=value == NONE))
    nulls = pa.nulls(len(values), pa.string())

    def texts(table: pa.Table, name: str) -> pa.Array:
        known = name in table.column_names
        return table[name].cast(pa.string()).combine_chunks() if known else nulls

    made = values["instruction_id"]
    if "origin_instruction_id" in values.column_names:
        made = pc.coalesce(values["origin_instruction_id"], made)
    instructions = _selected(tables["instructions"], _OF_INSTRUCTIONS).take(made)
    owner = operation = nulls
    if "scopes" in tables:
        scopes = tables["scopes"]
        place = pc.index_in(instructions["scope_id"], value_set=scopes["scope_id"].combine_chunks())
        scope = scopes.take(place)
        owner, operation = (texts(scope, name) for name in ("scope", "operation"))
    opcode, op_name = (texts(instructions, name) for name in ("opcode", "op_name"))
    is_collective = pc.is_in(opcode, value_set=pa.array([*COLLECTIVES, *COLLECTIVE_ENDS]))
    operation = pc.if_else(is_collective, pc.replace_substring_regex(opcode, _ENDS, ""), operation)
    is_argument = pc.fill_null(pc.equal(texts(values, "pass"), "argument"), False)
    owner = pc.if_else(is_argument, op_name, owner)
    shape = pc.replace_substring_regex(texts(values, "shape"), r"\{[^{}]*\}", "")
    return {
        "role": texts(values, "role"),
        "pass": texts(values, "pass"),
        "owner": pc.replace_substring_regex(owner, NUMBER, r"#\1"),
        "operation": pc.coalesce(operation, opcode),
        # A tuple's index table has no shape to compare.
        "shape": pc.if_else(pc.starts_with(shape, "("), pa.scalar(None, pa.string()), shape),
        "source": lines_of(instructions),
    }


_ENDS = r"-(start|done)$"
_OF_VALUES = ("instruction_id", "origin_instruction_id", "role", "pass", "shape")
_OF_INSTRUCTIONS = ("instruction_id", "scope_id", "opcode", "op_name", "source_file", "source_line")


def _selected(table: pa.Table, names: Sequence[str]) -> pa.Table:
    """The columns of these names that the table has; the first one it has in any case."""
    return table.select([name for name in names if name in table.column_names])


def lines_of(instructions: pa.Table) -> pa.Array:
    """The file and line of each instruction, such as `zoo.py:40`; null if it has none."""
    if "source_file" not in instructions.column_names:
        return pa.nulls(len(instructions), pa.string())
    file = pc.replace_substring_regex(instructions["source_file"], r"^.*[/\\]", "")
    line = instructions["source_line"].cast(pa.string())
    return pc.binary_join_element_wise(file.cast(pa.string()), line, ":").combine_chunks()
