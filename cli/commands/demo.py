"""`memhouse demo`: five commands on dumps that come with memhouse."""

from pathlib import Path
from typing import Annotated

import typer

from ..demo.walk import demo_warehouse, walk
from ..render.text import print_prose

EXAMPLE = "memhouse demo"


def demo(
    folder: Annotated[
        Path, typer.Argument(metavar="[DIR]", help="Folder of the demo's warehouse.")
    ] = Path(),
) -> None:
    """Show five commands at work on real dumps, in a warehouse of their own.

    The dumps come with memhouse: four nightly runs of two programs for a TPU. They are ingested
    into memhouse-demo.duckdb in DIR, which you can query further, and delete. No other warehouse is
    changed.
    """
    db = demo_warehouse(folder)
    print_prose(
        f"{db} has four nightly runs of two programs for TPU v5e: the training step of a small "
        "Llama and a decoder. Five commands show how their memory changed."
    )
    walk(db)
