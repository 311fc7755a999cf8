"""How full memory is over a module's schedule, as a chart."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from bokeh.models import ColumnDataSource, Label, Range1d, Span
from bokeh.plotting import figure

from ..queries.result import Rows, mark_estimated
from ..schema.readable import human_bytes
from .colours import CATEGORIES, PASSES, REST, TOTAL
from .figures import house_figure, in_bytes, in_positions
from .module_spaces import Space, Stacks
from .page import Chart, Html, Table, templates

_COLOURS: Mapping[str, Mapping[str, str]] = {"pass": PASSES, "category": CATEGORIES}
# A limit is in the picture if it is at most this many times the peak.
_NEAR = 1.3
_LISTED = 200
# Room above what is drawn, for the texts of the peak and of a limit on a narrow page.
_HEADROOM, _SMALL_HEADROOM = 1.28, 1.3
# Charts above one another have axes of one width, so that equal times stand above one another.
MARGINS: Mapping[str, Any] = {"min_border_left": 88, "min_border_right": 36}


def memory_timeline(
    space: Space,
    stacks: Mapping[str, Stacks],
    stretches: pa.Table,
    times: Range1d,
    name: str = "memory_timeline",
    extent_bytes: int | None = None,
) -> Chart:
    """The occupied bytes of a memory space, stacked by pass and by category.

    `stacks` are the stacks by what they are of; stretches: those of `timeline`, for the table;
    times: the range that the charts of a report share; extent_bytes: how high the chart is if
    not as the space needs.
    """
    plot = house_figure(
        name,
        x_label="position in the schedule",
        y_label=f"occupied, {'≈ ' if space.is_estimated else ''}bytes",
        height=240,
        x_range=times,
        y_range=Range1d(0, (extent_bytes or height(space)) * _HEADROOM),
        **MARGINS,
    )
    columns, drawn = _columns(stacks)
    source = ColumnDataSource(columns, name=f"{name}_stacks")
    for place, by in enumerate(stacks):
        for low, top, colour in drawn[by]:
            area = plot.varea_step(
                x="time",
                y1=low or 0,
                y2=top,
                step_mode="after",
                source=source,
                fill_color=colour,
                visible=place == 0,
            )
            area.tags = [f"by-{by}"]
    in_bytes(plot.yaxis)
    in_positions(plot.xaxis)
    _mark_peak(plot, space)
    _mark_limits(plot, space, plot.y_range.end)
    legend = templates().get_template("timeline_legend.html")
    return Chart(
        f"Occupied bytes of {space.name} over the schedule",
        plot,
        tables=(_table(stretches),),
        controls=Html(
            templates().get_template("timeline_by.html").render(name=name, ways=list(stacks))
        ),
        below=Html(legend.render(name=name, ways=_legends(space, stacks))),
        scripts=("memory_timeline.js",),
        data={
            name: {
                "kind": "memory_timeline",
                "total": list(columns)[-1],
            }
        },
    )


def space_chart(space: Space, occupied: pa.Table) -> Chart:
    """A small chart of a memory space: `occupied` are its rows of `occupancy`, in order.

    Its times follow those of `memory_timeline` after a zoom, not during it, because drawing all
    spaces at every move is slow.
    """
    plot = house_figure(
        f"memory_timeline_{space.memory_space}",
        x_label="position in the schedule",
        y_label="≈ bytes" if space.is_estimated else "bytes",
        height=150,
        x_range=Range1d(0, space.schedule_length or 1, bounds="auto", min_interval=2),
        y_range=Range1d(0, height(space) * _SMALL_HEADROOM),
        **MARGINS,
    )
    plot.tags = ["follows-memory_timeline"]
    start = occupied["start_time"].to_numpy()
    source = ColumnDataSource(
        {
            "time": np.append(start, space.schedule_length or 0).astype(np.int32),
            "occupied": np.append(occupied["occupied_bytes"].to_numpy(), 0).astype(np.float64),
        }
    )
    plot.varea_step(
        x="time", y1=0, y2="occupied", step_mode="after", source=source, fill_color=TOTAL
    )
    in_bytes(plot.yaxis)
    in_positions(plot.xaxis)
    plot.yaxis.ticker.desired_num_ticks = 3
    _mark_peak(plot, space)
    rows = occupied.sort_by([("occupied_bytes", "descending")]).slice(0, _LISTED)
    if space.is_estimated:
        rows = mark_estimated(rows, ["occupied_bytes"])
    return Chart(
        f"Occupied bytes of {space.name}",
        plot,
        tables=(Table(Rows(rows, _fullest(len(rows), len(occupied))), "As a table", folded=True),),
    )


def height(space: Space) -> int:
    """How many bytes a chart of a memory space shows: its peak, and limits that are near."""
    most = max(space.peak_bytes or 0, space.reserved_bytes or 0, 1)
    device = space.device_memory_bytes
    if device is not None and most < device <= most * _NEAR:
        most = device
    return round(most * 1.02)


def _columns(
    stacks: Mapping[str, Stacks],
) -> tuple[dict[str, np.ndarray], dict[str, list[tuple[str, str, str]]]]:
    """The columns of the source, and of each stack its areas: lower column, upper, colour."""
    times = np.unique(np.concatenate([stack.times for stack in stacks.values()]))
    columns = {"time": times.astype(np.int32)}
    drawn: dict[str, list[tuple[str, str, str]]] = {}
    for by, stack in stacks.items():
        tops = stack.sums.cumsum(axis=0)[:, np.searchsorted(stack.times, times, "right") - 1]
        names = [f"{by}_{place}" for place in range(len(stack.names))]
        columns |= dict(zip(names, tops.astype(np.float64), strict=True))
        colours = [_COLOURS[by].get(each, REST) for each in stack.names]
        drawn[by] = list(zip(["", *names], names, colours, strict=False))
    return columns, drawn


def _legends(space: Space, stacks: Mapping[str, Stacks]) -> list[dict[str, Any]]:
    """Of each stack: its names with their colours and what each takes at the peak."""
    mark = "≈" if space.is_estimated else ""
    legends: list[dict[str, Any]] = []
    for by, stack in stacks.items():
        at = np.searchsorted(stack.times, space.peak_time or 0, "right") - 1
        peak = stack.sums[:, at].tolist()
        entries = [
            (name, _COLOURS[by].get(name, REST), mark + human_bytes(size))
            for name, size in zip(stack.names, peak, strict=True)
        ]
        # As the areas lie on one another: the uppermost first.
        legends.append({"by": by, "entries": entries[::-1]})
    return legends


def _mark_peak(plot: figure, space: Space) -> None:
    if space.peak_time is None or space.peak_bytes is None or not space.schedule_length:
        return
    time = space.peak_time + 0.5
    mark = "≈" if space.is_estimated else ""
    is_late = time > space.schedule_length / 2
    plot.add_layout(
        Span(location=time, dimension="height", line_dash="dashed", line_width=1.5, tags=["ink"])
    )
    plot.add_layout(
        Label(
            x=time,
            y=plot.y_range.end,
            x_offset=-6 if is_late else 6,
            y_offset=-2,
            text_baseline="top",
            text=f"peak {mark}{human_bytes(space.peak_bytes)}",
            text_align="right" if is_late else "left",
            text_font_size="12px",
            tags=["ink"],
        ),
    )


def _mark_limits(plot: figure, space: Space, top: float) -> None:
    """Lines of the device's memory and of what is allocated, where they are in the picture."""
    limits = [("device's memory", space.device_memory_bytes)]
    allocated, device = space.reserved_bytes, space.device_memory_bytes
    # Two lines so near one another would have their texts on one another.
    if (
        allocated
        and space.peak_bytes
        and allocated > space.peak_bytes
        and (device is None or abs(device - allocated) > top * 0.1)
    ):
        limits.append(("allocated", allocated))
    for text, size in limits:
        if size is not None and size <= top:
            _mark_limit(plot, f"{text} {human_bytes(size)}", size, space)


