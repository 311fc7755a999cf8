"""The commands, registered; each family is in a file of its own."""

from typing import Annotated

import typer

from .. import __version__
from . import check, diff, export, ingest, module, prune, show, sql, trends, verify

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


app.command("ingest")(ingest.ingest)
app.command("runs")(show.runs)
app.command("modules")(show.modules)
app.command("peaks")(show.peaks)
app.command("buffers")(module.buffers)
app.command("owners")(module.owners)
app.command("timeline")(module.timeline)
app.command("fragmentation")(show.fragmentation)
app.command("trends")(trends.trends)
app.command("diff")(diff.diff)
app.command("check")(check.check)
app.command("export")(export.export)
app.command("prune")(prune.prune)
app.command("tables")(show.tables)
app.command("views")(show.views)
app.command("sql")(sql.sql)
app.command("shell")(sql.shell)
app.command("verify")(verify.verify)
