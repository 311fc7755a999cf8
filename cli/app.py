"""The commands, registered; each family is in a file of its own."""

from typing import Annotated

import typer

from .. import __version__
from . import history, ingest, module, show, store

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
    show.runs,
    show.modules,
    show.peaks,
    module.owners,
    module.buffers,
    module.timeline,
    show.fragmentation,
    history.trends,
    history.diff,
    history.check,
    show.views,
    show.tables,
    show.sql,
    show.shell,
    store.export,
    show.verify,
    store.prune,
):
    app.command()(command)
