"""The names of XProf's sessions: of their files and folders."""

import os
import re
from datetime import datetime
from pathlib import Path, PurePosixPath

from .dump_folder import is_wanted
from .files import Given, RemotePath, is_file, is_folder

_FILE = re.compile(r"^(?P<stem>.+)\.(?P<kind>xplane|hlo_proto)\.pb(?:\.gz|\.zst)?$")
_LAYOUT = ("plugins", "profile")
_TIME = re.compile(r"\d{4}(?:_\d\d){5}")


def is_session_file(name: str) -> bool:
    """Whether a file of this name belongs to a session."""
    return _FILE.match(name) is not None


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
    parts = list(folder.parts)
    is_session = folder.parent.name == "profile" or _TIME.fullmatch(folder.name)
    if not is_session:
        return folder, PurePosixPath()
    for outer in (None, "profile", "plugins"):
        if outer is None or (parts and parts[-1] == outer):
            parts = parts[:-1]
    return PurePosixPath(*parts), PurePosixPath(folder.name)


def named_after(path: Given) -> Given:
    """The file or folder after which a path's run is named.

    A session's file is named after the session. So is a folder that holds nothing but one
    session; `plugins/profile` of several sessions is named after the folder that holds it.
    """
    if isinstance(path, RemotePath):
        return path
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
