"""Where a module's memory goes over its schedule: the timelines and the map, as sections."""

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
from bokeh.models import Range1d

from ..queries.catalogue import statement
from ..queries.modules import FoundModule
from ..queries.timeline import timeline
from ..schema.store import Store
from .address_map import address_map, colouring
from .memory_timeline import memory_timeline, space_chart
from .module_spaces import Space, Stacks, counted_pieces, module_buffers, module_spaces, stacked
from .page import Chart, Part, Section, Text


def memory_over_time(
    store: Store,
    module_id: int,
    buffers: pa.Table,
    memory_space: int,
    space: Space | None,
    times: Range1d,
) -> list[Part]:
    """The timeline of a memory space and the map under it, or why they are not there.

    buffers: `module_buffers` of the space; times: `schedule_range`.
    """
    if space is None or not len(buffers):
        return [Text(f"This module has no buffers in memory space {memory_space}.")]
    if not space.schedule_length or space.peak_bytes is None:
        return [
            Text(
                "It is not known when the buffers of this module are there: its dump has no"
                " schedule or no live ranges."
            )
        ]
    stacks = stacks_of(space, buffers)
    stretches = timeline(store, module_id, memory_space=memory_space).table
    parts: list[Part] = [memory_timeline(space, stacks, stretches, times)]
    if space.is_estimated:
        parts.append(
            Text("A module without a buffer assignment has no addresses to draw a map of.", "note")
        )
    else:
        parts.append(address_map(buffers, space, times))
    return parts


def timeline_alone(store: Store, found: FoundModule, memory_space: int) -> Chart | None:
    """The timeline of a memory space, without the map; None if it is not known."""
    space = module_spaces(store, found.module_id, found.dump_id).get(memory_space)
    buffers = module_buffers(store, found.module_id, memory_space)
    if space is None or not len(buffers) or not space.schedule_length or space.peak_bytes is None:
        return None
    stacks = stacks_of(space, buffers)
    stretches = timeline(store, found.module_id, memory_space=memory_space).table
    return memory_timeline(space, stacks, stretches, schedule_range(space))


def other_spaces(
    store: Store,
    module_id: int,
    memory_space: int,
    spaces: Mapping[int, Space],
) -> list[Section]:
    """A small timeline of each memory space but `memory_space`, in a section if there are any."""
    charts = [
        space_chart(other, store.rows(statement("report.occupancy"), [module_id, number]))
        for number, other in spaces.items()
        if number != memory_space and other.peak_bytes and other.schedule_length
    ]
    return [Section("Other memory spaces", charts)] if charts else []


def schedule_range(space: Space | None) -> Range1d:
    """The times that the charts of a report share: zooming one moves all."""
    length = max(space.schedule_length or 0 if space else 0, 1)
    return Range1d(0, length, bounds="auto", min_interval=2)


def stacks_of(space: Space, buffers: pa.Table) -> dict[str, Stacks]:
    """What `memory_timeline` draws: the bytes of a space over time, by pass and by category."""
    pieces = counted_pieces(buffers, space.schedule_length or 0)
    stacks = {}
    for by in ("pass", "category"):
        way = colouring(buffers, by)
        # Arguments are the floor that everything else stands on.
        names = sorted(way.names, key=lambda name: name != "argument")
        place = np.array([names.index(name) for name in way.names], np.int64)
        stacks[by] = stacked(pieces, place[way.codes], names)
    return stacks
