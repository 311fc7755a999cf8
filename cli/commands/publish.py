"""`memhouse publish`: write runs to Delta tables."""

from time import perf_counter
from typing import Annotated

import typer

from ...queries.catalogue import stored_views
from ...queries.result import counted
from ...schema.publish import publish as publish_store
from ..opening import reading
from ..parameters import DEFAULT_DB, DEFAULT_WAIT, Db, Wait
from ..render.text import print_note

EXAMPLE = "memhouse publish s3://bucket/memhouse"


def publish(
    url: Annotated[
        str,
        typer.Argument(
            metavar="URL",
            help="The lake: a folder, or a URL such as s3://bucket/memhouse.",
            show_default=False,
        ),
    ],
    again: Annotated[
        list[str] | None, typer.Option(metavar="RUN", help="Publish again a run that has changed.")
    ] = None,
    compact: Annotated[
        bool, typer.Option("--compact", help="Then merge small files into large ones.")
    ] = False,
    vacuum: Annotated[
        bool, typer.Option("--vacuum", help="Then delete files removed from the tables a week ago.")
    ] = False,
    db: Db = DEFAULT_DB,
    wait: Wait = DEFAULT_WAIT,
) -> None:
    """Write the runs that a lake lacks to Delta tables.

    Spark, Trino, Polars and DuckDB can read them. The rows of a run are added once; an interrupted
    publish is completed by the next. Relations across runs, such as trends, are overwritten if the
    warehouse has all runs of the lake: merge the files of many hosts first. Requires
    `pip install 'memhouse[lake]'`.
    """
    start = perf_counter()
    with reading(db, wait=wait) as store:
        published = publish_store(
            store, url, stored_views(store), again=again or (), compact=compact, vacuum=vacuum
        )
    counts = {"run": published.runs, "dump": published.dumps}
    added = [counted(count, noun) for noun, count in counts.items() if count]
    print_note(
        f"{url}: {', '.join(added) or 'no new run'} published, in {perf_counter() - start:.1f} s"
    )
    for note in published.notes:
        print_note(note)
