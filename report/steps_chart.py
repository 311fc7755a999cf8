"""The chart of figures over runs."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from bokeh.models import (
    BasicTicker,
    ColumnDataSource,
    CustomJSHover,
    CustomJSTickFormatter,
    HoverTool,
    Range1d,
)
from bokeh.plotting import figure

from ..queries.result import Rows
from ..schema.readable import command, human_bytes, one_line
from .colours import GREW, REST, SHRANK, TOTAL
from .figures import BYTES_JS, house_figure, in_bytes
from .page import Chart, Html, Table
from .series import Event, SeriesHistory

# The axis of runs that the charts of a history share, and what their hover texts say.

# The end of a longer name is shown.
_LONGEST_NAME = 14


class RunAxis:
    """The axis of runs that all charts of a page share, and what their hover texts say."""

    def __init__(self, runs: Sequence[str], causes: Sequence[str]) -> None:
        self.range = Range1d(start=-0.5, end=len(runs) - 0.5, bounds=(-0.5, len(runs) - 0.5))
        self.ticker = BasicTicker(min_interval=1, desired_num_ticks=3, num_minor_ticks=0)
        short = [
            one_line(run if len(run) <= _LONGEST_NAME else f"…{run[1 - _LONGEST_NAME :]}")
            for run in runs
        ]
        self.ticks = CustomJSTickFormatter(args={"names": short}, code="return names[tick] ?? '';")
        self.numbers = {cause: number for number, cause in enumerate(dict.fromkeys(causes))}
        named = CustomJSHover(
            args={"names": list(map(one_line, runs))}, code="return names[value];"
        )
        why = CustomJSHover(
            args={"texts": list(map(one_line, self.numbers))},
            code="return value < 0 ? '' : texts[value];",
        )
        size = CustomJSHover(code=f"if (Number.isNaN(value)) return 'none';\n{BYTES_JS}")
        change = CustomJSHover(
            code=(
                "if (Number.isNaN(value)) return '';\nif (value === 0) return 'none';\n"
                f"const said = (() => {{{BYTES_JS}}})();\n"
                "return value > 0 ? `▲ +${said}` : `▼ ${said}`;"
            )
        )
        self.formatters: dict[str, Any] = {
            "@run": named,
            "@value": size,
            "@change": change,
            "@cause": why,
        }


# One series over the runs, as a chart of steps.

_Floats = npt.NDArray[np.float64]

# The axis spans at least this share of the figure, so that a little change looks little.
_LEAST_SPAN = 0.1
# A level is labelled if it takes this share of the width, so that labels do not meet.
_LABELLED = 0.14
# A label below a line takes this share of the height.
_ROOM_BELOW = 0.2
# The table has the newest stretches of equal figures.
_MOST_STRETCHES = 60
# A series that is back after a gap needs no mark.
_MARKERS = {
    "grew": ("triangle", GREW),
    "shrank": ("inverted_triangle", SHRANK),
    "new": ("circle", TOTAL),
    "changed": ("circle", REST),
    "gone": ("x", REST),
    "failed": ("x", GREW),
    "oom": ("x", GREW),
}
# Shown in a notebook; a page has its own.
_NEUTRAL, _LEVEL = "#7a808a", "#c4c9d1"


@dataclass(frozen=True)
class _Stretches:
    """A series in pieces of equal figures: the runs of each, and its edges on the axis."""

    first: npt.NDArray[np.int64]
    last: npt.NDArray[np.int64]
    left: _Floats
    right: _Floats
    value: _Floats

    @classmethod
    def of(cls, series: SeriesHistory, runs: int) -> "_Stretches":
        left, right = edges(series, runs)
        value = np.nan_to_num(series.values, nan=-1)
        first = np.flatnonzero(np.diff(value, prepend=-2))
        last = np.append(first[1:], len(value)) - 1
        return cls(
            series.runs[first],
            series.runs[last],
            left[first],
            right[last],
            series.values[first],
        )


def edges(series: SeriesHistory, runs: int) -> tuple[_Floats, _Floats]:
    """Where each run of the series begins and ends on the axis."""
    left = series.runs.astype(np.float64) - 0.5
    return left, np.append(left[1:], runs - 0.5)


def steps_chart(
    series: SeriesHistory, axis: RunAxis, runs: Sequence[str], number: int, note: str, below: Html
) -> Chart:
    """A series with figures as a chart: its figure, its levels, what happened to it."""
    bottom, top = _span(series)
    plot = house_figure(
        f"steps_{number}",
        x_label="",
        y_label="peak",
        height=180,
        x_range=axis.range,
        y_range=Range1d(start=bottom, end=top),
    )
    # Over the drawing, where it takes no room.
    plot.toolbar.autohide = plot.toolbar_inner = True
    plot.xaxis.ticker = axis.ticker
    plot.xaxis.formatter = axis.ticks
    plot.xgrid.visible = False
    in_bytes(plot.yaxis, ticks=4)
    left, right = edges(series, len(runs))
    columns = _columns(series, axis)
    hit = plot.quad(
        left="left",
        right="right",
        bottom=bottom,
        top=top,
        fill_color=None,
        line_color=None,
        source=ColumnDataSource({"left": left, "right": right, **columns}),
    )
    plot.add_tools(
        HoverTool(
            renderers=[hit],
            tooltips=[
                ("run", "@run{custom}"),
                ("peak", "@mark@value{custom}"),
                ("change", "@mark@change{custom}"),
                ("why", "@cause{custom}"),
            ],
            formatters=axis.formatters,
        )
    )
    _draw_levels(plot, series, len(runs), bottom + _ROOM_BELOW * (top - bottom))
    pieces = _Stretches.of(series, len(runs))
    plot.line(
        np.ravel([pieces.left, pieces.right], "F"),
        np.repeat(pieces.value, 2),
        line_color=TOTAL,
        line_width=2,
    )
    _draw_events(plot, series, len(runs))
    table = Table(_as_rows(series, pieces, runs), "The same as a table", folded=True)
    return Chart(
        one_line(series.name),
        plot,
        note,
        (table,),
        below=below,
        scripts=("history.js",),
        link=series.page,
    )


def _span(series: SeriesHistory) -> tuple[float, float]:
    """Where the axis of figures begins and ends, with room for labels."""
    low, high = float(np.nanmin(series.values)), float(np.nanmax(series.values))
    span = max(high - low, _LEAST_SPAN * high, 1)
    bottom = low - 0.28 * span
    bottom = 0 if bottom < 0.3 * high else bottom
    return bottom, high + 0.28 * max(high - bottom, 1)


def _columns(series: SeriesHistory, axis: RunAxis) -> dict[str, object]:
    """What the hover texts say of each run."""
    change = np.where(np.isnan(series.values), np.nan, 0.0)
    cause = np.full(len(series.runs), -1, np.int32)
    for event in series.events:
        at = int(np.searchsorted(series.runs, event.place))
        if event.change_bytes is None:
            change[at] = np.nan
        else:
            change[at] = event.change_bytes
        cause[at] = axis.numbers[event.cause]
    return {
        "run": series.runs.astype(np.int32),
        "value": series.values,
        "change": change,
        "cause": cause,
        "mark": np.where(series.estimated, "≈", "").tolist(),
    }


def _draw_levels(plot: figure, series: SeriesHistory, runs: int, low: float) -> None:
    """The levels as broad lines behind the figure, with their sizes where there is room.

    A line below `low` has no room for a size under it.
    """
    if not series.levels:
        return
    first, last, value = (np.array(column) for column in zip(*series.levels, strict=True))
    left = first - 0.5
    ends = dict(zip(series.runs.tolist(), edges(series, runs)[1].tolist(), strict=True))
    right = np.array([ends[place] for place in last.tolist()])
    band = plot.segment(left, value, right, value, line_width=9, line_color=_LEVEL)
    band.glyph.tags = ["faint"]
    has_room = right - left >= _LABELLED * runs
    has_room[-1] = False
    _label(plot, left[has_room], value[has_room], series, x_offset=5)
    # The last level is short often: its label stands where the line that leads to it does not.
    size = value[-1]
    if len(value) == 1 or size > value[-2]:
        _label(plot, right[-1:], value[-1:], series, align="right")
    elif size > low:
        _label(plot, right[-1:], value[-1:], series, align="right", below=True)
    else:
        _label(plot, left[-1:], value[-1:], series, align="right", x_offset=-6)


def _label(
    plot: figure,
    x: _Floats,
    value: _Floats,
    series: SeriesHistory,
    *,
    align: str = "left",
    x_offset: int = 0,
    below: bool = False,
) -> None:
    """The sizes of levels beside their lines."""
    if not len(x):
        return
    mark = "≈" if series.is_estimated else ""
    label = plot.text(
        x,
        value,
        text=[f"{mark}{human_bytes(size)}" for size in value.tolist()],
        text_align=align,
        x_offset=x_offset,
        text_baseline="top" if below else "bottom",
        y_offset=6 if below else -6,
        text_font_size="11px",
        text_color=_NEUTRAL,
    )
    label.glyph.tags = ["ink"]


def _draw_events(plot: figure, series: SeriesHistory, runs: int) -> None:
    """Steps as coloured lines with an arrow, and the other events as dots and crosses."""
    known = series.values.copy()
    # What has no figure stands where the figure was.
    for place in range(1, len(known)):
        if np.isnan(known[place]):
            known[place] = known[place - 1]
    known = np.where(np.isnan(known), np.nanmin(series.values), known)
    at = dict(zip(series.runs.tolist(), known.tolist(), strict=True))
    for kind, (marker, colour) in _MARKERS.items():
        events = [event for event in series.events if event.kind == kind]
        if not events:
            continue
        x = np.array([event.place - (0.5 if event.is_step else 0) for event in events])
        y = np.array([at[event.place] for event in events])
        if any(event.is_step for event in events):
            before = y - np.array([event.change_bytes or 0 for event in events])
            plot.segment(x, before, x, y, line_width=3, line_color=colour)
        size = 10 if kind in ("grew", "shrank") else 7
        plot.scatter(x, y, marker=marker, size=size, fill_color=colour, line_color=colour)
    accepted = [event for event in series.events if event.is_accepted]
    if accepted:
        ring = plot.scatter(
            [event.place - (0.5 if event.is_step else 0) for event in accepted],
            [at[event.place] for event in accepted],
            marker="circle",
            size=19,
            fill_color=None,
            line_color=_NEUTRAL,
            line_width=2,
        )
        ring.glyph.tags = ["ink"]


def _as_rows(series: SeriesHistory, pieces: _Stretches, runs: Sequence[str]) -> Rows:
    """The newest stretches of equal figures, with what happened when they began."""
    events = {event.place: event for event in series.events}
    count = len(pieces.first)
    shown = range(count - 1, max(count - 1 - _MOST_STRETCHES, -1), -1)
    began = [events.get(int(pieces.first[n])) for n in shown]
    caption = "runs of equal figures, the newest first"
    if count > len(shown):
        older = count - len(shown)
        all_of = command("trends", "--workload", series.workload, "--format", "csv")
        caption += f"; {older} older {'ones' if older > 1 else 'one'}: {all_of}"
    estimated = series.estimated[np.searchsorted(series.runs, pieces.first)]
    columns = {
        "from_run": pa.array([runs[pieces.first[n]] for n in shown], pa.string()),
        "to_run": pa.array([runs[pieces.last[n]] for n in shown], pa.string()),
        "peak_bytes": pa.array(
            [None if np.isnan(pieces.value[n]) else int(pieces.value[n]) for n in shown],
            pa.int64(),
        ),
        "change_bytes": pa.array([e and e.change_bytes for e in began], pa.int64()),
        "change_ratio": pa.array([e and e.change_ratio for e in began], pa.float64()),
        "why": pa.array([_why(event) for event in began], pa.string()),
        "origin": pa.array(["estimated" if estimated[n] else "" for n in shown], pa.string()),
    }
    return Rows(pa.table(columns), caption)


def _why(event: Event | None) -> str:
    if event is None:
        return ""
    return f"{event.cause} (accepted)" if event.is_accepted else event.cause
