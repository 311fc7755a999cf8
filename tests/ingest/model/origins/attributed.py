"""The attribution of small programs, by the names of their instructions."""

from typing import NamedTuple

from memhouse.ingest.readers.hlo_text import read_hlo_text
from memhouse.ingest.readers.lines import split_lines
from memhouse.xla.attribution import Attribution, attribute
from memhouse.xla.liveness import analyse
from memhouse.xla.program import NONE, ShapeIndex

# A value: the defining instruction and the shape index.
Value = tuple[str, ShapeIndex]


def attribution_of(text: str) -> Attribution:
    """The attribution of an HLO text."""
    return attribute(analyse(read_hlo_text(split_lines(text.encode()))))


def values_of(attribution: Attribution) -> list[Value]:
    """The values in order of the dataflow."""
    analysis = attribution.analysis
    slots = analysis.flow.slots
    return [
        (analysis.program.names[slots.row[slot]], slots.index(slot))
        for slot in analysis.flow.defined_at
    ]


class Owner(NamedTuple):
    """The owner of a value, the rule that names it, and the value's pass."""

    instruction: str
    rule: str | None
    pass_: str | None


def owners_of(attribution: Attribution) -> dict[Value, Owner | None]:
    """The owner of each value; None without one."""
    names, owners = attribution.analysis.program.names, attribution.owners
    return {
        value: None if row == NONE else Owner(names[row], rule, pass_)
        for value, row, rule, pass_ in zip(
            values_of(attribution), owners.row, owners.rule, attribution.value_pass, strict=True
        )
    }


class SavedTensor(NamedTuple):
    """A residual: its values, the owner of the largest, and the first reader."""

    values: frozenset[Value]
    layers: int
    owner: str
    reader: str | None


def residuals_of(attribution: Attribution) -> list[SavedTensor]:
    """The residuals, the largest first."""
    names, values = attribution.analysis.program.names, values_of(attribution)
    return [
        SavedTensor(
            frozenset(values[v] for v, n in enumerate(attribution.residual) if n == number),
            residual.layers,
            names[attribution.owners.row[residual.value]],
            None if residual.reader == NONE else names[residual.reader],
        )
        for number, residual in enumerate(attribution.residuals)
    ]


def roles_of(text: str) -> dict[str, str]:
    """The role of each array, by its instruction."""
    attribution = attribution_of(text)
    values = values_of(attribution)
    return {
        name: role
        for (name, _), role in zip(values, attribution.role, strict=True)
        if role is not None
    }
