"""The data files of a lake: Parquet, one relation each, sorted by module."""

import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet

from .. import arrow
from . import storage
from .layout import ID_COLUMNS

# A reader of one module skips the row groups of others.
_ROWS_IN_GROUP = 128 << 10
# Higher levels take longer than reading the dump, and save a few percent.
_ZSTD_LEVEL = 9
# Numbers that differ little from those of the row before: the differences are stored.
_STEPS = frozenset(
    {
        "alias_set",
        "instruction_id",
        "live_bytes",
        "occupied_bytes",
        "operand_instruction_id",
        "residual_id",
        "schedule_time",
        "value_id",
    }
)
_STEPS_OF = {"occupancy": {"start_time"}}
# Values that hardly repeat, which a dictionary would make larger.
_PLAIN = frozenset(
    {
        "compared_dump_id",
        "computation",
        "dump_id",
        "end_time",
        "idle_end_time",
        "idle_start_time",
        "instruction",
        "last_dump_id",
        "last_use_time",
        "offset_bytes",
        "origin_instruction_id",
        "previous_dump_id",
        "sha256",
        "start_time",
    }
)


@dataclass(frozen=True, slots=True)
class DataFile:
    """A Parquet file of a lake; `path` is relative to the lake.

    least, most: of each id column, the least and the greatest value in the file.
    """

    relation: str
    path: str
    size_bytes: int
    rows: int
    least: Mapping[str, Any] = field(default_factory=dict)
    most: Mapping[str, Any] = field(default_factory=dict)


def write_file(place: str, relation: str, rows: pa.Table, mark: str = "") -> DataFile:
    """Write the rows, columns that they lack as nulls; nobody sees the file until a commit.

    The name is never used twice: a task that is tried again, or a second writer, writes another.
    `mark` begins the name. Raises OSError.
    """
    table = _whole(rows, relation)
    name = f"{mark}{uuid.uuid4().hex}.parquet"
    path = f"relation={relation}/{name}"
    buffer = BytesIO()
    ids = [column for column in ID_COLUMNS if column in table.column_names]
    parquet.write_table(
        table,
        buffer,
        compression="zstd",
        compression_level=_ZSTD_LEVEL,
        row_group_size=_ROWS_IN_GROUP,
        write_statistics=ids,
        **_encodings(relation, table.column_names),
    )
    content = buffer.getvalue()
    _put(place, path, content)
    least, most = {}, {}
    for column in ids:
        found = pc.min_max(table[column]).as_py()
        if found["min"] is not None:
            least[column], most[column] = found["min"], found["max"]
    return DataFile(relation, path, len(content), len(table), least, most)


def read_files(place: str, files: Iterable[DataFile], relation: str) -> pa.Table:
    """The rows of these files of a relation. Raises OSError."""
    schema = arrow.schema(relation)
    tables = [schema.empty_table()]
    # A file that another program wrote anew has the columns of all relations.
    tables += [
        parquet.ParquetFile(content).read(columns=schema.names)
        for content in _contents(place, list(files))
    ]
    return pa.concat_tables(tables, promote_options="default")


def _contents(place: str, files: Sequence[DataFile]) -> Iterator[Any]:
    """What Parquet files are read from; of a store the whole files, in one request each."""
    if "://" not in place:
        yield from (url(place, file) for file in files)
    elif files:
        urls = [url(place, file) for file in files]
        # Asked for one path, fsspec gives its bytes alone.
        found = storage.filesystem(place).cat(urls, recursive=False)
        yield from (pa.BufferReader(content) for content in found.values())


def url(place: str, file: DataFile) -> str:
    """A file as DuckDB and fsspec name it."""
    return f"{place}/{file.path}"


def _encodings(relation: str, columns: Iterable[str]) -> dict[str, Any]:
    """How each column is stored. Only what Spark 3.5 reads too, whose integers are never split."""
    steps = {name for name in columns if name in _STEPS | _STEPS_OF.get(relation, set())}
    return {
        "use_dictionary": [name for name in columns if name not in _PLAIN | steps],
        "column_encoding": dict.fromkeys(steps, "DELTA_BINARY_PACKED") or None,
    }


def _whole(rows: pa.Table, relation: str) -> pa.Table:
    """The rows with all columns of the relation, in its order, sorted by module."""
    schema = arrow.schema(relation)
    columns = [
        rows[column.name].cast(column.type)
        if column.name in rows.column_names
        else pa.nulls(len(rows), column.type)
        for column in schema
    ]
    table = pa.table(columns, schema=schema)
    if "module_id" in table.column_names:
        # The sort keeps the order of a module's rows.
        table = table.take(pc.sort_indices(table["module_id"]))
    return table


def _put(place: str, path: str, content: bytes) -> None:
    if "://" in place:
        storage.filesystem(place).pipe_file(f"{place}/{path}", content)
        return
    target = Path(place, path)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(content)
