"""The commands, registered; each is a file in `commands/`."""

from typing import Annotated

import typer

from .. import __version__
from .commands import (
    buffers,
    check,
    diff,
    export,
    fragmentation,
    ingest,
    modules,
    owners,
    peaks,
    prune,
    runs,
    shell,
    sql,
    tables,
    timeline,
    trends,
    verify,
    views,
)
from .errors import usage_errors

app = typer.Typer(
    name="memhouse",
    help="A SQL warehouse for the memory dumps of the XLA compiler.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Start with: memhouse ingest DUMP_FOLDER; memhouse peaks",
)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"memhouse {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    pass


for command in (
    ingest.ingest,
    runs.runs,
    modules.modules,
    peaks.peaks,
    owners.owners,
    buffers.buffers,
    timeline.timeline,
    fragmentation.fragmentation,
    trends.trends,
    diff.diff,
    check.check,
    views.views,
    tables.tables,
    sql.sql,
    shell.shell,
    export.export,
    verify.verify,
    prune.prune,
):
    app.command()(usage_errors(command))
