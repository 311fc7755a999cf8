"""All that a module's HLO text says beyond what was dumped: worked out once."""

from dataclasses import dataclass

from ..errors import DumpError
from .attribution import Attribution, attribute
from .completion import completed
from .derived import derive
from .numbered_program import NumberedProgram, number_program
from .parts import Parts


@dataclass(frozen=True)
class WorkedOut:
    """The parts with what they lacked, and what the text says about them.

    `why_not` says why what the parts lack could not be worked out, `no_owners` why there is no
    attribution. `program` is the text as numbers, None if it says less than it should.
    """

    parts: Parts
    program: NumberedProgram | None = None
    attribution: Attribution | None = None
    why_not: str | None = None
    no_owners: str | None = None


def work_out(
    parts: Parts, *, platform: str | None, changelist: int | None, completes: bool
) -> WorkedOut:
    """Work out liveness and attribution from the HLO text, if there is one.

    `platform` and `changelist` are what the file names say. What the parts lack is filled in
    only if the text `completes` them: what a damaged file should have said is not made up.
    """
    hlo = parts.hlo
    if hlo is None:
        return WorkedOut(parts)
    derived = attribution = why_not = no_owners = None
    try:
        program = number_program(hlo)
    except DumpError as error:
        return WorkedOut(parts, why_not=str(error) if completes else None, no_owners=str(error))
    try:
        derived = derive(hlo, program, changelist=changelist)
    except DumpError as error:
        why_not = str(error) if completes else None
    try:
        # Whose memory values are does not depend on the schedule, only on what computes them.
        guessed = derived or derive(hlo, program, in_text_order=True, any_opcode=True)
        attribution = attribute(hlo, guessed, is_guess=derived is None)
    except DumpError as error:
        no_owners = str(error)
    if completes and derived is not None:
        parts, why_not = completed(parts, derived, platform=platform)
    return WorkedOut(parts, program if completes else None, attribution, why_not, no_owners)
