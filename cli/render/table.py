"""Rows as a table on the terminal, fitted to its width: a line a row, numbers whole."""

import textwrap
from collections.abc import Sequence

import pyarrow as pa
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from ...queries.result import GAP, LEAST_TEXT, Column, fit, taken_below, text_columns

_INDENT = "    "


def print_table(rows: pa.Table, *, is_wide: bool, remedy: str) -> None:
    """Print rows; on a terminal too narrow for all columns the last ones are left out.

    A wide table is whole. remedy: what shows the columns that are left out
    """
    columns = [Column(field, cells) for field, cells in text_columns(rows)]
    # Without emoji: `:100:` is a line number.
    console = _Console(emoji=False)
    left_out: list[Column] = []
    below: list[str] | None = None
    if console.is_terminal and not is_wide:
        below = taken_below(columns, console.width)
    if console.is_terminal and not is_wide:
        while not fit(columns, console.width) and len(columns) > 1:
            left_out.insert(0, columns.pop())
    # A pipe has no width: what is cut to fit a screen is of no use to the next program. The lines
    # of a wide table wrap on a terminal.
    console.width = max(console.width, sum(c.width + GAP for c in columns))
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, GAP, 0, 0))
    for column in columns:
        table.add_column(
            escape(column.shown(column.name)),
            justify="right" if column.is_number else "left",
            no_wrap=not column.is_prose,
            width=column.width,
        )
    for cells in zip(*(map(column.shown, column.cells) for column in columns), strict=True):
        table.add_row(*map(escape, cells))
    if below is None:
        console.print(table, highlight=False)
    else:
        _print_with_texts_below(console, table, below)
    if left_out:
        names = ", ".join(column.name for column in left_out)
        Console(stderr=True, emoji=False).print(
            f"no room for: {escape(names)} ({remedy} has all)", style="dim", highlight=False
        )


class _Console(Console):
    def on_broken_pipe(self) -> None:
        """Rich would end the command as failed: leave that to whoever prints."""
        raise


def _print_with_texts_below(console: Console, table: Table, texts: Sequence[str]) -> None:
    with console.capture() as captured:
        console.print(table, highlight=False)
    heading, *lines = captured.get().splitlines()
    console.file.write(f"{heading}\n")
    for line, text in zip(lines, texts, strict=True):
        console.file.write(f"{line}\n")
        for part in textwrap.wrap(text, max(console.width - len(_INDENT), LEAST_TEXT)):
            console.file.write(f"{_INDENT}{part}\n")
