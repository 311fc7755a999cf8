"""The tables of a lake in DuckDB, and the stored rows that changes need."""

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

import duckdb
import pyarrow as pa

from .. import arrow
from ..readable import quoted
from ..stores.duckdb import confine, memory_database, set_up
from .data_files import (
    HISTORY,
    SMALL,
    DataFile,
    check_files,
    fault_of_rows,
    read_files,
    relations,
    url,
)
from .lake_errors import FAULT, DamagedFileError, lake_error
from .snapshot import Snapshot

# Tables: each relation is a view over its files.
#
# Relations with a row or two for a run, a dump or a module are tables in memory instead, because
# every command reads them several times, and a lake that is not compacted has a file for each
# commit. For a newer snapshot the rows of its new files are added.

HELD = ("runs", "run_parts", "run_labels", "journal", "dumps", "modules", "module_memory")
# The views that writers read, and those that only queries read.
SMALL_VIEWS = tuple(name for name in SMALL if name not in HELD)
LARGE_VIEWS = tuple(name for name in relations() if name not in (*HELD, *HISTORY, *SMALL))


def connect(place: str, *, files: bool = False) -> duckdb.DuckDBPyConnection:
    """A database in memory that may read the files of the lake; with `files`, also other files."""
    connection = memory_database()
    set_up(connection)
    connection.execute("SET parquet_metadata_cache = true")
    connection.execute("CREATE TABLE view_set (digest TEXT)")
    for name in (*HELD, *HISTORY):
        columns = ", ".join(f'"{key}" {type_}' for key, type_ in _columns(name))
        connection.execute(f'CREATE TABLE "{name}" ({columns})')
    if "://" in place:
        from .remote_files import remote_files

        connection.register_filesystem(remote_files(place))
    if not files:
        confine(connection, f"{place}/")
    return connection


def hold(
    connection: duckdb.DuckDBPyConnection,
    place: str,
    snapshot: Snapshot,
    before: Snapshot | None = None,
) -> None:
    """Fill the tables in memory for the snapshot; `before` is the snapshot that they have now.

    The tables of the history stay as they are, because `lake_history` fills them.
    """
    connection.begin()
    try:
        for name in HELD:
            _hold(connection, place, name, snapshot, before)
        connection.commit()
    except BaseException:
        connection.rollback()
        raise


def _hold(
    connection: duckdb.DuckDBPyConnection,
    place: str,
    name: str,
    snapshot: Snapshot,
    before: Snapshot | None,
) -> None:
    files = snapshot.of(name)
    stored = set() if before is None else {file.path for file in before.of(name)}
    if not stored <= {file.path for file in files}:
        connection.execute(f'DELETE FROM "{name}"')
        stored = set()
    if new := [file for file in files if file.path not in stored]:
        add_rows(connection, place, name, new)


