"""The columns of `values` that an attribution gives, for the values of a dump."""

from collections.abc import Container, Sequence
from typing import NamedTuple

from .analysis import Analysis
from .attribution import Attribution
from .parts import AssignedValue
from .passes import Pass
from .program import NONE
from .roles import Role


class ValueRow(NamedTuple):
    """Columns of `values`; all None for a value that the HLO text lacks."""

    origin_instruction_id: int | None = None
    origin_rule: str | None = None
    pass_: Pass | None = None
    role: Role | None = None
    alias_set: int | None = None
    residual_id: int | None = None
    last_use_time: int | None = None


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


def value_rows(
    attribution: Attribution,
    values: Sequence[AssignedValue],
    indices: Sequence[int],
    residual_ids: Container[int],
) -> list[ValueRow]:
    """The columns of each value of a dump.

    Args:
        indices: for each value, its index in the dataflow, see `complete.match_values`.
        residual_ids: those that have a row in `residuals`.
    """
    owners, accesses = attribution.owners, attribution.accesses
    set_ids = alias_set_ids(attribution.analysis, values, indices)
    rows = []
    for index, set_id in zip(indices, set_ids, strict=True):
        if index == NONE:
            rows.append(ValueRow())
            continue
        residual = attribution.residual[index]
        rows.append(
            ValueRow(
                origin_instruction_id=_known(owners.row[index]),
                origin_rule=owners.rule[index],
                pass_=attribution.value_pass[index],
                role=attribution.role[index],
                alias_set=set_id,
                residual_id=residual if residual in residual_ids else None,
                last_use_time=None if accesses is None else _known(accesses.last_use[index]),
            )
        )
    return rows


def _known(number: int) -> int | None:
    return None if number == NONE else number
