"""Sizes and names as a person reads them, and names within SQL and commands."""

import shlex
from collections.abc import Sequence

# Sizes and names as a person reads them: what every room shows alike.

UNITS = {"B": 1} | {f"{prefix}iB": 1024**power for power, prefix in enumerate("KMGTP", 1)}


def unit_for(size: float) -> str:
    """The largest unit that the size has at least one of.

    Sizes are shown with two digits: 1023.999 KiB would read 1024.00 KiB, and is 1.00 MiB.
    """
    fitting = [name for name, unit in UNITS.items() if abs(size) >= unit * (1 - 0.005 / 1024)]
    return fitting[-1] if fitting else "B"


def human_bytes(size: int | float) -> str:
    """A size as a person reads it: 306.98 MiB."""
    unit = unit_for(size)
    return f"{size:.0f} B" if unit == "B" else f"{size / UNITS[unit]:.2f} {unit}"


def one_line(text: str) -> str:
    """A text, a name say, whose control characters do not reach the terminal."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)


# Names within SQL and within a command that is shown: each stays one word of them.


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
