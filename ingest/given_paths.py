"""The paths that a user gives for one run, and the programs under them."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from itertools import chain
from pathlib import Path, PurePosixPath

from ..schema.errors import UsageError
from ..schema.stores.base import Store
from ..xla.errors import DumpError
from .oom_logs import OomLogs, may_be_log
from .sources.dump_folder import find_dumps, is_wanted
from .sources.files import (
    Given,
    RemotePath,
    SourceFile,
    is_archive,
    is_dump_file,
    is_file,
    open_source,
    readable,
    source_name,
)
from .sources.program import Program
from .sources.session_names import is_session_file
from .sources.xprof_session import find_modules


class GivenPaths:
    """One path, whose folders are the workloads, or several that are workloads themselves.

    Of several paths, a folder or archive is the workload of its name, and its own folders are
    workloads within it. Dump files are one dump if their names say so, wherever they are. All
    workloads are within that of the host, if one is named. `empty` has the folders and archives
    that were read and hold no program and no message, once the programs were asked for.
    """

    def __init__(self, paths: Sequence[Given], host: str | None = None) -> None:
        self.logs = OomLogs()
        self.empty: list[Given] = []
        self._outer = outer = PurePosixPath(host or "")
        self._paths = {outer / (_name_of(path) if len(paths) > 1 else ""): path for path in paths}
        if not paths:
            raise UsageError("name a folder, an archive or a file", "paths")
        if len(self._paths) < len(paths):
            raise UsageError(
                "two of these paths have one name, so their dumps could not be told apart: "
                "give the folder that holds them, or rename one"
            )

    @property
    def source(self) -> str:
        """The paths as given, as one text."""
        return ", ".join(map(_shown, self._paths.values()))

    def programs(
        self, store: Store, cleanup: ExitStack, refuse: Callable[[str], None]
    ) -> list[Program]:
        """The programs, in order; `refuse` receives what is wrong with a path or a file.

        The files exist until `cleanup` ends. A path without programs is refused, unless it has
        messages that memory ran out: `logs` has these then.
        """
        found: list[Program] = []
        single: list[Iterator[SourceFile]] = []
        of_sessions: list[SourceFile] = []
        for name, path in self._paths.items():
            problems: list[str] = []
            opened = open_source(path, is_read, cleanup, problems.append)
            files = _but_warehouse(opened, store)
            if len(self._paths) > 1 and is_dump_file(path):
                files = (replace(file, path=self._outer / file.path) for file in files)
                files = _set_aside(files, of_sessions)
                single.append(self.logs.but_logs(files, self._refusing(refuse), is_named=True))
                continue
            inner = (replace(file, path=name / file.path) for file in files)
            before = len(of_sessions), len(self.logs.found)
            refusing = self._refusing(problems.append)
            dumped = _set_aside(inner, of_sessions)
            rest = self.logs.but_logs(dumped, refusing, is_named=is_dump_file(path))
            here = find_dumps(rest, refusing, named_file=is_file(path))
            found += here
            has_some = here or (len(of_sessions), len(self.logs.found)) != before
            if not has_some and not problems:
                # Imported here, because few paths hold nothing.
                from .doctor import nothing_found

                problems.append(nothing_found(path))
                if not is_file(path) or is_archive(path.name):
                    self.empty.append(path)
            for problem in problems:
                refuse(problem)
        if single:
            files = chain.from_iterable(single)
            found += find_dumps(files, self._refusing(refuse), named_file=True)
        found += find_modules(of_sessions, self._refusing(refuse), cleanup)
        return found

    def _refusing(self, refuse: Callable[[str], None]) -> Callable[[SourceFile, DumpError], None]:
        return lambda file, why: refuse(f"{self.shown(str(file.path))}: {why}")

    def shown(self, file: str) -> str:
        """The path to show for a file of a program."""
        inner = PurePosixPath(file)
        for name, path in self._paths.items():
            if inner.is_relative_to(name):
                inner = inner.relative_to(name)
                # What is in a file that the user named stands below the file's name.
                own = readable(PurePosixPath(path.name))
                is_inside = is_file(path) and inner.is_relative_to(own)
                return str(path / (inner.relative_to(own) if is_inside else inner))
        return file


def _shown(path: Given) -> str:
    return str(path if isinstance(path, RemotePath) else readable(PurePosixPath(path)))


def _name_of(path: Given) -> PurePosixPath:
    """What tells a path from the others of a run."""
    return readable(PurePosixPath(path.name if is_dump_file(path) else source_name(path)))


def is_read(name: str) -> bool:
    """Whether ingest reads a file of this name."""
    return is_wanted(name) or is_session_file(name) or may_be_log(name)


def _set_aside(files: Iterator[SourceFile], of_sessions: list[SourceFile]) -> Iterator[SourceFile]:
    """All files but those of XProf's sessions, which go to the list."""
    for file in files:
        if is_session_file(file.path.name):
            of_sessions.append(file)
        else:
            yield file


def _but_warehouse(files: Iterator[SourceFile], store: Store) -> Iterator[SourceFile]:
    """All files except the warehouse: opening and closing it would release its lock."""
    for file in files:
        if not isinstance(file.location, Path):
            yield file
            continue
        try:
            status = file.location.stat()
        except OSError:  # The file has vanished; reading it reports this.
            yield file
            continue
        if not store.owns(status):
            yield file
