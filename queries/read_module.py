"""A module that was read from text, with its figures as values: for notebooks."""

from ..schema.stores.base import Store
from .buffers import buffers
from .donations import donations
from .find_module import find_module
from .lists import peaks
from .owners import owners
from .result import Rows
from .roles import RolesGiven
from .timeline import timeline


class ReadModule:
    """One module in memory; each method returns what the warehouse's method of its name does.

    name: the HLO module's name; origin: `estimated`, for text has no buffer assignment.
    """

    def __init__(self, store: Store, name: str) -> None:
        self._store = store
        self.name = name
        self.origin = find_module(store, name).origin

    def peaks(self) -> Rows:
        """What the module needs at its peak, a row a memory space."""
        return peaks(self._store)

    def owners(
        self,
        memory_space: int = 0,
        limit: int | None = None,
        *,
        by: str | None = None,
        at: int | None = None,
        callers: int = 0,
        roles: RolesGiven | None = None,
    ) -> Rows:
        """Who owns the memory at the peak, or at a time of the schedule."""
        return owners(
            self._store,
            self.name,
            None,
            memory_space,
            limit,
            by=by,
            at=at,
            callers=callers,
            roles=roles,
        )

    def buffers(
        self,
        memory_space: int = 0,
        at: int | None = None,
        limit: int | None = None,
        *,
        callers: int = 0,
    ) -> Rows:
        """The buffers that fill the memory at the peak, or at a time of the schedule."""
        return buffers(self._store, self.name, None, memory_space, at, limit, callers=callers)

    def donations(self, memory_space: int = 0, limit: int | None = None) -> Rows:
        """Which arguments could be donated, or are donated for nothing."""
        return donations(self._store, self.name, None, memory_space, limit)

    def timeline(self, memory_space: int = 0) -> Rows:
        """How full the memory is over the schedule."""
        return timeline(self._store, self.name, None, memory_space)

    def _repr_html_(self) -> str:
        return self.peaks()._repr_html_()
