"""Which name a user meant who misspelt it."""

from collections.abc import Iterable
from difflib import get_close_matches


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The question whether the known name most like it was meant; None if none is like it."""
    found = get_close_matches(name, sorted(known), 1)
    return f"did you mean {found[0]!r}?" if found else None