def show(
    connection: duckdb.DuckDBPyConnection,
    place: str,
    snapshot: Snapshot,
    names: Iterable[str],
    before: Snapshot | None = None,
    faults: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Make views of these names over the snapshot's files; `before` is their snapshot now.

    No file is opened. faults: what is wrong with files, by path. A query of their rows fails with
    that text.
    """
    for name in names:
        if before is None or before.of(name) != snapshot.of(name):
            rows = select(place, snapshot, name, faults)
            connection.execute(f'CREATE OR REPLACE VIEW "{name}" WITH (DEFER_BINDING) AS {rows}')


def faults_of(
    connection: duckdb.DuckDBPyConnection, place: str, files: Sequence[DataFile]
) -> dict[str, str]:
    """What is wrong with files, by path, judged by the metadata at the end of each file.

    A file may claim more rows than the log says, and millions of rows fit in a MB. Raises
    WarehouseError if a file cannot be reached.
    """
    if not files:
        return {}
    listed = _listed(place, files)
    query = f"SELECT file_name, num_rows FROM parquet_file_metadata([{listed}])"
    try:
        rows = dict(connection.execute(query).fetchall())
    except duckdb.Error as error:
        if len(files) > 1:
            faults_of_files = [faults_of(connection, place, [file]) for file in files]
            return {path: what for faults in faults_of_files for path, what in faults.items()}
        meaning = lake_error(place, error)
        if not isinstance(meaning, DamagedFileError):
            raise meaning from error
        return {files[0].path: meaning.what}
    row_faults = ((file.path, fault_of_rows(file, rows[url(place, file)])) for file in files)
    return {path: what for path, what in row_faults if what is not None}


def add_rows(
    connection: duckdb.DuckDBPyConnection, place: str, name: str, files: Iterable[DataFile]
) -> None:
    """Add the rows of at least one file to a table in memory."""
    if "://" not in place:
        # DuckDB reads small files faster, but sends an object store several requests for each.
        files = list(files)
        check_files(place, files)
        connection.execute(f'INSERT INTO "{name}" {select_files(place, files, name)}')
        return
    add_arrow(connection, name, read_files(place, files, name))


def add_arrow(connection: duckdb.DuckDBPyConnection, name: str, rows: pa.Table) -> None:
    """Add rows to a table in memory."""
    connection.register("incoming", rows)
    connection.execute(f'INSERT INTO "{name}" BY NAME SELECT * FROM incoming')
    connection.unregister("incoming")


def select(
    place: str, snapshot: Snapshot, relation: str, faults: Mapping[str, str] = MappingProxyType({})
) -> str:
    """The rows of a relation as SQL, with typed columns also if the relation has no file."""
    intact = [file for file in snapshot.of(relation) if file.path not in faults]
    rows = [select_files(place, _typical_first(intact), relation)] if intact else []
    rows += [
        _refused(relation, file, faults[file.path])
        for file in snapshot.of(relation)
        if file.path in faults
    ]
    return " UNION ALL ".join(rows) or f"SELECT {_nulls(relation)} WHERE false"


def _refused(relation: str, file: DataFile, what: str) -> str:
    """SQL in place of a file's rows, which fails for the modules that may have rows in it."""
    message = quoted(f"{FAULT}: {file.path} {what}")
    least, most = file.least.get("module_id"), file.most.get("module_id")
    if least is None or most is None:
        return f"SELECT {_nulls(relation)} WHERE error({message}) IS NULL"
    # A constant would also fail for other modules.
    message = f"concat({message}, left(CAST(module_id AS VARCHAR), 0))"
    return (
        f"SELECT {_nulls(relation, but='module_id')} FROM modules"
        f" WHERE module_id BETWEEN {least} AND {most} AND error({message}) IS NULL"
    )


def _nulls(relation: str, but: str = "") -> str:
    return ", ".join(
        f'"{name}"' if name == but else f'CAST(NULL AS {type_}) AS "{name}"'
        for name, type_ in _columns(relation)
    )


def _typical_first(files: Sequence[DataFile]) -> list[DataFile]:
    """The files, first one of average rows: DuckDB plans joins as if all files had its rows."""
    rows = sum(file.rows for file in files)
    first = min(files, key=lambda file: abs(file.rows * len(files) - rows))
    return [first, *(file for file in files if file is not first)]


def select_files(
    place: str, files: Iterable[DataFile], relation: str, *, with_file: bool = False
) -> str:
    """The rows of at least one file as SQL; with `with_file` also the name of each row's file."""
    columns = ", ".join(
        f'CAST("{name}" AS {type_}) AS "{name}"' if _is_converted(type_) else f'"{name}"'
        for name, type_ in _columns(relation)
    )
    listed = _listed(place, list(files))
    more, named = (", filename", ", filename = true") if with_file else ("", "")
    return f"SELECT {columns}{more} FROM read_parquet([{listed}], hive_partitioning = false{named})"


def _is_converted(type_: str) -> bool:
    """Whether the files have another type: text for a closed list, times with their zone."""
    return arrow.is_enum(type_) or type_ == "TIMESTAMP"


def _listed(place: str, files: Sequence[DataFile]) -> str:
    """The names of files in SQL. DuckDB may read remote files only after this."""
    if "://" in place:
        from .remote_files import remote_files

        remote_files(place).know({url(place, file): file.size_bytes for file in files})
    return ", ".join(quoted(url(place, file)) for file in files)


def _columns(relation: str) -> list[tuple[str, str]]:
    """The columns of a relation with their types in DuckDB."""
    stored = arrow.stored_columns()[relation].items()
    return [(name, arrow.duckdb_type(type_)) for name, type_ in stored if name[0] != "_"]


# Stored rows: those of a snapshot that a change is compared with.


class Stored:
    """The rows of a lake at a snapshot; the connection has the tables of that snapshot.

    Files that cannot have the wanted rows are not opened. `ids_of_files` keeps the ids in each
    file for the next snapshot, which has most of these files too.
    """

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        place: str,
        snapshot: Snapshot,
        ids_of_files: dict[str, frozenset[int]],
    ) -> None:
        self.connection, self.place, self.snapshot = connection, place, snapshot
        self._ids_of_files = ids_of_files

    def rows(
        self, relation: str, key: str, ids: Iterable[int | str], columns: Iterable[str] = ("*",)
    ) -> pa.Table:
        """The rows with these ids."""
        wanted = sorted(set(ids))
        source = relation
        if relation not in HELD:
            files = [file for file in self.snapshot.of(relation) if may_hold(file, key, wanted)]
            source = f"({select_files(self.place, files, relation)})" if files else ""
        if not source or not wanted:
            empty = arrow.schema(relation).empty_table()
            return empty if [*columns] == ["*"] else empty.select([*columns])
        query = f"SELECT {', '.join(columns)} FROM {source} WHERE {key} IN (SELECT UNNEST($1))"
        return arrow.plain(self.connection.sql(query, params=[wanted]).to_arrow_table())

    def ids(self, relation: str, key: str) -> frozenset[int]:
        """All ids of a relation; the ids of a file are read once."""
        if relation in HELD:
            rows = self.connection.sql(f"SELECT DISTINCT {key} FROM {relation}").to_arrow_table()
            return frozenset(rows[key].to_pylist())
        files = self.snapshot.of(relation)
        if new := [file for file in files if file.path not in self._ids_of_files]:
            listed = select_files(self.place, new, relation, with_file=True)
            query = f"SELECT filename, list(DISTINCT {key}) FROM ({listed}) GROUP BY filename"
            by_file = dict(self.connection.sql(query).fetchall())
            for file in new:
                # DuckDB gives the name that it was given. A file of another program may be empty.
                self._ids_of_files[file.path] = frozenset(by_file.get(url(self.place, file), ()))
        return frozenset().union(*(self._ids_of_files[file.path] for file in files))


def may_hold(file: DataFile, key: str, ids: Iterable[int | str]) -> bool:
    """Whether a file may have rows with one of these ids, by its statistics."""
    least, most = file.least.get(key), file.most.get(key)
    if least is None or most is None:
        return True
    return any(least <= id_ <= most for id_ in ids)
