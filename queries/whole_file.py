"""Files that are written whole or not at all."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ..schema.errors import FileError, UsageError, with_remedy
from ..schema.stores.base import Store


def require_place(store: Store, path: Path) -> None:
    """Raises UsageError for a file without a folder, and for one of the warehouse itself."""
    if not path.parent.is_dir():
        raise UsageError(f"there is no folder {path.parent}", "file")
    if store.holds(path):
        raise UsageError(f"{path} is of the warehouse itself: name another file", "file")


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
