"""The report over runs: what changed, series by series."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..queries.diff import BUFFER, changed_buffers, changed_owners, largest_changes
from ..queries.result import Rows, counted, mark_estimated
from ..schema.readable import human_bytes, one_line
from ..schema.store import Store
from .page import Chart, Fact, Html, Report, Section, Table, Text, templates
from .series import Event, Histories, SeriesHistory, histories
from .steps_chart import RunAxis, edges, steps_chart

# Series without a chart of their own: a row each, with a small picture of their figure.

# A page with more rows is slow to open.
_MOST_SPARKLINES = 400
_WIDTH, _HEIGHT = 160, 22


def sparklines(series: Sequence[SeriesHistory], runs: Sequence[str]) -> Html:
    """A table of series with their figures as small pictures of steps."""
    rows = [_row(one, runs) for one in series[:_MOST_SPARKLINES]]
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


# What a step changed at the peak, by source, by scope and buffer by buffer.

# The rows of a table; the others are summed.
_MOST_CHANGES = 12
_TITLES = {"source": "By source line", "scope": "By scope", BUFFER: "By buffer"}
_COLUMNS = ("change_bytes", "what", "shape", "source", "operation", "pass", "value", "is_guess")


def step_diff(store: Store, event: Event, memory_space: int, *, with_buffers: bool) -> list[Table]:
    """What changed in an event whose module_ids are known: a table for each kind of owner.

    The rows of each table add up to the change of the peak.
    """
    if event.module_ids is None:
        return []
    changed = changed_owners(store, *event.module_ids, [by for by in _TITLES if by != BUFFER])
    if with_buffers:
        changed[BUFFER] = changed_buffers(store, *event.module_ids)
    tables = []
    for by, rows in changed.items():
        rows = rows.filter(pc.equal(rows["memory_space"], memory_space))
        if len(rows):
            rows = _largest_changes(rows.drop_columns(["memory_space"]), by)
            if event.is_estimated:
                rows = mark_estimated(rows, [n for n in rows.column_names if "_bytes" in n])
            tables.append(Table(Rows(rows), _TITLES[by]))
    return tables


def _largest_changes(rows: pa.Table, by: str) -> pa.Table:
    """The largest changes, with the columns that a page has room for."""
    if by == BUFFER:
        shown = rows.select(_COLUMNS)
    else:
        owner = rows.column_names[1]
        shown = rows.select(["change_bytes", owner, "a_bytes", "b_bytes"])
        shown = shown.rename_columns(["change_bytes", owner, "before_bytes", "after_bytes"])
    return largest_changes(shown, _MOST_CHANGES)


# The report of a history: every series over the runs, and what each step changed.

# More charts make a page slow to open: the other series are rows with small pictures.
_MOST_CHARTS = 24
# A chart lists its newest steps below it; its table has all.
_MOST_LISTED = 4
# Comparing two modules takes a moment, and buffer by buffer several.
_MOST_DIFFS, _MOST_BY_BUFFER = 16, 6
_MOST_REGRESSIONS = 200
_STEPS = pa.schema(
    [
        ("run", pa.string()),
        ("series", pa.string()),
        ("from_bytes", pa.int64()),
        ("to_bytes", pa.int64()),
        ("change_bytes", pa.int64()),
        ("change_ratio", pa.float64()),
        ("why", pa.string()),
        ("accepted", pa.bool_()),
        ("origin", pa.string()),
    ]
)
_Step = tuple[SeriesHistory, Event]


def history_report(
    store: Store,
    workload: str | None = None,
    since: str | datetime | None = None,
    memory_space: int = 0,
    *,
    branch: str | None = None,
    pages: Mapping[int, str] | None = None,
) -> Report:
    """The report of the peaks of a branch's series, or of those of a workload.

    pages: addresses of pages about series, by the series' ids. Raises UsageError.
    """
    found = histories(store, workload, since, memory_space, branch=branch)
    if pages:
        linked = [replace(one, page=pages.get(one.series_id, "")) for one in found.series]
        found = replace(found, series=linked)
    changed = sorted((one for one in found.series if one.steps), key=_by_growth)
    charted = changed[:_MOST_CHARTS]
    others = changed[_MOST_CHARTS:] + [one for one in found.series if not one.steps]
    subject = f"History of {workload}" if workload else "History"
    first, last = (f"{time:%Y-%m-%d}" for time in (found.times[0], found.times[-1]))
    runs = counted(len(found.runs), "run")
    named = f"branch {found.branch}" if found.branch else "runs without a branch"
    return Report(
        one_line(subject),
        one_line(f"peak memory of each module; {named}; {runs} from {first} to {last}"),
        tuple(_facts(found)),
        tuple(_sections(store, found, charted, others, memory_space)),
        gist=f"{len(found.series)} series, {len(changed)} changed",
    )


def step_charts(
    store: Store,
    workload: str | None = None,
    since: str | datetime | None = None,
    memory_space: int = 0,
    *,
    branch: str | None = None,
    most: int,
) -> list[Chart]:
    """The charts of the series that changed, alone: what changed last and most comes first."""
    found = histories(store, workload, since, memory_space, branch=branch)
    charted = sorted((one for one in found.series if one.steps), key=_by_growth)[:most]
    axis = RunAxis(found.runs, [event.cause for one in charted for event in one.events])
    return [
        steps_chart(series, axis, found.runs, number, _headline(series), Html(""))
        for number, series in enumerate(charted)
    ]


def _by_growth(series: SeriesHistory) -> tuple[bool, bool, int]:
    """What grew in the newest run comes first, then what grew last; the largest change first."""
    grew_now = any(event.kind == "grew" for event in series.newest)
    return not grew_now, series.growth_bytes <= 0, -abs(series.growth_bytes)


def _facts(found: Histories) -> Iterator[Fact]:
    newest = [(one, event) for one in found.series for event in one.newest]
    run = one_line(found.runs[-1])
    yield Fact("newest-run", "newest run", run, note=f"{found.times[-1]:%Y-%m-%d %H:%M} UTC")
    for kind, tone in (("grew", "bad"), ("shrank", "good")):
        steps = [(one, event) for one, event in newest if event.kind == kind]
        note = _largest_step(steps) if steps else ""
        yield Fact(kind, f"{kind} in it", str(len(steps)), note=note, tone=tone if steps else "")
    came = sum(event.kind in ("new", "back") for _, event in newest)
    gone = sum(event.kind == "gone" for _, event in newest)
    if came or gone:
        yield Fact("came", "came and went in it", f"{came} and {gone}")
    regressions = _regressions(found.series)
    last = f"the newest in {one_line(regressions[0][1].run)}" if regressions else ""
    accepted = sum(event.is_accepted for _, event in regressions)
    note = "; ".join(filter(None, [last, f"{accepted} accepted" if accepted else ""]))
    yield Fact("regressions", "growths over 1 %, all runs", str(len(regressions)), note=note)
    yield Fact("series", "series", str(len(found.series)))


def _largest_step(steps: Sequence[_Step]) -> str:
    """The largest change, and whose it is."""
    series, event = max(steps, key=lambda step: abs(step[1].change_bytes or 0))
    return f"{event.change_text} {one_line(series.name)}"


def _sections(
    store: Store,
    found: Histories,
    charted: Sequence[SeriesHistory],
    others: Sequence[SeriesHistory],
    memory_space: int,
) -> Iterator[Section]:
    if charted:
        yield Section(
            "What changed",
            tuple(_charts(store, found, charted, memory_space)),
            "▲ grew, ▼ shrank, ● new or another program, ✕ gone or failed, ◯ accepted. A grey band "
            "is a level: figures that differ by no more than autotuning does. A gap is a run "
            "without the series. An axis begins above 0 where the figure changes little.",
            kind="cards",
        )
    regressions = _regressions(found.series)
    yield Section(
        "Growths over 1 %",
        (Table(_as_rows(regressions), name="regressions"),)
        if regressions
        else (Text("no peak grew by more than one percent"),),
    )
    if found.helpers:
        yield Section("Helpers", (Text(f"{found.helpers}: memhouse trends --all shows them."),))
    if others:
        title = "Other series" if charted else "Series"
        yield Section(
            title,
            (sparklines(others, found.runs),),
            "The pictures show the same runs as the charts, each on a scale of its own.",
        )


def _charts(
    store: Store, found: Histories, charted: Sequence[SeriesHistory], memory_space: int
) -> Iterator[Chart | Text | Html]:
    axis = RunAxis(found.runs, [event.cause for one in charted for event in one.events])
    chosen = _to_unfold(charted)
    unfolded = {
        step: step_diff(
            store,
            charted[step[0]].events[step[1]],
            memory_space,
            with_buffers=rank < _MOST_BY_BUFFER,
        )
        for rank, step in enumerate(chosen)
    }
    count = sum(len(one.steps) for one in charted)
    if count > min(len(chosen), _MOST_BY_BUFFER):
        yield Text(
            f"{_of(len(chosen), count)} unfold to what changed by source and by scope, the newest "
            f"{min(len(chosen), _MOST_BY_BUFFER)} of them also by buffer; memhouse diff compares "
            "any two runs.",
            "note",
        )
    yield Html(templates().get_template("series_filter.html").render())
    for number, series in enumerate(charted):
        yield steps_chart(
            series, axis, found.runs, number, _headline(series), _below(series, number, unfolded)
        )


def _of(some: int, count: int) -> str:
    return f"All {count} steps" if some == count else f"{some} of {count} steps"


def _to_unfold(charted: Sequence[SeriesHistory]) -> list[tuple[int, int]]:
    """The steps to compare, by the numbers of series and event: the newest of each series first."""
    ranked = []
    for number, series in enumerate(charted):
        steps = [n for n, event in enumerate(series.events) if event.is_step and event.module_ids]
        ranked += [
            (age, number, step) for age, step in enumerate(reversed(steps)) if age < _MOST_LISTED
        ]
    return [(number, step) for _, number, step in sorted(ranked)[:_MOST_DIFFS]]


def _headline(series: SeriesHistory) -> str:
    """The series in a line: the figure now, its last change, the best so far."""
    mark = "≈" if series.is_estimated else ""
    now, best = series.now_bytes or 0, series.best_bytes
    last = series.steps[0]
    word = "last" if series.missing_runs else "now"
    said = [f"{word} {mark}{human_bytes(now)}", f"{last.change_text} in {one_line(last.run)}"]
    if best is not None and best < now:
        said.append(f"best {mark}{human_bytes(best)}")
    return "; ".join([*said, *notes_of(series)])


def _below(
    series: SeriesHistory, number: int, unfolded: dict[tuple[int, int], list[Table]]
) -> Html:
    """The newest steps of a chart, with their diffs folded."""
    steps = [
        {
            "event": event,
            "run": one_line(event.run),
            "why": one_line(event.cause),
            "tables": unfolded.get((number, place), ()),
        }
        for place, event in enumerate(series.events)
        if event.is_step
    ]
    steps.reverse()
    return Html(
        templates()
        .get_template("steps.html")
        .render(steps=steps[:_MOST_LISTED], left=max(len(steps) - _MOST_LISTED, 0))
    )


def _regressions(series: Sequence[SeriesHistory]) -> list[_Step]:
    """The growths of more than one percent, the newest first, then the largest."""
    return sorted(
        ((one, event) for one in series for event in one.events if event.is_regression),
        key=lambda step: (-step[1].place, -(step[1].change_bytes or 0)),
    )


def _as_rows(steps: Sequence[_Step]) -> Rows:
    shown = steps[:_MOST_REGRESSIONS]
    rows = [
        {
            "run": event.run,
            "series": series.name,
            "from_bytes": (event.value_bytes or 0) - (event.change_bytes or 0),
            "to_bytes": event.value_bytes,
            "change_bytes": event.change_bytes,
            "change_ratio": event.change_ratio,
            "why": event.cause,
            "accepted": event.is_accepted,
            "origin": "estimated" if event.is_estimated else "",
        }
        for series, event in shown
    ]
    table = pa.Table.from_pylist(rows, schema=_STEPS)
    if not any(event.is_accepted for _, event in shown):
        table = table.drop_columns(["accepted"])
    left = len(steps) - len(shown)
    caption = f"the newest first; {left} older ones: the view regressions" if left else ""
    return Rows(table, caption or "the newest first")
