"""The questions: what can be asked of a warehouse, each a function in the file of its name.

The function's signature is the declaration: its parameters are of the kinds declared here, each
once. The command, the method of `Warehouse`, the tool of the MCP server, the reference and the
completion are made from it. A parameter of no kind is for Python alone.
"""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from importlib import import_module
from os import PathLike
from types import UnionType
from typing import (
    Annotated,
    Any,
    Concatenate,
    ParamSpec,
    TypeVar,
    Union,
    get_args,
    get_origin,
)

from ..schema.metrics import METRICS
from ..schema.store import Store

# The kinds of parameter that questions take, each declared once.
#
# A kind says what the parameter means and how it is spelled on the command line. The commands,
# the tools of the MCP server, the reference and the completion of shells are made from it.


@dataclass(frozen=True)
class Kind:
    """A kind of parameter.

    meaning: the text of `--help`; to_agents: what an agent is told instead, if that is not enough;
    spelled: the spellings of the option, else `--NAME`; is_argument: it has a place and no option;
    metavar: what stands for the value in `--help`; completes: what names a shell completes,
    for example `runs`; choices: the values that there are, in `--help` if they are `listed`;
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
    "innermost": "source",
    "scope": "scope",
    "op": "operation",
    "dtype": "element_type",
    "pass": "pass",
    "category": "category",
    "role": "role",
}
_OWNERS_MEAN = (
    "source: your line of Python; innermost: also lines of libraries; scope: layer or function; "
    "op: operation; pass: forward, backward, optimizer; category: argument, output, temp, "
    "constant; role: weight, optimizer state, activation, gradient"
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
Label = Annotated[
    Sequence[str] | str,
    Kind(
        "Only runs with this label, or with any value of KEY; several must all be there.",
        to_agents="only runs with these labels, each KEY=VALUE or KEY",
        metavar="KEY=VALUE",
    ),
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
Unfold = Annotated[bool, Kind("Show each of repeated layers by itself.")]
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
METRIC_NAMES = tuple(metric.removesuffix("_bytes") for metric in METRICS)
Metric = Annotated[
    str,
    Kind(
        "Which figure: peak, total, temp, argument, output, padding and so on.",
        to_agents="which figure, in bytes",
        spelled=("--figure",),
        choices=METRIC_NAMES,
        listed=False,
    ),
]
# The metric of `trends` that has no bytes.
WORK = "flops"
MetricOrWork = Annotated[
    str,
    Kind(
        "Which figure: peak, total, temp, argument, output and so on, or flops.",
        to_agents="which figure, in bytes; or flops",
        spelled=("--figure",),
        choices=(*METRIC_NAMES, WORK),
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


# What follows in a docstring is for Python: the columns of the rows, and what is raised.
_FOR_PYTHON = "\n\nColumns: "
_P = ParamSpec("_P")
_R = TypeVar("_R")
_F = TypeVar("_F", bound=Callable[..., Any])


@dataclass(frozen=True)
class Taken:
    """A parameter that a user or an agent gives.

    hint: its type in Python; type: bool, int, str or list[str], as which it is given.
    """

    name: str
    kind: Kind
    hint: Any
    type: Any
    default: Any


@dataclass(frozen=True)
class Question:
    """A function of a warehouse that answers, and how it is asked.

    example: a command line; screen: the function in `cli/screens.py` that asks and prints;
    tool: the title of its tool for agents, None if it is none; chart: the function in
    `report/cell_charts.py` that gives the answer its chart in a notebook.
    """

    ask: Callable[..., Any]
    example: str
    screen: str
    tool: str | None
    chart: str | None

    @property
    def help(self) -> str:
        """The help of its command."""
        return inspect.cleandoc(self.ask.__doc__ or "").partition(_FOR_PYTHON)[0]

    def taken(self) -> list[Taken]:
        """The parameters that a user gives."""
        return taken_by(self.ask)


_DECLARED: dict[str, Question] = {}


def question(
    *, example: str, screen: str = "table", tool: str | None = None, chart: str | None = None
) -> Callable[[_F], _F]:
    """Declares that a function is a question; see `Question`. Its file has the same name."""

    def declare(ask: _F) -> _F:
        _DECLARED[ask.__name__] = Question(ask, example, screen, tool, chart)
        return ask

    return declare


def declared(name: str) -> Question:
    """The question of this name, one of QUESTIONS."""
    import_module(f".{name}", __package__)
    return _DECLARED[name]


def taken_by(function: Callable[..., Any]) -> list[Taken]:
    """The parameters of a function that are of a kind.

    Of several types, such as `str | datetime | None`, a user gives the first.
    """
    taken = []
    for parameter in inspect.signature(function, eval_str=True).parameters.values():
        if get_origin(parameter.annotation) is not Annotated:
            continue
        hint, *notes = get_args(parameter.annotation)
        kinds = [note for note in notes if isinstance(note, Kind)]
        if not kinds:
            continue
        types = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
        type_ = types[0] if get_origin(types[0]) is None else list[str]
        taken.append(Taken(parameter.name, kinds[0], hint, type_, parameter.default))
    return taken


def asked(
    ask: Callable[Concatenate[Store, _P], _R],
) -> Callable[Concatenate[Any, _P], _R]:
    """A question as a method of `Warehouse`: the same signature, its chart drawn in a notebook."""
    declaration = _DECLARED[ask.__name__]
    signature = inspect.signature(ask)

    def method(self: Any, /, *args: _P.args, **kwargs: _P.kwargs) -> _R:
        answer = ask(self._store, *args, **kwargs)
        if declaration.chart is None:
            return answer
        given = signature.bind(self._store, *args, **kwargs)
        given.apply_defaults()
        charts = import_module("..report.cell_charts", __package__)
        draw = getattr(charts, declaration.chart)
        _, *names = inspect.signature(draw).parameters
        charted: _R = draw(answer, *(given.arguments[name] for name in names))
        return charted

    # What `help` shows: the types without their kinds.
    hints = {taken.name: taken.hint for taken in declaration.taken()}
    _, *others = signature.parameters.values()
    shown = [each.replace(annotation=hints.get(each.name, each.annotation)) for each in others]
    itself = inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)
    method.__name__, method.__doc__ = ask.__name__, ask.__doc__
    method.__module__ = "memhouse.warehouse"
    method.__qualname__ = f"Warehouse.{ask.__name__}"
    method.__signature__ = signature.replace(parameters=[itself, *shown])  # type: ignore[attr-defined]
    return method
