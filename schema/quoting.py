"""Names within SQL and within a command that is shown: each stays one word of them."""

import shlex
from collections.abc import Sequence

from .readable import one_line


def quoted(text: str) -> str:
    """A text as a literal of DuckDB's SQL."""
    return "'" + text.replace("'", "''") + "'"


def as_typed(*words: object) -> str:
    """Words to paste into a shell: each is one word there, whatever it holds.

    Control characters are replaced, so that the words are one line.
    """
    return one_line(shlex.join(map(str, words)))


def command(*words: object, names: Sequence[object] = ()) -> str:
    """A command of memhouse to paste into a shell; names: its last arguments."""
    # Else a name that begins with a dash would be an option.
    dashes = ["--"] if any(str(name).startswith("-") for name in names) else []
    return as_typed("memhouse", *words, *dashes, *names)
