"""The tables' Arrow types, for the readers, `ingest/rows.py` and the store."""

import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import pyarrow as pa
from sqlalchemy import Table

from .tables import INTERNAL, metadata

_TYPES = {
    "TEXT": pa.string(),
    "BIGINT": pa.int64(),
    "INTEGER": pa.int32(),
    "BOOLEAN": pa.bool_(),
    "DOUBLE": pa.float64(),
    "DATETIME": pa.timestamp("us"),
    "ARRAY": pa.list_(pa.string()),
}


@cache
def tables() -> dict[str, Table]:
    """The tables by name, public and internal; those that describe the file have no key."""
    return {table.name: table for table in metadata.tables.values() if table.primary_key}


def public_tables() -> list[str]:
    """The names of the tables that users read."""
    return [name for name, table in tables().items() if table.schema != INTERNAL]


def sql_name(table: str) -> str:
    """The table's name as SQL reads it, with its schema if it is internal."""
    return f'{INTERNAL}."{table}"' if tables()[table].schema == INTERNAL else f'"{table}"'


@cache
def stored_columns() -> dict[str, dict[str, str]]:
    """Each table's stored columns with their SQL types, in order."""
    return {
        name: {column.name: str(column.type) for column in table.c}
        for name, table in tables().items()
    }


@cache
def stored_keys() -> dict[str, tuple[str, ...]]:
    """The columns that identify a row of each table."""
    return {name: tuple(table.primary_key.c.keys()) for name, table in tables().items()}


@cache
def schema(table: str) -> pa.Schema:
    """The columns that ingest fills: `shape` is one column here, although two may store it."""
    columns = stored_columns()[table].items()
    return pa.schema([(name, _type(type_)) for name, type_ in columns if name[0] != "_"])


def _type(type_: str) -> pa.DataType:
    return pa.string() if is_enum(type_) else _TYPES[type_]


def is_enum(type_: str) -> bool:
    """Whether an SQL type is a closed list of words, which is text in Arrow."""
    return type_.startswith("ENUM(")


@cache
def closed_lists() -> dict[str, list[str]]:
    """The words of each column name that stands for a closed list wherever it stands."""
    types: dict[str, list[str]] = {}
    for columns in stored_columns().values():
        for name, type_ in columns.items():
            types.setdefault(name, []).append(type_)
    return {
        name: list(dict.fromkeys(word for type_ in listed for word in _WORD.findall(type_)))
        for name, listed in types.items()
        if all(map(is_enum, listed))
    }


_WORD = re.compile(r"'([^']*)'")
_SUM = pa.decimal128(38, 0)


def plain(rows: pa.Table) -> pa.Table:
    """Rows of DuckDB with its ENUMs as text, and its sums of integers as integers.

    DuckDB's SUM has 128 bits; a sum over 64 bits becomes a double.
    """
    for place, column in enumerate(rows.schema):
        values = rows.column(place)
        if pa.types.is_dictionary(column.type):
            values = values.cast(pa.string())
        elif column.type == _SUM:
            try:
                values = values.cast(pa.int64())
            except pa.ArrowInvalid:
                values = values.cast(pa.float64())
        else:
            continue
        rows = rows.set_column(place, column.name, values)
    return rows


def rows(table: str, rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    """A few rows with the table's types; columns that a row leaves out are null."""
    return pa.Table.from_pylist(list(rows), schema=schema(table))
