"""Rows as a table in a pipe, as whole as in CSV: without rich, which takes long to import."""

import sys
from collections.abc import Iterable, Sequence

import pyarrow as pa

from ...queries.cells import heading, is_number, one_line, text_columns

_GAP = "  "


def print_plain_table(rows: pa.Table) -> None:
    """Print rows; a pipe has no width, so nothing is cut."""
    columns = [
        _padded([one_line(heading(field.name)), *cells], at_end=is_number(field.type))
        for field, cells in text_columns(rows)
    ]
    sys.stdout.writelines(_GAP.join(line) + "\n" for line in zip(*columns, strict=True))


def _padded(texts: Sequence[str], *, at_end: bool) -> Iterable[str]:
    """The texts of a column, as wide as the widest; numbers stand at the end."""
    widths = [_cells(text) for text in texts]
    most = max(widths)
    blanks = (" " * (most - width) for width in widths)
    pairs = zip(blanks, texts, strict=True)
    return [blank + text if at_end else text + blank for blank, text in pairs]


def _cells(text: str) -> int:
    """How many cells of a terminal a text takes: 名 takes two."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)
