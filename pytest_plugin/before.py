"""What a program took before, wherever that is kept."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Change:
    """An owner that takes more bytes at the peak than before, or fewer."""

    change_bytes: int
    owner: str


@dataclass(frozen=True)
class WhatChanged:
    """The owners that changed, the largest change first, and the cause in a line if it is known."""

    owners: tuple[Change, ...]
    cause: str | None = None


@dataclass(frozen=True)
class Before:
    """A program's earlier peak in bytes.

    kept_in: where it is kept, for a sentence; to_accept: what to do if the growth is meant;
    what_changed: asked only of a program that fails, because it may take long.
    """

    kept_in: str
    peak_bytes: int
    is_estimate: bool
    to_accept: str
    what_changed: Callable[[], WhatChanged]
