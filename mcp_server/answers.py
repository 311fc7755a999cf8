"""The tools: of each question what agents are told, cut to what they need to go on.

A tool's description is the function's docstring. A question that has no function here is told in
all its columns, after its help.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated

import pyarrow as pa
import pyarrow.compute as pc

from .. import Warehouse
from ..queries.catalogue import (
    listed_views,
    named_view,
    public_macros,
    public_views,
    view_columns,
)
from ..queries.diff import BUFFER, Diff, ModuleDiff, largest_changes
from ..queries.names import GROUPS, QUESTIONS
from ..queries.own_macros import listed_macros
from ..queries.questions import Kind, Run, Space, declared
from ..queries.result import Rows, counted, without_layout
from ..schema.errors import UsageError
from ..schema.readable import human_bytes
from .ask_sql import sql
from .bounded import Answer, Part, size_text
from .tool import Asked, Tool, opening, tool_of, tool_of_question

_MOST_REPORTS = 5
_MOST_CAUSES = 4
_MOST_CHANGES = 12
_ADD_UP = "counted adds up to this, since values that share memory count once"
_DIFFERING = pa.schema(
    [("module", pa.string()), ("peak_change_bytes", pa.int64()), ("cause", pa.string())]
)


def runs(asked: Asked) -> Answer:
    """Which runs (nights, commits) the warehouse holds, the newest first.

    Each with its time (UTC), branch, number of dumps, dumps that could not be read whole
    (incomplete), out-of-memory messages (oom) and the largest peak. Start here if you do not know
    the warehouse; then `trends` for what changed, or `modules` for what a run compiled.
    """
    found = _newest_first(asked())
    columns = ["run", "run_at", "branch", "dumps", "incomplete", "oom", "largest_peak_bytes"]
    return Answer(parts={"runs": _pick(found, columns)}, narrow="ask `sql` of the table runs")


def modules(asked: Asked) -> Answer:
    """Which modules (compiled programs) there are in each run, with their ids, peak and device.

    A module is called WORKLOAD/NAME, for example llama/jit_train_step. peak and total are of
    memory space 0. Without `run` those of all runs, the newest first. Then `owners` or `advise`.
    """
    found = _with_program(_newest_first(asked()))
    columns = ["module", "run", "status", "peak_bytes", "total_bytes", "device", "module_id"]
    return Answer(parts={"modules": _pick(found, columns)}, narrow="give run or workload")


def peaks(asked: Asked) -> Answer:
    """How much memory each entry program needs at its peak, per memory space, and the headroom.

    Helpers, programs that are small beside their workload's largest, are a line: `modules` has
    them. headroom is what is left of the device's memory (HBM), empty where the device is not
    known. Without `run` the latest of each module. Then `owners` for whose memory it is.
    """
    found = _with_program(asked(fold=True))
    columns = [
        "module",
        "space",
        "peak_bytes",
        "total_bytes",
        "headroom_bytes",
        "run",
        "peak_instruction",
    ]
    said = [found.left_out] if found.left_out else []
    return Answer(said, {"peaks": _pick(found, columns)}, "give run or workload")


def owners(asked: Asked) -> Answer:
    """Which lines of Python (or layers, roles, data types) own a module's memory at its peak.

    The largest first; `counted` adds up to the peak, share is the part of it. "(arguments)" are
    the program's arguments: by=role tells weights from optimizer state. Then `buffers` for single
    tensors, `advise` for what to change.
    """
    found = asked()
    return Answer(_said(found), {"owners": Part(found.table, found.empty)}, "lower limit")


def buffers(asked: Asked) -> Answer:
    """Which single tensors fill a module's memory at its peak: shape, line, role, bytes.

    The largest first; `counted` adds up to the peak, so a value inside another's memory counts
    less than its size. padding is what the layout adds. Ask `owners` before, for sums.
    """
    found = asked()
    columns = [
        "counted_bytes",
        "share",
        "shape",
        "source",
        "op_name",
        "category",
        "role",
        "pass",
        "is_guess",
        "origin",
    ]
    part = _pick(_plain_shapes(found), columns)
    return Answer(_said(found), {"buffers": part}, "lower limit")


def advise(asked: Asked) -> Answer:
    """What to change first in a module, by how many bytes its peak would fall, and what to write.

    Each saving is the program replayed with the change made, not a buffer's size. grade says how
    sure it is: exact, expected (within tolerance), between low and high, at most, estimated; a
    fact promises nothing. reserved_low_bytes and reserved_high_bytes: how much less XLA reserves.
    Savings of several findings do not add up: `said` has those together. Takes seconds for large
    modules.
    """
    found = asked()
    said = [found.rows.caption, found.heading]
    if len(found.followed) > 1:
        now = found.together.peak_bytes
        numbers = ", ".join(str(found.findings.index(each) + 1) for each in found.followed)
        said.append(
            f"Findings {numbers} together: the peak would be {size_text(human_bytes(now), now)}."
        )
    columns = [
        "saving_bytes",
        "low_bytes",
        "high_bytes",
        "reserved_low_bytes",
        "reserved_high_bytes",
        "grade",
        "tolerance",
        "title",
        "source",
        "write",
        "why",
        "alone_bytes",
    ]
    return Answer(
        said,
        {"findings": _pick(_without_equal_ends(found.rows), columns)},
        "the largest savings are first",
    )


def oom(warehouse: Warehouse, run: Run = None) -> Answer:
    """Why memory ran out in a run, else in the latest in which it did: which memory, by how much.

    By the out-of-memory messages in its logs: what fills it, whose lines, what to look at first.
    """
    found = warehouse.oom(run)
    said: list[str] = []
    parts: dict[str, Part] = {}
    told = found.told()
    for number, answer in enumerate(told[:_MOST_REPORTS], start=1):
        facts = (" ".join(fact.split()) for fact in answer.facts)
        said += ["; ".join([f"{number}. {answer.title}", *facts]), *answer.first]
        if len(answer.filled_by):
            columns = ["size_bytes", "buffers", "source", "shape"]
            parts[f"filled_by_{number}"] = _pick(answer.filled_by, columns)
    if len(told) > _MOST_REPORTS:
        said.append(f"{len(told) - _MOST_REPORTS} more: ask `sql` of oom_reports by run_id")
    return Answer(said or [found.rows.empty], parts, "give run")


def trends(asked: Asked) -> Answer:
    """What grew or shrank from run to run, in which run, by how much, and why.

    `steps` has each change, the newest first, with its cause; `series` where each module stands:
    its figure now, its best so far, and the first run of today's level. A module that came or
    vanished is a step too. Then `diff` of the two runs of a step for the tensors, `since` for the
    history of one module.
    """
    found = asked()
    said = [found.branches_note.replace("--branch ", "")] if found.other_branches else []
    said += [found.helpers] if found.helpers else []
    names = ["run", "previous_run", "module", "change", "change_ratio", "value", "unit", "cause"]
    series = ["module", "value", "best_value", "unit", "since", "last_run", "gone_for"]
    return Answer(
        said,
        {
            "steps": _pick(_with_program(found.steps), names),
            "series": _pick(_with_program(found.series), series),
        },
        "give workload or since",
    )


def since(asked: Asked) -> Answer:
    """Since which run a module's memory is what it is, why it changed then, and how it got there.

    `levels` are the runs between two changes, the newest first. Then `diff` of before_run and
    since_run for what changed.
    """
    found = asked()
    columns = ["since_run", "last_run", "runs", "value", "change", "change_ratio", "unit"]
    part = _pick(_newest_first(found.rows), [*columns, "before_run", "cause"])
    return Answer(found.answer, {"levels": part}, "older levels are left out")


def diff(asked: Asked, memory_space: Space = 0) -> Answer:
    """What differs from run A to run B: the cause, and the tensors that make the peak's change.

    If several modules differ, a row for each with its cause: ask again with its workload for the
    tensors. Rows of `changes` add up to the change of the peak. `came` and `gone` are tensors that
    are live at one peak alone; `now kept for backward` is a residual. `figures` compares totals;
    flags of the compiler that differ are in `flags`.
    """
    found = asked()
    differ = [module for module in found.entries if not module.is_unchanged]
    same = len(found.entries) - len(differ)
    said = [f"{counted(same, 'module')} unchanged"] if same else []
    said += filter(None, [found.helpers])
    if len(differ) == 1:
        return _one_module(differ[0], found, said, memory_space)
    differ.sort(key=lambda module: -abs(_peak_change(module, memory_space) or 0))
    rows = [_in_a_row(module, memory_space) for module in differ]
    table = Rows(pa.Table.from_pylist(rows, schema=_DIFFERING), "", "nothing differs")
    return Answer(said, {"modules": Part(table.table, table.empty)}, "give workload")


def check(asked: Asked) -> Answer:
    """Whether the memory of a run (else of the latest) is within its limits: pass, fail or not
    judged, and why.

    Every program is held against its last figures before, and against the lowest since a growth was
    accepted, so a creep is caught too; on a branch against the newest run of main. Those that fail
    are first; unchanged ones are left out. Then `diff` with held_against, and `advise`.
    """
    found = asked()
    matters = pa.array([verdict.matters for verdict in found.verdicts], pa.bool_())
    rows = replace(found.rows, table=found.rows.table.filter(matters), empty="nothing changed")
    columns = ["module", "verdict", "status", "before_bytes", "now_bytes", "change_bytes"]
    columns += ["held_against", "cause", "why", "accepted"]
    said = [found.rows.caption, *found.notes, *filter(None, [found.helpers])]
    return Answer(said, {"verdicts": _pick(rows, columns)}, "give run")


def _said(rows: Rows) -> list[str]:
    """Which module the rows are of, and what they add up to."""
    if not len(rows):
        return [rows.caption]
    total = sum(rows.table["counted_bytes"].to_pylist())
    return [rows.caption, f"together {size_text(human_bytes(total), total)}: {_ADD_UP}"]


def _without_equal_ends(rows: Rows) -> Rows:
    """The findings; the ends of a range are null where they are the saving itself."""
    table = rows.table
    for name in ("low_bytes", "high_bytes"):
        both = zip(table[name].to_pylist(), table["saving_bytes"].to_pylist(), strict=True)
        ends = pa.array([None if end == saving else end for end, saving in both], pa.int64())
        table = table.set_column(table.column_names.index(name), name, ends)
    return replace(rows, table=table)


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
    changes = _in_space(module.rows, space)
    changes = replace(changes, table=largest_changes(changes.table, _MOST_CHANGES))
    if found.by == BUFFER:
        changes = _plain_shapes(changes)
        names = ["change_bytes", "what", "shape", "source", "operation", "pass", "role", "category"]
    else:
        names = [name for name in changes.table.column_names if name != "memory_space"]
    parts = {"causes": Part(module.causes.table.slice(0, _MOST_CAUSES))} if module.causes else {}
    parts["changes"] = _pick(changes, names)
    if len(module.metrics):
        figures = ["metric", "a_bytes", "b_bytes", "change_bytes"]
        parts["figures"] = _pick(_in_space(module.metrics, space), figures)
    if len(module.flags):
        parts["flags"] = Part(module.flags.table)
    return Answer(
        [module.name, module.cause, *peak, *said], parts, "sum them with by=source or by=pass"
    )


def _in_space(rows: Rows, memory_space: int) -> Rows:
    """The rows of one memory space."""
    if "memory_space" not in rows.table.column_names:
        return rows
    return replace(
        rows, table=rows.table.filter(pc.equal(rows.table["memory_space"], memory_space))
    )


# The tool on the warehouse itself: its views and tables.


def views(
    warehouse: Warehouse,
    name: Annotated[str | None, Kind("a view or table; else all are listed")] = None,
    show: Annotated[
        str,
        Kind("of a view: its columns, or its SQL to copy from", choices=("columns", "sql")),
    ] = "columns",
) -> Answer:
    """Which views and tables `sql` can ask, and the columns of one with what they mean.

    Views answer common questions: WHERE is_latest keeps the newest dump of each name. Tables of
    modules join `latest` with USING (module_id). `saved_for_backward`, `timeline`,
    `missed_donations` and `padding` have no tool of their own. Sizes are bytes; times are positions
    in a module's schedule. Names with parentheses are functions: FROM live_at(module('NAME'), 9).
    """
    own = listed_macros(warehouse.macros)
    if name is None:
        return Answer(
            [f"tables: {', '.join(_tables(warehouse))}"],
            {"views": Part(listed_views(own).table)},
            "give name",
        )
    if name in {*public_views(), *public_macros(), *own}:
        view = named_view(name, own)
        if show == "sql":
            stripped = (line.strip() for line in view.sql.splitlines())
            lines = pa.table({"sql": [line for line in stripped if line[:2] not in ("", "--")]})
            return Answer([view.answers], {"sql": Part(lines, exact=True)}, "copy what you need")
        return Answer(
            [view.answers, view.description],
            {"columns": Part(view_columns(view).table)},
            "DESCRIBE in `sql` has their types",
        )
    if name not in _tables(warehouse):
        raise UsageError(f"there is no view or table {name!r}: ask `views` without a name", "name")
    columns = warehouse.tables(name)
    return Answer(parts={"columns": Part(columns.table)}, narrow="DESCRIBE in `sql` has all")


def _tables(warehouse: Warehouse) -> list[str]:
    return sorted(warehouse.tables().table["table"].to_pylist())


# The rows of the library as answers show them: few columns, the newest first.


def _pick(rows: Rows, columns: Sequence[str]) -> Part:
    """These columns of the rows, as far as there are any, and what marks estimates."""
    names = [*columns, *(mark for mark in ("is_guess", "origin") if mark not in columns)]
    there = [name for name in names if name in rows.table.column_names]
    return Part(rows.table.select(there), rows.empty)


def _newest_first(rows: Rows) -> Rows:
    """The rows from the last to the first: what is left out is old."""
    return replace(rows, table=rows.table.take(pa.array(range(len(rows) - 1, -1, -1), pa.int64())))


def _with_program(rows: Rows) -> Rows:
    """The rows whose column `module` is WORKLOAD/NAME, as arguments take it; ids are texts.

    A number above 2**53 does not survive in every client.
    """
    table = rows.table
    both = zip(table["workload"].to_pylist(), table["module"].to_pylist(), strict=True)
    names = pa.array([f"{workload}/{module}" for workload, module in both], pa.string())
    place = table.column_names.index("module")
    table = table.set_column(place, "module", names)
    if "module_id" in table.column_names:
        place = table.column_names.index("module_id")
        table = table.set_column(place, "module_id", table["module_id"].cast(pa.string()))
    return replace(rows, table=table)


def _plain_shapes(rows: Rows) -> Rows:
    """The rows with shapes without their layouts."""
    table = rows.table
    shapes = [shape and without_layout(shape) for shape in table["shape"].to_pylist()]
    place = table.column_names.index("shape")
    return replace(rows, table=table.set_column(place, "shape", pa.array(shapes, pa.string())))


# The tools, in the order of the commands: the questions that are tools, and those made by hand.

_BY_HAND = {
    "oom": tool_of(opening(oom), "Why memory ran out"),
    "sql": tool_of(sql, "SQL"),
    "views": tool_of(opening(views), "Views, tables and columns"),
}


def _tool(name: str) -> Tool | None:
    if name not in QUESTIONS:
        return _BY_HAND.get(name)
    question = declared(name)
    if question.tool is None:
        return None
    return tool_of_question(question, globals().get(name), question.tool)


TOOLS = {
    name: tool for names in GROUPS.values() for name in names if (tool := _tool(name)) is not None
}
