"""What a question returns: Arrow tables with captions, and values as a person reads them."""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import zip_longest
from textwrap import wrap
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa
from rich.cells import cell_len, chop_cells

from ..schema.errors import MissingPackageError
from ..schema.readable import human_bytes, one_line, paragraph, small_table

if TYPE_CHECKING:
    import pandas
    import polars


@dataclass(frozen=True, repr=False)
class Rows:
    """Rows, which a notebook and `print` show as a small table.

    table: the rows; caption: what they are rows of; empty: what to say if there are none;
    left_out: what is not among the rows, in a line; warnings: about the query that asked;
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


def _table_text(rows: Rows) -> str:
    """The first rows under their caption; long texts are cut, and columns without room named."""
    told = [one_line(rows.caption)] if rows.caption else []
    if not len(rows):
        return "\n".join(filter(None, [*told, one_line(rows.empty), *_warned(rows)]))
    columns = list(map(Column, *zip(*text_columns(rows.table.slice(0, _MOST_ROWS)), strict=True)))
    for column in columns:
        # A row is a line here.
        column.is_prose = False
    lines, left_out = fitted_lines(columns, _width())
    told += map(str.rstrip, lines)
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


# Values as a person reads them: sizes with units, shares as percentages, equal rows as one.

# Columns with a part of a whole, from 0 to 1.
_SHARES = {"share", "wasted", "fragmentation"}
# How many times one size is of another.
_MULTIPLE = "times_logical"
# From such a change on, the figure is shown as a multiple of what it was.
_LARGE_CHANGE = 10
# The mark of a column whose sizes are all estimated, beside the column `origin` of rows.
_MARK = {"origin": "estimated"}
# A layout follows an array's dimensions; tuples hold comments such as `/*index=5*/`.
_LAYOUT = re.compile(r"(?<=\])\{[^{}]*\}|/\*index=\d+\*/")
_SIZE = re.compile(r"_bytes(_previous|_change|_best)?$")
_WORK = re.compile(r"(^|_)flops$")
_BARS = "▁▂▃▄▅▆▇█"


ESTIMATED = "≈ is estimated without a buffer assignment"
GUESSED = "? is a guess: what XLA made has no name, so its largest operand stands for it, or a loop"
UNSCHEDULED = (
    "peak high is of text without a schedule: XLA may order it so that this much is needed"
)
_HIGH = "peak_upper_bytes"
# Columns with a metric's value: the column `unit` of their rows says of what.
_MEASURED = {"value", "previous_value", "change", "best_value"}
# What a guess can be wrong about.
_MAY_BE_GUESSED = {"source", "scope", "operation", "pass", "role"}
# What a term of a cause adds to the peak.
_TERM_BYTES = re.compile(r" [+-][\d.]+ (?:[KMGT]i)?B\b")


def heading(column: str) -> str:
    """A column's name for pages and agents, who read sizes with their unit in the cells."""
    return column.removesuffix("_bytes").replace("_", " ")


def is_number(type_: pa.DataType) -> bool:
    """Whether a column holds numbers."""
    return bool(
        pa.types.is_integer(type_) or pa.types.is_floating(type_) or pa.types.is_decimal(type_)
    )


def has_nanoseconds(type_: pa.DataType) -> bool:
    """Whether a column holds times to the nanosecond, which Python has only with pandas."""
    return bool(type_ in (pa.timestamp("ns"), pa.time64("ns")))


