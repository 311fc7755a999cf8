"""Rows as a Markdown table."""

import re
import sys
from collections.abc import Iterable, Iterator

import pyarrow as pa

from ...queries.cells import heading, is_number, notes, text_columns

_ESCAPED = re.compile(r"[\\`*\[\]<|~]")


def print_markdown(rows: pa.Table) -> None:
    """Print rows with values as a person reads them."""
    sys.stdout.writelines(markdown_lines(rows))


def markdown_lines(rows: pa.Table) -> Iterator[str]:
    """The lines of the table, and of the notes to it."""
    columns = text_columns(rows)
    yield _line(heading(field.name) for field, _ in columns)
    yield _line("---:" if is_number(field.type) else "---" for field, _ in columns)
    for record in zip(*(cells for _, cells in columns), strict=True):
        yield _line(record)
    for note in notes(rows):
        yield f"\n{note}\n"


def as_text(words: str) -> str:
    """Words as text in a paragraph: no links, no emphasis, no code, no HTML."""
    return _ESCAPED.sub(r"\\\g<0>", words)


def as_code(words: str) -> str:
    """Words as code."""
    fence = "``" if "`" in words else "`"
    return f"{fence}{words}{fence}"


def _line(cells: Iterable[str]) -> str:
    return "| " + " | ".join(map(_cell, cells)) + " |\n"


def _cell(text: str) -> str:
    """A cell's text as text: not the end of the cell, and not HTML."""
    for special in ("\\", "|", "<"):
        text = text.replace(special, f"\\{special}")
    return text
