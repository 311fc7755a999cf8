"""Columns of text that are fitted to a width: numbers stay whole, texts are cut."""

from collections.abc import Iterable, Sequence

import pyarrow as pa
from rich.cells import cell_len, chop_cells

from .result import is_number, without_layout

# Truncate text at the end, but paths, sparklines and runs (whose names end in a time) at the start.
_CUT_AT_START = {"op_name", "run", "run_id", "scope", "source", "source_file", "trend", "via"}
# Prose wraps instead of being cut.
_PROSE = {"answers", "holds", "meaning", "breach", "why"}
# What a row is about is told in a few words.
_WHOLE = {"what", "cause"}
# A text that has no room beside the columns before it stands below its row.
_BELOW = "cause"
LEAST_TEXT = 10
# Shapes lose their layouts, but element type and dimensions stay whole. If that leaves too little
# room, leave out what follows the shapes, cut the names of operations even shorter, and only then
# cut the shapes.
_MOST_SHAPE = 32
_NAMES = {"op_name", "scope"}
_LEAST_NAME = 6
GAP = 2


class Column:
    """A column's texts and the width it is shown with: cells, of which 名 takes two."""

    def __init__(self, field: pa.Field, cells: list[str]) -> None:
        self.name = field.name
        self.is_number = is_number(field.type)
        self.cut_at_start = field.name in _CUT_AT_START
        self.is_prose = field.name in _PROSE
        self.is_shape = field.name == "shape" or field.name.endswith("_shape")
        self.cells = cells
        self.width = self.whole_width = self._width(cells)
        is_whole = self.is_number or field.name in _WHOLE
        self.leasts = [self.width if is_whole else min(self.width, LEAST_TEXT)] * 3
        if self.is_shape:
            whole = min(self._width(map(without_layout, cells)), _MOST_SHAPE)
            self.leasts[:2] = [whole, whole]
        elif field.name in _NAMES:
            self.leasts[1] = min(self.width, _LEAST_NAME)

    def _width(self, cells: Iterable[str]) -> int:
        return max(cell_len(text) for text in (self.name, *cells))

    def shown(self, text: str) -> str:
        """The text cut to the column's width; prose is whole."""
        return text if self.is_prose else self.cut(text)

    def cut(self, text: str) -> str:
        """The text cut to the column's width."""
        if self.is_shape and self.width < self.whole_width:
            text = without_layout(text)
        if cell_len(text) <= self.width:
            return text
        if self.cut_at_start and text != self.name:
            return "…" + _first_cells(text[: -self.width - 1 : -1], self.width - 1)[::-1]
        return _first_cells(text[: self.width], self.width - 1) + "…"


def _first_cells(text: str, width: int) -> str:
    """The beginning of a text, in at most so many cells."""
    return chop_cells(text, width)[0] if width > 0 else ""


def taken_below(columns: list[Column], available: int) -> list[str] | None:
    """The texts of the column that has no room, which is taken out; None if there is room."""
    if any(column.is_prose for column in columns):
        return None
    for place, column in enumerate(columns):
        width = sum(before.width + GAP for before in columns[:place]) + column.width
        if column.name == _BELOW and place and width > available:
            return columns.pop(place).cells
    return None


def fit(columns: list[Column], available: int) -> bool:
    """Narrow the widest texts until all columns fit; whether they do."""
    over = sum(column.width + GAP for column in columns) - GAP - available
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
