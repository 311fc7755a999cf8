"""File names as text, to show them and to store them in the warehouse."""

import os
from pathlib import PurePosixPath


def readable(path: PurePosixPath) -> PurePosixPath:
    """The path as one line of text: a file's name may hold line ends and invalid UTF-8."""
    text = os.fsencode(path).decode(errors="backslashreplace")
    return PurePosixPath(text.replace("\n", "\\n").replace("\r", "\\r"))
