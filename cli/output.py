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

from .human import heading, human, is_number
from .options import Format
from .table import print_table


def print_error(message: str) -> None:
    """An error, on one line of stderr."""
    Console(stderr=True, soft_wrap=True).print(
        f"[bold red]error:[/] {escape(message)}", highlight=False
    )


def print_note(message: str) -> None:
    """Something the user should know, on stderr."""
    Console(stderr=True, soft_wrap=True).print(escape(message), highlight=False)


def print_text(text: str) -> None:
    """A line of a result, on stdout."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


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
            print_table(rows)
        case _:
            print_note(empty)
    sys.stdout.flush()


def _print_markdown(rows: pa.Table) -> None:
    def line(cells: list[str]) -> str:
        return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n"

    sys.stdout.write(line([heading(name) for name in rows.column_names]))
    sys.stdout.write(line(["---:" if is_number(field.type) else "---" for field in rows.schema]))
    for row in rows.to_pylist():
        sys.stdout.write(line([human(name, value) for name, value in row.items()]))


def _plain_values(row: Mapping[str, Any]) -> list[Any]:
    return [_plain(v) if isinstance(v, datetime) else v for v in row.values()]


def _plain(value: Any) -> str:
    return value.isoformat() if isinstance(value, datetime) else str(value)
