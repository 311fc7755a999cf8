"""The data files of a lake: how they are laid out, written and read."""

import re
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet

from .. import arrow
from ..errors import WarehouseError
from ..versions import layout
from . import storage
from .lake_errors import GONE, DamagedFileError

# Layout: one Delta table, partitioned by `relation`, the name of our table.
#
# A commit of Delta covers one table, so that all our tables are one Delta table. A data file has
# the columns of its own relation only; the schema of the Delta table has those of all.

# The version of the layout and of our tables. A lake with a later version is not read.
LAKE_VERSION = 8
VERSION_PROPERTY = "memhouse.lakeVersion"
# The digest of our tables. A lake with another digest is upgraded or not read.
LAYOUT_PROPERTY = "memhouse.layout"
# The ids by which files are chosen. Delta stores their least and greatest value of each file.
ID_COLUMNS = ("module_id", "dump_id", "flags_id", "run_id")
# The relations that `schema/history` works out.
HISTORY = ("lineages", "history", "causes", "gone")
# Relations with few rows for a run or a dump: they are small, and written at each attempt.
SMALL = (
    "runs",
    "run_parts",
    "run_labels",
    "journal",
    "dumps",
    "file_sets",
    "compiler_flags",
    "accepted_changes",
    "oom_reports",
    "oom_buffers",
)
PROPERTIES = {
    "delta.dataSkippingStatsColumns": ",".join(ID_COLUMNS),
    # `vacuum` deletes old entries of the log, so that writers need no right to delete.
    "delta.enableExpiredLogCleanup": "false",
    # A process that lost the answer to its commit asks for the commit at once, not days later.
    "delta.setTransactionRetentionDuration": "interval 7 days",
    VERSION_PROPERTY: str(LAKE_VERSION),
    LAYOUT_PROPERTY: layout(),
}
# The tables of a DuckDB file that a lake does not have.
_OF_FILES = frozenset({"schema_version", "view_set"})


def relations() -> list[str]:
    """The names of the tables in a lake."""
    return [name for name in arrow.tables() if name not in _OF_FILES]


def stored_schema(relation: str) -> pa.Schema:
    """The columns of a relation in its files: Spark and Delta know times by their zone."""
    return pa.schema(
        [
            column.with_type(_STORED_TIME) if pa.types.is_timestamp(column.type) else column
            for column in arrow.schema(relation)
        ]
    )


_STORED_TIME = pa.timestamp("us", tz="UTC")


def union_schema() -> pa.Schema:
    """The columns of all relations, `relation` first; a column has one type in all of them."""
    columns: dict[str, pa.DataType] = {"relation": pa.string()}
    for name in relations():
        for column in stored_schema(name):
            assert columns.setdefault(column.name, column.type) == column.type, column.name
    return pa.schema(list(columns.items()))


# Files: Parquet, of one relation each, sorted by module.