def human(column: str, value: Any) -> str:
    """A value of a column; the column's name tells its unit."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else ""
    if column == "trend" and isinstance(value, list):
        return sparkline(value)
    if _SIZE.search(column) and isinstance(value, int | float):
        size = human_bytes(value)
        return f"+{size}" if value > 0 and "change" in column else size
    if _WORK.search(column) and isinstance(value, int | float):
        work = human_flops(value)
        return f"+{work}" if value > 0 and "change" in column else work
    if isinstance(value, datetime):
        return value.strftime("%Y-%m-%d %H:%M")
    if isinstance(value, float):
        if column in _SHARES:
            return f"{value:.1%}"
        if column == _MULTIPLE:
            return f"{value:.4g}"
        return percent(value) if column.endswith("_ratio") else human_number(value)
    return one_line(str(value))


def human_number(value: float) -> str:
    """A number in six digits, or as many as it has before the point.

    >>> human_number(1234567.25), human_number(1234.56789), human_number(2.0), human_number(1.5e-7)
    ('1234567', '1234.57', '2', '1.5e-07')
    """
    return f"{value:.0f}" if 1e6 <= abs(value) < 1e15 else f"{value:.6g}"


def human_flops(flops: float) -> str:
    """Work as a person reads it, in one unit for all: 306.981 GFLOP."""
    return f"{human_number(flops / 1e9)} GFLOP"


def change_in_words(
    change: float,
    ratio: float | None,
    now: float,
    mark: str = "",
    said: Callable[[float], str] = human_bytes,
) -> str:
    """What a figure did: `grew by 64.00 MiB (+5.2 %) to 1.27 GiB`; `mark` is ≈ for estimates."""
    if not change:
        return f"changed at the same {mark}{said(now)}"
    verb = "grew" if change > 0 else "shrank"
    relative = "" if ratio is None else f" ({percent(ratio)})"
    return f"{verb} by {mark}{said(abs(change))}{relative} to {mark}{said(now)}"


def cause_of(cause: str | None, metric: str, memory_space: int) -> str | None:
    """A stored cause beside this figure: its bytes are of the main memory's peak, and say so."""
    is_the_peak = (metric, memory_space) == ("peak_bytes", 0)
    if cause is None or is_the_peak or _TERM_BYTES.search(cause) is None:
        return cause
    return f"{cause} (bytes of the peak in memory space 0)"


def percent(change: float) -> str:
    """A change, which is a ratio, as `+7.5 %`; above 1000 % as a multiple of what it was."""
    times = "\N{MULTIPLICATION SIGN}"
    return f"{times}{1 + change:,.0f}" if change > _LARGE_CHANGE else f"{100 * change:+.1f} %"


def without_layout(shape: str) -> str:
    """A shape without its layout: `bf16[8,128]` of `bf16[8,128]{1,0:T(8,128)}`."""
    return _LAYOUT.sub("", shape)


def sparkline(values: Sequence[float | None]) -> str:
    """A bar a value, from the lowest to the highest of them; a blank where there is none."""
    known = [value for value in values if value is not None]
    if not known:
        return ""
    low, high = min(known), max(known)
    if low == high:
        return "".join(" " if value is None else _BARS[3] for value in values)
    step = (len(_BARS) - 1) / (high - low)
    return "".join(
        " " if value is None else _BARS[round((value - low) * step + 1) - 1] for value in values
    )


def printable(text: str) -> str:
    """A text whose control characters do not reach the terminal; its lines stay lines."""
    return "\n".join(map(one_line, text.split("\n")))


def counted(number: int, what: str) -> str:
    """So many of something: `1 dump`, `2 dumps`."""
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def mark_estimated(rows: pa.Table, columns: Sequence[str]) -> pa.Table:
    """The rows with the sizes of some columns marked as estimated."""
    fields = [each.with_metadata(_MARK) if each.name in columns else each for each in rows.schema]
    return rows.cast(pa.schema(fields))


def _is_marked(field: pa.Field) -> bool:
    return (field.metadata or {}).get(b"origin") == b"estimated"


def has_estimates(rows: pa.Table) -> bool:
    """Whether some of the rows or columns are of modules without a buffer assignment."""
    return any(_is_marked(field) for field in rows.schema) or _has_estimated_rows(rows)


def _has_estimated_rows(rows: pa.Table) -> bool:
    return "origin" in rows.column_names and "estimated" in rows["origin"].to_pylist()


def has_guesses(rows: pa.Table) -> bool:
    """Whether some of the rows say whose a buffer is by a guess."""
    return "is_guess" in rows.column_names and True in rows["is_guess"].to_pylist()


def notes(rows: pa.Table) -> list[str]:
    """What the marks in the rows' cells mean, a line each."""
    is_unscheduled = _HIGH in rows.column_names and rows[_HIGH].null_count < len(rows)
    meanings = [
        (has_estimates(rows), ESTIMATED),
        (has_guesses(rows), GUESSED),
        (is_unscheduled, UNSCHEDULED),
    ]
    return [meaning for is_there, meaning in meanings if is_there]


def holds_sizes(rows: pa.Table, column: str) -> bool:
    """Whether all values of a column are bytes."""
    is_measured = column in _MEASURED and "unit" in rows.column_names
    return bool(_SIZE.search(column)) or (
        is_measured and set(rows["unit"].to_pylist()) <= {"bytes", None}
    )


