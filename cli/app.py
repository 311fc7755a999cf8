"""The commands, registered: those of questions, and those of the files in `commands/`."""

import inspect
from collections.abc import Callable
from importlib import import_module
from typing import Annotated, Any, Literal

import typer

from .. import __version__
from ..queries.names import BY_HAND, GROUPS
from ..queries.questions import Question, Taken, declared, taken_by
from . import screens
from .errors import usage_errors
from .options import DEFAULT_DB, DEFAULT_WAIT, Db, Wait, completer, find_settings

_PANEL_OF = {name: panel for panel, names in GROUPS.items() for name in names}
COMMANDS = tuple(_PANEL_OF)
_SETTINGS: dict[str, dict[str, Any]] = {
    "record": {
        # What follows the recorded command's name is for that command.
        "context_settings": {"allow_interspersed_args": False},
        "options_metavar": "[OPTIONS] --",
    },
    "fit": {
        # The keywords of the user's function are options too.
        "context_settings": {"ignore_unknown_options": True},
    },
}


def build_app() -> typer.Typer:
    """The command line. Raises UsageError for a memhouse.toml that is wrong."""
    defaults = find_settings().defaults
    by_command: dict[str, Any] = dict.fromkeys(COMMANDS, defaults)
    app = typer.Typer(
        name="memhouse",
        help="A SQL warehouse for the memory dumps of the XLA compiler.",
        no_args_is_help=True,
        rich_markup_mode="markdown",
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"], "default_map": by_command},
        epilog="Start with: memhouse demo",
    )
    app.callback()(_options)
    for name, panel in _PANEL_OF.items():
        command, settings = command_named(name)
        settings = {"rich_help_panel": panel, **settings, **_SETTINGS.get(name, {})}
        app.command(name, **settings)(usage_errors(command))
    return app


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"memhouse {__version__}")
        raise typer.Exit


def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    pass


# The commands that are made from questions, and Typer's words for kinds of parameters.

_Command = Callable[..., None]


def command_named(name: str) -> tuple[_Command, dict[str, Any]]:
    """The command of a name and its settings for Typer."""
    if name not in BY_HAND:
        question = declared(name)
        return _command_of(question), {"epilog": f"Example: {question.example}"}
    file = import_module(f".commands.{name}", __package__)
    command = getattr(file, name)
    settings = {"epilog": f"Example: {file.EXAMPLE}"}
    if hasattr(file, "PARSED_BY"):
        settings["cls"] = file.PARSED_BY
    return _in_typer(command), settings


def _command_of(question: Question) -> _Command:
    """The command of a question: its options are the question's, then those of its screen."""
    show = getattr(screens, question.screen)
    taken = question.taken()
    given = [taken.name for taken in taken]

    def command(db: str, wait: float, **options: Any) -> None:
        # What is not given is for the question to say.
        arguments = {each: options.pop(each) for each in given}
        arguments = {each: value for each, value in arguments.items() if value is not None}
        show(screens.Asked(question, arguments, db, wait), **options)

    places = [_as_typed(each) for each in taken if each.kind.is_argument]
    options = [_as_typed(each) for each in taken if not each.kind.is_argument]
    _, *shown = _typed_parameters(show)
    in_order = [*places, _DB, *options, *shown, _WAIT]
    command.__name__ = question.ask.__name__
    command.__doc__ = question.help
    return _with_parameters(command, in_order)


def _in_typer(command: _Command) -> _Command:
    """A command by hand, whose parameters of a kind are told in Typer's words."""
    return _with_parameters(command, _typed_parameters(command))


def _typed_parameters(function: Callable[..., Any]) -> list[inspect.Parameter]:
    typed = {taken.name: _as_typed(taken) for taken in taken_by(function)}
    parameters = inspect.signature(function).parameters
    return [typed.get(name, parameters[name]) for name in parameters]


def _with_parameters(command: _Command, parameters: list[inspect.Parameter]) -> _Command:
    by_name = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in parameters]
    command.__signature__ = inspect.Signature(by_name)  # type: ignore[attr-defined]
    command.__annotations__ = {each.name: each.annotation for each in by_name}
    return command


def _as_typed(taken: Taken) -> inspect.Parameter:
    """A parameter as Typer reads it."""
    kind = taken.kind
    type_ = Literal[kind.choices] if kind.choices and kind.listed else taken.type
    told: dict[str, Any] = {"help": kind.meaning, "metavar": kind.metavar, "min": kind.least}
    if kind.completes is not None:
        told["autocompletion"] = completer(kind.completes)
    if kind.is_argument:
        info = typer.Argument(show_default=False, **told)
    else:
        flag = (f"--{taken.name.replace('_', '-')}",) if taken.type is bool else ()
        info = typer.Option(*(kind.spelled or flag), **told)
    default = kind.default if taken.default is None else taken.default
    if default in (None, ()):
        type_, default = type_ | None, None
    return inspect.Parameter(
        taken.name,
        inspect.Parameter.KEYWORD_ONLY,
        default=default,
        annotation=Annotated[type_, info],
    )


_DB = inspect.Parameter("db", inspect.Parameter.KEYWORD_ONLY, default=DEFAULT_DB, annotation=Db)
_WAIT = inspect.Parameter(
    "wait", inspect.Parameter.KEYWORD_ONLY, default=DEFAULT_WAIT, annotation=Wait
)
