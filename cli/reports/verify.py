"""Shows where the warehouse does not hold what the dumps say."""

import pyarrow as pa
import typer

from ...queries.verify import breaches, checks
from ..options import Format
from ..render.human import counted
from ..render.output import print_note, print_rows
from ..warehouse import reading

# A damaged dump can break a check a thousand times over.
_SHOWN = 20


def show_checks(output: Format) -> None:
    """Say what is checked."""
    rows = [{"check": check.name, "holds": check.holds} for check in checks()]
    print_rows(pa.Table.from_pylist(rows), output)


def show_breaches(db: str, output: Format) -> None:
    """Run all checks, show the breaches, and exit with status 1 if there are any."""
    with reading(db) as connection:
        found = [breach for check in checks() for breach in breaches(connection, check)]
        modules = connection.exec_driver_sql("SELECT COUNT(*) FROM modules").scalar_one()
    schema = pa.schema([(name, pa.string()) for name in ("check", "module", "breach")])
    rows_found = pa.Table.from_pylist([vars(breach) for breach in found], schema=schema)
    if output is Format.table and len(found) > _SHOWN:
        print_rows(rows_found[:_SHOWN], output)
        print_note(f"… and {len(found) - _SHOWN} more: --format csv shows all")
    elif found or output is not Format.table:
        print_rows(rows_found, output)
    breached = "1 breach" if len(found) == 1 else f"{len(found) or 'no'} breaches"
    print_note(f"{len(checks())} checks of {counted(modules, 'module')}: {breached}")
    if found:
        raise typer.Exit(1)
