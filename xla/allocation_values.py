"""The value that each allocation is for: XLA also reuses the buffers of outputs."""

from collections import defaultdict
from collections.abc import Container, Iterable

from .parts import Allocation, AssignedValue


def values_of_allocations(
    allocations: Iterable[Allocation],
    values: Iterable[AssignedValue],
    arguments: Container[int],
    results: Container[int],
) -> list[int | None]:
    """The value_id of the value that each allocation is for; None for temps and without a value.

    A parameter's allocation is for the argument, an output's for a live-out value, a constant's for
    the constant; of several such values for the largest array.

    Args:
        arguments, results: the value_ids of the program's arguments and of its live-out values.
    """
    by_allocation: dict[int | None, list[AssignedValue]] = defaultdict(list)
    for value in values:
        by_allocation[value.allocation_index].append(value)
    value_ids: list[int | None] = []
    for allocation in allocations:
        candidates = by_allocation[allocation.allocation_index]
        if allocation.is_temp or allocation.is_thread_local or not candidates:
            value_ids.append(None)
            continue
        fitting_ids = arguments if allocation.is_parameter else results
        if allocation.is_parameter or allocation.maybe_live_out:
            fitting = [value for value in candidates if value.value_id in fitting_ids]
            candidates = fitting or candidates
        value_ids.append(min(candidates, key=_rank).value_id)
    return value_ids


def _rank(value: AssignedValue) -> tuple[bool, int, int]:
    """The rank of a value in its allocation, the smallest first: the largest array."""
    return value.element_type is None, -(value.size_bytes or 0), value.value_id
