"""Since when a figure is what it is: the levels of one series, and why the last one began."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from ..schema.metrics import METRICS
from ..schema.readable import human_bytes
from ..schema.store import Store
from .arguments import metric_column
from .catalogue import statement
from .modules import FoundModule, find_module
from .result import Result, Rows, cause_of, change_in_words, counted, percent
from .runs import choose_branch
from .series import Tolerance, alternating, drift, levels, parse_tolerance, recovered

# So many growths that were taken back are told, the latest ones.
_TOLD = 3
# So many steps before the last one are told, the latest ones.
_STEPS_TOLD = 5


@dataclass(frozen=True, repr=False)
class Since(Result):
    """The levels of a series.

    rows: a row a level, the oldest first, with since_run and last_run (its first and last run),
    runs (how many have the figure), value (in the first), change and change_ratio against
    before_run (the run before it that has figures), unit, and cause (why it changed then);
    answer: sentences that say since when the last level lasts, and how it came about.
    """

    rows: Rows
    answer: tuple[str, ...]

    def sentences(self) -> Sequence[str]:
        """The answer."""
        return self.answer


def since(
    store: Store,
    module: str | int,
    *,
    branch: str | None = None,
    memory_space: int = 0,
    metric: str = "peak",
    tolerance: str | None = None,
) -> Since:
    """See `Warehouse.since`."""
    if branch is not None:
        choose_branch(store, branch)
    found = find_module(store, module, branch=branch)
    return since_of(store, found, metric, memory_space, tolerance)


def since_of(
    store: Store,
    found: FoundModule,
    metric: str = "peak",
    memory_space: int = 0,
    tolerance: str | None = None,
    until_run: str | None = None,
) -> Since:
    """The levels of a found module's series, up to a run if one is given. Raises UsageError."""
    column = metric_column(metric)
    within = parse_tolerance(tolerance)
    query = statement("since")
    every = store.rows(query, [found.series_id, memory_space, column]).to_pylist()
    if until_run is not None:
        places = [place for place, row in enumerate(every) if row["run_id"] == until_run]
        every = every[: places[0] + 1] if places else []
    figure = column.removesuffix("_bytes")
    name = f"{found.workload}/{found.module_name}"
    figures = _of_newest_origin(every)
    if not figures:
        empty = f"{name} has no {figure} in memory space {memory_space}"
        return Since(Rows(_levels_table([]), name, empty), ())
    rows = _levels(store, figures, within)
    for row in rows:
        row["cause"] = cause_of(row["cause"], column, memory_space)
    answer = (_last(name, figure, every, rows), *_before(rows))
    if METRICS[column].better == "lower":
        answer += (*_course(figures, rows, within),)
    return Since(Rows(_levels_table(rows), name), answer)


def _levels_table(rows: Sequence[dict[str, Any]]) -> pa.Table:
    columns = [
        ("since_run", pa.string()),
        ("last_run", pa.string()),
        ("runs", pa.int64()),
        ("value", pa.int64()),
        ("change", pa.int64()),
        ("change_ratio", pa.float64()),
        ("before_run", pa.string()),
        ("unit", pa.string()),
        ("cause", pa.string()),
        ("origin", pa.string()),
    ]
    return pa.Table.from_pylist(rows, schema=pa.schema(columns))


