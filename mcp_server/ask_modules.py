"""Tools on one state of memory: what there is, how large, whose, and what to change."""

from dataclasses import replace
from typing import Annotated, Literal

import pyarrow as pa
from pydantic import Field

from .. import Warehouse
from ..queries.cells import human_bytes
from ..queries.result import Rows
from .bounded import Answer, Part, size_text
from .shown_rows import newest_first, pick, plain_shapes, with_program
from .tool import Limit, Module, Run, RunOfModule, Space, Workload

OwnedBy = Annotated[
    Literal["source", "scope", "op", "dtype", "pass", "category", "role"],
    Field(
        description="source: line of Python; scope: layer or function; op: operation; pass: "
        "forward, backward, optimizer; category: argument, output, temp, constant; role: weight, "
        "optimizer state, activation, gradient"
    ),
]
At = Annotated[int | None, Field(ge=0, description="time in the schedule; else at the peak")]
_MOST_REPORTS = 5
_ADD_UP = "counted adds up to this, since values that share memory count once"


def runs(warehouse: Warehouse) -> Answer:
    """Which runs (nights, commits) the warehouse holds, the newest first.

    Each with its time (UTC), branch, number of dumps, dumps that could not be read whole
    (incomplete), out-of-memory messages (oom) and the largest peak. Start here if you do not know
    the warehouse; then `trends` for what changed, or `modules` for what a run compiled.
    """
    found = newest_first(warehouse.runs())
    columns = ["run", "run_at", "branch", "dumps", "incomplete", "oom", "largest_peak_bytes"]
    return Answer(parts={"runs": pick(found, columns)}, narrow="ask `sql` of the table runs")


def modules(warehouse: Warehouse, run: Run = None, workload: Workload = None) -> Answer:
    """Which modules (compiled programs) there are in each run, with their ids, peak and device.

    A module is called WORKLOAD/NAME, for example llama/jit_train_step. peak and total are of
    memory space 0. Without `run` those of all runs, the newest first. Then `owners` or `advise`.
    """
    found = with_program(newest_first(warehouse.modules(run=run, workload=workload)))
    columns = ["module", "run", "status", "peak_bytes", "total_bytes", "device", "module_id"]
    return Answer(parts={"modules": pick(found, columns)}, narrow="give run or workload")


def peaks(warehouse: Warehouse, run: Run = None, workload: Workload = None) -> Answer:
    """How much memory each module needs at its peak, per memory space, and the headroom.

    headroom is what is left of the device's memory (HBM), empty where the device is not known.
    Without `run` the latest of each module. Then `owners` for whose memory it is.
    """
    found = with_program(warehouse.peaks(run=run, workload=workload))
    columns = [
        "module",
        "space",
        "peak_bytes",
        "total_bytes",
        "headroom_bytes",
        "run",
        "peak_instruction",
    ]
    return Answer(parts={"peaks": pick(found, columns)}, narrow="give run or workload")


def owners(
    warehouse: Warehouse,
    module: Module,
    run: RunOfModule = None,
    by: OwnedBy = "source",
    memory_space: Space = 0,
    at: At = None,
    callers: Annotated[int, Field(ge=0, le=5, description="Python frames above a line")] = 0,
    limit: Limit = 12,
) -> Answer:
    """Which lines of Python (or layers, roles, data types) own a module's memory at its peak.

    The largest first; `counted` adds up to the peak, share is the part of it. "(arguments)" are
    the program's arguments: by=role tells weights from optimizer state. Then `buffers` for single
    tensors, `advise` for what to change.
    """
    found = warehouse.owners(
        module,
        run=run,
        by=by,
        memory_space=memory_space,
        at=at,
        callers=callers,
        limit=limit,
    )
    return Answer(_said(found), {"owners": Part(found.table, found.empty)}, "lower limit")


def buffers(
    warehouse: Warehouse,
    module: Module,
    run: RunOfModule = None,
    memory_space: Space = 0,
    at: At = None,
    limit: Limit = 12,
) -> Answer:
    """Which single tensors fill a module's memory at its peak: shape, line, role, bytes.

    The largest first; `counted` adds up to the peak, so a value inside another's memory counts
    less than its size. padding is what the layout adds. Ask `owners` before, for sums.
    """
    found = warehouse.buffers(module, run=run, memory_space=memory_space, at=at, limit=limit)
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
    part = pick(plain_shapes(found), columns)
    return Answer(_said(found), {"buffers": part}, "lower limit")


def advise(
    warehouse: Warehouse,
    module: Module,
    run: RunOfModule = None,
    memory_space: Space = 0,
    save: Annotated[
        str | None, Field(description="a wanted saving, such as 2GiB: what to compute again for it")
    ] = None,
) -> Answer:
    """What to change first in a module, by how many bytes its peak would fall, and what to write.

    Each saving is the program replayed with the change made, not a buffer's size. grade says how
    sure it is: exact, expected (within tolerance), between low and high, at most, estimated; a
    fact promises nothing. Savings of several findings do not add up: `said` has those together.
    Takes seconds for large modules.
    """
    found = warehouse.advise(module, run=run, memory_space=memory_space, save=save)
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
        "grade",
        "tolerance",
        "title",
        "source",
        "write",
        "why",
    ]
    return Answer(
        said,
        {"findings": pick(_without_equal_ends(found.rows), columns)},
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
            parts[f"filled_by_{number}"] = pick(answer.filled_by, columns)
    if len(told) > _MOST_REPORTS:
        said.append(f"{len(told) - _MOST_REPORTS} more: ask `sql` of oom_reports by run_id")
    return Answer(said or [found.rows.empty], parts, "give run")


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
