"""What a question returns: Arrow tables with captions, which convert to data frames."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..schema.errors import MissingPackageError
from ..schema.readable import one_line
from ..schema.small_table import paragraph, small_table
from .cells import heading, is_number, notes, plain_lines, text_columns

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow as pa


@dataclass(frozen=True, repr=False)
class Rows:
    """Rows, which a notebook and `print` show as a small table.

    table: the rows; caption: what they are rows of; empty: what to say if there are none;
    left_out: what is not among the rows, in a line; warnings: traps of the query that asked;
    chart: draws the same for a notebook as HTML, or as nothing where that is not possible.
    """

    table: pa.Table
    caption: str = ""
    empty: str = "no rows"
    left_out: str = ""
    warnings: tuple[str, ...] = ()
    chart: Callable[[], str] | None = field(default=None, compare=False)

    def arrow(self) -> pa.Table:
        """The rows as a pyarrow table."""
        return self.table

    def df(self) -> pandas.DataFrame:
        """The rows as a pandas data frame. Raises MissingPackageError without pandas."""
        try:
            import pandas  # noqa: F401 - pyarrow's own message does not say what to do.
        except ImportError:
            raise _missing("pandas") from None
        return self.table.to_pandas()

    def pl(self) -> polars.DataFrame:
        """The rows as a polars data frame. Raises MissingPackageError without polars."""
        try:
            import polars
        except ImportError:
            raise _missing("polars") from None
        frame = polars.from_arrow(self.table)
        assert isinstance(frame, polars.DataFrame), "a table makes a frame"
        return frame

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def __repr__(self) -> str:
        return _table_text(self)

    def _repr_html_(self) -> str:
        return "\n".join([*_drawn(self), _table_html(self)])


class Result:
    """A result of several tables. `rows` is the main one, which it converts to."""

    rows: Rows

    def tables(self) -> Sequence[Rows]:
        """All tables, as a notebook and `print` show them."""
        return (self.rows,)

    def sentences(self) -> Sequence[str]:
        """What is to be said above the tables."""
        return ()

    def arrow(self) -> pa.Table:
        """The main table as a pyarrow table."""
        return self.rows.arrow()

    def df(self) -> pandas.DataFrame:
        """The main table as a pandas data frame."""
        return self.rows.df()

    def pl(self) -> polars.DataFrame:
        """The main table as a polars data frame."""
        return self.rows.pl()

    def __len__(self) -> int:
        return len(self.rows)

    def __str__(self) -> str:
        tables = map(_table_text, self.tables())
        return "\n\n".join(["\n".join(self.sentences()), *tables]).strip()

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        shown = map(_table_html, self.tables())
        return "\n".join([*map(paragraph, self.sentences()), *_drawn(self.rows), *shown])


def _drawn(rows: Rows) -> list[str]:
    """The chart of rows, if they have one and it can be drawn."""
    return list(filter(None, [rows.chart()])) if rows.chart is not None else []


def _missing(package: str) -> MissingPackageError:
    return MissingPackageError(f"install {package} to get a data frame: pip install {package}")


# The first rows as plain text, for `print` and the prompt, and as a small table for a notebook.

_MOST_ROWS = 20
# A notebook's cell and a file have no width of their own.
_WIDTH = 120
_INDENT = "    "


def _table_text(rows: Rows) -> str:
    """The first rows under their caption; long texts are cut, and columns without room named."""
    # It imports rich.
    from .fitted_columns import Column, fit, taken_below

    told = [one_line(rows.caption)] if rows.caption else []
    if not len(rows):
        return "\n".join(filter(None, [*told, one_line(rows.empty), *_warned(rows)]))
    shown = text_columns(rows.table.slice(0, _MOST_ROWS))
    columns = [Column(field, list(map(one_line, cells))) for field, cells in shown]
    for column in columns:
        # A row is a line here.
        column.is_prose = False
    width = _width()
    below = taken_below(columns, width) or [""] * len(columns[0].cells)
    left_out: list[str] = []
    while not fit(columns, width) and len(columns) > 1:
        left_out.insert(0, one_line(columns.pop().name))
    texts = [(list(map(c.cut, (c.name, *c.cells))), c.is_number) for c in columns]
    heading, *lines = plain_lines(texts)
    told.append(heading.rstrip())
    for line, text in zip(lines, below, strict=True):
        told += [line.rstrip(), *([_INDENT + text] if text else [])]
    if len(rows) > _MOST_ROWS:
        told.append(f"… and {len(rows) - _MOST_ROWS:,} more rows")
    if left_out:
        told.append(f"no room for: {', '.join(left_out)}")
    return "\n".join([*told, *filter(None, [rows.left_out]), *notes(rows.table), *_warned(rows)])


def _warned(rows: Rows) -> list[str]:
    return [f"warning: {one_line(warning)}" for warning in rows.warnings]


def _width() -> int:
    is_terminal = sys.stdout is not None and sys.stdout.isatty()
    return shutil.get_terminal_size((_WIDTH, 0)).columns if is_terminal else _WIDTH


def _table_html(rows: Rows) -> str:
    """The first rows with their heading and caption; every text is escaped."""
    if not len(rows):
        said = filter(None, [rows.caption, rows.empty, *_warned(rows)])
        return "\n".join(map(paragraph, said))
    columns = text_columns(rows.table.slice(0, _MOST_ROWS))
    parts = [
        small_table(
            [heading(field.name) for field, _ in columns],
            zip(*(cells for _, cells in columns), strict=True),
            [is_number(field.type) for field, _ in columns],
            rows.caption,
        )
    ]
    below = [*filter(None, [rows.left_out]), *notes(rows.table), *_warned(rows)]
    parts += map(paragraph, below)
    if len(rows) > _MOST_ROWS:
        parts.append(paragraph(f"… and {len(rows) - _MOST_ROWS:,} more rows"))
    return "\n".join(parts)
