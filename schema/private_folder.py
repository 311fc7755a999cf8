"""Folders and files for what is on its way; what a killed process left, a later one removes.

The process holds a lock on a file in its folder, which the system lets go when the process ends,
however it ends. Other than a process's number, that holds across containers too.
"""

import fcntl
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from .errors import FileError, with_remedy

_LOCK = "memhouse.lock"
# As `mkdtemp` names them below.
_NAME = re.compile(r"\.?memhouse-[a-z0-9_]{8}")


@contextmanager
def private_folder(beside: Path | None = None) -> Iterator[Path]:
    """A new folder, hidden beside this file or else in TMPDIR, until the block ends."""
    folder, lock = _made(beside)
    try:
        yield folder
    finally:
        with suppress(OSError):
            _remove(folder)
        os.close(lock)


def _made(beside: Path | None) -> tuple[Path, int]:
    """A folder, and its locked file."""
    while True:
        folder = Path(
            tempfile.mkdtemp(prefix="memhouse-")
            if beside is None
            else tempfile.mkdtemp(prefix=".memhouse-", dir=beside.parent)
        )
        try:
            lock = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        except BaseException:
            folder.rmdir()
            raise
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            is_ours = os.fstat(lock).st_nlink > 0
        except BlockingIOError:
            is_ours = False
        except OSError:
            # Where files cannot be locked, `remove_leftovers` cannot lock them either.
            is_ours = True
        if is_ours:
            return folder, lock
        # Before the lock another process has taken the folder for a leftover.
        os.close(lock)


def remove_leftovers(parent: Path) -> None:
    """Remove the private folders in a folder whose processes are gone.

    Nothing else is touched: not what has another name, owner or kind, and no folder without a lock
    that can be taken. What cannot be removed stays.
    """
    with suppress(OSError), os.scandir(parent) as entries:
        for entry in entries:
            if _NAME.fullmatch(entry.name):
                with suppress(OSError):
                    _remove_if_left(Path(entry.path))


def _remove_if_left(folder: Path) -> None:
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid():
        return
    lock = os.open(folder / _LOCK, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        # Raises BlockingIOError while the process lives.
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if stat.S_ISREG(os.fstat(lock).st_mode):
            _remove(folder)
    finally:
        os.close(lock)


def _remove(folder: Path) -> None:
    """Remove a folder; its lock comes last, so that what a kill leaves is a leftover again."""
    for path in folder.iterdir():
        if path.name != _LOCK:
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink()
    (folder / _LOCK).unlink()
    folder.rmdir()


# Files that are written whole or not at all.


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """A file beside `path` to write to, which takes its place at the end. Raises FileError.

    A reader of the file never sees half of it, nor does a failure leave half behind. A link is
    followed. A pipe or a device, /dev/null for one, is written to as it is.
    """
    partial: Path | None = None
    try:
        if path.exists() and not (path.is_file() or path.is_dir()):
            yield path
            return
        place = path.resolve()
        if not place.parent.is_dir():
            raise FileError(f"cannot write {path}: there is no folder {place.parent}")
        # With the process, as two may write one file at once; short, as a name may be the longest.
        partial = place.with_name(f".{place.name[:50]}.{os.getpid()}.part")
        yield partial
        partial.replace(place)
    except OSError as error:
        reason = error.strerror or str(error)
        raise FileError(with_remedy(f"cannot write {path}: {reason}")) from error
    finally:
        # The file may not exist, and a read-only disk may refuse the call.
        with suppress(OSError):
            if partial:
                partial.unlink()
