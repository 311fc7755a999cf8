"""Tools on how memory changed: from night to night, since when, between two runs, within limits."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated

import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field

from .. import Warehouse
from ..queries.cells import counted, human_bytes
from ..queries.diff import BUFFER, Diff, ModuleDiff
from ..queries.result import Rows
from .ask_modules import OwnedBy
from .bounded import Answer, Part, size_text
from .shown_rows import newest_first, pick, plain_shapes, with_program
from .tool import Branch, Metric, Module, Run, Space, Workload

_MOST_CAUSES = 4
_MOST_CHANGES = 12


def trends(
    warehouse: Warehouse,
    workload: Workload = None,
    branch: Branch = None,
    since: Annotated[
        str | None, Field(description="only runs since this ISO date or time, in UTC")
    ] = None,
    metric: Metric = "peak",
    memory_space: Space = 0,
) -> Answer:
    """What grew or shrank from run to run, in which run, by how much, and why.

    `steps` has each change, the newest first, with its cause; `series` where each module stands:
    its figure now, its best so far, and the first run of today's level. A module that came or
    vanished is a step too. Then `diff` of the two runs of a step for the tensors, `since` for the
    history of one module.
    """
    found = warehouse.trends(
        workload=workload, branch=branch, since=since, metric=metric, memory_space=memory_space
    )
    said = [found.branches_note.replace("--branch ", "")] if found.other_branches else []
    steps = replace(found.steps, table=_newest_and_largest_first(warehouse, found.steps.table))
    names = ["run", "previous_run", "module", "change_bytes", "change_pct", "now_bytes", "cause"]
    series = ["module", "now_bytes", "best_bytes", "since", "last_run", "gone_for"]
    return Answer(
        said,
        {
            "steps": pick(with_program(steps), names),
            "series": pick(with_program(_largest_first(found.series)), series),
        },
        "give workload or since",
    )


def since(
    warehouse: Warehouse,
    module: Module,
    metric: Metric = "peak",
    memory_space: Space = 0,
    branch: Branch = None,
    tolerance: Annotated[
        str | None,
        Field(description="how far a figure may lie from its level, such as 0.5% or 1MiB"),
    ] = None,
) -> Answer:
    """Since which run a module's memory is what it is, why it changed then, and how it got there.

    `levels` are the runs between two changes, the newest first. Then `diff` of before_run and
    since_run for what changed.
    """
    found = warehouse.since(
        module, metric=metric, memory_space=memory_space, branch=branch, tolerance=tolerance
    )
    columns = ["since_run", "last_run", "runs", "value_bytes", "change_bytes", "change_pct"]
    part = pick(newest_first(found.rows), [*columns, "before_run", "cause"])
    return Answer(found.answer, {"levels": part}, "older levels are left out")


def diff(
    warehouse: Warehouse,
    a: Annotated[str, Field(description="the run before, or a module as RUN/WORKLOAD/NAME")],
    b: Annotated[str, Field(description="the run after, or a module as RUN/WORKLOAD/NAME")],
    workload: Workload = None,
    by: Annotated[
        OwnedBy | None,
        Field(description="sum the change by this; else tensor by tensor"),
    ] = None,
    memory_space: Space = 0,
) -> Answer:
    """What differs from run A to run B: the cause, and the tensors that make the peak's change.

    If several modules differ, a row for each with its cause: ask again with its workload for the
    tensors. Rows of `changes` add up to the change of the peak. `came` and `gone` are tensors that
    are live at one peak alone; `now kept for backward` is a residual. `figures` compares totals;
    flags of the compiler that differ are in `flags`.
    """
    found = warehouse.diff(a, b, workload=workload, by=by or BUFFER)
    differ = [module for module in found.modules if not module.is_unchanged]
    same = len(found.modules) - len(differ)
    said = [f"{counted(same, 'module')} unchanged"] if same else []
    if len(differ) == 1:
        return _one_module(differ[0], found, said, memory_space)
    differ.sort(key=lambda module: -abs(_peak_change(module, memory_space) or 0))
    rows = [_in_a_row(module, memory_space) for module in differ]
    table = Rows(pa.Table.from_pylist(rows, schema=_DIFFERING), "", "nothing differs")
    return Answer(said, {"modules": Part(table.table, table.empty)}, "give workload")


_DIFFERING = pa.schema(
    [("module", pa.string()), ("peak_change_bytes", pa.int64()), ("cause", pa.string())]
)


def _in_a_row(module: ModuleDiff, memory_space: int) -> dict[str, object]:
    return {
        "module": module.name,
        "peak_change_bytes": _peak_change(module, memory_space),
        "cause": module.cause,
    }


def _peak_change(module: ModuleDiff, memory_space: int) -> int | None:
    """By how much the peak differs; None if one side has none."""
    rows = module.metrics.arrow().to_pylist()
    for row in rows:
        if row["metric"] == "peak_bytes" and row["memory_space"] == memory_space:
            return row["change_bytes"]  # type: ignore[no-any-return]
    return 0 if rows else None


def _one_module(module: ModuleDiff, found: Diff, said: Sequence[str], space: int) -> Answer:
    """The causes, the figures and the changes of one module."""
    change = _peak_change(module, space)
    peak = (
        [] if change is None else [f"the peak changes by {size_text(human_bytes(change), change)}"]
    )
    causes = list(module.causes[:_MOST_CAUSES])
    changes = _largest(_in_space(module.rows, space))
    if found.by == BUFFER:
        changes = plain_shapes(changes)
        names = ["change_bytes", "what", "shape", "source", "operation", "pass", "role", "category"]
    else:
        names = [name for name in changes.table.column_names if name != "memory_space"]
    parts = {"changes": pick(changes, names)}
    if len(module.metrics):
        figures = ["metric", "a_bytes", "b_bytes", "change_bytes"]
        parts["figures"] = pick(_in_space(module.metrics, space), figures)
    if len(module.flags):
        parts["flags"] = Part(module.flags.table)
    return Answer([module.name, *causes, *peak, *said], parts, "sum them with by=source or by=pass")


def _largest(changes: Rows) -> Rows:
    """The largest changes, and the rest summed as one row, so that they still add up."""
    if len(changes) <= _MOST_CHANGES + 1:
        return changes
    table = changes.table
    rest = table.slice(_MOST_CHANGES).to_pylist()
    sums = {
        name: sum(row[name] or 0 for row in rest)
        for name in table.column_names
        if name.endswith(("_bytes", "_buffers"))
    }
    named = next(name for name in table.column_names if name not in ("memory_space", *sums))
    summed = pa.Table.from_pylist(
        [{**sums, named: counted(len(rest), "smaller change")}], schema=table.schema
    )
    return replace(changes, table=pa.concat_tables([table.slice(0, _MOST_CHANGES), summed]))


def _in_space(rows: Rows, memory_space: int) -> Rows:
    """The rows of one memory space."""
    if "memory_space" not in rows.table.column_names:
        return rows
    return replace(
        rows, table=rows.table.filter(pc.equal(rows.table["memory_space"], memory_space))
    )


def check(
    warehouse: Warehouse,
    run: Run = None,
    baseline: Annotated[
        str | None, Field(description="hold it against this run, or branch=NAME")
    ] = None,
    max_growth: Annotated[
        list[str] | None,
        Field(
            max_length=4,
            description="how much it may grow: 2%, 64MiB; each must hold. 1% unless given",
        ),
    ] = None,
    best: Annotated[bool, Field(description="hold it against the lowest of all time")] = False,
    metric: Metric = "peak",
    memory_space: Space = 0,
) -> Answer:
    """Whether the memory of a run (else of the latest) is within its limits: pass, fail or not
    judged, and why.

    Every program is held against its last figures before, and against the lowest since a growth was
    accepted, so a creep is caught too; on a branch against the newest run of main. Those that fail
    are first; unchanged ones are left out. Then `diff` with held_against, and `advise`.
    """
    found = warehouse.check(
        run,
        baseline=baseline,
        max_growth=max_growth,
        best=best,
        metric=metric,
        memory_space=memory_space,
    )
    matters = pa.array([verdict.matters for verdict in found.verdicts], pa.bool_())
    rows = replace(found.rows, table=found.rows.table.filter(matters), empty="nothing changed")
    columns = ["module", "verdict", "status", "before_bytes", "now_bytes", "change_bytes"]
    columns += ["held_against", "cause", "why", "accepted"]
    return Answer([found.rows.caption, *found.notes], {"verdicts": pick(rows, columns)}, "give run")


def _largest_first(series: Rows) -> Rows:
    """The series that take most first: scripts compile dozens of small programs."""
    return replace(series, table=series.table.sort_by([("now_bytes", "descending")]))


def _newest_and_largest_first(warehouse: Warehouse, steps: pa.Table) -> pa.Table:
    """The steps of the newest run first, in each the largest change."""
    runs = warehouse.runs().table["run"].to_pylist()
    place = {run: number for number, run in enumerate(runs)}
    rows = steps.to_pylist()
    rows.sort(key=lambda row: (-place[row["run"]], -abs(row["change_bytes"] or 0)))
    return pa.Table.from_pylist(rows, schema=steps.schema)
