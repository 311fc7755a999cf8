"""`memhouse lake`: what only a lake needs."""

import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ...queries.result import counted
from ...schema.errors import UsageError, WarehouseError
from ...schema.readable import command, human_bytes
from ..errors import FAILED, usage_errors
from ..options import Lake
from ..render.text import print_note, print_text

if TYPE_CHECKING:
    from ...schema.lake.upkeep import Checked

lake = typer.Typer(
    help="Make and keep a lake: one Delta table in a folder or a bucket.", no_args_is_help=True
)
Place = Annotated[
    str,
    typer.Argument(
        metavar="LAKE",
        envvar="MEMHOUSE_DB",
        help="A folder, or a URL such as s3://bucket/memhouse.",
        show_default=False,
    ),
]
# So many names of deleted files are shown.
_SHOWN = 10


class Dialect(StrEnum):
    """Whose SQL."""

    spark = "spark"


@lake.command(epilog="Example: memhouse lake init nights")
@usage_errors
def init(place: Place) -> None:
    """Make an empty lake, to ingest into with --db LAKE."""
    from ...lake import init as make

    make(place)
    print_note(f"{place} is a lake: fill it with `{command('ingest', '--db', place, 'DUMPS')}`")


@lake.command(epilog="Example: memhouse lake compact --db nights")
@usage_errors
def compact(db: Lake) -> None:
    """Write many small files as few large ones; all rows stay.

    Others may read and write meanwhile. `memhouse lake vacuum` deletes the small files later.
    """
    from ...schema.lake.storage import is_lake
    from .compact import compact as run

    if Path(db).is_file():
        raise WarehouseError(f"{db} is not a lake: `memhouse compact` makes a file small")
    if not is_lake(db):
        raise WarehouseError(f"there is no lake at {db}: make one with `memhouse lake init`")
    run(db)


@lake.command(epilog="Example: memhouse lake vacuum --db nights --dry-run")
@usage_errors
def vacuum(
    db: Lake,
    retention: Annotated[
        str,
        typer.Option(
            metavar="7d",
            help="Keep files that left the lake since so long (h, d, w). Must exceed the longest"
            " ingest.",
        ),
    ] = "7d",
    force: Annotated[
        bool,
        typer.Option("--force", help="Allow less than 7d: nobody uses the lake meanwhile."),
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be deleted, and delete nothing.")
    ] = False,
) -> None:
    """Delete files that compaction or deletion left behind, and those of writers that died."""
    from ...lake import vacuum as clean

    gone = clean(db, retention, dry_run=dry_run, force=force)
    if dry_run:
        for path in gone.files[:_SHOWN]:
            print(path)
        if len(gone.files) > _SHOWN:
            print(f"and {len(gone.files) - _SHOWN} more")
    would = "would delete" if dry_run else "deleted"
    print_note(f"{would} {counted(len(gone.files), 'file')}, {human_bytes(gone.size_bytes)}")


@lake.command(epilog="Example: memhouse lake check nights --read-data")
@usage_errors
def check(
    place: Place,
    read_data: Annotated[
        bool,
        typer.Option("--read-data", help="Read all files, and hold each against its SHA-256."),
    ] = False,
) -> None:
    """Name damaged and missing data files, and the runs whose rows they held.

    Exit status 1 if there are any. Without --read-data only whether each file is there and as long
    as it was written. Files of other programs have no SHA-256: they are told as not checked.
    """
    from ...lake import check as look

    found = look(place, read_data=read_data)
    _list_damage(found)
    unchecked = (
        f"{found.unchecked} not checked: no SHA-256 in their names"
        if read_data
        else "contents not checked: give --read-data"
    )
    print_note(
        f"{counted(found.files, 'file')}: {len(found.damaged) or 'none'} damaged or missing"
        + (f"; {unchecked}" if found.unchecked else "")
    )
    if found.damaged:
        repair = command("lake", "repair", names=[place])
        print_note(f"What to do: restore them from a copy, or drop what they held:\n  {repair}")
        raise typer.Exit(FAILED)


@lake.command(epilog="Example: memhouse lake repair nights --yes")
@usage_errors
def repair(
    place: Place,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Drop the files that cannot be read, and the runs, dumps and modules that lack their rows.

    Reads all files, names those that are damaged or missing, and asks. What stays is whole; ingest
    stores again what is dropped, where its dumps still are. Restore files from a copy first.
    """
    from ...lake import check as look
    from ...lake import repair as drop

    found = look(place, read_data=True)
    if not found.damaged:
        print_note(f"{place}: nothing to repair")
        return
    _list_damage(found)
    if not yes:
        if not sys.stdin.isatty():
            raise UsageError("repair asks before it drops these files: give --yes to drop them")
        question = f"Drop {counted(len(found.damaged), 'file')}, and what lacks their rows?"
        typer.confirm(question, abort=True, err=True)
    done = drop(place, found)
    for run in done.runs:
        print_text(f"dropped: {run}")
    for run in done.incomplete_runs:
        print_text(f"incomplete: {run}")
    print_note(
        f"dropped {counted(len(done.files), 'file')}, {counted(len(done.runs), 'run')}, "
        f"{counted(done.dumps, 'dump')}, {counted(done.modules, 'module')}"
    )


def _list_damage(found: "Checked") -> None:
    """Each damaged file on a line, what is wrong on the next."""
    for damage in found.damaged:
        runs = [*damage.runs[:_SHOWN], *(["…"] if len(damage.runs) > _SHOWN else [])]
        of = f" of {', '.join(runs)}" if runs else ""
        print_text(damage.file)
        print_text(f"  {damage.what}: {counted(damage.rows, 'row')}{of}")


@lake.command(epilog="Example: memhouse lake export nights.duckdb --db nights")
@usage_errors
def export(
    file: Annotated[
        Path, typer.Argument(metavar="FILE.duckdb", help="A file that is not there yet.")
    ],
    db: Lake,
) -> None:
    """Write every row of the lake to a new DuckDB warehouse."""
    from ...lake import export_file

    rows = export_file(db, file)
    print_note(f"{file}: {rows} rows")


@lake.command("import", epilog="Example: memhouse lake import memhouse.duckdb --db nights")
@usage_errors
def import_(
    file: Annotated[Path, typer.Argument(metavar="FILE.duckdb", help="A DuckDB warehouse.")],
    db: Lake,
) -> None:
    """Store the runs of a DuckDB warehouse that the lake does not have, in one commit."""
    from ...lake import import_file

    new = import_file(db, file)
    print_note(f"{db}: {counted(len(new), 'new run')} from {file}")


@lake.command(epilog="Example: memhouse lake ddl --db nights")
@usage_errors
def ddl(
    db: Lake,
    dialect: Annotated[Dialect, typer.Option(help="Whose SQL.")] = Dialect.spark,
) -> None:
    """Print SQL that registers the lake's table and views in a catalog."""
    from ...lake import ddl as statements

    assert dialect is Dialect.spark
    print(statements(db), end="")
