"""Values as a person reads them: sizes with units, shares as percentages, no seconds."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

# Whoever shows values takes these two from here.
from ..schema.readable import human_bytes as human_bytes
from ..schema.readable import one_line as one_line

if TYPE_CHECKING:
    import pyarrow as pa

# Columns with a part of a whole, from 0 to 1.
_SHARES = {"share", "wasted", "fragmentation"}
# From a change of so many percent on, the figure is shown as a multiple of what it was.
_MULTIPLE_PCT = 1000
# The mark of a column whose sizes are all estimated, beside the column `origin` of rows.
_MARK = {"origin": "estimated"}
# A layout follows an array's dimensions; tuples hold comments such as `/*index=5*/`.
_LAYOUT = re.compile(r"(?<=\])\{[^{}]*\}|/\*index=\d+\*/")
_SIZE = re.compile(r"_bytes(_previous|_change|_best)?$")
_BARS = "▁▂▃▄▅▆▇█"


ESTIMATED = "≈ is estimated from HLO text alone"
GUESSED = "? is a guess: what XLA made has no name, so its largest operand stands for it, or a loop"
# What a guess can be wrong about.
_MAY_BE_GUESSED = {"source", "scope", "operation", "pass", "role"}


def heading(column: str) -> str:
    """A column's name; the unit of sizes is in the cells."""
    name = column.removesuffix("_bytes")
    if name.endswith("_pct"):
        name = f"{name.removesuffix('_pct')}_%"
    return name.replace("_", " ")


def is_number(type_: pa.DataType) -> bool:
    """Whether a column holds numbers."""
    import pyarrow as pa

    return bool(
        pa.types.is_integer(type_) or pa.types.is_floating(type_) or pa.types.is_decimal(type_)
    )


def has_nanoseconds(type_: pa.DataType) -> bool:
    """Whether a column holds times to the nanosecond, which Python has only with pandas."""
    import pyarrow as pa

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
    if isinstance(value, datetime):
        return value.strftime("%Y-%m-%d %H:%M")
    if isinstance(value, float):
        if column in _SHARES:
            return f"{value:.1%}"
        return human_pct(value) if column.endswith("_pct") else f"{value:.4g}"
    return one_line(str(value))


def human_pct(change: float) -> str:
    """A change in percent as a person reads it: +7.5, and 12 times where it is over 1000."""
    times = "\N{MULTIPLICATION SIGN}"
    return f"{times}{1 + change / 100:,.0f}" if change > _MULTIPLE_PCT else f"{change:+.1f}"


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
    import pyarrow as pa

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
    meanings = [(has_estimates(rows), ESTIMATED), (has_guesses(rows), GUESSED)]
    return [meaning for is_there, meaning in meanings if is_there]


def text_columns(rows: pa.Table) -> list[tuple[pa.Field, list[str]]]:
    """The columns to show with their cells' texts.

    The sizes of estimated rows and columns have the mark ≈, and a guessed owner has the mark ?.
    The columns `origin` and `is_guess` are not shown beside columns that have the marks, which say
    the same in less room.
    """
    import pyarrow as pa

    count = range(len(rows))
    estimated, guessed = [False for _ in count], [False for _ in count]
    if _has_estimated_rows(rows):
        estimated = [origin == "estimated" for origin in rows["origin"].to_pylist()]
    if has_guesses(rows):
        guessed = rows["is_guess"].to_pylist()
    told_by_marks = set()
    if any(_SIZE.search(name) for name in rows.column_names):
        told_by_marks.add("origin")
    if any(name in _MAY_BE_GUESSED for name in rows.column_names):
        told_by_marks.add("is_guess")
    columns = []
    for field, column in zip(rows.schema, rows.columns, strict=True):
        if field.name in told_by_marks:
            continue
        if has_nanoseconds(field.type):
            to = pa.time64("us") if pa.types.is_time(field.type) else pa.timestamp("us")
            column = column.cast(to, safe=False)
        cells = [human(field.name, value) for value in column.to_pylist()]
        if _SIZE.search(field.name):
            marked = zip(cells, estimated, strict=True)
            is_marked = _is_marked(field)
            cells = [f"≈{cell}" if (mark or is_marked) and cell else cell for cell, mark in marked]
        elif field.name in _MAY_BE_GUESSED:
            marked = zip(cells, guessed, strict=True)
            cells = [f"{cell}?" if mark and cell else cell for cell, mark in marked]
        columns.append((field, cells))
    return columns
