"""How one peak becomes another, owner by owner, as a chart whose bars add up exactly."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from bokeh.models import ColumnDataSource, HoverTool, Range1d, Text

from ..queries.result import counted
from ..schema.readable import human_bytes, one_line
from .colours import GREW, SHRANK, TOTAL
from .figures import house_figure, in_bytes
from .page import Chart, Html, Table, templates

# Owners with a bar of their own.
_SHOWN = 12
_ROW_PIXELS = 38
_AXIS_PIXELS = 60
# As many characters as fit on a phone beside the change.
_NAME_LENGTH = 34
# An axis from 0 would make the changes too short to see below this share of the peak.
_LEAST_SPAN = 0.25


@dataclass(frozen=True)
class Bar:
    """A bar: what changes, and the peak before and after it; a whole peak begins at 0."""

    name: str
    before_bytes: int
    after_bytes: int
    is_peak: bool = False
    is_estimated: bool = False

    @property
    def text(self) -> str:
        """The size, with a sign and a direction that need no colour."""
        if self.is_peak:
            return self.peak_text
        change = self.after_bytes - self.before_bytes
        sign = f"▲ {self._mark}+" if change > 0 else f"▼ {self._mark}"
        return f"{sign}{human_bytes(change)}"

    @property
    def peak_text(self) -> str:
        """The peak that the bar reaches."""
        return f"{self._mark}{human_bytes(self.after_bytes)}"

    @property
    def _mark(self) -> str:
        return "≈" if self.is_estimated else ""


def bars(changes: pa.Table, a: Bar, b: Bar, limit: int = _SHOWN) -> list[Bar]:
    """The bars from peak A to peak B: both peaks, and between them the largest changes.

    `changes` has owner and change_bytes, the largest change first. What is left is a bar of
    growths and a bar of falls. Each bar begins where the one before it ends.
    """
    rows = changes.select(["owner", "change_bytes"])
    # One bar more says as much as a bar that sums one row.
    shown = rows.slice(0, limit if len(rows) > limit + 1 else limit + 1)
    rest = rows["change_bytes"].slice(len(shown))
    steps = list(zip(*(shown[name].to_pylist() for name in rows.column_names), strict=True))
    for is_side, what in ((pc.greater, "smaller growth"), (pc.less, "smaller fall")):
        side = rest.filter(is_side(rest, 0))
        if len(side):
            steps.append((counted(len(side), what), pc.sum(side).as_py()))
    made = [a]
    for name, change in steps:
        before = made[-1].after_bytes
        is_estimated = a.is_estimated or b.is_estimated
        made.append(Bar(name, before, before + change, is_estimated=is_estimated))
    return [*made, b]


def waterfall_chart(
    kinds: Mapping[str, Sequence[Bar]],
    space: str,
    tables: Sequence[Table],
    name: str = "waterfall",
) -> Chart:
    """The bars as a chart with a switch: `kinds` are the bars by what their owners are.

    `space` names the memory; `tables` are the same figures; `name` is that of the figure.
    """
    low, high = _reach([bar for each in kinds.values() for bar in each])
    first = next(iter(kinds))
    plot = house_figure(
        name,
        x_label=f"peak bytes of {space}",
        y_label="",
        height=_height(len(kinds[first])),
        x_range=Range1d(low, high),
        y_range=Range1d(len(kinds[first]) - 0.4, -0.6),
    )
    plot.toolbar_location = None
    plot.tools = []
    # Room for the outermost ticks' texts.
    plot.min_border_left = plot.min_border_right = 24
    # The names stand above the bars instead.
    plot.left = []
    plot.ygrid.visible = False
    in_bytes(plot.xaxis)
    data = {kind: _columns(each, low, high) for kind, each in kinds.items()}
    source = ColumnDataSource(dict(data[first]), name=f"{name}_bars")
    quads = plot.quad(
        left="left",
        right="right",
        top="top",
        bottom="bottom",
        fill_color="colour",
        line_color="colour",
        source=source,
    )
    plot.segment(
        x0="after", x1="after", y0="bottom", y1="next", source=source, line_dash="dotted"
    ).glyph.tags = ["muted"]
    for column, x, align in (("short", low, "left"), ("text", high, "right")):
        words = Text(
            x={"value": x},
            y="top",
            text=column,
            text_align=align,
            text_baseline="bottom",
            y_offset=-2,
            text_font_size="12px",
            tags=["ink"],
        )
        plot.add_glyph(source, words)
    # A tooltip shows these columns as text, whatever they hold.
    hover = HoverTool(
        renderers=[quads], tooltips=[("owner", "@name"), ("change", "@text"), ("peak", "@reached")]
    )
    plot.add_tools(hover)
    note = "From top to bottom: each bar begins where the one above it ends."
    if low:
        note += f" The axis begins at {human_bytes(low)}, not at 0."
    controls = (
        templates()
        .get_template("waterfall.html")
        .render(kinds=list(kinds), name=name, grew=GREW, shrank=SHRANK)
    )
    return Chart(
        f"From peak to peak of {space}",
        plot,
        note,
        tables,
        Html(controls),
        scripts=("waterfall.js",),
        data={
            name: {
                kind: {**columns, "height": _height(len(kinds[kind]))}
                for kind, columns in data.items()
            }
        },
    )


def _columns(each: Sequence[Bar], low: int, high: int) -> dict[str, list[object]]:
    """The chart's columns."""
    places = range(len(each))
    return {
        "name": [one_line(bar.name) for bar in each],
        "short": [_short(one_line(bar.name)) for bar in each],
        "text": [bar.text for bar in each],
        "reached": [bar.peak_text for bar in each],
        "left": [max(low, min(bar.before_bytes, bar.after_bytes)) for bar in each],
        "right": [max(bar.before_bytes, bar.after_bytes) for bar in each],
        "after": [bar.after_bytes for bar in each],
        "top": list(places),
        "bottom": [place + 0.42 for place in places],
        "next": [min(place + 1, len(each) - 1 + 0.42) for place in places],
        "colour": [
            TOTAL if bar.is_peak else GREW if bar.after_bytes > bar.before_bytes else SHRANK
            for bar in each
        ],
    }


def _short(name: str) -> str:
    """A name that fits; of a long one the end, which tells more of paths and scopes."""
    return name if len(name) <= _NAME_LENGTH else f"…{name[1 - _NAME_LENGTH :]}"


def _reach(each: Sequence[Bar]) -> tuple[int, int]:
    """Where the axis begins and ends: at 0, unless the changes would be too short to see."""
    low = min(bar.after_bytes for bar in each)
    high = max(bar.after_bytes for bar in each)
    span = high - low
    if not span or span >= _LEAST_SPAN * high:
        return 0, max(high, 1)
    return max(0, low - span // 2), high


def _height(count: int) -> int:
    return _ROW_PIXELS * count + _AXIS_PIXELS
