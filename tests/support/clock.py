"""The clock of what is stored, set by a test: the order of history follows it, and no file's time.

Only this process has that clock: commands that it starts have the machine's.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from unittest import mock

from memhouse.schema import clock


@contextmanager
def at(time: datetime) -> Iterator[None]:
    """It is that time, as long as the block lasts."""
    with mock.patch.object(clock, "now", return_value=clock.in_utc(time)):
        yield
