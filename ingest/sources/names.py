"""The names of files as text: they are shown, and stored in the warehouse."""

import os
from pathlib import PurePosixPath


def readable(path: PurePosixPath) -> PurePosixPath:
    """The path as one line of text: a file's name need be neither UTF-8 nor free of line ends."""
    text = os.fsencode(path).decode(errors="backslashreplace")
    return PurePosixPath(text.replace("\n", "\\n").replace("\r", "\\r"))