def text_columns(rows: pa.Table) -> list[tuple[pa.Field, list[str]]]:
    """The columns to show with their cells' texts.

    The sizes of estimated rows and columns have the mark ≈, and a guessed owner has the mark ?.
    The columns `origin` and `is_guess` are not shown beside columns that have the marks, which say
    the same in less room, and nor is `unit` beside the values that have units.
    """
    count = range(len(rows))
    estimated, guessed = [False for _ in count], [False for _ in count]
    if _has_estimated_rows(rows):
        estimated = [origin == "estimated" for origin in rows["origin"].to_pylist()]
    if has_guesses(rows):
        guessed = rows["is_guess"].to_pylist()
    told_by_marks = set()
    measured = _MEASURED.intersection(rows.column_names) if "unit" in rows.column_names else set()
    if measured:
        told_by_marks.add("unit")
    if measured or any(_SIZE.search(name) for name in rows.column_names):
        told_by_marks.add("origin")
    if any(name in _MAY_BE_GUESSED for name in rows.column_names):
        told_by_marks.add("is_guess")
    columns = []
    for shown, column in zip(rows.schema, rows.columns, strict=True):
        if shown.name in told_by_marks:
            continue
        if has_nanoseconds(shown.type):
            to = pa.time64("us") if pa.types.is_time(shown.type) else pa.timestamp("us")
            column = column.cast(to, safe=False)
        names = [shown.name for _ in count]
        if shown.name in measured:
            names = [f"{shown.name}_{unit}" for unit in rows["unit"].to_pylist()]
        cells = list(map(human, names, column.to_pylist()))
        if holds_sizes(rows, shown.name):
            marked = zip(cells, estimated, strict=True)
            is_marked = _is_marked(shown)
            cells = [f"≈{cell}" if (mark or is_marked) and cell else cell for cell, mark in marked]
        elif shown.name in _MAY_BE_GUESSED:
            marked = zip(cells, guessed, strict=True)
            cells = [f"{cell}?" if mark and cell else cell for cell, mark in marked]
        columns.append((shown, cells))
    return columns


# Columns of text as the lines of a table. Rich measures what is not ASCII.

_GAP = 2
_INDENT = "    "


def fitted_lines(columns: list[Column], width: int | None) -> tuple[list[str], list[str]]:
    """The lines of a table, the heading first, and the names of columns that have no room.

    Without a width nothing is cut or wrapped. A text without room stands below its row.
    """
    left_out: list[str] = []
    below = None
    if width is not None:
        below = _taken_below(columns, width)
        # What a row is about is the first text; the columns that describe it go first.
        subject = next((column for column in columns if not column.is_number), columns[0])
        while not _fit(columns, width) and len(columns) > 1:
            is_last = columns[-1] is not subject
            left_out.insert(0, columns.pop(-1 if is_last else -2).name)
    lines = []
    texts = (map(column.lines, (column.name, *column.cells)) for column in columns)
    for place, row in enumerate(zip(*texts, strict=True)):
        for parts in zip_longest(*row, fillvalue=""):
            padded = (column.padded(part) for column, part in zip(columns, parts, strict=True))
            lines.append((" " * _GAP).join(padded))
        if below is not None and place:
            room = max((width or 0) - len(_INDENT), _LEAST_TEXT)
            lines += [f"{_INDENT}{part}" for part in wrap(below[place - 1], room)]
    return lines, left_out


def _cells(text: str) -> int:
    """How many cells of a terminal a text takes: 名 takes two."""
    if text.isascii():
        return len(text)
    return cell_len(text)


# Columns of text that are fitted to a width: numbers stay whole, texts are cut.

# Truncate text at the end, but paths, sparklines and runs (whose names end in a time) at the start.
_CUT_AT_START = {"op_name", "run", "run_id", "scope", "source", "source_file", "trend", "via"}
# Prose wraps instead of being cut.
_PROSE = {"answers", "holds", "meaning", "breach", "why"}
# What a row is about is told in a few words.
_WHOLE = {"what", "cause"}
# A text that has no room beside the columns before it stands below its row.
_BELOW = "cause"
_LEAST_TEXT = 10
# Shapes lose their layouts, but element type and dimensions stay whole. If that leaves too little
# room, leave out what follows the shapes, cut the names of operations even shorter, and only then
# cut the shapes.
_MOST_SHAPE = 32
_NAMES = {"op_name", "scope"}
_LEAST_NAME = 6


