"""The questions: what can be asked of a warehouse, each a function in the file of its name.

The function's signature is the declaration: its parameters are of the kinds of `parameters.py`.
The command, the method of `Warehouse`, the tool of the MCP server, the reference and the completion
are made from it. A parameter of no kind is for Python alone. What a question needs and others do
not, such as pyarrow, is imported in the function: `memhouse --help` reads all declarations.
"""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from types import UnionType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Concatenate,
    ParamSpec,
    TypeVar,
    Union,
    get_args,
    get_origin,
)

from .parameters import Kind

if TYPE_CHECKING:
    from ..schema.stores.base import Store

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
    `reporting/cell_charts.py` that gives the answer its chart in a notebook.
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
    for parameter in inspect.signature(function).parameters.values():
        annotation = parameter.annotation
        if isinstance(annotation, str):
            try:
                annotation = eval(annotation, vars(import_module(function.__module__)))
            except NameError:
                # It is imported for mypy alone, as Store is.
                continue
        if get_origin(annotation) is not Annotated:
            continue
        hint, *notes = get_args(annotation)
        kinds = [note for note in notes if isinstance(note, Kind)]
        if not kinds:
            continue
        types = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
        type_ = types[0] if get_origin(types[0]) is None else list[str]
        taken.append(Taken(parameter.name, kinds[0], hint, type_, parameter.default))
    return taken


def asked(
    ask: "Callable[Concatenate[Store, _P], _R]",
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
        charts = import_module(".reporting.cell_charts", __package__)
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
    method.__module__, method.__qualname__ = "memhouse", f"Warehouse.{ask.__name__}"
    method.__signature__ = signature.replace(parameters=[itself, *shown])  # type: ignore[attr-defined]
    return method
