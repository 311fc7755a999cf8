"""The tools: each calls the method of `Warehouse` of its name and picks what an agent needs.

Agents see a function's docstring as the tool's description, and the parameters that have a type of
`parameters.py` as its arguments.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from .. import Warehouse
from ..advice.advice import Advice
from ..queries import catalogue
from ..queries.own_macros import listed_macros
from ..queries.result import Rows, counted
from ..schema.errors import UsageError
from . import parameters
from .answer import Answer, Part, exact_size
from .module_diff import module_answer, modules_answer
from .rows import (
    caption_and_total,
    newest_first,
    pick,
    with_column,
    with_full_names,
    without_layouts,
)
from .sql_process import select_json

_MAX_REPORTS = 5


def runs(warehouse: Warehouse, label: parameters.Labels = ()) -> Answer:
    """Which runs (nights, commits) the warehouse holds, the newest first.

    Each with its time (UTC), branch, number of dumps, dumps that could not be read whole
    (incomplete), out-of-memory messages (oom) and the largest peak. Start here if you do not know
    the warehouse; then `trends` for what changed, or `modules` for what a run compiled.
    """
    rows = newest_first(warehouse.runs(label=label))
    columns = ["run", "run_at", "branch", "dumps", "incomplete", "oom", "largest_peak_bytes"]
    return Answer(parts={"runs": pick(rows, columns)}, narrow="ask `sql` of the table runs")


def modules(
    warehouse: Warehouse, run: parameters.Run = None, workload: parameters.Workload = None
) -> Answer:
    """Which modules (compiled programs) there are in each run, with their ids, peak and device.

    A module is called WORKLOAD/NAME, for example llama/jit_train_step. peak and total are of
    memory space 0. Without `run` those of all runs, the newest first. Then `owners` or `advise`.
    """
    rows = with_full_names(newest_first(warehouse.modules(run=run, workload=workload)))
    columns = ["module", "run", "status", "peak_bytes", "total_bytes", "device", "module_id"]
    return Answer(parts={"modules": pick(rows, columns)}, narrow="give run or workload")


def peaks(
    warehouse: Warehouse, run: parameters.Run = None, workload: parameters.Workload = None
) -> Answer:
    """How much memory each entry program needs at its peak, per memory space, and the headroom.

    Auxiliary programs, which are small next to their workload's largest, are counted in a line:
    `modules` lists them. headroom is the rest of the device's memory (HBM), empty where the device
    is not known. Without `run` the latest of each module. Then `owners` for who owns the memory.
    """
    rows = with_full_names(warehouse.peaks(run=run, workload=workload, fold=True))
    columns = ["module", "space", "peak_bytes", "total_bytes", "headroom_bytes", "run"]
    parts = {"peaks": pick(rows, [*columns, "peak_instruction"])}
    return Answer([rows.left_out], parts, "give run or workload")


def owners(
    warehouse: Warehouse,
    module: parameters.Module,
    run: parameters.ModuleRun = None,
    by: parameters.OwnerKind = None,
    memory_space: parameters.MemorySpace = 0,
    schedule_time: parameters.ScheduleTime = None,
    callers: parameters.Callers = 0,
    unfold: parameters.Unfold = False,
    limit: parameters.Limit = 12,
) -> Answer:
    """Which lines of Python (or layers, roles, data types) own a module's memory at its peak.

    The largest first; `counted` adds up to the peak, share is the part of it. "(arguments)" are
    the program's arguments: by=role tells weights from optimizer state. Then `buffers` for single
    tensors, `advise` for what to change.
    """
    rows = warehouse.owners(
        module,
        run=run,
        by=by,
        memory_space=memory_space,
        schedule_time=schedule_time,
        callers=callers,
        unfold=unfold,
        limit=limit,
    )
    return Answer(caption_and_total(rows), {"owners": Part(rows.table, rows.empty)}, "lower limit")


def buffers(
    warehouse: Warehouse,
    module: parameters.Module,
    run: parameters.ModuleRun = None,
    memory_space: parameters.MemorySpace = 0,
    schedule_time: parameters.ScheduleTime = None,
    callers: parameters.Callers = 0,
    limit: parameters.Limit = 12,
) -> Answer:
    """Which single tensors fill a module's memory at its peak: shape, line, role, bytes.

    The largest first; `counted` adds up to the peak, so a value inside another's memory counts
    less than its size. padding is what the layout adds. Ask `owners` before, for sums.
    """
    rows = warehouse.buffers(
        module,
        run=run,
        memory_space=memory_space,
        schedule_time=schedule_time,
        callers=callers,
        limit=limit,
    )
    columns = ["counted_bytes", "share", "shape", "source", "op_name", "category", "role", "pass"]
    part = pick(without_layouts(rows), columns)
    return Answer(caption_and_total(rows), {"buffers": part}, "lower limit")


def saved(
    warehouse: Warehouse,
    module: parameters.Module,
    run: parameters.ModuleRun = None,
    memory_space: parameters.MemorySpace = 0,
    limit: parameters.Limit = 12,
) -> Answer:
    """Show what the forward pass saves for the backward pass, by line and shape.

    The largest first: what `jax.checkpoint` could compute again. `advise` says what that would
    save. A tensor that is stacked over layers takes its bytes for all of them.
    """
    rows = warehouse.saved(module, run=run, memory_space=memory_space, limit=limit)
    return Answer([rows.caption], {"saved": Part(rows.table, rows.empty)})


def oom(warehouse: Warehouse, run: parameters.Run = None) -> Answer:
    """Why memory ran out in a run, else in the latest in which it did: which memory, by how much.

    By the out-of-memory messages in its logs: what fills it, whose lines, what to look at first.
    """
    result = warehouse.oom(run)
    reports = result.told()
    sentences: list[str] = []
    parts: dict[str, Part] = {}
    for number, report in enumerate(reports[:_MAX_REPORTS], start=1):
        facts = [" ".join(fact.split()) for fact in report.facts]
        sentences += ["; ".join([f"{number}. {report.title}", *facts]), *report.first]
        if len(report.filled_by):
            columns = ["size_bytes", "buffers", "source", "shape"]
            parts[f"filled_by_{number}"] = pick(report.filled_by, columns)
    if (omitted := len(reports) - _MAX_REPORTS) > 0:
        sentences.append(f"{omitted} more: ask `sql` of oom_reports by run_id")
    return Answer(sentences or [result.rows.empty], parts, "give run")


def advise(
    warehouse: Warehouse,
    module: parameters.Module,
    run: parameters.ModuleRun = None,
    target_saving: parameters.Saving = None,
    memory_space: parameters.MemorySpace = 0,
) -> Answer:
    """What to change first in a module, by how many bytes its peak would fall, and what to write.

    Each saving is the program replayed with the change made, not a buffer's size. grade says how
    sure it is: exact, expected (within tolerance), between low and high, at most, estimated; a
    fact promises nothing. reserved_low_bytes and reserved_high_bytes: how much less XLA reserves.
    Savings of several findings do not add up: `said` has those together. Takes seconds for large
    modules.
    """
    advice = warehouse.advise(
        module, run=run, target_saving=target_saving, memory_space=memory_space
    )
    columns = ["saving_bytes", "low_bytes", "high_bytes", "reserved_low_bytes"]
    columns += ["reserved_high_bytes", "grade", "tolerance", "title", "source", "write", "why"]
    findings = pick(_without_equal_ends(advice.rows), [*columns, "alone_bytes"])
    sentences = [advice.rows.caption, advice.heading, _together(advice)]
    return Answer(sentences, {"findings": findings}, "the largest savings are first")


def _together(advice: Advice) -> str:
    """The peak if all findings that can be combined are followed; empty if there is only one."""
    if len(advice.followed) < 2:
        return ""
    numbers = [str(advice.findings.index(finding) + 1) for finding in advice.followed]
    peak = exact_size(advice.together.peak_bytes)
    return f"Findings {', '.join(numbers)} together: the peak would be {peak}."


def _without_equal_ends(findings: Rows) -> Rows:
    """The findings, without the ends of a range where they equal the saving."""
    for name in ("low_bytes", "high_bytes"):
        ends = findings.table[name]
        is_saving = pc.equal(ends, findings.table["saving_bytes"])
        findings = with_column(findings, name, pc.if_else(is_saving, None, ends))
    return findings


def trends(
    warehouse: Warehouse,
    workload: parameters.Workload = None,
    branch: parameters.Branch = None,
    since: parameters.Since = None,
    memory_space: parameters.MemorySpace = 0,
    metric: parameters.MetricOrFlops = "peak",
) -> Answer:
    """What grew or shrank from run to run, in which run, by how much, and why.

    `steps` has each change, the newest first, with its cause; `series` where each module stands:
    its figure now, its best so far, and the first run of today's level. A module that came or
    vanished is a step too. Then `diff` of the two runs of a step for the tensors, `since` for the
    history of one module.
    """
    history = warehouse.trends(
        workload=workload, branch=branch, since=since, memory_space=memory_space, metric=metric
    )
    note = history.branches_note.replace("--branch ", "") if history.other_branches else ""
    columns = ["run", "previous_run", "module", "change", "change_ratio", "value", "unit", "cause"]
    steps = pick(with_full_names(history.steps), columns)
    columns = ["module", "value", "best_value", "unit", "since", "last_run", "gone_for"]
    series = pick(with_full_names(history.series), columns)
    parts = {"steps": steps, "series": series}
    return Answer([note, history.helpers], parts, "give workload or since")


def since(
    warehouse: Warehouse,
    module: parameters.Module,
    branch: parameters.Branch = None,
    memory_space: parameters.MemorySpace = 0,
    metric: parameters.Metric = "peak",
    tolerance: parameters.Tolerance = None,
) -> Answer:
    """Since which run a module's memory is what it is, why it changed then, and how it got there.

    `levels` are the runs between two changes, the newest first. Then `diff` of before_run and
    since_run for what changed.
    """
    history = warehouse.since(
        module, branch=branch, memory_space=memory_space, metric=metric, tolerance=tolerance
    )
    columns = ["since_run", "last_run", "runs", "value", "change", "change_ratio", "unit"]
    levels = pick(newest_first(history.rows), [*columns, "before_run", "cause"])
    return Answer(history.answer, {"levels": levels}, "older levels are left out")


def diff(
    warehouse: Warehouse,
    a: parameters.RunOrModule,
    b: parameters.RunOrModule,
    workload: parameters.Workload = None,
    by: parameters.SummedBy = "buffer",
    memory_space: parameters.MemorySpace = 0,
) -> Answer:
    """What differs from run A to run B: the cause, and the tensors that make the peak's change.

    If several modules differ, a row for each with its cause: ask again with its workload for the
    tensors. Rows of `changes` add up to the change of the peak. `came` and `gone` are tensors that
    are live at one peak alone; `now kept for backward` is a residual. `figures` compares totals;
    flags of the compiler that differ are in `flags`.
    """
    result = warehouse.diff(a, b, workload=workload, by=by)
    changed = [module for module in result.entries if not module.is_unchanged]
    unchanged = len(result.entries) - len(changed)
    notes = [f"{counted(unchanged, 'module')} unchanged" if unchanged else "", result.helpers]
    if len(changed) == 1:
        return module_answer(changed[0], by, memory_space, notes)
    return modules_answer(changed, memory_space, notes)


def check(
    warehouse: Warehouse,
    run: parameters.CheckedRun = None,
    baseline: parameters.Baseline = None,
    best: parameters.Best = False,
    max_growth: parameters.MaxGrowth = None,
    metric: parameters.CheckedMetric = None,
    memory_space: parameters.MemorySpace = 0,
) -> Answer:
    """Whether the memory of a run (else of the latest) is within its limits: pass, fail or not
    judged, and why.

    Every program is held against its last figures before, and against the lowest since a growth was
    accepted, so drift is caught too; on a branch against the newest run of main. Those that fail
    are first; unchanged ones are left out. Then `diff` with baseline_run, and `advise`.
    """
    result = warehouse.check(
        run,
        baseline=baseline,
        best=best,
        max_growth=max_growth,
        metric=metric,
        memory_space=memory_space,
    )
    matters = pa.array([verdict.matters for verdict in result.verdicts], pa.bool_())
    rows = replace(result.rows, table=result.rows.table.filter(matters), empty="nothing changed")
    columns = ["module", "verdict", "status", "before_bytes", "now_bytes", "change_bytes"]
    part = pick(rows, [*columns, "baseline_run", "cause", "why", "accepted"])
    return Answer([rows.caption, *result.notes, result.helpers], {"verdicts": part}, "give run")


def sql(
    db: str,
    macros: Sequence[str],
    query: parameters.Query,
    rows: parameters.MaxRows = 50,
    seconds: parameters.Seconds = 10,
) -> str:
    """Any other question, as SQL (DuckDB's) on the views and tables that `views` lists.

    Sizes are plain bytes. Select few columns and aggregate: an answer is 4 KB at most. Views
    say run and workload, and is_latest of the newest dump of each name: SELECT … FROM peak_buffers
    WHERE is_latest AND workload = '…'. They are of the main memory, NAME_by_space of all. Refused:
    whatever is not one SELECT, files, URLs, settings; stopped: what takes more than `seconds` or
    1 GB of memory.
    """
    return select_json(db, macros, query, rows, seconds)


def views(
    warehouse: Warehouse, name: parameters.ViewName = None, show: parameters.ViewPart = "columns"
) -> Answer:
    """Which views and tables `sql` can ask, and the columns of one with what they mean.

    Views answer common questions: WHERE is_latest keeps the newest dump of each name. Tables of
    modules join `latest` with USING (module_id). `saved_for_backward`, `timeline`,
    `missed_donations` and `padding` have no tool of their own. Sizes are bytes; times are positions
    in a module's schedule. Names with parentheses are functions: FROM live_at(module('NAME'), 9).
    """
    macros = listed_macros(warehouse.macros)
    tables = sorted(warehouse.tables().table["table"].to_pylist())
    if name is None:
        parts = {"views": Part(catalogue.listed_views(macros).table)}
        return Answer([f"tables: {', '.join(tables)}"], parts, "give name")
    if name in {*catalogue.public_views(), *catalogue.public_macros(), *macros}:
        return _view(catalogue.named_view(name, macros), show)
    if name in tables:
        parts = {"columns": Part(warehouse.tables(name).table)}
        return Answer(parts=parts, narrow="DESCRIBE in `sql` has all")
    raise UsageError(f"there is no view or table {name!r}: ask `views` without a name", "name")


def _view(view: catalogue.View | catalogue.Macro, show: str) -> Answer:
    """The columns of a view, or its statement: a row a line, without comments."""
    if show == "columns":
        parts = {"columns": Part(catalogue.view_columns(view).table)}
        return Answer([view.answers, view.description], parts, "DESCRIBE in `sql` has their types")
    lines = [line.strip() for line in view.sql.splitlines()]
    code = pa.table({"sql": [line for line in lines if line and not line.startswith("--")]})
    return Answer([view.answers], {"sql": Part(code, exact=True)}, "copy what you need")


# The tools in the order of the commands, with the titles that clients show to users.
TOOLS: dict[Callable[..., Any], str] = {
    runs: "Runs",
    modules: "Modules",
    peaks: "Peaks and headroom",
    owners: "Who owns the peak",
    buffers: "Buffers at the peak",
    saved: "Saved for backward",
    oom: "Why memory ran out",
    advise: "What to change first",
    trends: "What grew, when and why",
    since: "Since when",
    diff: "What differs between two runs",
    check: "Within limits?",
    sql: "SQL",
    views: "Views, tables and columns",
}
