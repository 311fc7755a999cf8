"""`spark-submit memhouse-spark.py ingest`: what `memhouse ingest` does, on Spark's executors."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter
from typing import TYPE_CHECKING, Annotated

import typer

from ..ingest.sources.files import exists, path_of
from ..schema.errors import MissingPackageError
from ..schema.lake.snapshot import Lake, is_made
from ..schema.lake.storage import location
from .commands.ingest import named_paths, print_summary
from .errors import told, usage_errors
from .options import At, Labels, parse_labels
from .render.text import print_error, print_note

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def ingest(
    paths: Annotated[
        list[str],
        typer.Argument(
            metavar="PATH",
            help="Dump folders, archives or files, or URLs of them, that all executors see.",
        ),
    ],
    db: Annotated[
        str,
        typer.Option(
            metavar="URL",
            envvar="MEMHOUSE_DB",
            help="The lake: s3://bucket/memhouse, or a folder that all executors see.",
        ),
    ],
    run: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Name the run; else it is named after the path."),
    ] = None,
    at: At = None,
    label: Labels = None,
    tasks: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="At most N tasks read; else two for each core."),
    ] = None,
) -> None:
    """Ingest XLA's memory dumps into a lake, each PATH as one run; with --run all are one.

    Executors read the dumps and write the rows, the driver commits each run at once. All machines
    need the same version of memhouse, and must see the paths and the lake by the same names.
    """
    if not all(paths):
        raise typer.BadParameter("it is empty: name a folder, an archive or a file")
    given = [path_of(path) for path in paths]
    named = named_paths(given, run)
    labels = parse_labels(label or [])
    from .. import spark as on_spark
    from ..queries.arguments import parse_time

    run_at = parse_time(at, "at")
    if not any(map(exists, given)):
        for path in paths:
            print_error(f"{path}: there is no such file or folder")
        raise typer.Exit(1)
    # What is wrong with the lake is told before Spark starts, which takes long.
    if not is_made(location(db)) and "://" in db:
        print_note(f"{db} is a new lake")
    else:
        Lake(location(db))
    unreadable = False
    with _session() as spark:
        for of_run in named.values():
            start = perf_counter()
            summary = on_spark.ingest(
                spark, db, *of_run, run=run, at=run_at, labels=labels, tasks=tasks
            )
            print_summary(summary, perf_counter() - start)
            unreadable |= bool(summary.problems)
    if unreadable:
        raise typer.Exit(1)


@contextmanager
def _session() -> "Iterator[SparkSession]":
    # Executors on this machine are to run the Python that has memhouse.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    try:
        from pyspark.sql import SparkSession
    except ModuleNotFoundError:
        raise MissingPackageError(
            "ingest on Spark needs pyspark: pip install 'memhouse[spark]'"
        ) from None
    spark = SparkSession.builder.appName("memhouse ingest").getOrCreate()
    # What goes wrong is told in a line; Spark's own log is for its own failures.
    spark.sparkContext.setLogLevel("ERROR")
    try:
        yield spark
    finally:
        spark.stop()


def main() -> None:
    """The entry point of `memhouse-spark.py`."""
    app = typer.Typer(
        name="memhouse-spark.py",
        help="memhouse on Spark: run it by spark-submit.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        add_completion=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    # The callback keeps Typer from taking the only command for the whole program.
    app.callback()(_no_options)
    app.command("ingest")(usage_errors(ingest))
    try:
        app()
    except KeyboardInterrupt:
        sys.exit(130)
    except Exception as error:
        status = told(error)
        if status is None:
            raise
        sys.exit(status)


def _no_options() -> None:
    pass
