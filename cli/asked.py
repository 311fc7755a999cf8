"""A question as the command line asks it: what a screen is given."""

from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..queries.questions import Question

if TYPE_CHECKING:
    from ..schema.stores.base import Store


@dataclass(frozen=True)
class Asked:
    """A question with what the command line says: its arguments, the warehouse, how to wait."""

    question: Question
    arguments: dict[str, Any]
    db: str
    wait: float

    def __call__(self, **more: Any) -> Any:
        """The answer; `more` are arguments that the command line does not give."""
        with self.reading() as store:
            return self.of(store, **more)

    def of(self, store: "Store", **more: Any) -> Any:
        """The answer of a warehouse that is open."""
        return self.question.ask(store, **self.arguments, **more)

    def reading(self) -> "AbstractContextManager[Store]":
        """The warehouse, to read only."""
        from .opening import reading

        return reading(self.db, wait=self.wait)

    def writing(self) -> "AbstractContextManager[Store]":
        """The warehouse, to write."""
        from .opening import writing

        return writing(self.db, wait=self.wait)