def _mark_limit(plot: figure, text: str, size: int, space: Space) -> None:
    """A line at `size`, with its text on the side where the peak's text is not."""
    is_late = (space.peak_time or 0) > (space.schedule_length or 0) / 2
    plot.add_layout(Span(location=size, dimension="width", line_dash="dotted", tags=["ink"]))
    plot.add_layout(
        Label(
            x=0 if is_late else (space.schedule_length or 0),
            y=size,
            x_offset=6 if is_late else -6,
            y_offset=4,
            text=text,
            text_align="left" if is_late else "right",
            text_font_size="12px",
            tags=["ink"],
        )
    )


def _table(stretches: pa.Table) -> Table:
    fullest = pc.sort_indices(
        stretches, [("occupied_bytes", "descending"), ("start_time", "ascending")]
    )
    wanted = ["start_time", "end_time", "occupied_bytes", "instruction", "op_name", "origin"]
    rows = stretches.select(wanted).take(fullest.slice(0, _LISTED))
    return Table(Rows(rows, _fullest(len(rows), len(stretches))), "As a table", folded=True)


def _fullest(shown: int, known: int) -> str:
    if shown == known:
        return "All stretches of the schedule, the fullest first"
    return f"The {shown} fullest of {known:,} stretches: `memhouse timeline` lists all"
