"""The columns of `values` that an attribution gives, for the values of a dump."""

from collections.abc import Container, Iterable, Sequence

from .analysis import Analysis
from .attribution import Attribution
from .parts import AssignedValue
from .program import NONE


def alias_set_ids(
    analysis: Analysis, values: Sequence[AssignedValue], indices: Sequence[int]
) -> list[int]:
    """For each value of a dump, the smallest value_id of those that must share a buffer with it.

    NONE for a value that the HLO text lacks.

    Args:
        indices: for each value, its index in the dataflow, see `complete.match_values`.
    """
    sets = [NONE if index == NONE else analysis.liveness.alias_set[index] for index in indices]
    smallest: dict[int, int] = {NONE: NONE}
    for value, alias_set in zip(values, sets, strict=True):
        if alias_set != NONE:
            value_id = smallest.setdefault(alias_set, value.value_id)
            smallest[alias_set] = min(value_id, value.value_id)
    return [smallest[alias_set] for alias_set in sets]


def value_columns(
    attribution: Attribution,
    values: Sequence[AssignedValue],
    indices: Sequence[int],
    residual_ids: Container[int],
) -> dict[str, list[int | None] | list[str | None]]:
    """The columns of `values` that an attribution gives; None for a value without an index.

    Args:
        indices: for each value, its index in the dataflow, see `complete.match_values`.
        residual_ids: those that have a row in `residuals`.
    """
    accesses = attribution.accesses
    last_use = [NONE] * len(attribution.role) if accesses is None else accesses.last_use
    residuals = [number if number in residual_ids else NONE for number in attribution.residual]
    return {
        "origin_instruction_id": _numbers(attribution.owners.row, indices),
        "origin_rule": _texts(attribution.owners.rule, indices),
        "pass": _texts(attribution.value_pass, indices),
        "role": _texts(attribution.role, indices),
        "alias_set": _or_none(alias_set_ids(attribution.analysis, values, indices)),
        "residual_id": _numbers(residuals, indices),
        "last_use_time": _numbers(last_use, indices),
    }


def _texts(column: Sequence[str | None], indices: Iterable[int]) -> list[str | None]:
    return [None if index == NONE else column[index] for index in indices]


def _numbers(column: Sequence[int], indices: Iterable[int]) -> list[int | None]:
    return _or_none(NONE if index == NONE else column[index] for index in indices)


def _or_none(numbers: Iterable[int]) -> list[int | None]:
    return [None if number == NONE else number for number in numbers]
