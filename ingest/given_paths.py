"""The paths that a user gives for one run, and the programs under them."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from itertools import chain
from pathlib import Path, PurePosixPath

from ..schema.errors import UsageError
from ..schema.stores.base import Store
from .errors import DumpError
from .sources.dump_folder import find_dumps, is_wanted
from .sources.dumped_program import DumpedProgram
from .sources.files import SourceFile, is_dump_file, is_file, open_source, source_name
from .sources.names import readable


class GivenPaths:
    """One path, whose folders are the workloads, or several that are workloads themselves.

    Of several paths, a folder or archive is the workload of its name, and its own folders are
    workloads within it. Dump files are one dump if their names say so, wherever they are.
    """

    def __init__(self, paths: Sequence[Path]) -> None:
        self._paths = {
            _name_of(path) if len(paths) > 1 else PurePosixPath(): path for path in paths
        }
        if not paths:
            raise UsageError("name a folder, an archive or a file", "paths")
        if len(self._paths) < len(paths):
            raise UsageError(
                "two of these paths have one name, so their dumps could not be told apart: "
                "give the folder that holds them, or rename one"
            )

    @property
    def names(self) -> list[str]:
        """The last part of each path: it may hold a date."""
        return [PurePosixPath(path).name for path in self._paths.values()]

    @property
    def source(self) -> str:
        """The paths as given, as one text."""
        return ", ".join(str(readable(PurePosixPath(path))) for path in self._paths.values())

    def programs(
        self, store: Store, cleanup: ExitStack, refuse: Callable[[str], None]
    ) -> list[DumpedProgram]:
        """The programs, in order; `refuse` receives what is wrong with a path or a file.

        The files exist until `cleanup` ends. A path without programs is refused.
        """
        found: list[DumpedProgram] = []
        single: list[Iterator[SourceFile]] = []
        for name, path in self._paths.items():
            problems: list[str] = []
            files = _but_warehouse(open_source(path, is_wanted, cleanup, problems.append), store)
            if len(self._paths) > 1 and is_dump_file(path):
                single.append(files)
                continue
            inner = (replace(file, path=name / file.path) for file in files)
            here = find_dumps(inner, self._refusing(problems.append), named_file=is_file(path))
            found += here
            for problem in problems if here or problems else [_nothing_found(path)]:
                refuse(problem)
        if single:
            files = chain.from_iterable(single)
            found += find_dumps(files, self._refusing(refuse), named_file=True)
        return found

    def _refusing(self, refuse: Callable[[str], None]) -> Callable[[SourceFile, DumpError], None]:
        return lambda file, why: refuse(f"{self.shown(str(file.path))}: {why}")

    def shown(self, file: str) -> str:
        """The path to show for a file of a program."""
        inner = PurePosixPath(file)
        for name, path in self._paths.items():
            if inner.is_relative_to(name):
                inner = inner.relative_to(name)
                is_path = inner in (PurePosixPath(), readable(PurePosixPath(path.name)))
                return str(path if is_path else path / inner)
        return file


def _name_of(path: Path) -> PurePosixPath:
    """What tells a path from the others of a run."""
    return readable(PurePosixPath(path.name if is_dump_file(path) else source_name(path)))


def _but_warehouse(files: Iterator[SourceFile], store: Store) -> Iterator[SourceFile]:
    """All files except the warehouse: opening and closing it would release its lock."""
    for file in files:
        try:
            status = file.location.stat()
        except OSError:  # The file has vanished; reading it reports this.
            yield file
            continue
        if not store.owns(status):
            yield file


def _nothing_found(path: Path) -> str:
    if is_file(path):
        return f"{path}: this is not a memory dump of XLA: give a dump folder, archive or dump file"
    return (
        f"{path}: there are no memory dumps of XLA here: make some with "
        "XLA_FLAGS='--xla_dump_to=DIR --xla_dump_hlo_as_text'"
    )
