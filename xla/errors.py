"""The error for a wrong dump, with its line."""

from collections.abc import Sequence

# The error for a wrong dump, with its line.


class DumpError(ValueError):
    """A dump's content is wrong. `line` counts from 1; None if no single line is wrong.

    `lines` are all lines that are wrong in the same way, if the reader judges each by itself: the
    others can be read without them.
    """

    def __init__(self, message: str, line: int | None = None, lines: Sequence[int] = ()) -> None:
        super().__init__(message)
        self.line = line
        self.lines = lines


# The error for a wrong dump; reading shapes raises it too, so it stands with the schema.
