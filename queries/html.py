"""Rows as a small table for a notebook."""

from collections.abc import Sequence
from html import escape

import pyarrow as pa

from .cells import heading, is_number, notes, one_line, text_columns

_MOST_ROWS = 20


def table_html(table: pa.Table, caption: str, empty: str) -> str:
    """The first rows with their heading and caption; every text is escaped."""
    parts = [f"<p>{_text(caption)}</p>"] if caption else []
    if table.num_rows == 0:
        return "\n".join([*parts, f"<p>{_text(empty)}</p>"])
    columns = text_columns(table.slice(0, _MOST_ROWS))
    aligned = ["right" if is_number(field.type) else "left" for field, _ in columns]
    headings = [heading(field.name) for field, _ in columns]
    parts += ["<table>", "<thead>", _row("th", headings, aligned), "</thead>", "<tbody>"]
    for record in zip(*(cells for _, cells in columns), strict=True):
        parts.append(_row("td", record, aligned))
    parts += ["</tbody>", "</table>"]
    parts += [f"<p>{note}</p>" for note in notes(table)]
    if table.num_rows > _MOST_ROWS:
        parts.append(f"<p>… and {table.num_rows - _MOST_ROWS} more rows</p>")
    return "\n".join(parts)


def _row(tag: str, cells: Sequence[str], aligned: list[str]) -> str:
    texts = zip(cells, aligned, strict=True)
    inner = "".join(f'<{tag} style="text-align: {a}">{_text(c)}</{tag}>' for c, a in texts)
    return f"<tr>{inner}</tr>"


def _text(text: str) -> str:
    return escape(one_line(text))
