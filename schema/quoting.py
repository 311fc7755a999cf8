"""Texts within SQL, where a statement takes no parameter."""


def quoted(text: str) -> str:
    """A text as a literal of DuckDB's SQL."""
    return "'" + text.replace("'", "''") + "'"
