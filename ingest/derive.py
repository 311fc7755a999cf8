"""Derives what the parts of a dump lack, and the owners of its values, from its HLO text."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from ..xla.attribution import Attribution, attribute
from ..xla.complete import fill_missing_parts
from ..xla.errors import DumpError
from ..xla.liveness import analyse
from ..xla.parts import Parts
from ..xla.program import Program
from .element_names import name_elements
from .readers.proto_assignment import mark_output


@dataclass
class Notes:
    """What is to be noted at the files of a program.

    Attributes:
        why_no_figures: why figures that the parts lack could not be derived.
        why_no_owners: why there is no attribution.
        assumed: by opcode for which a rule is assumed, the instructions.
    """

    why_no_figures: str | None = None
    why_no_owners: str | None = None
    assumed: Mapping[str, int] = field(default_factory=dict)


@dataclass
class Derivation:
    """The parts of a dump, and what its HLO text implies.

    Attributes:
        parts: with what they lacked.
        program: None if the text is corrupt, or does not complete the parts.
        is_scheduled: whether the times of the analysis are those of the figures.
    """

    parts: Parts
    notes: Notes
    program: Program | None = None
    attribution: Attribution | None = None
    is_scheduled: bool = False


def derive(
    parts: Parts,
    platform: str | None = None,
    changelist: int | None = None,
    *,
    completes: bool = True,
) -> Derivation:
    """Derive liveness and attribution from the HLO text, if there is one.

    Args:
        platform, changelist: as the file names state them.
        completes: whether what the parts lack is derived from the text: what a corrupt file
            should have stated is not made up.
    """
    notes = Notes()
    name_elements(parts)
    derivation = Derivation(parts, notes)
    program = parts.program
    if program is None:
        return derivation
    is_intact = not program.unread
    if is_intact is False and parts.assignment is None:
        notes.why_no_figures = "the text is damaged"
    completes = completes and is_intact
    dumped = parts.live_ranges.ranges if parts.live_ranges is not None else None
    try:
        analysis = analyse(program, changelist, dumped)
    except DumpError as error:
        notes.why_no_owners = str(error)
        if completes:
            notes.why_no_figures = str(error)
        return derivation
    if parts.is_binary and parts.assignment is not None:
        mark_output(parts.assignment, analysis)
    derivation.is_scheduled = program.header.is_scheduled
    if completes:
        derivation.parts, analysis, notes.why_no_figures = fill_missing_parts(
            parts, analysis, platform
        )
        derivation.program = program
        assignment = derivation.parts.assignment
        if assignment is not None and assignment.peak_high:
            derivation.is_scheduled = True

    notes.assumed = analysis.assumed
    try:
        # Owners do not depend on the schedule, only on what computes the values.
        derivation.attribution = attribute(analysis, is_scheduled=derivation.is_scheduled)
    except DumpError as error:
        notes.why_no_owners = str(error)
    return derivation
