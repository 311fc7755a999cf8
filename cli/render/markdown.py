"""Rows and text as Markdown."""

import re
from collections.abc import Iterable, Iterator

import pyarrow as pa

from ...queries.result import is_number, notes, text_columns

_SPECIAL = re.compile(r"[\\`*\[\]<|~]")
# GitHub notifies a user whose name follows an @.
_MENTION = re.compile(r"(?<!\w)@(?=\w)")


def markdown_lines(rows: pa.Table) -> Iterator[str]:
    """The lines of a Markdown table with human-readable values, and of notes to its columns."""
    columns = text_columns(rows)
    yield _line(field.name for field, _ in columns)
    yield _line("---:" if is_number(field.type) else "---" for field, _ in columns)
    for record in zip(*(cells for _, cells in columns), strict=True):
        yield _line(record)
    for note in notes(rows):
        yield f"\n{note}\n"


def as_text(text: str) -> str:
    """Escape text for a paragraph: no links, emphasis, code or HTML."""
    return _without_mentions(_SPECIAL.sub(r"\\\g<0>", text))


def as_code(text: str) -> str:
    """Quote text as inline code."""
    fence = "`" * (max(map(len, re.findall("`+", text)), default=0) + 1)
    # Markdown strips one space; it separates the fence from a backtick of the text.
    pad = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{fence}{pad}{text}{pad}{fence}"


def _line(cells: Iterable[str]) -> str:
    return "| " + " | ".join(map(_cell, cells)) + " |\n"


def _cell(text: str) -> str:
    """Escape text for a table cell: no end of the cell, HTML, links or images."""
    for special in ("\\", "|", "<"):
        text = text.replace(special, f"\\{special}")
    return _without_mentions(text.replace("](", "]\\("))


def _without_mentions(text: str) -> str:
    return _MENTION.sub("@\u200b", text)
