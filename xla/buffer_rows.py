"""The columns of `values`, and the rows of `alias_sets` and `residuals`, from an attribution."""

from collections import defaultdict
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import NamedTuple

from .analysis import Analysis
from .attribution import Attribution
from .idle import longest_idle
from .parts import Allocation, AssignedValue
from .passes import Pass
from .program import NONE
from .roles import Role


class ValueRow(NamedTuple):
    """The columns of `values` that an attribution gives; None where it gives none."""

    origin_instruction_id: int | None = None
    origin_rule: str | None = None
    pass_: Pass | None = None
    role: Role | None = None
    alias_set: int | None = None
    residual_id: int | None = None
    last_use_time: int | None = None


class TempValue(NamedTuple):
    """A value in a temp allocation, with its live range.

    Attributes:
        value: its index in the dataflow.
        value_id: its id in the dump.
        alias_set: the smallest value_id of the values that share its buffer.
        start, end: schedule times, both inclusive.
        peak_time: when its memory space has its peak, or NONE.
    """

    value: int
    value_id: int
    alias_set: int
    size_bytes: int
    start: int
    end: int
    peak_time: int


class BufferUse(NamedTuple):
    """The live range of values that share a buffer, and its longest time without an access.

    Attributes:
        value_id: the largest of the values.
        start_time, end_time, idle_start_time, idle_end_time: schedule times, inclusive.
        peak_idle_time: length of the time without an access around the peak; 0 if it is accessed
            or not live there.
    """

    value_id: int
    start_time: int
    end_time: int
    idle_start_time: int
    idle_end_time: int
    peak_idle_time: int


class AliasSetRow(NamedTuple):
    """A row of `alias_sets`, but for the columns of its BufferUse."""

    alias_set: int
    use: BufferUse


class ResidualRow(NamedTuple):
    """A row of `residuals`, but for the columns of its BufferUse."""

    residual_id: int
    layers: int
    made_instruction_id: int
    read_instruction_id: int | None
    use: BufferUse


def match_values(analysis: Analysis, values: Iterable[AssignedValue]) -> list[int]:
    """For each value of a dump, its index in the dataflow; NONE if the HLO text lacks it.

    Instruction and shape index identify a value.
    """
    program, slots = analysis.program, analysis.flow.slots
    index_of = {
        (slots.row[slot], slots.index_text(slot)): value
        for value, slot in enumerate(analysis.flow.defined_at)
    }
    return [
        index_of.get((program.row_of.get(value.instruction, NONE), value.shape_index), NONE)
        for value in values
    ]


def value_rows(
    attribution: Attribution,
    values: Sequence[AssignedValue],
    indices: Sequence[int],
    residual_ids: Container[int],
) -> list[ValueRow]:
    """The columns of each value of a dump that an attribution gives.

    Args:
        indices: for each value, its index in the dataflow, see `match_values`.
        residual_ids: those that have a row in `residuals`.
    """
    set_ids = _alias_set_ids(attribution, values, indices)
    accesses = attribution.accesses
    last_use = [NONE] * len(attribution.role) if accesses is None else accesses.last_use
    rows = []
    for index in indices:
        if index == NONE:
            rows.append(ValueRow())
            continue
        owner, residual = attribution.owners.row[index], attribution.residual[index]
        rows.append(
            ValueRow(
                _or_none(owner),
                attribution.owners.rule[index],
                attribution.value_pass[index],
                attribution.role[index],
                set_ids[attribution.analysis.liveness.alias_set[index]],
                residual if residual in residual_ids else None,
                _or_none(last_use[index]),
            )
        )
    return rows


def _alias_set_ids(
    attribution: Attribution, values: Iterable[AssignedValue], indices: Iterable[int]
) -> dict[int, int]:
    """By alias set of the dataflow, its id: the smallest value_id of its values in the dump."""
    alias_set = attribution.analysis.liveness.alias_set
    ids: dict[int, int] = {}
    for value, index in zip(values, indices, strict=True):
        if index != NONE:
            known = ids.setdefault(alias_set[index], value.value_id)
            ids[alias_set[index]] = min(known, value.value_id)
    return ids


