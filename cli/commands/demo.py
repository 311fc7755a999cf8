"""`memhouse demo`: five commands on dumps that come with memhouse."""

from pathlib import Path
from typing import Annotated

import typer

from ..demo.walk import demo_warehouse, walk
from ..render.text import print_prose

EXAMPLE = "memhouse demo"


def demo(
    folder: Annotated[
        Path, typer.Argument(metavar="[DIR]", help="Where to make the demo's warehouse.")
    ] = Path(),
) -> None:
    """Show five commands at work on real dumps, in a warehouse of their own.

    The dumps come with memhouse: four nights of two programs for a TPU. They go into
    memhouse-demo.duckdb in DIR, which you can ask on, and delete. No other warehouse is touched.
    """
    db = demo_warehouse(folder)
    print_prose(
        f"{db} holds four nights of two programs for TPU v5e: the training step of a small Llama "
        "and a decoder. Five commands show what happened in them."
    )
    walk(db)
