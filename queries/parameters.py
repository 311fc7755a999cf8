"""The kinds of parameter that questions take, each declared once.

A kind says what the parameter means and how it is spelled on the command line. The commands, the
tools of the MCP server, the reference and the completion of shells are made from it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from os import PathLike
from typing import Annotated, Any

from ..schema.metric_names import METRICS


@dataclass(frozen=True)
class Kind:
    """A kind of parameter.

    meaning: the text of `--help`; to_agents: what an agent is told instead, if that is not enough;
    spelled: the spellings of the option, else `--NAME`; is_argument: it has a place and no option;
    metavar: what stands for the value in `--help`; completes: the names that a shell completes, a
    key of `known_names`; choices: the values that there are, in `--help` if they are `listed`;
    least: the smallest number, or the fewest that an agent may ask for; at_once: the largest number
    that an agent may ask for; default: the value of a command that is not given one, and to_fill
    that of an agent: both show less than the library does; for_agents: a tool takes it, and is
    thus neither a path nor a matter of taste.
    """

    meaning: str
    to_agents: str = ""
    spelled: tuple[str, ...] = ()
    is_argument: bool = False
    metavar: str | None = None
    completes: str | None = None
    choices: tuple[str, ...] = ()
    listed: bool = True
    least: int | None = None
    at_once: int | None = None
    default: Any = None
    to_fill: Any = None
    for_agents: bool = True


# What owns memory, and the name of its column.
OWNERS = {
    "source": "source",
    "scope": "scope",
    "op": "operation",
    "dtype": "element_type",
    "pass": "pass",
    "category": "category",
    "role": "role",
}
_OWNERS_MEAN = (
    "source: line of Python; scope: layer or function; op: operation; pass: forward, backward, "
    "optimizer; category: argument, output, temp, constant; role: weight, optimizer state, "
    "activation, gradient"
)
_MODULE = "A workload, module name, WORKLOAD/NAME, unique part of one, or module id"

Module = Annotated[
    str | int, Kind(f"{_MODULE}.", is_argument=True, metavar="MODULE", completes="modules")
]
OneModule = Annotated[
    str | int | None,
    Kind(
        f"{_MODULE}; else all modules.", is_argument=True, metavar="[MODULE]", completes="modules"
    ),
]
Table = Annotated[
    str | None,
    Kind("Show this table's columns.", is_argument=True, metavar="NAME", completes="tables"),
]
RunOrModule = Annotated[
    str,
    Kind(
        "A run, or a module as RUN/WORKLOAD/NAME or a unique part of it.",
        is_argument=True,
        completes="runs",
    ),
]
Newest = Annotated[int | None, Kind("Only so many entries, the newest.", spelled=("-n",), least=1)]
Runs = Annotated[
    Sequence[str], Kind("Runs to drop.", is_argument=True, metavar="RUN", completes="runs")
]
Run = Annotated[
    str | None, Kind("Only this run.", to_agents="a run's name, see `runs`", completes="runs")
]
RunOfModule = Annotated[
    str | None, Kind("The module as of this run; else its latest.", completes="runs")
]
Workload = Annotated[str | None, Kind("Only this workload.", completes="workloads")]
Branch = Annotated[
    str | None,
    Kind(
        "The runs of this branch; else main, master or those without a branch.",
        completes="branches",
    ),
]
Since = Annotated[
    str | datetime | None, Kind("Only runs since this date or time, in UTC.", metavar="TIME")
]
Space = Annotated[
    int,
    Kind(
        "The memory space's number; 0 is HBM.",
        to_agents="memory space number; 0 is HBM (on CPU and GPU: memory)",
        spelled=("--space",),
    ),
]
At = Annotated[int | None, Kind("At this time of the schedule; else at the peak.", metavar="TIME")]
Callers = Annotated[
    int,
    Kind("Show N callers of each line, from the Python stack.", metavar="N", least=0, at_once=5),
]
# Without a limit the library gives all rows.
Limit = Annotated[
    int | None,
    Kind(
        "At most so many rows.",
        to_agents="most rows; the rest is summed as one row",
        spelled=("--limit", "-n"),
        least=1,
        at_once=100,
        default=20,
        to_fill=12,
    ),
]
Owner = Annotated[
    str | None,
    Kind(
        "What owns: source without it, or role with --roles.",
        to_agents=_OWNERS_MEAN,
        choices=tuple(OWNERS),
    ),
]
Metric = Annotated[
    str,
    Kind(
        "Which figure: peak, total, temp, argument, output, padding and so on.",
        to_agents="which figure, in bytes",
        spelled=("--figure",),
        choices=tuple(metric.removesuffix("_bytes") for metric in METRICS),
        listed=False,
    ),
]
Roles = Annotated[
    str | PathLike[str] | Mapping[str, str | Sequence[str]] | None,
    Kind("A TOML file with roles of your own: name = patterns.", metavar="FILE", for_agents=False),
]
Saving = Annotated[
    str | int | None,
    Kind(
        "Choose what to compute again so that this is saved.",
        to_agents="a wanted saving, such as 2GiB: what to compute again for it",
        metavar="SIZE",
    ),
]
