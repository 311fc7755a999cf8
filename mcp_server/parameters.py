"""The parameters of the tools: a type, with the description and the limits that an agent sees."""

from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import Field

_Owner = Literal["source", "innermost", "scope", "op", "dtype", "pass", "category", "role"]
_Metric = Literal[
    "peak",
    "total",
    "reserved",
    "argument",
    "output",
    "alias",
    "constant",
    "thread_local",
    "temp",
    "fragmentation",
    "padding",
    "live_bound",
    "order",
    "order_bound",
]
Run = Annotated[str | None, Field(description="a run's name, see `runs`")]
Labels = Annotated[
    Sequence[str], Field(description="only runs with these labels, each KEY=VALUE or KEY")
]
Workload = Annotated[str | None, Field(description="Only this workload.")]
Module = Annotated[
    str,
    Field(description="A workload, module name, WORKLOAD/NAME, unique part of one, or module id."),
]
ModuleRun = Annotated[str | None, Field(description="The run of the module; default: the latest.")]
RunOrModule = Annotated[
    str,
    Field(description="A run, or a module as RUN/WORKLOAD/NAME or a unique part of it."),
]
Branch = Annotated[
    str | None,
    Field(description="The runs of this branch; default: main, master or those without a branch."),
]
Since = Annotated[str | None, Field(description="Only runs since this date or time, in UTC.")]
MemorySpace = Annotated[
    int, Field(description="memory space number; 0 is HBM (on CPU and GPU: memory)")
]
ScheduleTime = Annotated[
    int | None, Field(description="A position in the schedule; default: the peak.")
]
OwnerKind = Annotated[
    _Owner | None,
    Field(
        description="source: your line of Python; innermost: also lines of libraries; scope: "
        "layer or function; op: operation; pass: forward, backward, optimizer; category: "
        "argument, output, temp, constant; role: weight, optimizer state, activation, gradient"
    ),
]
Callers = Annotated[
    int, Field(description="Show N callers of each line, from the Python stack.", ge=0, le=5)
]
Unfold = Annotated[bool, Field(description="Show repeated layers one by one.")]
Limit = Annotated[
    int, Field(description="maximum number of rows; the remainder is one row", ge=1, le=100)
]
Saving = Annotated[
    str | None,
    Field(description="a size such as 2GiB: choose what to recompute to save it"),
]
Metric = Annotated[_Metric, Field(description="metric, in bytes")]
MetricOrFlops = Annotated[Literal[_Metric, "flops"], Field(description="metric in bytes, or flops")]
CheckedMetric = Annotated[_Metric | None, Field(description="metric, in bytes; default: reserved")]
Tolerance = Annotated[
    str | None,
    Field(description="deviation within a level, such as 0.5% or 1MiB"),
]
SummedBy = Annotated[Literal["buffer", _Owner], Field(description="Sum the changes by this.")]
CheckedRun = Annotated[
    str | None, Field(description="The run to check; default: the run that was ingested last.")
]
Baseline = Annotated[str | None, Field(description="compare with this run, or branch=NAME")]
Best = Annotated[bool, Field(description="Compare with the lowest value of all time.")]
MaxGrowth = Annotated[
    list[str] | None,
    Field(
        description="maximum growth: 2%, 64MiB; each must hold; default: 1%",
        max_length=4,
    ),
]
Query = Annotated[str, Field(description="one SELECT (or WITH, FROM, DESCRIBE) of DuckDB's SQL")]
MaxRows = Annotated[int, Field(description="maximum number of rows", ge=1, le=200)]
Seconds = Annotated[int, Field(description="time limit in seconds", ge=1, le=30)]
ViewName = Annotated[str | None, Field(description="a view or table; default: list all")]
ViewPart = Annotated[
    Literal["columns", "sql"],
    Field(description="of a view: its columns, or its SQL to copy from"),
]
