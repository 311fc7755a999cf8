"""`memhouse verify`: does the warehouse hold what the dumps say?"""

from typing import Annotated

import typer

from ..options import DEFAULT_DB, DEFAULT_WAIT, AsFormat, Db, Format, Wait

EXAMPLE = "memhouse verify"
# A damaged dump can break a check a thousand times over.
_SHOWN = 20


def verify(
    db: Db = DEFAULT_DB,
    output: AsFormat = Format.table,
    list_checks: Annotated[
        bool, typer.Option("--list", help="Say what is checked, and check nothing.")
    ] = False,
    wait: Wait = DEFAULT_WAIT,
) -> None:
    """Hold every module against what its dump says of itself; name each breach.

    Exit status 1 if there is one.
    """
    from ...queries.verify import checks_list
    from ...queries.verify import verify as hold
    from ..opening import reading
    from ..render.rows import print_rows
    from ..render.text import print_note

    if list_checks:
        print_rows(checks_list(), output)
        return
    with reading(db, wait=wait) as store:
        found = hold(store)
    if output is Format.table and len(found) > _SHOWN:
        print_rows(found.arrow()[:_SHOWN], output)
        print_note(f"… and {len(found) - _SHOWN} more: --format csv shows all")
    elif len(found) or output is not Format.table:
        print_rows(found.rows, output)
    print_note(found.rows.caption)
    if len(found):
        raise typer.Exit(1)
