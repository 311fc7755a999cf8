"""Rows as CSV and JSON: the same text from every command, in every file.

Sizes and numbers are plain, times are in ISO form, and what is not a number is null. The
texts of a column are made column by column, and of each different value once.
"""

import json
import math
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from .result import has_nanoseconds

# Few enough for texts of some 60 KB in each row.
_ROWS_AT_ONCE = 4096
_TEXT = pa.large_string()
_encode = json.JSONEncoder(allow_nan=False).encode


def csv_parts(table: pa.Table) -> Iterator[str]:
    """The table as CSV, a part after the other: a heading, then a line a row.

    Null is nothing and an empty text is `""`. A list or struct is JSON.
    """
    yield ",".join(_csv_text(name) or "" for name in table.column_names) + "\n"
    # A line that is empty is not a row.
    null = '""' if table.num_columns == 1 else ""
    for batch in table.to_batches(max_chunksize=_ROWS_AT_ONCE):
        columns = [pc.fill_null(_texts(column, _csv_text), null) for column in batch.columns]
        if columns and batch.num_rows:
            yield (
                "\n".join(pc.binary_join_element_wise(*columns, pa.scalar(",", _TEXT)).to_pylist())
                + "\n"
            )


def json_parts(table: pa.Table) -> Iterator[str]:
    """The table as JSON, a part after the other: a list with an object a row.

    A second column `a` is `a_2`.
    """
    names = [_encode(name) for name in _unique(table.column_names)]
    separator = "[\n"
    for batch in table.to_batches(max_chunksize=_ROWS_AT_ONCE):
        if not (names and batch.num_rows):
            continue
        parts: list[Any] = []
        for name, column in zip(names, batch.columns, strict=True):
            before = ",\n" if parts else " {\n"
            texts = pc.fill_null(_texts(column, _json_text), "null")
            parts += [pa.scalar(f"{before}  {name}: ", _TEXT), texts]
        parts += [pa.scalar("\n }", _TEXT), pa.scalar("", _TEXT)]
        objects = pc.binary_join_element_wise(*parts)
        yield separator + ",\n".join(objects.to_pylist())
        separator = ",\n"
    yield "[]\n" if separator == "[\n" else "\n]\n"


def plain(value: Any) -> Any:
    """A value as JSON can say it."""
    match value:
        case dict():
            return {str(key): plain(item) for key, item in value.items()}
        case list() | tuple():
            return [plain(item) for item in value]
        case Decimal():
            # DuckDB adds up integers to more than 64 bits: still an integer.
            return int(value) if value == value.to_integral_value() else float(value)
        case float():
            return value if math.isfinite(value) else None
        case datetime() | date() | time():
            return value.isoformat()
        case None | bool() | int() | str():
            return value
        case _:
            return str(value)


def _json_text(value: Any) -> str | None:
    return _encode(plain(value))


def _csv_text(value: Any) -> str | None:
    simple = plain(value)
    if simple is None:
        return None
    text = simple if isinstance(simple, str) else _encode(simple)
    if text and not any(special in text for special in ',"\r\n'):
        return text
    return '"' + text.replace('"', '""') + '"'


def _texts(column: pa.Array, text: Callable[[Any], str | None]) -> pa.Array:
    """The text of each value; null where the value is null, or has none."""
    if pa.types.is_integer(column.type) or pa.types.is_boolean(column.type):
        return pc.cast(column, _TEXT)
    if has_nanoseconds(column.type):
        column = pc.replace_substring(pc.cast(column, _TEXT), " ", "T")
    try:
        coded = column if pa.types.is_dictionary(column.type) else pc.dictionary_encode(column)
    except pa.ArrowNotImplementedError:  # A list, a struct, an interval.
        values = column.to_pylist()
        return pa.array([None if value is None else text(value) for value in values], _TEXT)
    return pa.array(map(text, coded.dictionary.to_pylist()), _TEXT).take(coded.indices)


def _unique(names: list[str]) -> list[str]:
    """Names as the keys of an object."""
    seen: Counter[str] = Counter()
    keys = []
    for name in names:
        seen[name] += 1
        keys.append(name if seen[name] == 1 else f"{name}_{seen[name]}")
    return keys
