"""The error for a wrong dump, with its line."""


# The error for a wrong dump, with its line.


class DumpError(ValueError):
    """A dump's content is wrong. `line` counts from 1; None if no single line is wrong."""

    def __init__(self, message: str, line: int | None = None) -> None:
        super().__init__(message)
        self.line = line


# The error for a wrong dump; reading shapes raises it too, so it stands with the schema.
