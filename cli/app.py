"""The commands, registered; each is a file in `commands/`."""

from collections.abc import Sequence
from importlib import import_module
from typing import Annotated, Any

import typer

from .. import __version__
from .errors import usage_errors

# Each is a function in the file of its name in `commands/`, or an app of several commands; listed
# in the order of `--help`.
COMMANDS = (
    "ingest",
    "record",
    "doctor",
    "runs",
    "label",
    "modules",
    "peaks",
    "owners",
    "buffers",
    "advise",
    "donations",
    "kernels",
    "timeline",
    "fragmentation",
    "trends",
    "since",
    "diff",
    "check",
    "oom",
    "views",
    "tables",
    "sql",
    "shell",
    "report",
    "export",
    "verify",
    "prune",
    "compact",
    "lake",
)
_SETTINGS: dict[str, dict[str, Any]] = {
    "record": {
        # What follows the recorded command's name is for that command.
        "context_settings": {"allow_interspersed_args": False},
        "options_metavar": "[OPTIONS] --",
        "epilog": "Example: memhouse record --run tonight -- python train.py --steps 100",
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
        epilog="Start with: memhouse ingest DUMP_FOLDER; memhouse peaks",
    )
    # The callback also keeps Typer from taking a single command for the whole program.
    app.callback()(_options)
    for name in names:
        command = getattr(import_module(f".commands.{name}", __package__), name)
        if isinstance(command, typer.Typer):
            app.add_typer(command, name=name)
            continue
        app.command(name, **_SETTINGS.get(name, {}))(usage_errors(command))
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
