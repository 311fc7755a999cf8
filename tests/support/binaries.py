"""The sample binaries, and altered ones."""

from pathlib import Path

from .dumps import DATA
from .protos import changed, message, pairs

BINARIES = DATA / "binaries"
MIXED = BINARIES / "cpu/module_0018.jit_mixed.cpu_after_optimizations.hlo.pb"
# The fields of a HloProto, and a module's field that holds the schedule: a map.
_MODULE, _ASSIGNMENT, _SCHEDULE = 1, 3, 7


def binary(pattern: str) -> Path:
    """The only sample that the pattern finds."""
    (found,) = BINARIES.glob(pattern)
    return found


def without_assignment(data: bytes) -> bytes:
    """The module alone, as XLA dumps a program that comes from JAX's compilation cache."""
    return message(*(pair for pair in pairs(data) if pair[0] != _ASSIGNMENT))


def with_reversed_schedule(data: bytes) -> bytes:
    """The same message with the entries of its schedule's map in the reverse order."""
    return changed(
        data, [(_MODULE, 0), (_SCHEDULE, 0)], lambda schedule: message(*pairs(schedule)[::-1])
    )
