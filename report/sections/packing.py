"""What packing wastes: each temp allocation beside the most that is live in it, as a chart."""

from collections.abc import Iterator

import numpy as np
from bokeh.models import ColumnDataSource, CustomJSHover, FactorRange, HoverTool

from ...queries.modules import FoundModule
from ...queries.result import Rows
from ...schema.readable import command, human_bytes
from ...schema.store import Store
from ..colours import REST, TOTAL
from ..figures import BYTES_JS, house_figure, in_bytes
from ..module_spaces import Space
from ..page import Chart, Html, Section, Table, Text, templates
from .module_tables import listed

PLACE = 1
_BARS = 12
_COLUMNS = (
    "memory_space",
    "allocation_index",
    "size_bytes",
    "live_bound_bytes",
    "fragmentation_bytes",
    "wasted",
    "peak_time",
    "instruction",
    "values_in_it",
)


def sections(store: Store, found: FoundModule, space: Space) -> Iterator[Section]:
    """Temp allocations as bars of what must be live and of gaps; a sentence if there are none."""
    yield _packing(store, found, space)


def _packing(store: Store, found: FoundModule, space: Space) -> Section:
    title = "Fragmentation"
    if space.is_estimated:
        return Section(title, (Text("An estimate has no fragmentation: it assigns no addresses."),))
    query = "SELECT * FROM internal.fragmentation WHERE module_id = ? ORDER BY size_bytes DESC"
    rows = store.rows(query, [found.module_id]).select(_COLUMNS)
    here = [row for row in rows.to_pylist() if row["memory_space"] == space.memory_space]
    if not here:
        return Section(title, (Text(f"{space.name} has no temp allocation to pack."),))
    size = sum(row["size_bytes"] for row in here)
    wasted = sum(row["fragmentation_bytes"] for row in here)
    note = (
        f"The temp allocations of {space.name} take {human_bytes(size)}. At one time "
        f"{human_bytes(size - wasted)} are live: no packing can need less. Gaps between values "
        f"that are live together take {human_bytes(wasted)}, {wasted / size if size else 0:.1%}."
    )
    shown = listed(Rows(rows), command("fragmentation", "--run", found.run_id))
    tables = (Table(shown, "All memory spaces as a table", name="packing", folded=True),)
    return Section(title, (_chart(here[:_BARS], space.name, tables),), note)


def _chart(rows: list[dict[str, int]], space: str, tables: tuple[Table, ...]) -> Chart:
    names = [f"allocation {row['allocation_index']}" for row in rows]
    plot = house_figure(
        "packing",
        x_label=f"bytes of {space}",
        y_label="",
        height=90 + 34 * len(rows),
        y_range=FactorRange(*reversed(names)),
    )
    plot.toolbar_location = None
    bound = np.array([row["live_bound_bytes"] for row in rows], dtype=np.int64)
    size = np.array([row["size_bytes"] for row in rows], dtype=np.int64)
    source = ColumnDataSource(
        {"name": names, "bound": bound, "size": size, "packing": size - bound}
    )
    plot.hbar(
        y="name",
        left=0,
        right="bound",
        height=0.7,
        source=source,
        color=TOTAL,
        name="packing_bars",
    )
    plot.hbar(y="name", left="bound", right="size", height=0.7, source=source, color=REST)
    plot.x_range.start = 0
    in_bytes(plot.xaxis, ticks=3)
    plot.ygrid.visible = False
    in_units = CustomJSHover(code=BYTES_JS)
    hover = HoverTool(
        tooltips=[
            ("must be live", "@bound{custom}"),
            ("packing", "@packing{custom}"),
            ("takes", "@size{custom}"),
        ],
        formatters={"@bound": in_units, "@packing": in_units, "@size": in_units},
    )
    plot.add_tools(hover)
    colours = [("must be live", TOTAL), ("packing", REST)]
    legend = templates().get_template("legend.html").render(colours=colours)
    return Chart("Temp allocations: what must be live, and packing", plot, "", tables, Html(legend))
