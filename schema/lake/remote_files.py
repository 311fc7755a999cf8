"""The data files of a lake in an object store, as DuckDB reads them: with few requests.

DuckDB asks a file system for size and age of a file at each use. Data files never change and the
log tells their sizes, so these need no request. Small files are read whole, of larger ones the
end, where Parquet's footer is, once.
"""

import io
import threading
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from typing import Any

from fsspec import AbstractFileSystem

from . import storage

# One request for so much takes hardly longer than for a few bytes.
_WHOLE_BYTES = 1 << 20
_END_BYTES = 256 << 10
# What was read is forgotten when it takes more.
_MOST_KEPT_BYTES = 256 << 20


@cache
def remote_files(place: str) -> "RemoteFiles":
    """The files of the lake at a place."""
    return RemoteFiles(place)


class RemoteFiles(AbstractFileSystem):  # type: ignore[misc]
    """The files that it is told of, and nothing else of the object store."""

    cachable = False  # codespell:ignore cachable

    def __init__(self, place: str) -> None:
        super().__init__()
        self.protocol = place.partition("://")[0]
        self._place = place
        # DuckDB reads in several threads.
        self._lock = threading.Lock()
        self._sizes: dict[str, int] = {}
        self._kept: dict[str, bytes] = {}

    def know(self, sizes: Mapping[str, int]) -> None:
        """Let these paths be files of these sizes in bytes."""
        self._sizes.update((self._plain(path), size) for path, size in sizes.items())

    def open(self, path: str, mode: str = "rb", **_: Any) -> "_RemoteFile":
        """A file to read. Raises FileNotFoundError."""
        return _RemoteFile(self, self._plain(path), self.size(path))

    def size(self, path: str) -> int:
        """How many bytes a file has. Raises FileNotFoundError."""
        try:
            return self._sizes[self._plain(path)]
        except KeyError:
            raise FileNotFoundError(path) from None

    def info(self, path: str, **_: Any) -> dict[str, Any]:
        """What DuckDB and fsspec ask of a file."""
        return {"name": path, "size": self.size(path), "type": "file"}

    def modified(self, path: str) -> datetime:
        """When the file changed: never."""
        return datetime(2000, 1, 1, tzinfo=UTC)

    def exists(self, path: str, **_: Any) -> bool:
        """Whether the file is known."""
        return self._plain(path) in self._sizes

    def isfile(self, path: str) -> bool:
        """The same."""
        return self.exists(path)

    def glob(self, path: str, **_: Any) -> list[str]:
        """The file alone: no patterns are asked for."""
        return [path] if self.exists(path) else []

    def read(self, path: str, start: int, end: int) -> bytes:
        """The bytes of a file from `start` up to `end`. Raises OSError."""
        size = self._sizes[path]
        kept_from = 0 if size <= _WHOLE_BYTES else size - _END_BYTES
        # Asked for each time: a lake that is opened again may have other credentials.
        store = storage.filesystem(self._place)
        if start < kept_from:
            return bytes(store.cat_file(path, start=start, end=end))
        with self._lock:
            content = self._kept.get(path)
        if content is None:
            content = bytes(store.cat_file(path, start=kept_from, end=size))
            with self._lock:
                if sum(map(len, self._kept.values())) > _MOST_KEPT_BYTES:
                    self._kept.clear()
                self._kept[path] = content
        return content[start - kept_from : end - kept_from]

    def _plain(self, path: str) -> str:
        return path.partition("://")[2] or path


class _RemoteFile(io.RawIOBase):
    def __init__(self, files: RemoteFiles, path: str, size: int) -> None:
        self._files, self._path, self._size = files, path, size
        self._place = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._place = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._place}.get(whence, self._size)
        return self._place

    def tell(self) -> int:
        return self._place

    def read(self, size: int = -1) -> bytes:
        start = self._place
        end = self._size if size < 0 else min(start + size, self._size)
        # Another thread of DuckDB may move the place while this one waits for the store.
        self._place = max(start, end)
        return self._files.read(self._path, start, end) if start < end else b""