def find_temp_values(
    attribution: Attribution,
    values: Sequence[AssignedValue],
    indices: Sequence[int],
    allocations: Iterable[Allocation],
    live_ranges: Mapping[int, tuple[int, int]],
    peak_times: Mapping[int, int],
) -> list[TempValue]:
    """The values in temp allocations that have a live range and are in the HLO text.

    Args:
        indices: for each value, its index in the dataflow, see `match_values`.
        live_ranges: by value_id, the first and last time at which the value is live.
        peak_times: by memory space, the time of its peak.
    """
    temps = {row.allocation_index for row in allocations if row.is_temp}
    set_ids = _alias_set_ids(attribution, values, indices)
    alias_set = attribution.analysis.liveness.alias_set
    temp_values = []
    for value, index in zip(values, indices, strict=True):
        live_range = live_ranges.get(value.value_id)
        if index != NONE and live_range is not None and value.allocation_index in temps:
            temp_values.append(
                TempValue(
                    index,
                    value.value_id,
                    set_ids[alias_set[index]],
                    value.size_bytes or 0,
                    *live_range,
                    peak_times.get(value.memory_space, NONE),
                )
            )
    return temp_values


def alias_set_rows(attribution: Attribution, temps: Iterable[TempValue]) -> list[AliasSetRow]:
    """The rows of `alias_sets`: those with a value in temps."""
    groups: dict[int, list[TempValue]] = defaultdict(list)
    for temp in temps:
        groups[temp.alias_set].append(temp)
    accesses = _accesses_by_value(attribution)
    return [
        AliasSetRow(alias_set, _buffer_use(attribution, accesses, members, members))
        for alias_set, members in sorted(groups.items())
    ]


def residual_rows(attribution: Attribution, temps: Iterable[TempValue]) -> list[ResidualRow]:
    """The rows of `residuals`: those with a value in temps."""
    owner = attribution.owners.row
    groups: dict[int, list[TempValue]] = defaultdict(list)
    for temp in temps:
        if attribution.residual[temp.value] != NONE:
            groups[attribution.residual[temp.value]].append(temp)
    accesses = _accesses_by_value(attribution)
    rows = []
    for number, members in sorted(groups.items()):
        residual = attribution.residuals[number]
        # A buffer may also hold results of the backward pass: these are not the residual.
        owned = [temp for temp in members if owner[temp.value] == owner[residual.value]]
        rows.append(
            ResidualRow(
                number,
                residual.layers,
                owner[residual.value],
                _or_none(residual.reader),
                _buffer_use(attribution, accesses, members, owned or members),
            )
        )
    return rows


def _accesses_by_value(attribution: Attribution) -> dict[int, list[Access]]:
    accesses: dict[int, list[Access]] = defaultdict(list)
    for access in attribution.accesses:
        accesses[access.value].append(access)
    return accesses


def _buffer_use(
    attribution: Attribution,
    accesses: Mapping[int, list[Access]],
    members: list[TempValue],
    representatives: list[TempValue],
) -> BufferUse:
    """The use of the buffer of some values.

    Args:
        representatives: the largest of these describes the buffer.
    """
    analysis = attribution.analysis
    largest = max(representatives, key=lambda temp: temp.size_bytes)
    start, end = min(temp.start for temp in members), max(temp.end for temp in members)
    # A live-out value is not read after the program's last instruction.
    last = min(end, analysis.schedule.span_end[analysis.program.entry] - 1)
    all_accesses = [access for temp in members for access in accesses.get(temp.value, ())]
    idle = longest_idle(all_accesses, last, largest.peak_time)
    return BufferUse(largest.value_id, start, end, idle.start, idle.end, idle.at_peak)
