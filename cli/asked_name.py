"""Which parameter of a command the last word of a line belongs to.

Typer knows too, but it builds the command first, which takes longer than a user waits for TAB.
"""

import inspect
import os
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, NamedTuple

import typer
from typer.models import ArgumentInfo, OptionInfo

from .options import spellings
from .questions import command_named


class _Parameter(NamedTuple):
    name: str
    info: ArgumentInfo | OptionInfo
    kind: Any
    default: Any


def names_at(words: Sequence[str]) -> list[str] | None:
    """The names that fit as the last word; None if it is for Typer to say."""
    *before, last = words
    command, _ = command_named(before[0])
    if isinstance(command, typer.Typer):
        return None
    options, arguments = _parameters(command)
    given = {each.name: _default(each) for each in options.values()}
    place, waiting = 0, None
    for word in before[1:]:
        option, equals, value = word.partition("=")
        if waiting is not None:
            given[waiting.name] = word
            waiting = None
        elif option in options and equals:
            given[options[option].name] = value
        elif word in options:
            waiting = None if options[word].kind is bool else options[word]
        elif word.startswith("-"):
            return None
        else:
            place += 1
    option, equals, value = last.partition("=")
    if waiting is None and option in options and equals:
        waiting, last = options[option], value
    elif waiting is None and not last.startswith("-") and arguments:
        # Only the last argument may be many.
        waiting = arguments[min(place, len(arguments) - 1)]
        if place >= len(arguments) and "list" not in str(waiting.kind):
            return None
    if waiting is None or waiting.info.autocompletion is None:
        return None
    return list(waiting.info.autocompletion(SimpleNamespace(params=given), last))


def _default(option: _Parameter) -> Any:
    """What an option is that is not given."""
    variable = option.info.envvar
    return (os.environ.get(variable) if isinstance(variable, str) else None) or option.default


def _parameters(command: Any) -> tuple[dict[str, _Parameter], list[_Parameter]]:
    """The options of a command by each way to write them, and its arguments in order."""
    options: dict[str, _Parameter] = {}
    arguments: list[_Parameter] = []
    for name, parameter in inspect.signature(command).parameters.items():
        kind = parameter.annotation
        found = _Parameter(name, kind.__metadata__[0], kind.__origin__, parameter.default)
        if isinstance(found.info, ArgumentInfo):
            arguments.append(found)
            continue
        options |= dict.fromkeys(spellings(found.info, name), found)
    return options, arguments
