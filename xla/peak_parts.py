"""What the main memory holds at its peak, in groups that two programs can be compared by."""

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .opcodes import COLLECTIVE_ENDS, COLLECTIVES, NUMBER
from .program import NONE, Ints

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
    figures = tables["module_memory"]
    peaks = figures.filter(pc.equal(figures["memory_space"], 0)).to_pylist()
    if not peaks or peaks[0].get("peak_time") is None:
        return None
    value, size, category = at_peak(tables, peaks[0]["peak_time"])
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


def at_peak(tables: Mapping[str, pa.Table], time: int) -> tuple[Ints, Ints, pa.Array]:
    """The place in `values` of what is live at the peak, its bytes and its category.

    The place is NONE of an allocation that no value is known to be for.
    """
    values, allocations = tables["values"], tables["allocations"]
    temps, extent = _temps_at(tables, time)
    is_whole = pc.and_(
        pc.equal(allocations["memory_space"], 0),
        pc.invert(pc.or_(allocations["is_temp"], allocations["is_thread_local"])),
    )
    whole = allocations.filter(is_whole)
    place = _ints(pc.index_in(whole["value_id"], value_set=values["value_id"].combine_chunks()))
    category = pc.if_else(
        whole["is_parameter"],
        "argument",
        pc.if_else(
            whole["maybe_live_out"],
            "output",
            pc.if_else(whole["is_constant"], "constant", "other"),
        ),
    )
    texts = [pa.array(["temp"] * len(temps), pa.string()), category.combine_chunks()]
    sizes = whole["size_bytes"].to_numpy()
    return np.append(temps, place), np.append(extent, sizes), pa.concat_arrays(texts)


def _temps_at(tables: Mapping[str, pa.Table], time: int) -> tuple[Ints, Ints]:
    """The values in the main memory's temps at a time, and the bytes that each counts for."""
    values, allocations, ranges = (
        tables[name] for name in ("values", "allocations", "live_ranges")
    )
    is_temp = pc.and_(pc.equal(allocations["memory_space"], 0), allocations["is_temp"])
    temps = allocations["allocation_index"].filter(is_temp).combine_chunks()
    place = pc.index_in(values["value_id"], value_set=ranges["value_id"].combine_chunks())
    start, end = (_ints(ranges[name].take(place)) for name in ("start_time", "end_time"))
    held = pc.is_in(values["allocation_index"], value_set=temps).to_numpy()
    at = np.flatnonzero(held & (start != NONE) & (start <= time) & (time <= end))
    allocation, low, size = (
        _ints(values[name])[at] for name in ("allocation_index", "offset_bytes", "size_bytes")
    )
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
    values = tables["values"].take(pa.array(value, mask=value == NONE))
    nulls = pa.nulls(len(values), pa.string())

    def texts(table: pa.Table, name: str) -> pa.Array:
        known = name in table.column_names
        return table[name].cast(pa.string()).combine_chunks() if known else nulls

    made = values["instruction_id"]
    if "origin_instruction_id" in values.column_names:
        made = pc.coalesce(values["origin_instruction_id"], made)
    instructions = tables["instructions"].take(made)
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


def lines_of(instructions: pa.Table) -> pa.Array:
    """The file and line of each instruction, such as `zoo.py:40`; null if it has none."""
    if "source_file" not in instructions.column_names:
        return pa.nulls(len(instructions), pa.string())
    file = pc.replace_substring_regex(instructions["source_file"], r"^.*[/\\]", "")
    line = instructions["source_line"].cast(pa.string())
    return pc.binary_join_element_wise(file.cast(pa.string()), line, ":").combine_chunks()


def _ints(column: pa.ChunkedArray) -> Ints:
    ints: Ints = pc.fill_null(column, NONE).to_numpy().astype(np.int64)
    return ints
