"""Rows that go: which files hold them, and the same files without them."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from .. import arrow
from ..quoting import quoted
from .data_files import DataFile, check_files, read_files, url, write_file
from .lake_tables import select_files
from .layout import HISTORY, relations
from .portions import file_size, portions
from .stored import may_hold

Ids = Iterable[int | str]


class Removals:
    """Conditions of rows that go, by relation."""

    def __init__(self) -> None:
        self._ids: dict[str, dict[str, set[int | str]]] = {}
        self._labels: tuple[list[str], list[str]] = ([], [])

    def drop(
        self, key: str, ids: Ids, *, only: Iterable[str] = (), but: Iterable[str] = ()
    ) -> None:
        """Rows with these ids go from all relations that have the key, or from `only` these."""
        wanted = set(ids)
        if not wanted:
            return
        for name in only or _with(key):
            if name not in but:
                self._ids.setdefault(name, {}).setdefault(key, set()).update(wanted)

    def drop_labels(self, runs: Iterable[str], keys: Iterable[str]) -> None:
        """These labels of these runs go."""
        self._labels = (list(runs), list(keys))
        if all(self._labels):
            self._ids.setdefault("run_labels", {})

    def without(
        self,
        connection: duckdb.DuckDBPyConnection,
        place: str,
        files: Mapping[str, Iterable[DataFile]],
        oom_dumps: set[int],
    ) -> tuple[list[DataFile], list[DataFile]]:
        """The files to remove, and those that hold their other rows.

        The dumps of `oom_dumps` stay, and are marked that memory ran out.
        """
        removes: list[DataFile] = []
        adds: list[DataFile] = []
        touched = {*self._ids, "dumps"} if oom_dumps else {*self._ids}
        for name in sorted(touched):
            ids = self._ids.get(name, {})
            marked = oom_dumps if name == "dumps" else set()
            candidates = [
                file
                for file in files.get(name, ())
                if (name == "run_labels" and self._labels[0])
                or any(may_hold(file, key, wanted) for key, wanted in ids.items())
                or (marked and may_hold(file, "dump_id", marked))
            ]
            if not candidates:
                continue
            with self._condition(connection, name, ids, marked) as (goes, changes):
                source = select_files(place, candidates, name, with_file=True)
                found = (
                    connection.sql(
                        f"SELECT DISTINCT filename FROM ({source}) WHERE {goes} OR {changes}"
                    )
                    .to_arrow_table()["filename"]
                    .to_pylist()
                )
                affected = [file for file in candidates if url(place, file) in set(found)]
                if not affected:
                    continue
                # What is damaged would get a checksum that says it is not.
                check_files(place, affected)
                oom = f" REPLACE (oom OR {changes} AS oom)" if marked else ""
                for group in portions((file, file_size(file)) for file in affected):
                    rest = connection.sql(
                        f"SELECT *{oom} FROM ({select_files(place, group, name)}) WHERE NOT {goes}"
                    ).to_arrow_table()
                    if len(rest):
                        adds.append(write_file(place, name, rest))
            removes += affected
        return removes, adds

    @contextmanager
    def _condition(
        self,
        connection: duckdb.DuckDBPyConnection,
        name: str,
        ids: Mapping[str, set[int | str]],
        marked: set[int],
    ) -> Iterator[tuple[str, str]]:
        """SQL for the rows that go, and for those that are marked; never null."""
        registered = []
        goes = []
        for key, wanted in ids.items():
            table = f"gone_{key}"
            connection.register(table, pa.table({key: _ids(name, key, wanted)}))
            registered.append(table)
            goes.append(f"COALESCE({key} IN (SELECT {key} FROM {table}), FALSE)")
        if name == "run_labels" and all(self._labels):
            runs, keys = (", ".join(map(quoted, texts)) for texts in self._labels)
            goes.append(f"(run_id IN ({runs}) AND key IN ({keys}))")
        changes = "FALSE"
        if marked:
            connection.register("marked", pa.table({"dump_id": pa.array(marked, pa.int64())}))
            registered.append("marked")
            changes = "(NOT oom AND dump_id IN (SELECT dump_id FROM marked))"
        try:
            yield f"({' OR '.join(goes) or 'FALSE'})", changes
        finally:
            for table in registered:
                connection.unregister(table)


def _with(key: str) -> list[str]:
    """The relations that have the key. The history is worked out anew."""
    return [name for name in relations() if name not in HISTORY and key in arrow.schema(name).names]


def _ids(relation: str, key: str, ids: set[int | str]) -> pa.Array:
    return pa.array(sorted(ids), arrow.schema(relation).field(key).type)


def without_modules(place: str, file: DataFile, modules: Iterable[int]) -> DataFile:
    """The file, or another that lacks the rows of these modules; it may have none."""
    rows = read_files(place, [file], file.relation)
    gone = pc.is_in(rows["module_id"], pa.array(sorted(modules), pa.int64()))
    if not pc.any(gone).as_py():
        return file
    return write_file(place, file.relation, rows.filter(pc.invert(gone)))
