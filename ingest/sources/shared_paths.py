"""Files that one machine lists and others read: all must see the same file by the same path."""

import errno
import os
import socket
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from .files import Given, RemotePath

# What a machine says of a file that it does not see; other errors are of the file itself.
_UNSEEN = frozenset({errno.ENOENT, errno.ENOTDIR, errno.EACCES, errno.EPERM, errno.ESTALE})


class UnseenError(Exception):
    """A machine does not see a file as the driver saw it; no error of the file."""


@dataclass(frozen=True)
class SharedPath:
    """A listed file. is_readable: whether the machine that listed the file could read it."""

    path: Given
    size_bytes: int
    is_readable: bool = True

    def __str__(self) -> str:
        return str(self.path)

    @property
    def name(self) -> str:
        """The last part."""
        return self.path.name

    @property
    def parent(self) -> Given:
        """The folder."""
        return self.path.parent

    @cached_property
    def _here(self) -> str:
        return f"{self.path}: executor {socket.gethostname()}"

    def open(self, mode: str = "rb") -> Any:
        """The bytes. Raises UnseenError, and OSError for a file that no machine can read."""
        try:
            opened = self.path.open(mode)
        except OSError as error:
            if not self.is_readable or error.errno not in _UNSEEN | {None}:
                raise
            why = error.strerror or str(error)
            raise UnseenError(
                f"{self._here} cannot read it ({why}), and the driver can: "
                "name a path that all machines see, such as a shared folder or s3://"
            ) from None
        if isinstance(self.path, RemotePath):
            return opened
        found = os.fstat(opened.fileno()).st_size
        if found != self.size_bytes:
            opened.close()
            raise UnseenError(
                f"{self._here} sees {found} bytes, and the driver {self.size_bytes}: name a path "
                "that all machines see, or wait until the file is written"
            )
        return opened

    def stat(self) -> os.stat_result:
        """The size and the time of the last change."""
        return self.path.stat()


def shared(path: Given, size_bytes: int) -> SharedPath:
    """A file that this machine listed, by a path that does not depend on the current folder."""
    if isinstance(path, RemotePath):
        return SharedPath(path, size_bytes)
    return SharedPath(path.absolute(), size_bytes, os.access(path, os.R_OK))
