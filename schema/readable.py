"""Sizes, names and small tables as a person reads them, and names within SQL and commands."""

import shlex
from collections.abc import Iterable, Sequence
from html import escape

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


# A small table of HTML, for values that a notebook shows.

# Notebooks break lines in narrow cells, even within a size: only longer texts may be broken.
_LONG = 40
_WRAPPED = "; white-space: normal; min-width: 20em; overflow-wrap: anywhere"


def small_table(
    headings: Sequence[str],
    records: Iterable[Sequence[str]],
    numbers: Sequence[bool],
    caption: str = "",
) -> str:
    """A table with a row a record; every text is escaped. Columns of `numbers` stand right."""
    aligned = ["right" if each else "left" for each in numbers]
    parts = [paragraph(caption)] if caption else []
    parts += [
        '<table style="white-space: nowrap">',
        "<thead>",
        _row("th", headings, aligned),
        "</thead>",
        "<tbody>",
    ]
    parts += [_row("td", record, aligned) for record in records]
    return "\n".join([*parts, "</tbody>", "</table>"])


def figures_table(
    caption: str, figures: Iterable[tuple[str, object]], notes: Iterable[str] = ()
) -> str:
    """A table with a row a figure, and notes below; a name that ends in _bytes is a size's.

    A figure that is None, 0 or empty is left out.
    """
    shown = [(name, value) for name, value in figures if value]
    table = small_table(
        ("", ""),
        [(name.removesuffix("_bytes").replace("_", " "), _text(name, v)) for name, v in shown],
        (False, True),
        caption,
    )
    return "\n".join([table, *map(paragraph, notes)])


def paragraph(text: str) -> str:
    """A text that is escaped."""
    return f"<p>{escape(one_line(text))}</p>"


def _text(name: str, value: object) -> str:
    if name.endswith("_bytes") and isinstance(value, int):
        return human_bytes(value)
    return str(value)


def _row(tag: str, cells: Sequence[str], aligned: Sequence[str]) -> str:
    inner = "".join(
        f'<{tag} style="text-align: {side}{_WRAPPED if len(cell) > _LONG else ""}">'
        f"{escape(one_line(cell))}</{tag}>"
        for cell, side in zip(cells, aligned, strict=True)
    )
    return f"<tr>{inner}</tr>"
