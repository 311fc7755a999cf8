"""Rows as plain text, for `print` and the prompt: the first ones, as wide as the terminal."""

import shutil
import sys

import pyarrow as pa

from .cells import notes, one_line, text_columns
from .fitted_columns import Column, fit, taken_below
from .plain_lines import plain_lines

_MOST_ROWS = 20
# A notebook's cell and a file have no width of their own.
_WIDTH = 120
_INDENT = "    "


def table_text(table: pa.Table, caption: str, empty: str) -> str:
    """The first rows under their caption; long texts are cut, and columns without room named."""
    told = [one_line(caption)] if caption else []
    if table.num_rows == 0:
        return "\n".join(filter(None, [*told, one_line(empty)]))
    shown = text_columns(table.slice(0, _MOST_ROWS))
    columns = [Column(field, list(map(one_line, cells))) for field, cells in shown]
    for column in columns:
        # A row is a line here.
        column.is_prose = False
    width = _width()
    below = taken_below(columns, width) or [""] * len(columns[0].cells)
    left_out: list[str] = []
    while not fit(columns, width) and len(columns) > 1:
        left_out.insert(0, one_line(columns.pop().heading))
    texts = [(list(map(c.cut, (c.heading, *c.cells))), c.is_number) for c in columns]
    heading, *lines = plain_lines(texts)
    told.append(heading.rstrip())
    for line, text in zip(lines, below, strict=True):
        told += [line.rstrip(), *([_INDENT + text] if text else [])]
    if table.num_rows > _MOST_ROWS:
        told.append(f"… and {table.num_rows - _MOST_ROWS:,} more rows")
    if left_out:
        told.append(f"no room for: {', '.join(left_out)}")
    return "\n".join([*told, *notes(table)])


def _width() -> int:
    is_terminal = sys.stdout is not None and sys.stdout.isatty()
    return shutil.get_terminal_size((_WIDTH, 0)).columns if is_terminal else _WIDTH
