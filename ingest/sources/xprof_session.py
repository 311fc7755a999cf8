"""Programs of XProf's sessions: the modules that ran while a profile was recorded.

A session is a folder `plugins/profile/2026_10_01_12_00_00`. Each host writes its
`HOST.xplane.pb` there, with every module that ran on the host. XProf adds
`jit_step(6).hlo_proto.pb` once someone looks at the session. A module that several files hold
counts once.
"""

import hashlib
import os
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from pathlib import Path, PurePosixPath

from ...xla.errors import DumpError
from ..outcomes import Settings
from ..readers.proto_identity import identify_hlo_proto
from ..readers.xplane import Device, read_xspace
from .dump_folder import is_wanted
from .files import SourceFile, is_file, is_folder, plain_copy, unreadable
from .hlo_protos import FilePart, HloProtoProgram, platform_of
from .program import Key

# XProf writes an empty file of this name if no module ran.
_NO_MODULE = "NO_MODULE"
_PROGRAM_ID = re.compile(r"\s*\((-?\d{1,20})\)$")

_Refuse = Callable[[SourceFile, DumpError], None]


@dataclass(frozen=True)
class _Found:
    """A module in a session's file, by its name there: `jit_step(6)`."""

    name: str
    held: FilePart | SourceFile
    file: SourceFile

    @property
    def module_name(self) -> str:
        return _PROGRAM_ID.sub("", self.name) or "module"

    @property
    def path(self) -> str:
        """Where it is: a profile counts as a folder of modules, as an archive does."""
        file = self.file
        return f"{file.path}/{self.name}" if is_xplane(file.name) else file.path

    @property
    def order(self) -> tuple[str, int]:
        """Programs of one name in the order of their ids: the profile has them in any order."""
        match = _PROGRAM_ID.search(self.name)
        return self.module_name, int(match[1]) if match else 0

    @cached_property
    def content(self) -> str:
        """What is equal for equal modules."""
        try:
            data = self.held.read()
        except DumpError:  # Reading the program reports this.
            return f"{self.file.path} {self.name}"
        try:
            return identify_hlo_proto(data).content
        except DumpError:
            return hashlib.sha256(data).hexdigest()


@dataclass
class _Session:
    """The modules and devices of a session. is_profiled: an xplane says which devices it had."""

    folder: PurePosixPath
    modules: list[_Found] = field(default_factory=list)
    devices: list[Device] = field(default_factory=list)
    is_profiled: bool = False


def find_modules(
    files: Iterable[SourceFile], refuse: _Refuse, cleanup: ExitStack
) -> list[HloProtoProgram]:
    """The programs of all sessions, in order. `refuse` receives the files that cannot be read.

    What compressed files hold is unpacked to a temporary folder that `cleanup` removes.
    """
    folders: dict[PurePosixPath, list[SourceFile]] = defaultdict(list)
    for file in files:
        folders[PurePosixPath(file.folder)].append(file)
    sessions = [_read(folder, folders[folder], refuse, cleanup) for folder in sorted(folders)]
    places = [place_of(session.folder) for session in sessions]
    sessions_at = Counter(base for base, _ in places)
    return [
        program
        for session, (base, name) in zip(sessions, places, strict=True)
        for program in _programs(session, base if sessions_at[base] == 1 else base / name)
    ]


def _read(
    folder: PurePosixPath, files: list[SourceFile], refuse: _Refuse, cleanup: ExitStack
) -> _Session:
    session = _Session(folder)
    is_whole = True
    # XProf's own copies come last: looking at a session changes nothing in the warehouse.
    files.sort(key=lambda file: (not is_xplane(file.name), file.path))
    for file in files:
        name = stem_of(file.name)
        if is_xplane(file.name):
            is_whole &= _read_xplane(file, session, refuse, cleanup)
        elif name != _NO_MODULE:
            session.modules.append(_Found(name, file, file))
    if not session.modules and is_whole:
        refuse(files[0], DumpError("no XLA module ran while this profile was recorded"))
    return session


def _read_xplane(file: SourceFile, session: _Session, refuse: _Refuse, cleanup: ExitStack) -> bool:
    """Add the modules of a file to its session; whether the file is whole."""
    try:
        location = plain_copy(file, cleanup)
        with location.open("rb") as data:
            found = read_xspace(data)
    except OSError as error:
        refuse(file, unreadable(error))
        return False
    except DumpError as error:
        refuse(file, error)
        return False
    session.is_profiled = True
    here = [
        _Found(_in_a_line(module.name), FilePart(location, module.start, module.size), file)
        for module in found.modules
    ]
    session.modules += sorted(here, key=lambda module: module.order)
    session.devices += found.devices
    if found.error is not None:
        taken = "; what precedes this was taken" if found.modules else ""
        refuse(file, DumpError(f"{found.error}{taken}"))
    return found.error is None


def _in_a_line(name: str) -> str:
    return name.replace("\n", "\\n").replace("\r", "\\r")


