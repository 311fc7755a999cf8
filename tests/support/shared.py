"""What is dear to make and only read: made once for a state of the code, for all processes."""

import fcntl
import functools
import hashlib
import shutil
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parents[2]
# What a warehouse's rows depend on: the code that makes them, and the dumps.
_MADE_OF = (
    "ingest",
    "schema",
    "queries/catalogue.py",
    "queries/macros",
    "queries/views",
    "tests/data",
    "tests/support",
)
_FOLDER = ROOT / ".pytest_cache" / "made"
_KEPT_SECONDS = 24 * 3600


def shared(name: str, make: Callable[[Path], object]) -> Path:
    """The file or folder that `make` makes at the path it is given. Only read it."""
    folder = _FOLDER / _state()
    folder.mkdir(parents=True, exist_ok=True)
    made = folder / name
    with (folder / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not made.exists():
            unfinished = folder / f"unfinished-{name}"
            shutil.rmtree(unfinished, ignore_errors=True)
            unfinished.unlink(missing_ok=True)
            make(unfinished)
            unfinished.rename(made)
    return made


@functools.cache
def _state() -> str:
    """The digest of what is made of; what older states made is removed."""
    digest = hashlib.sha256()
    for place in _MADE_OF:
        start = ROOT / place
        for file in sorted(start.rglob("*") if start.is_dir() else [start]):
            if file.is_file() and "__pycache__" not in file.parts:
                digest.update(f"{file.relative_to(ROOT)}\0".encode())
                digest.update(hashlib.sha256(file.read_bytes()).digest())
    state = digest.hexdigest()[:16]
    if _FOLDER.is_dir():
        for older in _FOLDER.iterdir():
            if older.name != state and older.stat().st_mtime < time.time() - _KEPT_SECONDS:
                shutil.rmtree(older, ignore_errors=True)
    return state
