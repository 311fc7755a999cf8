"""What `fit` found, as a result: sentences above a row a point."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .result import Result, Rows

if TYPE_CHECKING:
    import pyarrow as pa


class Fitted(Result):
    """The largest sizes that fit, and all points that were compiled or found.

    rows: a row a point, the knee first, see `memhouse fit --help`; problems: what was left out.
    """

    def __init__(self, table: pa.Table, sentences: Sequence[str], problems: Sequence[str]) -> None:
        self.rows = Rows(table, empty="nothing was compiled")
        self.problems = list(problems)
        self._sentences = list(sentences)

    def sentences(self) -> Sequence[str]:
        """What fits, and what was left out."""
        return [*self._sentences, *self.problems]
