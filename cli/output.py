"""Rows and messages as the user sees them: results to stdout, everything else to stderr."""

import csv
import json
import sys
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import pyarrow as pa
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from .options import Format

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
# A pipe has no width: what is cut to fit a screen is of no use to the next program.
_PIPE_WIDTH = 10_000


def print_error(message: str) -> None:
    """An error, on one line of stderr."""
    Console(stderr=True, soft_wrap=True).print(
        f"[bold red]error:[/] {escape(message)}", highlight=False
    )


def print_note(message: str) -> None:
    """Something the user should know, on stderr."""
    Console(stderr=True, soft_wrap=True).print(escape(message), highlight=False)


def print_rows(rows: pa.Table, output: Format, *, empty: str = "no rows") -> None:
    """Print rows in the format asked for; of none, a table says `empty` on stderr."""
    match output:
        case Format.csv:
            writer = csv.writer(sys.stdout, lineterminator="\n")
            writer.writerow(rows.column_names)
            writer.writerows(map(_plain_values, rows.to_pylist()))
        case Format.json:
            json.dump(rows.to_pylist(), sys.stdout, default=_plain, indent=1, allow_nan=False)
            sys.stdout.write("\n")
        case Format.markdown:
            _print_markdown(rows)
        case Format.table if len(rows):
            _print_table(rows)
        case _:
            print_note(empty)
    sys.stdout.flush()


def human_bytes(size: int | float) -> str:
    """A size as a person reads it: 306.98 MiB."""
    amount, unit = float(size), 0
    while abs(amount) >= 1024 and unit < len(_UNITS) - 1:
        amount, unit = amount / 1024, unit + 1
    return f"{amount:.0f} B" if unit == 0 else f"{amount:.2f} {_UNITS[unit]}"


def _print_table(rows: pa.Table) -> None:
    console = Console()
    if not console.is_terminal:
        console.width = _PIPE_WIDTH
    table = Table(box=None, pad_edge=False, header_style="bold", show_edge=False)
    for field in rows.schema:
        numeric = _is_number(field.type)
        table.add_column(
            escape(_heading(field.name)),
            justify="right" if numeric else "left",
            no_wrap=numeric,
            overflow="fold",
        )
    for row in rows.to_pylist():
        table.add_row(*(escape(_human(name, value)) for name, value in row.items()))
    console.print(table, highlight=False)


def _print_markdown(rows: pa.Table) -> None:
    def line(cells: list[str]) -> str:
        return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n"

    sys.stdout.write(line([_heading(name) for name in rows.column_names]))
    sys.stdout.write(line(["---:" if _is_number(field.type) else "---" for field in rows.schema]))
    for row in rows.to_pylist():
        sys.stdout.write(line([_human(name, value) for name, value in row.items()]))


def _heading(column: str) -> str:
    """A column's name; the unit is in the cells."""
    return column.removesuffix("_bytes")


def _is_number(type_: pa.DataType) -> bool:
    return bool(
        pa.types.is_integer(type_) or pa.types.is_floating(type_) or pa.types.is_decimal(type_)
    )


def _human(column: str, value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else ""
    if column.endswith("_bytes") and not isinstance(value, str):
        return human_bytes(value)
    if isinstance(value, datetime):
        return value.strftime("%Y-%m-%d %H:%M")
    if isinstance(value, float):
        return f"{value:.4g}"
    # A control character in a name must not reach the terminal.
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in str(value))


def _plain_values(row: Mapping[str, Any]) -> list[Any]:
    return [_plain(v) if isinstance(v, datetime) else v for v in row.values()]


def _plain(value: Any) -> str:
    return value.isoformat() if isinstance(value, datetime) else str(value)