# A reader of one module skips the row groups of other modules.
_ROWS_IN_GROUP = 128 << 10
# Higher levels take longer than reading the dump does, and save a few percent.
_ZSTD_LEVEL = 9
# Numbers that differ little from the row before, so that the differences are stored.
_DELTAS = frozenset(
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
_DELTAS_OF = {"occupancy": {"start_time"}}
# Values that hardly repeat, so that a dictionary would need more bytes.
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
# The name ends with the checksum of the content, because all programs keep names, also in
# checkpoints of the log, and `sha256sum` can check it.
_SUM = re.compile(r"-([0-9a-f]{64})\.parquet")


@dataclass(frozen=True, slots=True)
class DataFile:
    """A Parquet file of a lake; `path` is relative to the lake.

    least, most: the least and the greatest value of each id column in the file.
    """

    relation: str
    path: str
    size_bytes: int
    rows: int
    least: Mapping[str, Any] = field(default_factory=dict)
    most: Mapping[str, Any] = field(default_factory=dict)

    @property
    def sha256(self) -> str | None:
        """The SHA-256 of the content; None for files of other programs and of older memhouses."""
        match = _SUM.search(self.path)
        return match[1] if match else None


def write_file(place: str, relation: str, rows: pa.Table, mark: str = "") -> DataFile:
    """Write the rows, with missing columns as nulls. The file is not visible until a commit.

    The name is never used twice: a repeated task or a second writer writes another file. It begins
    with `mark` and ends with the SHA-256 of the content. Raises OSError.
    """
    table = _whole(rows, relation)
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
    name = f"{mark}{uuid.uuid4().hex[:8]}-{sha256(content).hexdigest()}.parquet"
    path = f"relation={relation}/{name}"
    _put(place, path, content)
    least, most = {}, {}
    for column in ids:
        bounds = pc.min_max(table[column]).as_py()
        if bounds["min"] is not None:
            least[column], most[column] = bounds["min"], bounds["max"]
    return DataFile(relation, path, len(content), len(table), least, most)


def read_files(
    place: str, files: Iterable[DataFile], relation: str, columns: pa.Schema | None = None
) -> pa.Table:
    """The rows of these files of a relation, whose contents are checked.

    columns: of a relation that only older lakes have. Raises OSError, and WarehouseError if a file
    is damaged.
    """
    schema = columns or stored_schema(relation)
    tables = [schema.empty_table()]
    for file, content in _contents(place, list(files)):
        # A file that another program rewrote has the columns of all relations; a file of an older
        # memhouse lacks some.
        stored = set(content.schema_arrow.names)
        with _damage(place, file):
            tables.append(content.read(columns=[n for n in schema.names if n in stored]))
    rows = pa.concat_tables(tables, promote_options="default")
    return rows.cast(columns or arrow.schema(relation))


def check_files(place: str, files: Iterable[DataFile]) -> None:
    """Read files to check that their contents are as written. Raises as `read_files` does."""
    for _ in _contents(place, list(files)):
        pass


def fault(place: str, file: DataFile, size: int | None, *, read: bool) -> str | None:
    """What is wrong with a file of this size in bytes; None if no fault is known.

    size: None if the file is missing. read: whether to read the file, and decode it if it has no
    checksum. Raises OSError.
    """
    if size is None:
        return "is missing"
    if size != file.size_bytes:
        return f"has {size} bytes, {file.size_bytes} were written"
    if not read:
        return None
    try:
        for _, content in _contents(place, [file]):
            if file.sha256 is None:
                with _damage(place, file):
                    content.read()
    except DamagedFileError as error:
        return error.what
    return None


def _contents(
    place: str, files: Sequence[DataFile]
) -> Iterator[tuple[DataFile, parquet.ParquetFile]]:
    """Parquet files with checked contents; an object store gets one request for each file."""
    contents: Iterable[bytes | Exception] = (_read(url(place, file), file) for file in files)
    if "://" in place and files:
        urls = [url(place, file) for file in files]
        # Asked for one path, fsspec gives its bytes alone.
        content_of_url = storage.filesystem(place).cat(urls, recursive=False, on_error="return")
        by_name = {path.rpartition("/")[2]: content for path, content in content_of_url.items()}
        contents = [by_name[file.path.rpartition("/")[2]] for file in files]
    for file, content in zip(files, contents, strict=True):
        if isinstance(content, FileNotFoundError):
            raise DamagedFileError(place, file.path, GONE)
        if isinstance(content, Exception):
            raise content
        if len(content) != file.size_bytes:
            raise DamagedFileError(place, file.path, "is damaged: its length is not as written")
        if file.sha256 not in (None, sha256(content).hexdigest()):
            raise DamagedFileError(place, file.path, "is damaged: its SHA-256 is not as written")
        with _damage(place, file):
            opened = parquet.ParquetFile(pa.BufferReader(content))
        if what := fault_of_rows(file, opened.metadata.num_rows):
            raise DamagedFileError(place, file.path, what)
        yield file, opened


@contextmanager
def _damage(place: str, file: DataFile) -> Iterator[None]:
    """Turn errors of Arrow into DamagedFileError: content in memory has no other cause of them."""
    try:
        yield
    except (pa.ArrowException, OSError) as error:
        what = "is damaged: it cannot be read as Parquet"
        raise DamagedFileError(place, file.path, what) from error


def fault_of_rows(file: DataFile, rows: int) -> str | None:
    """What is wrong with a file that claims this many rows; None if the log has the same number."""
    if rows == file.rows:
        return None
    return f"is damaged: it claims {rows} rows, and the log {file.rows}"


def _read(path: str, file: DataFile) -> bytes | Exception:
    """The content of a file, up to one byte more than the log says; or why there is none."""
    try:
        with Path(path).open("rb") as opened:
            return opened.read(file.size_bytes + 1)
    except FileNotFoundError as error:
        return error


def url(place: str, file: DataFile) -> str:
    """The name of a file for DuckDB and fsspec."""
    return f"{place}/{file.path}"


def _encodings(relation: str, columns: Iterable[str]) -> dict[str, Any]:
    """The encodings of columns: only those that Spark 3.5 reads, which cannot split integers."""
    deltas = {name for name in columns if name in _DELTAS | _DELTAS_OF.get(relation, set())}
    return {
        "use_dictionary": [name for name in columns if name not in _PLAIN | deltas],
        "column_encoding": dict.fromkeys(deltas, "DELTA_BINARY_PACKED") or None,
    }


def _whole(rows: pa.Table, relation: str) -> pa.Table:
    """The rows with all columns of the relation, in its order, sorted by module."""
    schema = stored_schema(relation)
    columns = [
        rows[column.name].cast(column.type)
        if column.name in rows.column_names
        else pa.nulls(len(rows), column.type)
        for column in schema
    ]
    table = pa.table(columns, schema=schema)
    if "module_id" in table.column_names:
        # The sort is stable: the order of a module's rows stays.
        table = table.take(pc.sort_indices(table["module_id"]))
    return table


def _put(place: str, path: str, content: bytes) -> None:
    if "://" in place:
        storage.filesystem(place).pipe_file(f"{place}/{path}", content)
        return
    target = Path(place, path)
    if target.parent.is_symlink():
        raise WarehouseError(
            f"cannot write to the lake {place}: {target.parent.name} is a symbolic link, and what "
            "is written must stay in the lake: put a folder there"
        )
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(content)


# Portions: as many rows as fit into memory at once, and into one data file.

# A larger file is slow to rewrite when a few of its rows are removed.
MOST_BYTES = 64 << 20
# A few hundred MB in memory: a column of a row takes 8 bytes or more.
_MOST_CELLS = 40 << 20

_T = TypeVar("_T")


class Sized(NamedTuple):
    """The size of rows: bytes in a file, 0 if not known, and cells, that is rows times columns."""

    size_bytes: int
    cells: int


def file_size(file: DataFile) -> Sized:
    """The size of the rows of a data file."""
    return Sized(file.size_bytes, file.rows * len(arrow.schema(file.relation)))


def portions(items: Iterable[tuple[_T, Sized]]) -> Iterator[list[_T]]:
    """The items in order, in lists within both limits; a single item may exceed them."""
    portion: list[_T] = []
    size_bytes = cells = 0
    for item, size in items:
        size_bytes += size.size_bytes
        cells += size.cells
        if portion and (size_bytes > MOST_BYTES or cells > _MOST_CELLS):
            yield portion
            portion, size_bytes, cells = [], size.size_bytes, size.cells
        portion.append(item)
    if portion:
        yield portion
