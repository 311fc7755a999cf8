"""The value that each allocation is for: XLA also reuses the buffers of outputs."""

from collections.abc import Container, Iterable, Mapping, Sequence
from typing import NamedTuple

from .parts import Allocation, AssignedValue


class IoFlags(NamedTuple):
    """Whether a value is an argument of the program, and whether it is part of the result."""

    is_argument: bool
    is_live_out: bool


def guess_io_flags(
    values: Iterable[AssignedValue],
    parameters: Container[str],
    end_times: Mapping[int, int],
    schedule_length: int,
) -> list[IoFlags]:
    """The flags of values without an attribution.

    Parameters count as arguments, and values that are live until the end as results.

    Args:
        parameters: the names of the parameter instructions, as far as they are known.
        end_times: by value_id, the last time at which the value is live.
        schedule_length: the end time of a live-out value.
    """
    return [
        IoFlags(value.instruction in parameters, end_times.get(value.value_id) == schedule_length)
        for value in values
    ]


def values_of_allocations(
    allocations: Iterable[Allocation],
    values: Sequence[AssignedValue],
    flags: Sequence[IoFlags],
) -> list[int | None]:
    """The value_id of the value that each allocation is for; None for temps and without a value.

    A parameter's allocation is for the argument, an output's for a live-out value, a constant's for
    the constant; of several such values for the largest array.
    """
    by_allocation: dict[int | None, list[int]] = {}
    for index, value in enumerate(values):
        by_allocation.setdefault(value.allocation_index, []).append(index)
    value_ids: list[int | None] = []
    for allocation in allocations:
        indices = by_allocation.get(allocation.allocation_index, [])
        if allocation.is_temp or allocation.is_thread_local or not indices:
            value_ids.append(None)
            continue
        value_ids.append(min(_rank(allocation, values[i], flags[i]) for i in indices)[-1])
    return value_ids


def _rank(
    allocation: Allocation, value: AssignedValue, flags: IoFlags
) -> tuple[bool, bool, int, int]:
    """The rank of a value in its allocation, the smallest first; its value_id is the last part."""
    if allocation.is_parameter:
        fits = flags.is_argument
    else:
        fits = flags.is_live_out or not allocation.maybe_live_out
    size = value.size_bytes or 0
    return not fits, value.element_type is None, -size, value.value_id
