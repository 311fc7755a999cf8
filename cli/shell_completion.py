"""Answers a shell that completes a command line, by the protocol of Typer's scripts."""

import inspect
import io
import os
import re
import shlex
from collections.abc import Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from itertools import pairwise
from types import SimpleNamespace
from typing import Any, NamedTuple

import typer
from typer.models import ArgumentInfo, OptionInfo

from .app import command_named
from .options import find_settings, spellings

# Which parameter of a command the last word of a line belongs to.
#
# Typer knows too, but it builds the command first, which takes longer than a user waits for TAB.


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
    settings = find_settings().defaults
    given = {each.name: _default(each, settings) for each in options.values()}
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


def _default(option: _Parameter, settings: Mapping[str, Any]) -> Any:
    """What an option is that is not given."""
    variable = option.info.envvar
    given = os.environ.get(variable) if isinstance(variable, str) else None
    return given or settings.get(option.name, option.default)


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


# Answers a shell that completes a command line, by the protocol of Typer's scripts.
#
# Typer finds what fits; here is what its scripts lack: names with blanks and colons reach the
# shell whole, only the named command is imported, and a failure is no answer rather than a
# message.

# bash splits words at these, and replaces what follows the last one, or an @ too.
_BREAKS = re.compile(r"[:=@]+")
_ESCAPED = re.compile(r"[^\w.+,/%:=@-]")
_Found = list[tuple[str, str]]


def complete(shell: str) -> int:
    """Print what fits at the cursor, as the shell takes it; the exit status."""
    try:
        words = _bash_words() if shell == "bash" else _split(os.environ["_TYPER_COMPLETE_ARGS"])
        found = _found(list(map(_plain, words[1:])) if shell == "bash" else words[1:])
    except Exception:
        words, found = [""], []
    if os.environ.get("_TYPER_COMPLETE_FISH_ACTION") == "is-args":
        return int(not found)
    answer = {"bash": _for_bash, "zsh": _for_zsh, "fish": _for_fish}[shell](found, words[-1])
    if answer:
        print(answer)
    return 0


def _found(words: Sequence[str]) -> _Found:
    """What fits as the last of the words, and what it means, by Typer."""
    from .app import COMMANDS, app_for

    if len(words) == 1 and not words[0].startswith("-"):
        # To import all commands for their helps takes longer than a user waits.
        return [(name, "") for name in COMMANDS if name.startswith(words[0])]
    names = names_at(words) if words[0] in COMMANDS else None
    if names is not None:
        return [(name, "") for name in names]
    *before, last = words
    # What it prints for fish is easiest to read.
    os.environ["_MEMHOUSE_COMPLETE"] = "complete_fish"
    os.environ["_TYPER_COMPLETE_FISH_ACTION"] = "get-args"
    typed = shlex.join(["memhouse", *before]) + " " + (shlex.quote(last) if last else "")
    os.environ["_TYPER_COMPLETE_ARGS"] = typed
    # Help goes on one line.
    os.environ["COLUMNS"] = "10000"
    said = io.StringIO()
    try:
        with redirect_stdout(said), redirect_stderr(io.StringIO()):
            app_for(before)(prog_name="memhouse")
    except SystemExit:
        pass
    lines = [line.partition("\t") for line in said.getvalue().splitlines() if line]
    return [(value, meaning) for value, _, meaning in lines]


def _split(line: str) -> list[str]:
    """The words of a command line whose last word may be cut short; it is empty after a blank."""
    lexer = shlex.shlex(line, posix=True)
    lexer.whitespace_split = True
    lexer.commenters = ""
    words: list[str] = []
    try:
        words += lexer
    except ValueError:
        # An open quote.
        return [*words, lexer.token]
    return [*words, ""] if line.endswith(" ") and not line.endswith("\\ ") else words


def _bash_words() -> list[str]:
    """The words up to the cursor as they were typed, joined again where bash splits too much."""
    typed = os.environ["COMP_WORDS"]
    pieces = typed.split("\n") if "\n" in typed else typed.split()
    pieces = pieces[: int(os.environ["COMP_CWORD"]) + 1]
    pieces += [""] * (int(os.environ["COMP_CWORD"]) + 1 - len(pieces))
    words = pieces[:1]
    for before, piece in pairwise(pieces):
        if _BREAKS.fullmatch(piece) or _BREAKS.fullmatch(before):
            words[-1] += piece
        else:
            words.append(piece)
    return words


def _plain(word: str) -> str:
    """A word as it was typed, without its quotes."""
    return (_split(word) or [""])[0] if word else ""


def _for_bash(found: _Found, typed: str) -> str:
    value = typed.partition("=")[2] if typed.startswith("--") and "=" in typed else typed
    if value.startswith(("'", '"')):
        return "\n".join(value for value, _ in found)
    kept = max(value.rfind(":") + 1, value.rfind("=") + 1, value.rfind("@"), 0)
    kept = len(_plain(value[:kept]))
    return "\n".join(_ESCAPED.sub(r"\\\g<0>", value[kept:]) for value, _ in found)


def _for_zsh(found: _Found, typed: str) -> str:
    if not found:
        return "_files"
    found = _with_option(found, typed)
    if any(meaning for _, meaning in found):
        told = [f"{value.replace(':', chr(92) + ':')}:{meaning}" for value, meaning in found]
        return f"local -a found; found=({shlex.join(told)}); _describe memhouse found"
    return f"compadd -- {shlex.join([value for value, _ in found])}"


def _for_fish(found: _Found, typed: str) -> str:
    return "\n".join("\t".join(filter(None, each)) for each in _with_option(found, typed))


def _with_option(found: _Found, typed: str) -> _Found:
    """Values after `--option=` as whole words, as zsh and fish take them."""
    option, equals, _ = typed.partition("=")
    if not equals or not option.startswith("--"):
        return found
    return [(f"{option}={value}", meaning) for value, meaning in found]
