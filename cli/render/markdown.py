"""Rows as a Markdown table on stdout."""

import sys
from collections.abc import Iterable

import pyarrow as pa

from ...queries.cells import heading, is_number, notes, text_columns


def print_markdown(rows: pa.Table) -> None:
    """Print rows with values as a person reads them."""
    columns = text_columns(rows)
    sys.stdout.write(_line(heading(field.name) for field, _ in columns))
    sys.stdout.write(_line("---:" if is_number(field.type) else "---" for field, _ in columns))
    for record in zip(*(cells for _, cells in columns), strict=True):
        sys.stdout.write(_line(record))
    for note in notes(rows):
        sys.stdout.write(f"\n{note}\n")


def _line(cells: Iterable[str]) -> str:
    return "| " + " | ".join(map(_cell, cells)) + " |\n"


def _cell(text: str) -> str:
    """A cell's text as text: not the end of the cell, and not HTML."""
    for special in ("\\", "|", "<"):
        text = text.replace(special, f"\\{special}")
    return text
