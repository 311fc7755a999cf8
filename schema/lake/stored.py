"""What a lake holds at a snapshot, as far as changes ask for it."""

from collections.abc import Iterable

import duckdb
import pyarrow as pa

from .. import arrow
from .data_files import DataFile, url
from .lake_tables import HELD, select_files
from .snapshot import Snapshot


class Stored:
    """The rows of a lake at a snapshot, which the connection shows.

    Files that cannot hold the wanted rows are not opened.
    `ids_of_files` keeps the ids of files for the next snapshot, which has most of them too.
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
        return self.connection.sql(query, params=[wanted]).to_arrow_table()

    def ids(self, relation: str, key: str) -> frozenset[int]:
        """All ids of a relation; those of a file are read once."""
        if relation in HELD:
            found = self.connection.sql(f"SELECT DISTINCT {key} FROM {relation}").to_arrow_table()
            return frozenset(found[key].to_pylist())
        files = self.snapshot.of(relation)
        if new := [file for file in files if file.path not in self._ids_of_files]:
            listed = select_files(self.place, new, relation, with_file=True)
            query = f"SELECT filename, list(DISTINCT {key}) FROM ({listed}) GROUP BY filename"
            by_file = dict(self.connection.sql(query).fetchall())
            for file in new:
                # DuckDB names a file as it was named to it; another program's may have no rows.
                self._ids_of_files[file.path] = frozenset(by_file.get(url(self.place, file), ()))
        return frozenset().union(*(self._ids_of_files[file.path] for file in files))


def may_hold(file: DataFile, key: str, ids: Iterable[int | str]) -> bool:
    """Whether a file may have rows with one of these ids, as far as its statistics tell."""
    least, most = file.least.get(key), file.most.get(key)
    if least is None or most is None:
        return True
    return any(least <= id_ <= most for id_ in ids)
