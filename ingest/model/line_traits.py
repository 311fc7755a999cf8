"""The traits of a module's memory: whose lines fill it. `traits.py` says what each one means."""

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .numbered_program import NONE, Ints
from .origins.passes import ARGUMENT, PASSES

Rows = list[tuple[str, str, int]]

# The largest lines have a row each, if they have at least this share of the bytes of all.
_MOST_LINES = 48
_LEAST_SHARE = 0.002
_COLLECTIVE = (
    *("all-gather", "all-reduce", "all-to-all", "ragged-all-to-all", "reduce-scatter"),
    *("collective-permute", "collective-broadcast"),
)
COLLECTIVES = tuple(f"{name}{part}" for name in _COLLECTIVE for part in ("", "-start"))


def saved_traits(tables: Mapping[str, pa.Table]) -> Rows:
    """The bytes of residuals by the line that computes them, wherever they are kept.

    A residual may have a copy or a slice in each memory space, and XLA moves it between them
    as there is room: it counts once, where most of it is.
    """
    if "residuals" not in tables:
        return []
    residuals, values = tables["residuals"], tables["values"]
    at = pc.index_in(residuals["value_id"], value_set=values["value_id"].combine_chunks())
    made = _ints(residuals["made_instruction_id"])
    space, size = (_ints(values[name].take(at)) for name in ("memory_space", "size_bytes"))
    # One number for each instruction and space; without a space it is -1.
    spaces = int(space.max(initial=0)) + 2
    place, size = summed(made * spaces + space + 1, size)
    # The places of an instruction follow each other.
    made, first = np.unique(place // spaces, return_index=True)
    size = np.maximum.reduceat(size, first)
    return [("saved", "", int(size.sum())), *_by_line("saved", tables, made, size)]


def peak_traits(tables: Mapping[str, pa.Table]) -> Rows:
    """The bytes at the main memory's peak by line, and those that collectives made."""
    values, instructions = tables["values"], tables["instructions"]
    figures = tables["module_memory"]
    peaks = figures.filter(pc.equal(figures["memory_space"], 0))["peak_time"].to_pylist()
    if not peaks or peaks[0] is None:
        return []
    temps, extent = _temps_at(tables, peaks[0])
    outputs, size = _outputs(tables)
    at, extent = np.append(temps, outputs), np.append(extent, size)
    held = _ints(values["origin_instruction_id"])[at]
    held = np.where(held == NONE, _ints(values["instruction_id"])[at], held)
    is_argument = pc.fill_null(pc.equal(values["pass"], PASSES[ARGUMENT]), False).to_numpy()[at]
    rows = _by_line("peak", tables, held[~is_argument], extent[~is_argument])
    opcode = instructions["opcode"].take(pa.array(held))
    for name in _COLLECTIVE:
        kinds = pa.array([name, f"{name}-start", f"{name}-done"], pa.large_string())
        is_made = pc.is_in(opcode, value_set=kinds).to_numpy()
        rows.append(("peak_collective", name, int(extent[is_made].sum())))
    return rows


def _temps_at(tables: Mapping[str, pa.Table], time: int) -> tuple[Ints, Ints]:
    """The values in the main memory's temps at a time, and the bytes that each counts for.

    As in the view `_counted_buffers`: of aliased values the first in address order counts.
    """
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
    order = np.lexsort((-size, low, allocation))
    at, allocation, low, size = (column[order] for column in (at, allocation, low, size))
    # Allocations laid end to end, so that one running maximum serves them all.
    length = int((low + size).max(initial=0))
    low = low + np.unique(allocation, return_inverse=True)[1] * length
    high = low + size
    covered = np.maximum.accumulate(np.append(0, high))[:-1]
    return at, np.maximum(high - np.maximum(low, covered), 0)


def _outputs(tables: Mapping[str, pa.Table]) -> tuple[Ints, Ints]:
    """The values that allocations of results in the main memory are for, and their sizes."""
    allocations, values = tables["allocations"], tables["values"]
    is_output = pc.and_(allocations["maybe_live_out"], pc.invert(allocations["is_parameter"]))
    is_output = pc.and_(is_output, pc.equal(allocations["memory_space"], 0))
    chosen = allocations.filter(pc.and_(is_output, pc.is_valid(allocations["value_id"])))
    at = pc.index_in(chosen["value_id"], value_set=values["value_id"].combine_chunks())
    return _ints(at), _ints(chosen["size_bytes"])


def _by_line(trait: str, tables: Mapping[str, pa.Table], instruction: Ints, size: Ints) -> Rows:
    """The bytes of each line's instructions; of the largest lines alone."""
    rows = tables["instructions"].take(pa.array(instruction))
    scopes = tables["scopes"]
    file = pc.replace_substring_regex(rows["source_file"], r"^.*[/\\]", "")
    place = pc.index_in(rows["scope_id"], value_set=scopes["scope_id"].combine_chunks())
    line = rows["source_line"].cast(pa.large_string())
    colon, unknown = (pa.scalar(text, pa.large_string()) for text in (":", "(not known)"))
    name = pc.coalesce(
        pc.binary_join_element_wise(file, line, colon),
        scopes["operation"].take(place),
        rows["opcode"],
        unknown,
    )
    encoded = name.combine_chunks().dictionary_encode()
    of_line, total = summed(encoded.indices.to_numpy(), size)
    names = encoded.dictionary.take(pa.array(of_line)).to_pylist()
    largest = sorted(zip(total.tolist(), names, strict=True), key=lambda row: (-row[0], row[1]))
    least = _LEAST_SHARE * size.sum()
    return [(trait, name, bytes_) for bytes_, name in largest[:_MOST_LINES] if bytes_ >= least]


def summed(keys: Ints, amounts: Ints) -> tuple[Ints, Ints]:
    """The distinct keys in order, and the sum of the amounts of each.

    Arrow would do it too, but to import its grouping takes longer than all that is grouped.
    """
    found, at = np.unique(keys, return_inverse=True)
    sums = np.zeros(len(found), np.int64)
    np.add.at(sums, at, amounts)
    return found, sums


def _ints(column: pa.ChunkedArray) -> Ints:
    found: Ints = pc.fill_null(column, NONE).to_numpy().astype(np.int64)
    return found
