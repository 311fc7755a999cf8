"""Values as a person reads them: sizes with units, shares as percentages, no seconds."""

import re
from datetime import datetime
from typing import Any

import pyarrow as pa

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
_SIZE = re.compile(r"_bytes(_previous|_change|_best)?$")
# Columns with a part of a whole, from 0 to 1.
_SHARES = {"share", "wasted", "fragmentation"}


def human_bytes(size: int | float) -> str:
    """A size as a person reads it: 306.98 MiB."""
    amount, unit = float(size), 0
    # Rounded to two digits, 1023.999 KiB would read 1024.00 KiB.
    while abs(amount) >= 1023.995 and unit < len(_UNITS) - 1:
        amount, unit = amount / 1024, unit + 1
    return f"{amount:.0f} B" if unit == 0 else f"{amount:.2f} {_UNITS[unit]}"


def heading(column: str) -> str:
    """A column's name; the unit of sizes is in the cells."""
    name = column.removesuffix("_bytes")
    if name.endswith("_pct"):
        name = f"{name.removesuffix('_pct')}_%"
    return name.replace("_", " ")


def is_number(type_: pa.DataType) -> bool:
    """Whether a column holds numbers."""
    return bool(
        pa.types.is_integer(type_) or pa.types.is_floating(type_) or pa.types.is_decimal(type_)
    )


def human(column: str, value: Any) -> str:
    """A value of a column; the column's name tells its unit."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else ""
    if _SIZE.search(column) and not isinstance(value, str):
        size = human_bytes(value)
        return f"+{size}" if value > 0 and "change" in column else size
    if isinstance(value, datetime):
        return value.strftime("%Y-%m-%d %H:%M")
    if isinstance(value, float):
        if column in _SHARES:
            return f"{value:.1%}"
        return f"{value:+.1f}" if column.endswith("_pct") else f"{value:.4g}"
    return one_line(str(value))


def printable(text: str) -> str:
    """A text whose control characters do not reach the terminal; its lines stay lines."""
    return "\n".join(map(one_line, text.split("\n")))


def one_line(text: str) -> str:
    """A text, a name say, whose control characters do not reach the terminal."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)


def counted(number: int, what: str) -> str:
    """So many of something: `1 dump`, `2 dumps`."""
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
