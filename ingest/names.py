"""The names of files as text: they are shown, and stored in the warehouse."""

import os
import re
from pathlib import PurePosixPath

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


def readable(path: PurePosixPath) -> PurePosixPath:
    """The path as one line of text: a file's name need be neither UTF-8 nor free of line ends."""
    text = os.fsencode(path).decode(errors="backslashreplace")
    return PurePosixPath(_CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", text))