class Column:
    """A column's texts and the width it is shown with: cells, of which 名 takes two."""

    def __init__(self, field: pa.Field, cells: list[str]) -> None:
        self.name = one_line(field.name)
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
        return max(_cells(text) for text in (self.name, *cells))

    def lines(self, text: str) -> list[str]:
        """The text cut to the column's width; prose is wrapped."""
        if self.is_prose and self.width < self.whole_width:
            return wrap(text, self.width, break_on_hyphens=False) or [""]
        return [self.cut(text)]

    def padded(self, text: str) -> str:
        """The text as wide as the column."""
        blanks = " " * (self.width - _cells(text))
        return blanks + text if self.is_number else text + blanks

    def cut(self, text: str) -> str:
        """The text cut to the column's width."""
        if self.width >= self.whole_width:
            return text
        if self.is_shape:
            text = without_layout(text)
        if _cells(text) <= self.width:
            return text
        if self.cut_at_start and text != self.name:
            return "…" + _first_cells(text[: -self.width - 1 : -1], self.width - 1)[::-1]
        return _first_cells(text[: self.width], self.width - 1) + "…"


def _first_cells(text: str, width: int) -> str:
    """The beginning of a text, in at most so many cells."""
    if width <= 0 or text.isascii():
        return text[: max(width, 0)]
    return chop_cells(text, width)[0]


def _taken_below(columns: list[Column], available: int) -> list[str] | None:
    """The texts of the column that has no room, which is taken out; None if there is room."""
    if any(column.is_prose for column in columns):
        return None
    for place, column in enumerate(columns):
        width = sum(before.width + _GAP for before in columns[:place]) + column.width
        if column.name == _BELOW and place and width > available:
            return columns.pop(place).cells
    return None


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


# Folds rows of equal programs on many hosts to one row: `host0 … host7 (8 the same)`.

_Row = TypeVar("_Row")

# A name's only number, or that of the host `host7/decode-v5e`: it tells one host from another.
_NUMBERED = re.compile(r"(\D*)(\d+)(\D*|[^/\d]*/.*)")
# More names, or ranges of names, than these are counted.
_MOST_NAMES = 3


def folded(
    rows: Iterable[_Row], key: Callable[[_Row], Hashable], name: Callable[[_Row], str]
) -> list[tuple[_Row, str]]:
    """The first row of each key in the rows' order, with the names of all rows of this key.

    A key of None is equal to no other.
    """
    groups: dict[Hashable, list[_Row]] = {}
    for row in rows:
        found = key(row)
        groups.setdefault(object() if found is None else found, []).append(row)
    return [(group[0], folded_name([name(row) for row in group])) for group in groups.values()]


def folded_name(names: Sequence[str]) -> str:
    """One name for many: `host0 … host7 (8 the same)`, or `a, b and 6 more (8 the same)`."""
    if len(names) == 1:
        return names[0]
    return f"{listed(names)} ({len(names)} the same)"


def listed(names: Iterable[str]) -> str:
    """Many names in a few words: `host0 … host7`, or `a, b and 6 more`."""
    names = set(names)
    shown = _ranges(sorted(names, key=_by_number))
    if len(shown) > _MOST_NAMES:
        most = _MOST_NAMES - 1
        left = len(names) - sum(count for _, count in shown[:most])
        shown = [*shown[:most], (f"{left} more", left)]
    texts = [text for text, _ in shown]
    return texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} and {texts[-1]}"


def _ranges(names: Sequence[str]) -> list[tuple[str, int]]:
    """Names and ranges of names that differ in consecutive numbers, with their counts."""
    ranges: list[list[str]] = []
    for name in names:
        if ranges and _follows(ranges[-1][-1], name):
            ranges[-1].append(name)
        else:
            ranges.append([name])
    found: list[tuple[str, int]] = []
    for group in ranges:
        # A range of two is no shorter than its names.
        found += (
            [(f"{group[0]} … {group[-1]}", len(group))]
            if len(group) > 2
            else [(name, 1) for name in group]
        )
    return found


def _follows(name: str, next_name: str) -> bool:
    here, there = _NUMBERED.fullmatch(name), _NUMBERED.fullmatch(next_name)
    if here is None or there is None:
        return False
    return (here[1], here[3]) == (there[1], there[3]) and int(there[2]) == int(here[2]) + 1


def _by_number(name: str) -> tuple[str, int, str]:
    match = _NUMBERED.fullmatch(name)
    return (match[1], int(match[2]), match[3]) if match else (name, -1, "")
