"""`memhouse views`: the canned views."""

from typing import Annotated

import typer

from ...queries.catalogue import examples, listed_views, named_view, view_columns
from ...queries.own_macros import listed_macros
from ..parameters import AsFormat, completer
from ..render.text import print_prose, print_rows, print_text
from ..settings import find_settings

EXAMPLE = "memhouse views saved_for_backward"


def views(
    name: Annotated[
        str | None,
        typer.Argument(
            help="Show this view's columns, examples and SQL.", autocompletion=completer("views")
        ),
    ] = None,
    output: AsFormat = "table",
) -> None:
    """List the views and functions, or the columns, examples and SQL of one.

    All warehouses have the same views, those of the installed memhouse.
    """
    macros = listed_macros(find_settings().macros)
    if name is None:
        print_rows(listed_views(macros), output)
        return
    view = named_view(name, macros)
    columns = view_columns(view)
    if output != "table":
        print_rows(columns, output)
        return
    print_prose(f"{view.answers} {view.description}")
    print_text("")
    print_rows(columns, output)
    for example in examples().get(name, []):
        print_text(f"\n-- {example.title}\n{example.sql};")
    print_text(f"\n{view.sql}")
