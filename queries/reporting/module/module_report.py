"""The report of one module: what fills its memory, when, and whose it is."""

from collections.abc import Iterator

import pyarrow as pa
from bokeh.models import Range1d

from ....schema.stores.base import Store
from ...find_module import FoundModule, find_module
from ..page import Part, Report, Section
from .advice_cards import what_to_change
from .buffer_table import buffer_table
from .headline import headline
from .memory_over_time import memory_over_time, other_spaces, schedule_range
from .module_buffers import module_buffers
from .module_spaces import Space, module_spaces
from .module_tables import module_tables
from .packing import packing_section
from .treemap import treemap_chart
from .value_details import pinned_panel, value_details


def module_report(
    store: Store, module: str | int | FoundModule, run: str | None = None, memory_space: int = 0
) -> Report:
    """The report of a module, its latest or that of a run. Raises UsageError."""
    found = module if isinstance(module, FoundModule) else find_module(store, module, run)
    spaces = module_spaces(store, found.module_id, found.dump_id)
    space = spaces.get(memory_space)
    times = schedule_range(space)
    top = headline(store, found, space, memory_space)
    buffers = module_buffers(store, found.module_id, memory_space)
    over_time = _over_time(store, found, memory_space, buffers, space, times)
    return Report(
        f"{found.workload}/{found.module_name}",
        top.subtitle,
        top.facts,
        (
            *top.said,
            Section("Memory over time", [*over_time]),
            *what_to_change(store, found, memory_space, buffers),
            *(_owners(store, found, buffers, space) if space else ()),
            *other_spaces(store, found.module_id, memory_space, spaces),
        ),
        gist="".join(f"peak {fact.text}" for fact in top.facts if fact.name == "peak")
        or f"no peak is known of memory space {memory_space}",
    )


def _over_time(
    store: Store,
    found: FoundModule,
    memory_space: int,
    buffers: pa.Table,
    space: Space | None,
    times: Range1d,
) -> Iterator[Part]:
    """The timeline, the map, and what there is to say of the value that a click pins."""
    yield from memory_over_time(store, found.module_id, buffers, memory_space, space, times)
    if space is not None and len(buffers):
        details = value_details(store, found.module_id, memory_space, buffers)
        length = space.schedule_length or 0
        yield pinned_panel(details, space.name, length, is_estimated=space.is_estimated)


def _owners(store: Store, found: FoundModule, buffers: pa.Table, space: Space) -> Iterator[Section]:
    """Who owns the peak, all buffers, and what could be saved."""
    chart = treemap_chart(store, found, space)
    if chart is not None:
        yield Section("Who owns the peak", (chart,))
    if len(buffers):
        yield Section("All buffers", (buffer_table(buffers, space.peak_time),))
    yield packing_section(store, found, space)
    yield from module_tables(store, found, space.memory_space)
