"""Series without a chart of their own: a row each, with a small picture of their figure."""

from collections.abc import Sequence

import numpy as np

from ...cells import counted, human_bytes, one_line
from ..page import Html, templates
from .series_history import SeriesHistory
from .steps_chart import edges

# A page with more rows is slow to open.
_MOST_ROWS = 400
_WIDTH, _HEIGHT = 160, 22


def sparklines(series: Sequence[SeriesHistory], runs: Sequence[str]) -> Html:
    """A table of series with their figures as small pictures of steps."""
    rows = [_row(one, runs) for one in series[:_MOST_ROWS]]
    left = len(series) - len(rows)
    return Html(
        templates()
        .get_template("sparklines.html")
        .render(rows=rows, left=left, width=_WIDTH, height=_HEIGHT)
    )


def _row(series: SeriesHistory, runs: Sequence[str]) -> dict[str, object]:
    now = series.now_bytes
    mark = "≈" if series.is_estimated else ""
    steps = series.steps
    known = series.values[~np.isnan(series.values)]
    stays = "same level" if len(np.unique(known)) > 1 else "unchanged"
    since = runs[series.levels[-1][0]] if series.levels else ""
    return {
        "name": one_line(series.name),
        "page": series.page,
        "path": _path(series, len(runs)),
        "now_bytes": now or 0,
        "now": "none" if now is None else f"{mark}{human_bytes(now)}",
        "kind": steps[0].kind if steps else "",
        "change_bytes": (steps[0].change_bytes or 0) if steps else 0,
        "change": steps[0].change_text if steps else stays,
        "since": one_line(since),
        "note": "; ".join(notes_of(series)),
    }


def notes_of(series: SeriesHistory) -> list[str]:
    """What else to know of a series: whether it came, went, failed or alternates."""
    said = []
    if series.missing_runs:
        said.append(f"gone for {counted(series.missing_runs, 'run')}")
    if series.events and series.events[0].kind == "new":
        said.append(f"new in {one_line(series.events[0].run)}")
    if series.between is not None:
        mark = "≈" if series.is_estimated else ""
        low, high = (f"{mark}{human_bytes(size)}" for size in series.between)
        said.append(f"alternates between {low} and {high}")
    for kind, words in (("failed", "failed"), ("oom", "out of memory")):
        found = [event.run for event in series.events if event.kind == kind]
        if found:
            more = f" and {len(found) - 1} more" if len(found) > 1 else ""
            said.append(f"{words} in {one_line(found[-1])}{more}")
    return said


def _path(series: SeriesHistory, runs: int) -> str:
    """The figure as an SVG path; a gap where it is missing."""
    left, right = edges(series, runs)
    known = series.values[~np.isnan(series.values)]
    if not len(known):
        return ""
    low, high = known.min(), known.max()
    # A figure that never changed is a line in the middle.
    share = (series.values - low) / (high - low) if high > low else series.values * 0 + 0.5
    x = np.round((np.stack([left, right]) + 0.5) * (_WIDTH / runs), 1)
    y = np.round(_HEIGHT - 3 - share * (_HEIGHT - 6), 1)
    parts: list[str] = []
    before: float | None = None
    for begin, end, height in zip(*x.tolist(), y.tolist(), strict=True):
        if np.isnan(height):
            before = None
        elif height == before:
            parts[-1] = f"H{end:g}"
        else:
            parts += [f"M{begin:g} {height:g}" if before is None else f"V{height:g}", f"H{end:g}"]
            before = height
    return "".join(parts)
