"""Files of archives that other machines unpack: who opens such a file unpacks its archive."""

import io
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import Any

from ..xla.errors import DumpError
from . import formats
from .given_paths import is_read
from .oom_logs import may_be_log
from .sources.files import Given, SourceFile, open_source, unpacked
from .sources.session_names import is_session_file
from .sources.shared_paths import SharedPath, shared


@dataclass(frozen=True)
class ArchivedFile:
    """A file of an archive by its path there; `content` is what the driver itself reads."""

    archive: SharedPath
    inner: PurePosixPath
    size_bytes: int
    content: bytes | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return f"{self.archive}/{self.inner}"

    def __reduce__(self) -> Any:
        # Who reads the file elsewhere unpacks it.
        return ArchivedFile, (self.archive, self.inner, self.size_bytes)

    @property
    def name(self) -> str:
        """The last part."""
        return self.inner.name

    @property
    def parent(self) -> Given:
        """The folder that has the archive."""
        return self.archive.parent

    def open(self, mode: str = "rb") -> Any:
        """The bytes. Raises OSError and UnseenError."""
        if self.content is not None:
            return io.BytesIO(self.content)
        return _UNPACKED.of(self.archive)[self.inner].open(mode)

    def stat(self) -> os.stat_result:
        """The size alone."""
        return os.stat_result((stat.S_IFREG, 0, 0, 0, 0, 0, self.size_bytes, 0, 0, 0))


@dataclass
class Listing:
    """What an archive holds that ingest reads, and what is wrong with it."""

    files: list[SourceFile] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    # By its path there, what of a file is read where the archive is not unpacked.
    contents: dict[PurePosixPath, bytes] = field(default_factory=dict)

    def opened(self, folder: PurePosixPath, refuse: Callable[[str], None]) -> Iterator[SourceFile]:
        """The files below a folder."""
        for why in self.refused:
            refuse(why)
        for file in self.files:
            location = file.location
            assert isinstance(location, ArchivedFile)
            location = replace(location, content=self.contents.get(location.inner))
            yield replace(file, path=folder / file.path, location=location)


def listing(archive: SharedPath) -> Listing:
    """Unpack an archive for a while and list what ingest reads of it."""
    found = Listing()
    with ExitStack() as cleanup:
        for file in unpacked(archive, PurePosixPath(), is_read, cleanup, found.refused.append):
            name = file.path.name
            if is_session_file(name) or (formats.by_name(name) is None and may_be_log(name)):
                with file.location.open("rb") as raw:
                    found.contents[file.path] = raw.read()
            head = None
            if formats.by_name(name) is None:
                try:
                    head = file.read(formats.SNIFFED_BYTES)
                except DumpError:
                    # Who reads the file says what is wrong with it.
                    with file.location.open("rb") as raw:
                        found.contents[file.path] = raw.read()
            place = ArchivedFile(archive, file.path, file.size)
            found.files.append(replace(file, location=place, head=head))
    return found


def archives_under(path: Given) -> Iterator[Given]:
    """The archives under a path, unopened; what is wrong with other files is told later."""
    found: list[Given] = []

    def note(archive: Given, folder: PurePosixPath) -> Iterator[SourceFile]:
        found.append(archive)
        return iter(())

    with ExitStack() as cleanup:
        for _ in open_source(path, _nothing, cleanup, lambda why: None, open_archive=note):
            pass
    return iter(found)


def shared_archive(archive: Given) -> SharedPath:
    """An archive as other machines see it. Raises OSError."""
    return shared(archive, archive.stat().st_size)


def close_archive() -> None:
    """Remove what `ArchivedFile.open` unpacked in this process."""
    _UNPACKED.close()


class _Unpacked:
    """The archive that this process unpacked last: the programs of one are read together."""

    def __init__(self) -> None:
        self._archive: SharedPath | None = None
        self._files: dict[PurePosixPath, Path] = {}
        self._cleanup = ExitStack()

    def of(self, archive: SharedPath) -> dict[PurePosixPath, Path]:
        if archive != self._archive:
            self.close()
            refused: list[str] = []
            found = unpacked(archive, PurePosixPath(), is_read, self._cleanup, refused.append)
            files = {file.path: Path(str(file.location)) for file in found}
            if not files:
                # The driver listed files of it.
                raise OSError(refused[0] if refused else f"{archive}: the archive is empty now")
            self._archive, self._files = archive, files
        return self._files

    def close(self) -> None:
        self._cleanup.close()
        self._cleanup, self._archive, self._files = ExitStack(), None, {}


_UNPACKED = _Unpacked()


def _nothing(name: str) -> bool:
    return False
