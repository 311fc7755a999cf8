"""Rows as a small table for a notebook."""

import pyarrow as pa

from ..schema.small_table import paragraph, small_table
from .cells import heading, is_number, notes, text_columns

_MOST_ROWS = 20


def table_html(table: pa.Table, caption: str, empty: str) -> str:
    """The first rows with their heading and caption; every text is escaped."""
    if table.num_rows == 0:
        return "\n".join(map(paragraph, filter(None, [caption, empty])))
    columns = text_columns(table.slice(0, _MOST_ROWS))
    parts = [
        small_table(
            [heading(field.name) for field, _ in columns],
            zip(*(cells for _, cells in columns), strict=True),
            [is_number(field.type) for field, _ in columns],
            caption,
        )
    ]
    parts += map(paragraph, notes(table))
    if table.num_rows > _MOST_ROWS:
        parts.append(paragraph(f"… and {table.num_rows - _MOST_ROWS:,} more rows"))
    return "\n".join(parts)
