"""A beside B over time: timelines and maps on one scale of bytes, coloured by what changed."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ....schema.stores.base import Store
from ...timeline import timeline
from ..colours import CHANGES
from ..module.address_map import address_map
from ..module.map_colours import Colouring, colourings
from ..module.memory_over_time import schedule_range, stacks_of
from ..module.memory_timeline import height, memory_timeline
from ..module.module_buffers import module_buffers
from ..module.module_spaces import Space, module_spaces
from ..page import Beside, Chart, Part, Text
from .compared_sides import Compared, Side

_CAME, _LEFT, _GREW, _SHRANK, _AS_BEFORE, _ELSEWHERE = CHANGES
# All other words mean that a buffer came to the peak of B, or left that of A.
_SIZED = {"grew": _GREW, "shrank": _SHRANK}


def compared_maps(store: Store, each: Compared, changes: pa.Table, suffix: str) -> list[Part]:
    """The timelines and maps of both sides, A beside B, in the main memory.

    changes: `changed_buffers` in the main memory; `suffix` makes the names of the charts their
    own: `address_map_a`, `memory_timeline_b` and so on.
    """
    sides = {"a": each.a, "b": each.b}
    spaces = {key: _space(store, side) for key, side in sides.items()}
    known = {key: space for key, space in spaces.items() if space is not None}
    if len(known) < len(sides):
        return [Text("Where the buffers are over time is not known of both sides: no maps.")]
    extent = max(height(space) for space in known.values())
    columns = [
        _column(store, key, sides[key], space, changes, extent, suffix)
        for key, space in known.items()
    ]
    _share_bytes([part for column in columns for part in column if isinstance(part, Chart)])
    note = Text(
        "Both sides have one scale of bytes, and zoom on it together; each is as wide as its own"
        " schedule. The colours say what became of the buffers of the peaks, the dashed lines.",
        "note",
    )
    return [note, Beside(columns)]


def _space(store: Store, side: Side) -> Space | None:
    """The main memory, if it is known when the buffers are there."""
    if side.dump.module_id is None:
        return None
    space = module_spaces(store, side.dump.module_id, side.dump.dump_id).get(0)
    return space if space and space.schedule_length and space.peak_bytes is not None else None


def _column(
    store: Store,
    key: str,
    side: Side,
    space: Space,
    changes: pa.Table,
    extent: int,
    suffix: str,
) -> list[Chart | Text]:
    """The timeline of a side and the map under it."""
    module_id = side.dump.module_id
    assert module_id is not None, "a side with a memory space has a module"
    buffers = module_buffers(store, module_id)
    times = schedule_range(space)
    stretches = timeline(store, module_id).table
    stacks = stacks_of(space, buffers)
    name = f"memory_timeline_{key}{suffix}"
    title = f"{key.upper()}, run {side.dump.run_id}"
    chart = memory_timeline(space, stacks, stretches, times, name, extent)
    scripts = (*chart.scripts, "compared_maps.js")
    occupied = f"{title}: occupied bytes of {space.name}"
    parts: list[Chart | Text] = [replace(chart, title=occupied, scripts=scripts)]
    if space.is_estimated:
        said = "is estimated: without a buffer assignment nothing has an address to draw."
        return [*parts, Text(f"{key.upper()} {said}", "note")]
    ways = (change_colours(buffers, changes, key, space), *colourings(buffers))
    chart = address_map(buffers, space, times, f"address_map_{key}{suffix}", ways, extent)
    note = "A rectangle is a buffer: as wide as its life, as high as its size, at its address."
    return [*parts, replace(chart, title=f"{title}: addresses of {space.name}", note=note)]


def _share_bytes(charts: list[Chart]) -> None:
    """Let charts of one kind zoom together on bytes."""
    for kind in ("memory_timeline", "address_map"):
        models = [chart.model for chart in charts if str(chart.model.name).startswith(kind)]
        for model in models[1:]:
            model.y_range = models[0].y_range


def change_colours(buffers: pa.Table, changes: pa.Table, key: str, space: Space) -> Colouring:
    """What became of each buffer of `module_buffers` of the side `key`, as colours.

    changes: `changed_buffers`; what is at the peak and in none of its rows takes as many bytes
    as before.
    """
    names = list(CHANGES)
    start, end = buffers["start_time"].to_numpy(), buffers["end_time"].to_numpy()
    at_peak = (start <= space.peak_time) & (space.peak_time <= end)
    codes = np.where(at_peak, names.index(_AS_BEFORE), names.index(_ELSEWHERE))
    known = _keys(buffers["allocation_index"], buffers["value_id"])
    order = np.argsort(known)
    members = changes[f"{key}_members"].combine_chunks()
    each = pc.list_flatten(members)
    if len(each) and len(known):
        wanted = _keys(pc.struct_field(each, "allocation_index"), pc.struct_field(each, "value_id"))
        place = np.minimum(np.searchsorted(known, wanted, sorter=order), len(known) - 1)
        rows = order[place]
        is_there = known[rows] == wanted
        what = changes["what"].take(pc.list_parent_indices(members)).to_pylist()
        side = _CAME if key == "b" else _LEFT
        became = np.array([names.index(_SIZED.get(word, side)) for word in what], np.int64)
        codes[rows[is_there]] = became[is_there]
    sums = np.zeros(len(names), np.int64)
    np.add.at(sums, codes, buffers["peak_counted_bytes"].to_numpy())
    used = np.flatnonzero(np.bincount(codes, minlength=len(names)))
    places = np.zeros(len(names), np.int64)
    places[used] = np.arange(len(used))
    return Colouring(
        "change",
        "what changed",
        [names[i] for i in used],
        [CHANGES[names[i]] for i in used],
        places[codes],
        sums[used].tolist(),
    )


def _keys(allocations: pa.ChunkedArray, values: pa.ChunkedArray) -> NDArray[np.int64]:
    """A number for each allocation and value; a value that is not known has one too."""
    value = pc.fill_null(values.cast(pa.int64()), -1).to_numpy(zero_copy_only=False)
    allocation = allocations.cast(pa.int64()).to_numpy(zero_copy_only=False)
    numbers: NDArray[np.int64] = allocation * (1 << 32) + value
    return numbers