def _programs(session: _Session, workload: PurePosixPath) -> Iterator[HloProtoProgram]:
    taken: set[str] = set()
    for module in _once(session.modules):
        # The path that the user gave may be the session's folder itself.
        place = session.folder if session.folder.name else module.file.location.parent
        time = session_time(place.name)
        name = module.name
        if name in taken:
            # Program ids count per process, so two hosts may give one name to two programs.
            name = f"{name}@{stem_of(module.file.name)}"
        while name in taken:
            name += "_"
        taken.add(name)
        platform = _platform(module, session)
        yield HloProtoProgram(
            Key(workload.as_posix(), module.module_name, platform=platform, name=name),
            module.held,
            module.path,
            "xplane" if is_xplane(module.file.name) else "hlo-proto",
            module.file.modified if time is None else time.timestamp(),
            _settings(session.devices, platform),
        )


def _once(modules: list[_Found]) -> Iterator[_Found]:
    """Each module once: what several files hold is one; what one file names twice is two."""
    files: dict[str, set[str]] = defaultdict(set)
    for module in modules:
        files[module.module_name].add(module.file.path)
    seen: set[tuple[str, int]] = set()
    in_file: Counter[tuple[str, str]] = Counter()
    for module in modules:
        if len(files[module.module_name]) > 1:
            # The n-th of a file's equal modules is the n-th of every file.
            in_file[module.file.path, module.content] += 1
            copy = module.content, in_file[module.file.path, module.content]
            if copy in seen:
                continue
            seen.add(copy)
        yield module


def _platform(module: _Found, session: _Session) -> str | None:
    """The platform that the module was compiled for, None if nothing says so for certain."""
    try:
        content = module.held.read()
    except DumpError:  # Reading the program reports this.
        return None
    # Beside a TPU or GPU, the host may have compiled some modules for itself.
    only_cpu = session.is_profiled and not session.devices
    return platform_of(content) or ("cpu" if only_cpu else None)


def _settings(devices: list[Device], platform: str | None) -> Settings:
    """The device that the module ran on, if all devices of its platform are alike."""
    alike = {device for device in devices if device.platform == platform}
    if len(alike) != 1:
        return Settings()
    (device,) = alike
    said = {"device_kind": device.kind, "device_memory_bytes": device.memory_bytes}
    return Settings(device={name: value for name, value in said.items() if value is not None})


# The names of XProf's sessions: of their files and folders.

_FILE = re.compile(r"^(?P<stem>.+)\.(?P<kind>xplane|hlo_proto)\.pb(?:\.gz|\.zst)?$")
_ENDINGS = (".pb", ".pb.gz", ".pb.zst")
_LAYOUT = ("plugins", "profile")
_TIME = re.compile(r"\d{4}(?:_\d\d){5}")


def is_session_file(name: str) -> bool:
    """Whether a file of this name belongs to a session."""
    return name.endswith(_ENDINGS) and _FILE.match(name) is not None


def is_xplane(name: str) -> bool:
    """Whether a session's file is a profile of one host; else it holds one module."""
    match = _FILE.match(name)
    return match is not None and match["kind"] == "xplane"


def stem_of(name: str) -> str:
    """The host or the module that a session's file is named after."""
    match = _FILE.match(name)
    return name if match is None else match["stem"]


def session_time(name: str) -> datetime | None:
    """The time in a session's name. It is the clock's of the machine, and is taken for UTC."""
    if not _TIME.fullmatch(name):
        return None
    try:
        return datetime.strptime(name, "%Y_%m_%d_%H_%M_%S")
    except ValueError:
        return None


def place_of(folder: PurePosixPath) -> tuple[PurePosixPath, PurePosixPath]:
    """The folder that has the sessions, without `plugins/profile`, and the session's own name.

    The name is empty if the folder is not named as a session: then it is a folder like others.
    """
    if folder.parent.name != "profile" and not _TIME.fullmatch(folder.name):
        return folder, PurePosixPath()
    outer = folder.parent
    for name in reversed(_LAYOUT):
        if outer.name == name:
            outer = outer.parent
    return outer, PurePosixPath(folder.name)


def named_after(path: Path) -> Path:
    """The file or folder after which a path's run is named.

    A session's file is named after the session. So is a folder that holds nothing but one
    session; `plugins/profile` of several sessions is named after the folder that holds it.
    """
    real = Path(os.path.realpath(path))
    if is_file(path):
        if not is_session_file(path.name):
            return path
        _, session = place_of(PurePosixPath(real.parent))
        return real.parent if session.name else path.with_name(stem_of(path.name))
    outer = real if real.name not in _LAYOUT else _outside(real)
    profiles = outer / "plugins/profile"
    if not is_folder(profiles) or (outer == real and _holds_more(real)):
        return path
    try:
        sessions = [found for found in profiles.iterdir() if is_folder(found)]
    except OSError:  # Reading the folder reports this.
        return path
    return sessions[0] if len(sessions) == 1 else outer


def _outside(folder: Path) -> Path:
    """The folder that holds `plugins` or `plugins/profile`."""
    return folder.parent if folder.name == "plugins" else folder.parent.parent


def _holds_more(folder: Path) -> bool:
    """Whether a folder holds other folders or dumps beside `plugins`."""
    try:
        return any(
            found.name != "plugins" and (is_folder(found) or is_wanted(found.name))
            for found in folder.iterdir()
        )
    except OSError:
        return True
