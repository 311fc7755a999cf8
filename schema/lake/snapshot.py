"""A snapshot of a lake: the files that are part of it at a version."""

import json
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ..errors import MissingPackageError, WarehouseError
from ..versions import LAYOUTS, layout
from . import storage
from .data_files import (
    ID_COLUMNS,
    LAKE_VERSION,
    LAYOUT_PROPERTY,
    PROPERTIES,
    VERSION_PROPERTY,
    DataFile,
    union_schema,
)
from .lake_errors import lake_error, lake_errors

if TYPE_CHECKING:
    from deltalake import DeltaTable

# The key under which a commit names the runs that it changed; without it, any may have changed.
CHANGED_RUNS = "memhouse.changedRuns"
# Operations of other programs that change no row.
_SAME_ROWS = ("OPTIMIZE", "VACUUM START", "VACUUM END")
# The allowed paths of files: inside of the lake, and without characters of DuckDB's patterns.
_INSIDE = re.compile(r"(?:[A-Za-z0-9_=-][A-Za-z0-9_.=+-]*/)*[A-Za-z0-9_=-][A-Za-z0-9_.=+-]*")
# Real files have less than one row in a byte. A file with more is made to exhaust memory.
_MOST_ROWS_IN_BYTE = 8
_LOG_IS_GONE = (
    "its log is gone, its files are there: restore the files in _delta_log from a copy, "
    "or name another place"
)
# More commits than this are not read one by one.
_MOST_COMMITS = 500


@dataclass(frozen=True)
class Snapshot:
    """The files of each relation at a version of the lake."""

    version: int
    files: Mapping[str, tuple[DataFile, ...]]

    @cached_property
    def paths(self) -> frozenset[str]:
        """The paths of all files."""
        return frozenset(file.path for files in self.files.values() for file in files)

    def of(self, relation: str) -> tuple[DataFile, ...]:
        """The files of a relation."""
        return self.files.get(relation, ())


class Lake:
    """A lake, and its snapshot that was read last."""

    def __init__(self, place: str, *, create: bool = False) -> None:
        """Open the lake at a place, or with `create` make it. Raises WarehouseError."""
        self.place = place
        storage.forget()
        with lake_errors(place):
            self.table = _opened(place, create=create)
        stored = int(self.table.metadata().configuration.get(VERSION_PROPERTY, 0))
        if stored == 0:
            raise WarehouseError(f"{place} is a Delta table, but not a lake of memhouse")
        if stored > LAKE_VERSION:
            raise WarehouseError(
                f"{place} has lake version {stored}, this memhouse knows up to {LAKE_VERSION}: "
                "upgrade memhouse"
            )
        digest = self.table.metadata().configuration.get(LAYOUT_PROPERTY)
        self.is_current = stored == LAKE_VERSION and digest == layout()
        if digest is not None and not self.is_current and digest not in LAYOUTS.values():
            raise WarehouseError(
                f"{place} was written by a memhouse between two releases, whose tables this one "
                "does not know: read it with that one, or ingest its dumps into a new lake"
            )
        self.snapshot = self._read({})

    def refresh(self) -> Snapshot:
        """Read the newest snapshot."""
        with lake_errors(self.place):
            self.table.update_incremental()
        if self.table.version() != self.snapshot.version:
            self.snapshot = self._read(self.snapshot.files)
        return self.snapshot

    def runs_changed_since(self, version: int) -> list[str] | None:
        """The runs that commits after a version changed; None if that is not known."""
        count = self.snapshot.version - version
        if count > _MOST_COMMITS:
            return None
        with lake_errors(self.place):
            commits = self.table.history(count) if count > 0 else []
        changed: set[str] = set()
        commits_read = 0
        for commit in commits:
            if not version < commit["version"] <= self.snapshot.version:
                continue
            commits_read += 1
            if CHANGED_RUNS in commit:
                changed.update(json.loads(commit[CHANGED_RUNS]))
            elif commit.get("operation") not in _SAME_ROWS:
                return None
        return sorted(changed) if commits_read == count else None

    def _read(self, before: Mapping[str, tuple[DataFile, ...]]) -> Snapshot:
        with lake_errors(self.place):
            added = pa.table(self.table.get_add_actions(flatten=True))
            return Snapshot(self.table.version(), _by_relation(self.place, added, before))


def is_made(place: str) -> bool:
    """Whether a lake, or another Delta table, is at the place. Raises WarehouseError."""
    with lake_errors(place):
        return bool(_deltalake().DeltaTable.is_deltatable(place, storage.options(place)))


def _deltalake() -> Any:
    try:
        import deltalake
    except ImportError:
        raise MissingPackageError(
            "a lake needs deltalake and fsspec: pip install 'memhouse[lake]'"
        ) from None
    return deltalake


