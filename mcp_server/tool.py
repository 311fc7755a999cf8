"""A tool: a function whose arguments and docstring an agent sees."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import wraps
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model

from .. import open as open_warehouse
from ..schema.errors import UsageError
from .bounded import Answer, bounded
from .when_free import when_free

Module = Annotated[
    str,
    Field(
        description="a workload, a module name, WORKLOAD/NAME, a unique part of one, or a module id"
    ),
]
Run = Annotated[str | None, Field(description="a run's name, see `runs`")]
RunOfModule = Annotated[str | None, Field(description="the module as of this run; else its latest")]
Workload = Annotated[str | None, Field(description="only this workload")]
Space = Annotated[int, Field(description="memory space number; 0 is HBM (on CPU and GPU: memory)")]
Limit = Annotated[int, Field(ge=1, le=100, description="most rows; the rest is summed as one row")]
Branch = Annotated[
    str | None, Field(description="value of the label `branch`; else main, master or none")
]
Metric = Annotated[
    Literal[
        "peak",
        "total",
        "argument",
        "output",
        "alias",
        "constant",
        "thread_local",
        "temp",
        "fragmentation",
        "padding",
        "live_bound",
        "packing",
    ],
    Field(description="which figure, in bytes"),
]
_LONGEST_ARGUMENT = 20_000
# A module's id may come as the number that it is.
_STRICT = ConfigDict(extra="forbid", coerce_numbers_to_str=True)


@dataclass(frozen=True)
class Tool:
    """A tool: its name, what it says of itself, the model of its arguments, and its function."""

    name: str
    title: str
    description: str
    arguments: type[BaseModel]
    function: Callable[..., str]

    @property
    def schema(self) -> dict[str, Any]:
        """The JSON schema of the arguments."""
        found: dict[str, Any] = _without_titles(self.arguments.model_json_schema())
        return found

    def answer(self, db: str, given: Mapping[str, Any]) -> str:
        """The answer's text. Raises UsageError for wrong arguments, and other MemhouseErrors."""
        return self.function(db, **self._checked(given))

    def _checked(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments, with defaults. Raises UsageError."""
        if any(
            len(value) > _LONGEST_ARGUMENT for value in given.values() if isinstance(value, str)
        ):
            raise UsageError(f"an argument is longer than {_LONGEST_ARGUMENT} characters")
        try:
            model = self.arguments.model_validate(given)
        except ValidationError as error:
            said = [
                f"{'.'.join(map(str, wrong['loc']))}: {wrong['msg']}"
                for wrong in error.errors(include_url=False, include_input=False)[:5]
            ]
            known = ", ".join(self.arguments.model_fields)
            raise UsageError(f"{'; '.join(said)} (arguments of {self.name}: {known})") from None
        return {name: getattr(model, name) for name in self.arguments.model_fields}


def opening(function: Callable[..., Answer]) -> Callable[..., str]:
    """The function of a warehouse as one of the warehouse's name, which gives the answer's text.

    The warehouse is open for one question: between questions others may write to it.
    """

    @wraps(function)
    def answer(db: str, **arguments: Any) -> str:
        with when_free(lambda: open_warehouse(db, read_only=True)) as warehouse:
            return bounded(function(warehouse, **arguments))

    return answer


def tool_of(function: Callable[..., str], title: str) -> Tool:
    """The tool that a function is: its first parameter names the warehouse."""
    _, *parameters = inspect.signature(function).parameters.values()
    fields: dict[str, Any] = {
        each.name: (each.annotation, ... if each.default is each.empty else each.default)
        for each in parameters
    }
    name = function.__name__.rstrip("_")
    model = create_model(name, __config__=_STRICT, **fields)
    description = inspect.cleandoc(function.__doc__ or "")
    return Tool(name, title, description, model, function)


def _without_titles(schema: Any) -> Any:
    """The schema without what repeats the names of its fields."""
    if isinstance(schema, dict):
        kept = {key: value for key, value in schema.items() if not _is_title(key, value)}
        return {key: _without_titles(value) for key, value in kept.items()}
    return list(map(_without_titles, schema)) if isinstance(schema, list) else schema


def _is_title(key: str, value: Any) -> bool:
    # A field of that name has a schema, not a text.
    return key == "title" and isinstance(value, str)
