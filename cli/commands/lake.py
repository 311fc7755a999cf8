"""`memhouse lake`: what only a lake needs."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from ..errors import usage_errors
from ..options import Lake

lake = typer.Typer(
    help="Make and keep a lake: one Delta table in a folder or a bucket.", no_args_is_help=True
)
# So many names of deleted files are shown.
_SHOWN = 10


class Dialect(StrEnum):
    """Whose SQL."""

    spark = "spark"


@lake.command(epilog="Example: memhouse lake init nights")
@usage_errors
def init(
    place: Annotated[
        str,
        typer.Argument(
            metavar="LAKE",
            envvar="MEMHOUSE_DB",
            help="A folder, or a URL such as s3://bucket/memhouse.",
            show_default=False,
        ),
    ],
) -> None:
    """Make an empty lake, to ingest into with --db LAKE."""
    from ...lake import init as make
    from ..render.text import print_note

    make(place)
    print_note(f"{place} is a lake: fill it with `memhouse ingest --db {place} DUMPS`")


@lake.command(epilog="Example: memhouse lake compact --db nights")
@usage_errors
def compact(db: Lake) -> None:
    """Write many small files as few large ones; all rows stay.

    Others may read and write meanwhile. `memhouse lake vacuum` deletes the small files later.
    """
    from ...schema.errors import WarehouseError
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
    from ...queries.cells import counted, human_bytes
    from ..render.text import print_note

    gone = clean(db, retention, dry_run=dry_run, force=force)
    if dry_run:
        for path in gone.files[:_SHOWN]:
            print(path)
        if len(gone.files) > _SHOWN:
            print(f"and {len(gone.files) - _SHOWN} more")
    would = "would delete" if dry_run else "deleted"
    print_note(f"{would} {counted(len(gone.files), 'file')}, {human_bytes(gone.size_bytes)}")


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
    from ..render.text import print_note

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
    from ...queries.cells import counted
    from ..render.text import print_note

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
