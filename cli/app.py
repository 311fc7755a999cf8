"""The commands, registered: those of questions, and those of the files in `commands/`."""

from collections.abc import Sequence
from typing import Annotated, Any

import typer

from .. import __version__
from ..queries.names import GROUPS
from .errors import usage_errors
from .questions import command_named

_PANEL_OF = {name: panel for panel, names in GROUPS.items() for name in names}
COMMANDS = tuple(_PANEL_OF)
_SETTINGS: dict[str, dict[str, Any]] = {
    "record": {
        # What follows the recorded command's name is for that command.
        "context_settings": {"allow_interspersed_args": False},
        "options_metavar": "[OPTIONS] --",
    }
}


def app_for(arguments: Sequence[str]) -> typer.Typer:
    """The command line for these arguments: of the command that they name, or else of all.

    Importing all commands takes longer than some commands do.
    """
    if arguments and arguments[0] in COMMANDS:
        return _app(arguments[:1])
    return _app(COMMANDS, is_list=list(arguments) in (["--help"], ["-h"]))


def _app(names: Sequence[str], *, is_list: bool = False) -> typer.Typer:
    """The command line of these commands; a list of them needs no options."""
    app = typer.Typer(
        name="memhouse",
        help="A SQL warehouse for the memory dumps of the XLA compiler.",
        no_args_is_help=True,
        rich_markup_mode="markdown",
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
        epilog="Start with: memhouse demo",
    )
    # The callback also keeps Typer from taking a single command for the whole program.
    app.callback()(_options)
    for name in names:
        command, settings = command_named(name)
        panel = _PANEL_OF[name]
        if isinstance(command, typer.Typer):
            app.add_typer(command, name=name, rich_help_panel=panel)
            continue
        settings |= {"rich_help_panel": panel, **_SETTINGS.get(name, {})}
        if is_list:
            settings["help"] = command.__doc__
            command = _do_nothing
        app.command(name, **settings)(usage_errors(command))
    return app


def _do_nothing() -> None:
    pass


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
