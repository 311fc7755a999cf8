"""Rows as a Markdown table."""

import re
from collections.abc import Iterable, Iterator

import pyarrow as pa

from ...queries.result import is_number, notes, text_columns

_ESCAPED = re.compile(r"[\\`*\[\]<|~]")
# GitHub tells whoever is named like this, wherever the name stands.
_MENTION = re.compile(r"(?<!\w)@(?=\w)")


def markdown_lines(rows: pa.Table) -> Iterator[str]:
    """The lines of a table, with values as a person reads them, and of the notes to it."""
    columns = text_columns(rows)
    yield _line(field.name for field, _ in columns)
    yield _line("---:" if is_number(field.type) else "---" for field, _ in columns)
    for record in zip(*(cells for _, cells in columns), strict=True):
        yield _line(record)
    for note in notes(rows):
        yield f"\n{note}\n"


def as_text(words: str) -> str:
    """Words as text in a paragraph: no links, no emphasis, no code, no HTML."""
    return _without_mentions(_ESCAPED.sub(r"\\\g<0>", words))


def as_code(words: str) -> str:
    """Words as code."""
    longest = max(map(len, re.findall("`+", words)), default=0)
    fence = "`" * (longest + 1)
    # A space is left out again, and keeps a word's own ` apart.
    pad = " " if words.startswith("`") or words.endswith("`") else ""
    return f"{fence}{pad}{words}{pad}{fence}"


def _line(cells: Iterable[str]) -> str:
    return "| " + " | ".join(map(_cell, cells)) + " |\n"


def _cell(text: str) -> str:
    """A cell's text as text: not the end of the cell, and not HTML, a link or an image."""
    for special in ("\\", "|", "<"):
        text = text.replace(special, f"\\{special}")
    return _without_mentions(text.replace("](", "]\\("))


def _without_mentions(text: str) -> str:
    return _MENTION.sub("@\u200b", text)