def _opened(place: str, *, create: bool) -> "DeltaTable":
    _deltalake()
    from deltalake import CommitProperties, DeltaTable
    from deltalake.exceptions import CommitFailedError

    options = storage.options(place)
    if Path(place).is_file():
        raise WarehouseError(f"cannot make a lake of {place}: it is a file: name a folder")
    if DeltaTable.is_deltatable(place, options):
        return DeltaTable(place, storage_options=options)
    if not create:
        if any(name.startswith("relation=") for name in _files(place)):
            raise WarehouseError(f"cannot open the lake {place}: {_LOG_IS_GONE}")
        raise WarehouseError(
            f"there is no lake at {place}: make one with `memhouse lake init`, "
            "or name another with --db or MEMHOUSE_DB"
        )
    if (outer := _lake_around(place)) is not None:
        raise WarehouseError(
            f"cannot make a lake of {place}: it is inside the lake {outer}, whose vacuum would "
            "delete it: name another place"
        )
    if (others := _files(place)) and not DeltaTable.is_deltatable(place, options):
        raise WarehouseError(f"cannot make a lake of {place}: {_reason(others)}")
    try:
        return DeltaTable.create(
            place,
            union_schema(),
            mode="ignore",
            partition_by=["relation"],
            name="memhouse",
            configuration=PROPERTIES,
            storage_options=options,
            raise_if_key_not_exists=False,
            # With retries, a second process would give the lake another id in a second version.
            commit_properties=CommitProperties(max_commit_retries=0),
        )
    except CommitFailedError as error:
        # Another process may have made the lake at the same time.
        if DeltaTable.is_deltatable(place, options):
            return DeltaTable(place, storage_options=options)
        raise lake_error(place, error) from error


def _lake_around(place: str) -> str | None:
    """The lake that a place is inside of."""
    root, is_url, path = place.rpartition("://")
    outer = PurePosixPath(path) if is_url else Path(place)
    for folder in outer.parents:
        # A bucket is the outermost place of a lake.
        if len(folder.parts) < (1 if is_url else 2):
            break
        name = f"{root}{is_url}{folder}"
        if is_made(name):
            return name
    return None


def _files(place: str) -> list[str]:
    """The names in a place, without those that a vacuum ignores."""
    try:
        paths = storage.filesystem(place).ls(place, detail=False)
    except FileNotFoundError:
        return []
    own = place.split("://")[-1].rstrip("/")
    # A bucket may hold an empty object of the folder's own name.
    names = [path.rstrip("/").rpartition("/")[2] for path in paths if path != f"{own}/"]
    return [name for name in names if not name.startswith((".", "_"))]


def _reason(others: list[str]) -> str:
    """Why a place that holds other files cannot become a lake."""
    if any(name.startswith("relation=") for name in others):
        return _LOG_IS_GONE
    return (
        f"it holds other files, such as {min(others)}, which a vacuum would delete: "
        "name a folder that is empty or not there"
    )


def _by_relation(
    place: str, added: pa.Table, before: Mapping[str, tuple[DataFile, ...]]
) -> dict[str, tuple[DataFile, ...]]:
    """The files of each relation in the order of their paths; files of `before` are reused."""
    if not len(added):
        return {}
    known = {file.path: file for files in before.values() for file in files}
    paths = added["path"].to_pylist()
    files = {path: known[path] for path in paths if path in known}
    new = [number for number, path in enumerate(paths) if path not in files]
    for file in _data_files(added.take(pa.array(new, pa.int64()))):
        _require_plain(place, file)
        files[file.path] = file
    if "://" not in place:
        _require_no_links(place, [paths[number] for number in new])
    by_relation: dict[str, list[DataFile]] = {}
    for path in sorted(files):
        # A newer memhouse may have relations that this one does not know.
        by_relation.setdefault(files[path].relation, []).append(files[path])
    return {name: tuple(of_relation) for name, of_relation in by_relation.items()}


def _require_plain(place: str, file: DataFile) -> None:
    """Raise WarehouseError for a file outside of the lake, or with an impossible number of rows."""
    if not _INSIDE.fullmatch(file.path):
        raise _foreign(place, file.path, "may be outside of the lake")
    if file.rows is None or not 0 <= file.rows <= _MOST_ROWS_IN_BYTE * file.size_bytes:
        what = f"cannot hold {file.rows} rows in {file.size_bytes} bytes"
        raise _foreign(place, file.path, what)


def _require_no_links(place: str, paths: Iterable[str]) -> None:
    """Raise WarehouseError if one of the files, or a folder that it is in, is a symbolic link."""
    folders = {
        str(parent)
        for folder in {path.rpartition("/")[0] for path in paths}
        for parent in (PurePosixPath(folder), *PurePosixPath(folder).parents[:-1])
    }
    for path in (*sorted(folders), *paths):
        # A lake has thousands of files, and Path would double the time.
        if os.path.islink(f"{place}/{path}"):  # noqa: PTH114
            raise _foreign(place, path, "is a symbolic link and may lead out of the lake")


def _foreign(place: str, path: str, what: str) -> WarehouseError:
    return WarehouseError(
        f"cannot use the lake {place}: its log names {path!r}, which {what}: somebody else "
        "changed the lake, restore it from a copy"
    )


def _data_files(added: pa.Table) -> list[DataFile]:
    columns = added.column_names
    ids = [name for name in ID_COLUMNS if f"min.{name}" in columns]
    values: dict[str, list[Any]] = {name: added[name].to_pylist() for name in columns}
    return [
        DataFile(
            values["partition.relation"][place],
            values["path"][place],
            values["size_bytes"][place],
            values["num_records"][place],
            {name: values[f"min.{name}"][place] for name in ids},
            {name: values[f"max.{name}"][place] for name in ids},
        )
        for place in range(len(added))
    ]
