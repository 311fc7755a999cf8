"""Logs, and files of a dump's folder, in which XLA may say that memory ran out."""

import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import BinaryIO

import pyarrow as pa

from ..schema.errors import UsageError
from . import formats
from .errors import DumpError
from .model.oom_report import OomReport, merge_reports
from .oom_rows import oom_tables
from .sources.compression import DAMAGED, PIECE, pieces
from .sources.files import SourceFile, is_file, is_folder
from .sources.names import readable

# What XLA writes into a dump's folder beside the module, and how people call their logs. A
# folder may hold thousands of other texts; ingest does not open them.
_DUMPED = re.compile(
    r"^(?:(?P<stem>module_.*)\.oom_top_memory_consuming_instructions"
    r"|\d+\.peak_memory_tensors\.txt)(?:\.gz|\.zst)?$"
)
_LOG = re.compile(
    r"^(?!\.)(?:.*\.(?:log|err|out|stderr|stdout)|(?:.*[._-])?(?:error|stderr|stdout)\.txt)"
    r"(?:\.gz|\.zst)?$"
)


@dataclass
class OomLogs:
    """The messages found; `empty` are the files that the user named and that hold none."""

    found: list[tuple[OomReport, str | None]] = field(default_factory=list)
    empty: list[SourceFile] = field(default_factory=list)
    modified: float = 0.0

    @property
    def reports(self) -> list[OomReport]:
        """The messages alone."""
        return [report for report, _ in self.found]

    def but_logs(
        self,
        files: Iterator[SourceFile],
        refuse: Callable[[SourceFile, DumpError], None],
        *,
        is_named: bool,
    ) -> Iterator[SourceFile]:
        """The files that may be of dumps; the others are read here.

        With `is_named` the user named this one file, so it is a log whatever its name.
        """
        for file in files:
            try:
                is_log = _is_log(file, is_named)
                if is_log:
                    self._read(file, is_named)
            except DumpError as error:
                refuse(file, error)
                continue
            if not is_log:
                yield file

    def _read(self, file: SourceFile, is_named: bool) -> None:
        dumped = _DUMPED.match(file.path.name)
        found = read_log(file, is_list=dumped is not None)
        if not found and is_named:
            self.empty.append(file)
        self.found += [(report, dumped["stem"] if dumped else None) for report in found]
        if found:
            self.modified = max(self.modified, file.modified)


def may_be_log(name: str) -> bool:
    """Whether a file of this name, in a folder, is searched for messages."""
    return _DUMPED.match(name) is not None or _LOG.match(name) is not None


def read_log(file: SourceFile, *, is_list: bool = False) -> list[OomReport]:
    """The messages in a file of any length, compressed or not; raises DumpError.

    With `is_list` the file is one that XLA dumped, which begins after the first line.
    """
    try:
        with file.location.open("rb") as raw:
            found = _read_messages(pieces(raw, file.path.name, PIECE), is_list=is_list)
    except DAMAGED as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise DumpError(f"the file cannot be read: {why}") from None
    for report in found:
        report.path = file.path.as_posix()
    return found


def read_log_tables(
    log: str | os.PathLike[str] | BinaryIO,
) -> tuple[str, dict[str, pa.Table]]:
    """A log's name, and its messages as the tables `oom_reports` and `oom_buffers`.

    Raises UsageError for a log that is not there or cannot be read.
    """
    if not isinstance(log, str | os.PathLike):
        name = "standard input"
        reports = _read_messages(iter(lambda: log.read(PIECE), b""))
        for report in reports:
            report.path = name
    else:
        path = Path(log)
        name = str(path)
        if not os.fspath(log):
            raise UsageError("the log's name is empty", "log")
        if not is_file(path):
            why = "is a folder: ingest it" if is_folder(path) else "there is no such file"
            raise UsageError(f"{name}: {why}", "log")
        try:
            status = path.stat()
            shown = readable(PurePosixPath(path))
            file = SourceFile(shown, path, status.st_mtime, status.st_size)
            reports = read_log(file, is_list=_DUMPED.match(path.name) is not None)
        except (DumpError, OSError) as error:
            raise UsageError(f"{name}: {error}", "log") from None
    return name, oom_tables(merge_reports(reports), "")


def _read_messages(content: Iterator[bytes], *, is_list: bool = False) -> list[OomReport]:
    # Imported here, because few ingests read logs.
    from .readers.oom_message import read_oom_messages

    return read_oom_messages(content, is_list=is_list)


def _is_log(file: SourceFile, is_named: bool) -> bool:
    name = file.path.name
    if formats.by_name(name) is not None or formats.is_binary(name):
        return False
    if not is_named and not may_be_log(name):
        return False
    return formats.by_content(file.read(formats.SNIFFED_BYTES)) is None
