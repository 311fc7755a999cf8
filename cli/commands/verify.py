"""`memhouse verify`: compare modules with the totals in their dumps."""

from typing import Annotated

import typer

from ...queries.verify import checks_list
from ..opening import open_warehouse
from ..parameters import DEFAULT_DB, DEFAULT_WAIT, AsFormat, Db, Wait
from ..render.text import print_note, print_rows

EXAMPLE = "memhouse verify"
# A corrupt dump can violate a check a thousand times.
_MAX_VIOLATIONS = 20


def verify(
    db: Db = DEFAULT_DB,
    output: AsFormat = "table",
    list_checks: Annotated[
        bool, typer.Option("--list", help="List the checks, and run none.")
    ] = False,
    wait: Wait = DEFAULT_WAIT,
) -> None:
    """Compare every module with the totals in its dump, and list the violations.

    Exit status 1 if there is one.
    """
    if list_checks:
        print_rows(checks_list(), output)
        return
    with open_warehouse(db, wait) as warehouse:
        verification = warehouse.verify()
    violations = len(verification)
    if output == "table" and violations > _MAX_VIOLATIONS:
        print_rows(verification.arrow()[:_MAX_VIOLATIONS], output)
        print_note(f"… and {violations - _MAX_VIOLATIONS} more: --format csv shows all")
    elif violations or output != "table":
        print_rows(verification.rows, output)
    print_note(verification.rows.caption)
    if violations:
        raise typer.Exit(1)
