"""`memhouse verify`: is what the warehouse holds what the dumps say?"""

from typing import Annotated

import typer

from .options import DEFAULT_DB, AsFormat, Db, Format
from .output import print_note, print_rows

# A damaged dump can break a check a thousand times over.
_SHOWN = 20


def verify(
    db: Db = DEFAULT_DB,
    output: AsFormat = Format.table,
    list_checks: Annotated[
        bool, typer.Option("--list", help="Say what is checked, and check nothing.")
    ] = False,
) -> None:
    """Hold every module against what its dump says of itself; name each breach.

    Exit status 1 if there is one.
    """
    import pyarrow as pa

    from ..queries.verify import breaches, checks
    from .warehouse import reading

    if list_checks:
        rows = [{"check": check.name, "holds": check.holds} for check in checks()]
        print_rows(pa.Table.from_pylist(rows), output)
        return
    with reading(db) as connection:
        found = [breach for check in checks() for breach in breaches(connection, check)]
        counted = connection.exec_driver_sql("SELECT COUNT(*) FROM modules").scalar_one()
    schema = pa.schema([(name, pa.string()) for name in ("check", "module", "breach")])
    rows_found = pa.Table.from_pylist([vars(breach) for breach in found], schema=schema)
    if output is Format.table and len(found) > _SHOWN:
        print_rows(rows_found[:_SHOWN], output)
        print_note(f"… and {len(found) - _SHOWN} more: --format csv shows all")
    elif found or output is not Format.table:
        print_rows(rows_found, output)
    print_note(f"{len(checks())} checks of {counted} modules: {len(found) or 'no'} breaches")
    if found:
        raise typer.Exit(1)
