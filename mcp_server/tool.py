"""A tool: a function whose arguments and docstring an agent sees."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model

from .. import Warehouse
from .. import open as open_warehouse
from ..queries.questions import Question, Taken, taken_by
from ..schema.errors import UsageError
from .ask_sql import when_free
from .bounded import Answer, Part, bounded

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

    def answer(self, db: str, given: Mapping[str, Any], macros: Sequence[str] = ()) -> str:
        """The answer's text. Raises UsageError for wrong arguments, and other MemhouseErrors."""
        return self.function(db, macros, **self._checked(given))

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
                f"{'.'.join(map(str, wrong['loc']))}: {_in_words(wrong)}"
                for wrong in error.errors(include_url=False)[:5]
            ]
            known = ", ".join(self.arguments.model_fields)
            raise UsageError(f"{'; '.join(said)} (arguments of {self.name}: {known})") from None
        return {name: getattr(model, name) for name in self.arguments.model_fields}


@dataclass(frozen=True)
class Asked:
    """A question with the arguments of an agent; calling it gives the answer.

    What it is called with are arguments that agents do not give.
    """

    name: str
    warehouse: Warehouse
    arguments: Mapping[str, Any]

    def __call__(self, **more: Any) -> Any:
        """The answer of the warehouse's method."""
        return getattr(self.warehouse, self.name)(**self.arguments, **more)


def tool_of_question(question: Question, tell: Callable[..., Answer] | None, title: str) -> Tool:
    """The tool of a question, whose answer `tell` makes of an Asked; else it has all columns.

    Its arguments are those of the question that are for agents, and those of `tell`.
    """
    name = question.ask.__name__
    of_question = [taken for taken in question.taken() if taken.kind.for_agents]
    tell = tell or _in_all_columns
    of_telling = taken_by(tell)

    def answer(warehouse: Warehouse, **arguments: Any) -> Answer:
        told = {taken.name: arguments.pop(taken.name) for taken in of_telling}
        return tell(Asked(name, warehouse, arguments), **told)

    described = question.help if tell is _in_all_columns else tell.__doc__
    return _tool(name, title, described, [*of_question, *of_telling], opening(answer))


def _in_all_columns(asked: Asked) -> Answer:
    found = asked()
    return Answer([found.caption] if found.caption else [], {asked.name: Part(found.table)})


def tool_of(function: Callable[..., str], title: str) -> Tool:
    """The tool that a function is: its parameters of a kind are the arguments."""
    name = function.__name__.rstrip("_")
    return _tool(name, title, function.__doc__, taken_by(function), function)


def opening(function: Callable[..., Answer]) -> Callable[..., str]:
    """The function of a warehouse as one of the warehouse's name, which gives the answer's text.

    The warehouse is open for one question: between questions others may write to it.
    """

    @wraps(function)
    def answer(db: str, macros: Sequence[str], **arguments: Any) -> str:
        with when_free(lambda: open_warehouse(db, read_only=True, macros=macros)) as warehouse:
            return bounded(function(warehouse, **arguments))

    return answer


def _tool(
    name: str,
    title: str,
    described: str | None,
    arguments: Sequence[Taken],
    function: Callable[..., str],
) -> Tool:
    fields: dict[str, Any] = {taken.name: _field(taken) for taken in arguments}
    model = create_model(name, __config__=_STRICT, **fields)
    return Tool(name, title, inspect.cleandoc(described or ""), model, function)


def _field(taken: Taken) -> tuple[Any, Any]:
    """A parameter as pydantic declares it: its type and its default."""
    kind = taken.kind
    type_ = Literal[kind.choices] if kind.choices else taken.type
    most = kind.at_once
    size: dict[str, Any] = {"max_length": most} if taken.type == list[str] else {"le": most}
    default = kind.to_fill if taken.default is None else taken.default
    if default is None:
        type_ = type_ | None
    meaning = Field(description=kind.to_agents or kind.meaning, ge=kind.least, **size)
    return Annotated[type_, meaning], ... if default is inspect.Parameter.empty else default


def _in_words(wrong: Mapping[str, Any]) -> str:
    """What is wrong with an argument, as memhouse says it; `wrong` is pydantic's."""
    limits = wrong.get("ctx", {})
    match wrong["type"]:
        case "missing":
            return "it is needed"
        case "extra_forbidden":
            return "there is no such argument"
        case "literal_error":
            return f"use one of {limits['expected']}"
        case "greater_than_equal":
            return f"at least {limits['ge']}"
        case "less_than_equal":
            return f"at most {limits['le']}"
        case "too_long":
            return f"at most {limits['max_length']} of them"
        case type_:
            kind = type_.partition("_")[0]
            kinds = {"int": "a whole number", "bool": "true or false", "list": "a list"}
            return f"it is {kinds.get(kind, 'a text')}, not {str(wrong['input'])[:40]!r}"


def _without_titles(schema: Any) -> Any:
    """The schema without what repeats the names of its fields."""
    if isinstance(schema, dict):
        kept = {key: value for key, value in schema.items() if not _is_title(key, value)}
        return {key: _without_titles(value) for key, value in kept.items()}
    return list(map(_without_titles, schema)) if isinstance(schema, list) else schema


def _is_title(key: str, value: Any) -> bool:
    # A field of that name has a schema, not a text.
    return key == "title" and isinstance(value, str)
