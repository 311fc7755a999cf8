"""Columns of text as the lines of a table: without rich, which takes long to import."""

from collections.abc import Iterable, Iterator, Sequence

_GAP = "  "


def plain_lines(columns: Iterable[tuple[Sequence[str], bool]]) -> Iterator[str]:
    """The lines of a table; a column is its texts and whether it holds numbers."""
    padded = [_padded(texts, at_end=is_number) for texts, is_number in columns]
    return map(_GAP.join, zip(*padded, strict=True))


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
