"""Rows as a Markdown table on stdout."""

import sys
from collections.abc import Iterable

import pyarrow as pa

from ...queries.cells import heading, human, is_number


def print_markdown(rows: pa.Table) -> None:
    """Print rows with values as a person reads them."""
    names = rows.column_names
    sys.stdout.write(_line(map(heading, names)))
    sys.stdout.write(_line("---:" if is_number(field.type) else "---" for field in rows.schema))
    # By position: two columns may share a name.
    columns = [column.to_pylist() for column in rows.columns]
    for record in zip(*columns, strict=True):
        sys.stdout.write(_line(map(human, names, record)))


def _line(cells: Iterable[str]) -> str:
    return "| " + " | ".join(map(_cell, cells)) + " |\n"


def _cell(text: str) -> str:
    """A cell's text as text: not the end of the cell, and not HTML."""
    for special in ("\\", "|", "<"):
        text = text.replace(special, f"\\{special}")
    return text
