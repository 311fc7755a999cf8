"""The error for a wrong dump, with its line, and limits for numbers that cannot be right."""

from collections.abc import Sequence

# Ids and times are 32-bit integers in the warehouse. Sizes are bytes; their limit lets 64 bits
# hold the sum of some thousand sizes.
LARGEST_ID = 2**31 - 1
LARGEST_SIZE = 2**50
# A text's lines: the largest programs known have a million.
LARGEST_LINES = 20_000_000


class DumpError(ValueError):
    """A dump's content is wrong. `line` counts from 1; None if no single line is wrong.

    `lines` are all lines that are wrong in the same way, if each is read on its own: then the
    other lines can be read without them.
    """

    def __init__(self, message: str, line: int | None = None, lines: Sequence[int] = ()) -> None:
        super().__init__(message)
        self.line = line
        self.lines = lines
