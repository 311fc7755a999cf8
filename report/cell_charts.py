"""The charts that a notebook shows above the tables of results: those of the reports.

They are drawn when the result is shown. Where the warehouse is closed by then, the tables stand
alone.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TypeVar

from ..queries.diff import Diff
from ..queries.modules import find_module
from ..queries.result import Rows
from ..queries.trends import Trends
from ..schema.errors import MemhouseError
from ..schema.readable import human_bytes, paragraph
from ..schema.store import Store
from .module_spaces import module_spaces
from .page import Chart, Report, Section

# A notebook saves its cells: a larger chart is left to a report, which is a file of its own.
_MOST_BYTES = 1 << 20
# So many charts of steps, and of changed modules; a report has all.
_MOST_STEPS, _MOST_DIFFS = 4, 1
_Charted = TypeVar("_Charted", Trends, Diff)


def with_timeline(
    rows: Rows, store: Store, module: str | int, run: str | None, memory_space: int
) -> Rows:
    """The rows with how full a memory space is over the module's schedule."""

    def charts() -> Iterator[Chart]:
        from .memory_over_time import timeline_alone

        chart = timeline_alone(store, find_module(store, module, run), memory_space)
        yield from (() if chart is None else (chart,))

    return replace(rows, chart=_drawn(charts))


def with_treemap(
    rows: Rows,
    store: Store,
    module: str | int,
    run: str | None,
    memory_space: int,
    at: int | None,
) -> Rows:
    """The rows with what fills a memory space at the module's peak; no others have a treemap."""
    if at is not None:
        return rows

    def charts() -> Iterator[Chart]:
        from .treemap import treemap_chart

        found = find_module(store, module, run)
        space = module_spaces(store, found.module_id, found.dump_id).get(memory_space)
        chart = treemap_chart(store, found, space) if space else None
        yield from (() if chart is None else (chart,))

    return replace(rows, chart=_drawn(charts))


def with_steps(
    trends: Trends,
    store: Store,
    workload: str | None,
    since: str | datetime | None,
    memory_space: int,
    metric: str,
) -> Trends:
    """The trends of peaks with a chart of each series that changed most."""
    if metric != "peak":
        return trends

    def charts() -> Iterator[Chart]:
        from .history_report import step_charts

        yield from step_charts(
            store, workload, since, memory_space, branch=trends.branch, most=_MOST_STEPS
        )

    return _charted(trends, charts)


def with_waterfall(diff: Diff, store: Store) -> Diff:
    """The diff with how the peak that changes most becomes the other."""

    def charts() -> Iterator[Chart]:
        from .diff_report import waterfalls

        yield from waterfalls(store, diff, _MOST_DIFFS)

    return _charted(diff, charts)


def policies_drawn(
    policies: Mapping[str, Sequence[tuple[int, float, float]]], searched: str
) -> Callable[[], str]:
    """What draws the memory and the work of each policy that a fit compares."""

    def charts() -> Iterator[Chart]:
        from .fit_report import policies_chart

        yield policies_chart(policies, searched)

    return _drawn(charts)


def _charted(result: _Charted, charts: Callable[[], Iterator[Chart]]) -> _Charted:
    return replace(result, rows=replace(result.rows, chart=_drawn(charts)))


def _drawn(charts: Callable[[], Iterator[Chart]]) -> Callable[[], str]:
    """What draws charts, without the tables under them: the cell has its own."""

    def html() -> str:
        try:
            drawn = [replace(chart, tables=()) for chart in charts()]
        except MemhouseError:
            return ""
        if not drawn:
            return ""
        kind = "cards" if len(drawn) > 1 else ""
        shown = Report(drawn[0].title, sections=(Section("", drawn, kind=kind),)).in_cell()
        if len(shown) > _MOST_BYTES:
            size = human_bytes(len(shown))
            return paragraph(f"The chart is too large for a cell, {size}: report() draws it.")
        return shown

    return html