def _of_newest_origin(every: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows with figures; those of one grade are compared with each other only."""
    known = [row for row in every if row["value"] is not None]
    return [row for row in known if row["grade"] == known[-1]["grade"]]


def _levels(
    store: Store, figures: Sequence[dict[str, Any]], within: Tolerance | None
) -> list[dict[str, Any]]:
    """A row for each level."""
    values = [row["value"] for row in figures]
    programs = [row["program_id"] or row["module_id"] for row in figures]
    found = levels(values, programs, within)
    causes = _causes(store, [(figures[x.first - 1], figures[x.first]) for x in found[1:]])
    return [
        {
            "since_run": figures[level.first]["run_id"],
            "last_run": figures[level.last]["run_id"],
            "runs": level.last - level.first + 1,
            "value": level.value,
            **_change(figures[level.first - 1] if level.first else None, level.value),
            "unit": figures[level.first]["unit"],
            "cause": cause,
            "origin": figures[level.first]["origin"],
            "level": level,
        }
        for level, cause in zip(found, [figures[0]["cause"], *causes], strict=True)
    ]


def _change(before: dict[str, Any] | None, value: int) -> dict[str, Any]:
    """How a figure differs from the one before it, if there is one."""
    if before is None:
        return {"change": None, "change_ratio": None, "before_run": None}
    change = value - before["value"]
    return {
        "change": change,
        "change_ratio": change / before["value"] if before["value"] else None,
        "before_run": before["run_id"],
    }


def _causes(
    store: Store, steps: Sequence[tuple[dict[str, Any], dict[str, Any]]]
) -> list[str | None]:
    """Why each second row differs from the first; only the cause against the compared is stored."""
    asked = [(a["dump_id"], b["dump_id"]) for a, b in steps if b["previous_run_id"] != a["run_id"]]
    told = {}
    if asked:
        rows = store.causes(asked).to_pylist()
        told = {(row["a_dump_id"], row["b_dump_id"]): row["cause"] for row in rows}
    return [told.get((a["dump_id"], b["dump_id"]), b["cause"]) for a, b in steps]


def _last(
    name: str, figure: str, every: Sequence[dict[str, Any]], rows: Sequence[dict[str, Any]]
) -> str:
    """What the figure is, and since when."""
    last = rows[-1]
    estimated = "≈" if last["origin"] == "estimated" else ""
    now = [row["value"] for row in every if row["value"] is not None][-1]
    said = f"{name}: {figure} {estimated}{human_bytes(now)}"
    said += f" since {last['since_run']}, for {counted(last['runs'], 'run')}"
    if now != last["value"]:
        said += f"; it was {human_bytes(last['value'])} then, which is the same level"
    missing = every[-1]["runs_since"]
    return f"{said}; gone for {counted(missing, 'run')}" if missing else said


def _before(rows: Sequence[dict[str, Any]]) -> list[str]:
    """What the figure was before, and why it changed."""
    if len(rows) == 1:
        return [f"it has not changed since the first run, {rows[0]['since_run']}"]
    last = rows[-1]
    change = "" if last["change_ratio"] is None else f", {percent(last['change_ratio'])}"
    grown = f"{'+' if last['change'] > 0 else ''}{human_bytes(last['change'])}"
    value = last["value"] - last["change"]
    said = [f"before: {human_bytes(value)} in {last['before_run']} ({grown}{change})"]
    return [*said, f"cause: {last['cause']}"] if last["cause"] else said


def _steps_before(rows: Sequence[dict[str, Any]]) -> list[str]:
    """The steps before the last one, the newest first; of many the newest."""
    steps = rows[1:-1][::-1]
    told = []
    for row in steps[:_STEPS_TOLD]:
        mark = "≈" if row["origin"] == "estimated" else ""
        step = change_in_words(row["change"], row["change_ratio"], row["value"], mark)
        told.append(f"{row['since_run']}: {step}{': ' if row['cause'] else ''}{row['cause'] or ''}")
    left = len(steps) - len(told)
    return (
        [*told, f"… and {counted(left, 'earlier step')} (csv and json have all)"] if left else told
    )


def _course(
    figures: Sequence[dict[str, Any]],
    rows: Sequence[dict[str, Any]],
    within: Tolerance | None,
) -> list[str]:
    """How the figure came to its last level, beyond the last step."""
    found = [row["level"] for row in rows]
    if between := alternating(found, within):
        return [f"alternates between {human_bytes(between[0])} and {human_bytes(between[1])}"]
    said = _steps_before(rows)
    accepted = max((n for n, row in enumerate(figures) if row["is_accepted"]), default=0)
    if crept := drift(found, accepted):
        grown = "" if crept.growth_ratio == float("inf") else f" {100 * crept.growth_ratio:.1f} %"
        run = rows[crept.lowest]["last_run"]
        said.append(f"grown{grown} since {run}, the lowest, in {crept.steps} steps")
    said += [
        f"grew {human_bytes(recovery.growth_bytes)} on {rows[recovery.grown]['since_run']}, "
        f"back on {rows[recovery.back]['since_run']}"
        for recovery in recovered(found)[-_TOLD:]
    ]
    return said
