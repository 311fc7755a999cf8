"""All that a module's HLO text says beyond what was dumped: worked out once."""

from dataclasses import dataclass

from ..errors import DumpError
from .attribution import Attribution, attribute
from .completion import completed
from .derived import derive
from .element_names import with_dumped_elements
from .instruction_names import Names
from .numbered_program import NumberedProgram, number_program
from .parts import Parts


@dataclass(frozen=True)
class WorkedOut:
    """The parts with what they lacked, and what the text says about them.

    `names` are the numbers of all names of the parts. `why_not` says why what the parts lack
    could not be worked out, `no_owners` why there is no attribution. `program` is the text as
    numbers, None if it says less than it should.
    """

    parts: Parts
    names: Names
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
    parts = with_dumped_elements(parts)
    hlo, names = parts.hlo, Names(parts)
    if hlo is None:
        return WorkedOut(parts, names)
    derived = attribution = why_not = no_owners = None
    try:
        program = number_program(hlo, names)
    except DumpError as error:
        return WorkedOut(
            parts, names, why_not=str(error) if completes else None, no_owners=str(error)
        )
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
        names.add(parts)
    return WorkedOut(parts, names, program if completes else None, attribution, why_not, no_owners)
