"""Figures as all charts have them: one look, bytes and times on their axes, few tools.

Text, axes and grids are grey here, which light and dark paper both bear, as in a notebook; on a
page its script colours them anew. A model with the tag `ink` or `muted` is coloured with them.
"""

from typing import Any

from bokeh.models import (
    AdaptiveTicker,
    BoxZoomTool,
    CustomJSTickFormatter,
    NumeralTickFormatter,
    PanTool,
    ResetTool,
    WheelZoomTool,
)
from bokeh.plotting import figure

_NEUTRAL = "#7a808a"
_GRID = "#8a8f9840"
# The same as `human_bytes` in Python, but for a tick: as few digits as tell it.
BYTES_JS = """
const units = ["B", "KiB", "MiB", "GiB", "TiB"];
let size = Math.abs(value), unit = 0;
while (size >= 1024 && unit < units.length - 1) { size /= 1024; unit += 1; }
const text = unit && size % 1 ? size.toFixed(2).replace(/\\.?0+$/, "") : size.toFixed(0);
return `${value < 0 ? "-" : ""}${text} ${units[unit]}`;
"""


def house_figure(
    name: str,
    *,
    x_label: str,
    y_label: str,
    height: int = 320,
    zoom: str = "width",
    **options: Any,
) -> figure:
    """An empty figure that page scripts find by `name`; it is as wide as its place.

    `zoom` is what dragging and the wheel change: width, height or both. The wheel zooms with
    Ctrl held, so that the page can be scrolled. `options` are those of bokeh's `figure`.
    """
    plot = figure(
        name=name,
        height=height,
        sizing_mode="stretch_width",
        output_backend="canvas",
        tools="",
        toolbar_location="above",
        x_axis_label=x_label,
        y_axis_label=y_label,
        background_fill_color=None,
        border_fill_color=None,
        outline_line_color=None,
        **options,
    )
    plot.toolbar.logo = None
    box = BoxZoomTool(dimensions=zoom)
    pan = PanTool(dimensions=zoom)
    wheel = WheelZoomTool(dimensions=zoom, modifiers={"ctrl": True})
    plot.add_tools(box, pan, wheel, ResetTool())
    plot.toolbar.active_drag = box
    plot.toolbar.active_scroll = wheel
    plot.grid.grid_line_color = _GRID
    for axis in plot.axis:
        axis.axis_label_text_font_style = "normal"
        axis.axis_label_text_color = axis.major_label_text_color = _NEUTRAL
        axis.axis_line_color = axis.major_tick_line_color = _NEUTRAL
        axis.minor_tick_line_color = None
    return plot


def in_bytes(axis: Any, ticks: int = 6) -> None:
    """Make an axis one of bytes: about so many ticks at round binary sizes, with their units."""
    axis.ticker = AdaptiveTicker(
        base=1024, mantissas=[2**power for power in range(10)], desired_num_ticks=ticks
    )
    axis.formatter = CustomJSTickFormatter(code=BYTES_JS.replace("value", "tick"))


def in_positions(axis: Any) -> None:
    """Make an axis one of positions in the schedule: these are whole numbers."""
    axis.ticker = AdaptiveTicker(base=10, mantissas=[1, 2, 5], min_interval=1)
    axis.formatter = NumeralTickFormatter(format="0,0")
