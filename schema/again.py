"""Begins again what another process came between."""

from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

from .errors import ChangedMeanwhileError

_ATTEMPTS = 5
_T = TypeVar("_T")


def until_unchanged(do: Callable[[], _T]) -> _T:
    """What `do` returns when no other process changes the same; ChangedMeanwhileError at last."""
    for _ in range(_ATTEMPTS - 1):
        with suppress(ChangedMeanwhileError):
            return do()
    return do()
