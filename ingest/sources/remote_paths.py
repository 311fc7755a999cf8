"""Folders and files of an object store, such as s3://bucket/dumps, used as paths are."""

import io
import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, Protocol, cast

from ...schema.errors import UsageError, with_remedy
from ...schema.lake.lake_errors import is_foreign
from ...schema.lake.storage import OTHER_NAMES, filesystem

# Larger files are copied to the disk first; an archive is read from the start to the end.
_IN_MEMORY_BYTES = 256 << 20
# What the file systems call the time of a file's last change.
_TIMES = ("LastModified", "last_modified", "mtime", "updated")


class Location(Protocol):
    """Where a file's bytes are: a path, or what can be opened as a path."""

    @property
    def name(self) -> str:
        """The last part."""

    @property
    def parent(self) -> "Location":
        """The folder."""

    def open(self, mode: str, /) -> Any:
        """The bytes as a binary file. Raises OSError."""

    def stat(self) -> os.stat_result:
        """The size and the time of the last change. Raises OSError."""


@dataclass(frozen=True)
class RemotePath:
    """A URL of an object store. size_bytes and modified are known of files that were listed."""

    url: str
    size_bytes: int | None = None
    modified: float = 0.0

    def __str__(self) -> str:
        return self.url

    def __fspath__(self) -> str:
        """The path in the store: what os.path and PurePosixPath take its name from."""
        return self._path

    def __truediv__(self, inner: object) -> "RemotePath":
        return RemotePath(f"{self.url}/{inner}")

    @property
    def _path(self) -> str:
        return self.url.split("://", 1)[1]

    @property
    def name(self) -> str:
        """The last part."""
        return PurePosixPath(self._path).name

    @property
    def parent(self) -> "RemotePath":
        """The folder."""
        return RemotePath(self.url.rsplit("/", 1)[0])

    def exists(self) -> bool:
        """Whether there is a file or a folder."""
        with _asked(self.url) as store:
            return bool(store.exists(self.url))

    def is_folder(self) -> bool:
        """Whether there are files below."""
        with _asked(self.url) as store:
            return self.size_bytes is None and bool(store.isdir(self.url))

    def is_file(self) -> bool:
        """Whether it is a file."""
        with _asked(self.url) as store:
            return self.size_bytes is not None or bool(store.isfile(self.url))

    def files(self) -> Iterator["RemotePath"]:
        """All files below, by path. Raises OSError."""
        with _asked(self.url) as store:
            found = store.find(self.url, detail=True)
        for path, info in sorted(found.items()):
            # A folder may have an empty object of its own.
            if info["type"] == "file" and not path.endswith("/"):
                inner = PurePosixPath(path).relative_to(self._path)
                yield RemotePath(f"{self.url}/{inner}", info["size"], _modified(info))

    def relative_to(self, folder: "RemotePath") -> PurePosixPath:
        """The path below a folder."""
        return PurePosixPath(self._path).relative_to(folder._path)

    def open(self, mode: str = "rb") -> BinaryIO:
        """The bytes. They are fetched at once, so an error of the network is no short file."""
        assert mode == "rb", "memhouse writes no dumps"
        with _asked(self.url) as store:
            size = self.size_bytes if self.size_bytes is not None else store.info(self.url)["size"]
            if size <= _IN_MEMORY_BYTES:
                content = io.BytesIO(store.cat_file(self.url))
                return io.BufferedReader(cast(io.RawIOBase, content))
            with tempfile.NamedTemporaryFile(prefix="memhouse-") as copy:
                store.get_file(self.url, copy.name)
                # The open file lives on without a name.
                return Path(copy.name).open("rb")

    def part(self, start: int, size: int) -> bytes:
        """Some of the bytes; fewer if the file is shorter. Raises as `open` does."""
        with _asked(self.url) as store:
            return bytes(store.cat_file(self.url, start=start, end=start + size))

    def stat(self) -> os.stat_result:
        """The size and the time of the last change."""
        size, modified = self.size_bytes, self.modified
        if size is None:
            with _asked(self.url) as store:
                info = store.info(self.url)
            size, modified = info["size"], _modified(info)
        return os.stat_result((stat.S_IFREG, 0, 0, 0, 0, 0, size, 0, int(modified), 0))


@contextmanager
def _asked(url: str) -> Iterator[Any]:
    """The store of a URL. What it answers instead of bytes, as UsageError or as OSError."""
    try:
        yield filesystem(url)
    except FileNotFoundError:
        raise
    except Exception as error:
        # The system's own errors say their reason, and are told as elsewhere.
        if isinstance(error, OSError):
            if error.strerror is not None:
                raise
        elif not is_foreign(error):
            raise
        said = " ".join(str(error).split()) or type(error).__name__
        raise UsageError(f"{url} cannot be read: {with_remedy(said)}", "paths") from error


def path_of(given: str | os.PathLike[str]) -> "Path | RemotePath":
    """A path as a user gives it: a URL of an object store, or a path. Raises UsageError."""
    text = os.fspath(given) if not isinstance(given, RemotePath) else given.url
    scheme, is_url, rest = text.partition("://")
    if not is_url:
        return Path(text)
    if scheme == "file":
        return Path(rest)
    scheme = OTHER_NAMES.get(scheme, scheme)
    if scheme not in ("s3", "gs", "abfs", "abfss", "az"):
        raise UsageError(f"{text}: {scheme}:// is not known, name s3://, gs:// or abfs://", "paths")
    return RemotePath(f"{scheme}://{rest.rstrip('/')}")


def _modified(info: dict[str, Any]) -> float:
    for name in _TIMES:
        value = info.get(name)
        if isinstance(value, datetime):
            return value.timestamp()
        if isinstance(value, int | float):
            return float(value)
        if isinstance(value, str):
            return datetime.fromisoformat(value).timestamp()
    return 0.0
