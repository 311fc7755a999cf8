"""What the main memory holds at its peak, in groups that two programs can be compared by."""

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .columns.program import NONE, Ints
from .opcodes import COLLECTIVE_ENDS, COLLECTIVES, NUMBER
from .runs import ints, masked, places_of
from .shifts import Divided, Shifts

# The largest groups have a row each, if they have at least this share of the peak.
_MOST_PARTS = 400
_LEAST_SHARE = 1e-4
CATEGORIES = ("argument", "output", "constant", "other", "temp")
_TEXTS = ("category", "role", "pass", "owner", "operation", "shape", "source")


def peak_parts(tables: Mapping[str, pa.Table], shifts: Shifts) -> Divided | None:
    """The rows of `peak_parts` of each program, without module_id; None if none has a peak.

    The bytes add up to peak_bytes of the main memory: as in the view `buffers`, of values that
    share addresses the first in address order counts for them.
    """
    if (main_memory(tables, shifts)["peak_time"] == NONE).all():
        return None
    value, size, category, program = at_peak(tables, shifts)
    columns = _columns(tables, value) | {"category": category}
    # By program, then by the texts in the order in which the program's rows have them.
    keys, ranks = program, []
    for name in _TEXTS:
        codes = ints(columns[name].dictionary_encode().indices)
        _, first, place = np.unique(
            program * (len(codes) + 1) + codes + 1, return_index=True, return_inverse=True
        )
        ranks.append(np.where(codes == NONE, NONE, first[place]))
        keys = np.unique(keys, return_inverse=True)[1] * (len(codes) + 1) + ranks[-1] + 1
    _, first, group = np.unique(keys, return_index=True, return_inverse=True)
    sums = np.zeros(len(first), np.int64)
    np.add.at(sums, group, size)
    counts = np.bincount(group, minlength=len(first))
    of = program[first]
    order = np.lexsort((-sums, of))
    bounds = np.searchsorted(of, np.arange(len(shifts) + 1))
    whole = np.diff(np.append(0, np.cumsum(sums))[bounds])
    rank = np.arange(len(order)) - bounds[of]
    is_kept = (rank < _MOST_PARTS) & (sums[order] >= _LEAST_SHARE * whole[of])
    kept, rest = order[is_kept], order[~is_kept]
    # The small groups together: a row for each category.
    width = len(program) + 1
    of_category, place = np.unique(of[rest] * width + ranks[0][first[rest]], return_inverse=True)
    rest_sums, rest_counts = np.zeros((2, len(of_category)), np.int64)
    np.add.at(rest_sums, place, sums[rest])
    np.add.at(rest_counts, place, counts[rest])
    counted = np.append(sums[kept], rest_sums)
    of = np.append(of[kept], of_category // width)
    rows = np.argsort(of, kind="stable")
    rows = rows[counted[rows] > 0]
    of = of[rows]
    starts = np.searchsorted(of, np.arange(len(shifts) + 1))
    without = pa.nulls(len(of_category), pa.string())
    rest_categories = category.take(pa.array(of_category % width))
    table = pa.table(
        {
            name: pa.concat_arrays(
                [columns[name].take(pa.array(first[kept])), without if number else rest_categories]
            ).take(pa.array(rows))
            for number, name in enumerate(_TEXTS)
        }
        | {
            "buffers": pa.array(np.append(counts[kept], rest_counts)[rows], pa.int32()),
            "counted_bytes": counted[rows],
        }
    ).add_column(0, "part", pa.array(np.arange(len(of)) - starts[of], pa.int32()))
    return Divided(table, starts)


def main_memory(tables: Mapping[str, pa.Table], shifts: Shifts) -> dict[str, Ints]:
    """The time and instruction of each program's peak of the main memory; NONE without one."""
    figures = tables["module_memory"]
    at = places_of(ints(figures["memory_space"]), shifts.starts["space"][:-1])
    return {
        name: np.append(ints(figures[name]), NONE)[at]
        if name in figures.column_names
        else np.full(len(shifts), NONE)
        for name in ("peak_time", "peak_instruction_id")
    }


def at_peak(tables: Mapping[str, pa.Table], shifts: Shifts) -> tuple[Ints, Ints, pa.Array, Ints]:
    """What the main memories hold at their peaks: the place in `values`, the bytes, the category.

    And of which program it is. The place is NONE of an allocation that no value is known to be
    for.
    """
    values, allocations = tables["values"], tables["allocations"]
    time = main_memory(tables, shifts)["peak_time"]
    space = ints(allocations["memory_space"])
    program = shifts.of("space", space)
    is_main = (space == shifts.starts["space"][program]) & (time[program] != NONE)
    is_temp, is_thread_local, *marks = (
        masked(allocations[name])
        for name in ("is_temp", "is_thread_local", "is_parameter", "maybe_live_out", "is_constant")
    )
    temps, extent = _temps_at(tables, np.where(is_main & is_temp, time[program], NONE))
    whole = np.flatnonzero(is_main & ~is_temp & ~is_thread_local)
    value_id = ints(values["value_id"])
    place = places_of(value_id, ints(allocations["value_id"])[whole])
    category = np.select([mark[whole] for mark in marks], range(len(marks)), len(marks))
    category = np.append(np.full(len(temps), CATEGORIES.index("temp")), category)
    sizes = ints(allocations["size_bytes"])[whole]
    names = pa.array(CATEGORIES, pa.string()).take(pa.array(category))
    of = np.append(shifts.of("value", value_id[temps]), program[whole])
    return np.append(temps, place), np.append(extent, sizes), names, of


def _temps_at(tables: Mapping[str, pa.Table], time: Ints) -> tuple[Ints, Ints]:
    """The values in these temps at a time, and the bytes that each counts for.

    `time` is the time at which to look at each allocation, NONE to leave it out.
    """
    values, allocations, ranges = (
        tables[name] for name in ("values", "allocations", "live_ranges")
    )
    temps = np.flatnonzero(time != NONE)
    place = places_of(ints(ranges["value_id"]), ints(values["value_id"]))
    start, end = (np.append(ints(ranges[name]), NONE)[place] for name in ("start_time", "end_time"))
    index, low, size = (
        ints(values[name]) for name in ("allocation_index", "offset_bytes", "size_bytes")
    )
    allocation = places_of(ints(allocations["allocation_index"])[temps], index)
    here = np.append(time[temps], NONE)[allocation]
    at = np.flatnonzero((allocation != NONE) & (start != NONE) & (start <= here) & (here <= end))
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
