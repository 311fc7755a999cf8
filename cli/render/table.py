"""Rows as a table on the terminal, fitted to its width: a line a row, numbers whole."""

import textwrap
from collections.abc import Iterable, Sequence

import pyarrow as pa
from rich.cells import cell_len, chop_cells
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from ...queries.cells import heading, is_number, text_columns, without_layout

# Truncate text at the end, but paths, sparklines and runs (whose names end in a time) at the start.
_CUT_AT_START = {"op_name", "run", "run_id", "scope", "source", "source_file", "trend"}
# Prose wraps instead of being cut.
_PROSE = {"answers", "holds", "meaning", "breach", "why"}
# What a row is about is told in a few words.
_WHOLE = {"what", "cause"}
# A text that has no room beside the columns before it stands below its row.
_BELOW = "cause"
_INDENT = "    "
_LEAST_TEXT = 10
# Shapes lose their layouts, but element type and dimensions stay whole. If that leaves too little
# room, leave out what follows the shapes, cut the names of operations even shorter, and only then
# cut the shapes.
_MOST_SHAPE = 32
_NAMES = {"op_name", "scope"}
_LEAST_NAME = 6
_GAP = 2


def print_table(rows: pa.Table, *, wide: bool | None = None) -> None:
    """Print rows; on a terminal too narrow for all columns the last ones are left out.

    A `wide` table is whole; None if the command has no option for it.
    """
    columns = [Column(field, cells) for field, cells in text_columns(rows)]
    # Without emoji: `:100:` is a line number.
    console = _Console(emoji=False)
    left_out: list[Column] = []
    below: list[str] | None = None
    if console.is_terminal and not wide:
        below = _taken_below(columns, console.width)
    if console.is_terminal and not wide:
        while not _fit(columns, console.width) and len(columns) > 1:
            left_out.insert(0, columns.pop())
    # A pipe has no width: what is cut to fit a screen is of no use to the next program. The lines
    # of a wide table wrap on a terminal.
    console.width = max(console.width, sum(c.width + _GAP for c in columns))
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, _GAP, 0, 0))
    for column in columns:
        table.add_column(
            escape(column.shown(column.heading)),
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
        names = ", ".join(column.heading for column in left_out)
        has_all = "--format csv has all" if wide is None else "--wide has all"
        Console(stderr=True, emoji=False).print(
            f"no room for: {escape(names)} ({has_all})", style="dim", highlight=False
        )


class _Console(Console):
    def on_broken_pipe(self) -> None:
        """Rich would end the command as failed: leave that to whoever prints."""
        raise


def _taken_below(columns: list["Column"], available: int) -> list[str] | None:
    """The texts of the column that has no room, which is taken out; None if there is room."""
    if any(column.is_prose for column in columns):
        return None
    for place, column in enumerate(columns):
        width = sum(before.width + _GAP for before in columns[:place]) + column.width
        if column.name == _BELOW and place and width > available:
            return columns.pop(place).cells
    return None


def _print_with_texts_below(console: Console, table: Table, texts: Sequence[str]) -> None:
    with console.capture() as captured:
        console.print(table, highlight=False)
    heading, *lines = captured.get().splitlines()
    console.file.write(f"{heading}\n")
    for line, text in zip(lines, texts, strict=True):
        console.file.write(f"{line}\n")
        for part in textwrap.wrap(text, max(console.width - len(_INDENT), _LEAST_TEXT)):
            console.file.write(f"{_INDENT}{part}\n")


class Column:
    """A column's texts and the width it is shown with: cells, of which 名 takes two."""

    def __init__(self, field: pa.Field, cells: list[str]) -> None:
        self.name = field.name
        self.heading = heading(field.name)
        self.is_number = is_number(field.type)
        self.cut_at_start = field.name in _CUT_AT_START
        self.is_prose = field.name in _PROSE
        self.is_shape = field.name == "shape" or field.name.endswith("_shape")
        self.cells = cells
        self.width = self.whole_width = self._width(cells)
        is_whole = self.is_number or field.name in _WHOLE
        self.leasts = [self.width if is_whole else min(self.width, _LEAST_TEXT)] * 3
        if self.is_shape:
            whole = min(self._width(map(without_layout, cells)), _MOST_SHAPE)
            self.leasts[:2] = [whole, whole]
        elif field.name in _NAMES:
            self.leasts[1] = min(self.width, _LEAST_NAME)

    def _width(self, cells: Iterable[str]) -> int:
        return max(cell_len(text) for text in (self.heading, *cells))

    def shown(self, text: str) -> str:
        """The text cut to the column's width."""
        if self.is_shape and self.width < self.whole_width:
            text = without_layout(text)
        if self.is_prose or cell_len(text) <= self.width:
            return text
        if self.cut_at_start and text != self.heading:
            return "…" + _first_cells(text[: -self.width - 1 : -1], self.width - 1)[::-1]
        return _first_cells(text[: self.width], self.width - 1) + "…"


def _first_cells(text: str, width: int) -> str:
    """The beginning of a text, in at most so many cells."""
    return chop_cells(text, width)[0] if width > 0 else ""


def _fit(columns: list[Column], available: int) -> bool:
    """Narrow the widest texts until all columns fit; whether they do."""
    over = sum(column.width + _GAP for column in columns) - _GAP - available
    stages = list(zip(*(column.leasts for column in columns), strict=True))
    if not columns[-1].is_shape and any(column.is_shape for column in columns):
        del stages[1:]
    for leasts in stages:
        spare = [column.width - least for column, least in zip(columns, leasts, strict=True)]
        if sum(spare) >= over:
            _narrow(columns, leasts, over)
            return True
    return False


def _narrow(columns: list[Column], leasts: Sequence[int], over: int) -> None:
    """Take so many cells from the widest texts."""
    while over > 0:
        widest = max(
            (column for column, least in zip(columns, leasts, strict=True) if column.width > least),
            key=lambda column: column.width,
        )
        widest.width -= 1
        over -= 1
