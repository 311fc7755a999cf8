"""The command line: every command with its help in a line, by panel."""

from importlib import import_module
from typing import Annotated, Any

import typer

from .. import __version__
from .settings import find_settings

# The first line of each command's help; the command is the function of its name in the file of its
# name in `commands/`.
PANELS = {
    "Fill a warehouse": {
        "demo": "Show five commands at work on real dumps, in a warehouse of their own.",
        "record": "Run a command and ingest what XLA compiles in it, as one run.",
        "fit": "Find the largest batch, or any other size, that fits; nothing is run.",
        "ingest": "Ingest XLA's memory dumps, each PATH as one run; with --run all are one.",
        "doctor": "Show what PATH contains, which questions it answers, and what is missing.",
    },
    "Ask about a module": {
        "runs": "List the runs, the oldest first.",
        "modules": "List the modules of each run.",
        "peaks": "Show the peak of each program in each memory space, the largest first.",
        "owners": "Show who owns a module's memory: source lines, scopes, roles.",
        "buffers": "Show the buffers that fill a module's memory.",
        "timeline": "Show how full a module's memory is over its schedule.",
        "saved": "Show what the forward pass saves for the backward pass, by line and shape.",
        "donations": "Show arguments that could be donated, and donations without effect.",
        "kernels": "Show the on-chip memory of kernels, and its limit.",
        "passes": "Show which compiler passes changed a program's memory, in order.",
        "fragmentation": "Show what packing wastes of each temp allocation.",
        "oom": "Explain why memory ran out, in a run or by the messages of a log.",
        "advise": "Show what to change in a program, and the peak reduction of each change.",
    },
    "Follow the history": {
        "trends": "Show how each program's memory, or work, changed from run to run, and why.",
        "since": "Show the run in which a module's memory last changed, and the cause.",
        "diff": "Show what grew or shrank from A to B, buffer by buffer, and the causes.",
        "check": "Check whether a run's memory is within its limits.",
        "label": "Set labels of runs, for example branch=main; without KEY=VALUE show them.",
        "log": "Show what changed the warehouse, the newest first.",
    },
    "Query and share": {
        "report": "Write a report as an HTML page: of a module, a diff, or the history.",
        "sql": "Run a SQL query on the warehouse.",
        "shell": "Open a SQL editor on the warehouse, to read only.",
        "mcp": "Serve the warehouse to agents, by the Model Context Protocol.",
        "views": "List the views and functions, or the columns, examples and SQL of one.",
        "tables": "List the tables, or the columns of one.",
        "export": "Write a view, a table or a query to a csv, json, parquet or arrow file.",
    },
    "Look after a warehouse": {
        "verify": "Compare every module with the totals in its dump, and list the violations.",
        "prune": "Drop runs, and the modules that no other run refers to.",
        "compact": "Return the space of deleted rows to the disk; all rows stay.",
        "merge": "Add the runs of other warehouse files to a warehouse.",
        "publish": "Write the runs that a lake lacks to Delta tables.",
    },
}
COMMANDS = tuple(name for commands in PANELS.values() for name in commands)


def build_app(typed: str | None = None) -> typer.Typer:
    """The command line; if `typed` is given, only that command is loaded, and the others listed.

    Raises UsageError for a memhouse.toml that is wrong.
    """
    defaults: dict[str, Any] = dict.fromkeys(COMMANDS, find_settings().defaults)
    app = typer.Typer(
        name="memhouse",
        help="A SQL warehouse for the memory dumps of the XLA compiler.",
        no_args_is_help=True,
        rich_markup_mode="markdown",
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"], "default_map": defaults},
        epilog="Start with: memhouse demo",
    )
    app.callback()(_options)
    for panel, commands in PANELS.items():
        for name, summary in commands.items():
            if typed in (None, name):
                _add_command(app, name, panel)
            else:
                app.command(name, help=summary, rich_help_panel=panel)(_not_loaded)
    return app


def _add_command(app: typer.Typer, name: str, panel: str) -> None:
    """Add a command with its file's settings: EXAMPLE, and CLASS, CONTEXT, OPTIONS if any."""
    from .errors import usage_errors

    file = import_module(f".commands.{name}", __package__)
    app.command(
        name,
        cls=getattr(file, "CLASS", None),
        context_settings=getattr(file, "CONTEXT", None),
        options_metavar=getattr(file, "OPTIONS", "[OPTIONS]"),
        epilog=f"Example: {file.EXAMPLE}",
        rich_help_panel=panel,
    )(usage_errors(getattr(file, name)))


def _not_loaded() -> None:
    """A command that is listed alone."""


def _version(is_asked: bool) -> None:
    if is_asked:
        typer.echo(f"memhouse {__version__}")
        raise typer.Exit


def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    pass
