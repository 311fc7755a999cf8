"""The commands, registered; each is a file in `commands/`."""

from collections.abc import Sequence
from importlib import import_module
from typing import Annotated, Any

import typer

from .. import __version__
from .errors import usage_errors

# Each is a function in the file of its name in `commands/`, or an app of several commands; the
# panels of `--help`, in order. A file's EXAMPLE ends the command's help.
_PANELS = {
    "Fill a warehouse": (
        "demo",
        "record",
        "ingest",
        "doctor",
    ),
    "Ask about a module": (
        "runs",
        "modules",
        "peaks",
        "owners",
        "buffers",
        "timeline",
        "donations",
        "kernels",
        "fragmentation",
        "oom",
        "advise",
    ),
    "Follow the history": (
        "trends",
        "since",
        "diff",
        "check",
        "label",
        "log",
    ),
    "Query and share": (
        "report",
        "sql",
        "shell",
        "mcp",
        "views",
        "tables",
        "export",
    ),
    "Look after a warehouse": (
        "verify",
        "prune",
        "compact",
        "lake",
    ),
}
_PANEL_OF = {name: panel for panel, names in _PANELS.items() for name in names}
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
    return _app(arguments[:1]) if arguments[:1] and arguments[0] in COMMANDS else _app(COMMANDS)


def _app(names: Sequence[str]) -> typer.Typer:
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
        file = import_module(f".commands.{name}", __package__)
        command, panel = getattr(file, name), _PANEL_OF[name]
        if isinstance(command, typer.Typer):
            app.add_typer(command, name=name, rich_help_panel=panel)
            continue
        settings: dict[str, Any] = {"rich_help_panel": panel, "epilog": f"Example: {file.EXAMPLE}"}
        if hasattr(file, "PARSED_BY"):
            settings["cls"] = file.PARSED_BY
        app.command(name, **settings, **_SETTINGS.get(name, {}))(usage_errors(command))
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
