"""`memhouse views`: the canned views."""

from typing import Annotated

import typer

from ..known import known_views
from ..options import AsFormat, Format

EXAMPLE = "memhouse views saved_for_backward"


def views(
    name: Annotated[
        str | None,
        typer.Argument(help="Show this view's columns and SQL.", autocompletion=known_views),
    ] = None,
    output: AsFormat = Format.table,
) -> None:
    """List the canned views and what they answer, or one view's columns and SQL."""
    from ...queries import lists
    from ..render.rows import print_rows
    from ..render.text import print_prose, print_text

    if name is None:
        print_rows(lists.views(), output)
        return
    view = lists.view(name)
    columns = lists.view_columns(view)
    if output is not Format.table:
        print_rows(columns, output)
        return
    print_prose(f"{view.answers} {view.description}")
    print_text("")
    print_rows(columns, output)
    print_text(f"\n{view.sql}")
