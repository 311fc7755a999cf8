"""A small table of HTML, for values that a notebook shows."""

from collections.abc import Iterable, Sequence
from html import escape

from .readable import human_bytes, one_line

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
