"""What is wrong with a dump, and where."""


class DumpError(ValueError):
    """Content that is not what it should be. `line` counts from 1; None if no line is to blame."""

    def __init__(self, message: str, line: int | None = None) -> None:
        super().__init__(message)
        self.line = line
