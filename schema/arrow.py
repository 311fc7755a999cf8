"""The tables as Arrow knows them, derived from `tables.py`.

Readers, the model and the stores take their types from here.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import pyarrow as pa


@cache
def schema(table: str) -> pa.Schema:
    """The columns of a table as ingest fills them: `shape` is one text, however it is stored."""
    # SQLAlchemy takes as long to import as a small night takes to read.
    from sqlalchemy import BigInteger, Boolean, DateTime, Double, Integer, Text

    from .tables import metadata

    types = {
        Text: pa.string(),
        BigInteger: pa.int64(),
        Integer: pa.int32(),
        Boolean: pa.bool_(),
        Double: pa.float64(),
        DateTime: pa.timestamp("us", tz="UTC"),
    }
    return pa.schema(
        [
            (column.name, types[type(column.type)])
            for column in metadata.tables[table].c
            if not column.name.startswith("_")
        ]
    )


@cache
def module_schema(table: str) -> pa.Schema:
    """The columns of a table of modules without the module's id, which a store adds."""
    columns = schema(table)
    return columns.remove(columns.get_field_index("module_id"))


def rows(table: str, rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    """A few rows of a table, typed as the table is; what a row leaves out is null."""
    return pa.Table.from_pylist(list(rows), schema=schema(table))


def module_rows(table: str, rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    """A few rows of a table of modules, without the module's id."""
    return pa.Table.from_pylist(list(rows), schema=module_schema(table))
