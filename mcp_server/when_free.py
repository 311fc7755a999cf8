"""Waits shortly for a warehouse that another process writes to."""

from collections.abc import Callable
from time import monotonic, sleep
from typing import TypeVar

from ..schema.errors import WarehouseBusyError, WarehouseError

# A night's ingest takes longer: the agent is told, and may ask again. The other process is not
# named to it, since a command line may hold secrets.
_WAIT_SECONDS = 5
_BUSY = "another process is writing to the warehouse: ask again in a minute"
_ASK_AGAIN_SECONDS = 0.2
_T = TypeVar("_T")


def when_free(opened: Callable[[], _T]) -> _T:
    """What `opened` gives once it raises no WarehouseBusyError. Raises WarehouseError after 5 s."""
    end = monotonic() + _WAIT_SECONDS
    while True:
        try:
            return opened()
        except WarehouseBusyError:
            if monotonic() >= end:
                raise WarehouseError(_BUSY) from None
        sleep(_ASK_AGAIN_SECONDS)
