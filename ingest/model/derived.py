"""A module's schedule, values and live ranges, worked out from its HLO text alone."""

from dataclasses import dataclass

from .dataflow import Dataflow, trace_values
from .flattening import Schedule, find_regions, flatten
from .in_place import InPlaceRules
from .liveness import Liveness, live_ranges
from .numbered_program import NumberedProgram, number_program
from .parts import HloText

# The changes lie between the known changelists 933746096 and 1014260217.
_BEFORE_NEWEST_LIBTPU = 10**9


@dataclass(frozen=True)
class Derived:
    """What the text of a scheduled module says exactly, as XLA's own analyses would.

    `is_newest_libtpu` tells the compiler apart from all others: see `derive`.
    """

    program: NumberedProgram
    schedule: Schedule
    dataflow: Dataflow
    liveness: Liveness
    is_newest_libtpu: bool


def derive(
    hlo: HloText,
    program: NumberedProgram | None = None,
    *,
    changelist: int | None = None,
    in_text_order: bool = False,
    any_opcode: bool = False,
) -> Derived:
    """Compute a module's schedule, values, positions, uses and live ranges.

    `program` is the numbered text, if the caller has it. With `in_text_order`, the order of a
    text that is not scheduled is taken for a schedule: then the times mean nothing, and all else
    holds. With `any_opcode`, the results of an opcode without a rule are taken for values of its
    own: then values, positions, uses and live ranges are a guess.

    `changelist` is that of the TPU compiler, if the file names tell. The newest libtpu differs
    from all other compilers: a value of an async computation starts at the time of the
    async-start and not at its own time, and no value reuses the memory of an output. Without a
    changelist the text decides by a heuristic: only the newest libtpu prints `dma_priority`.
    Raises DumpError if the text is not scheduled, or if no rule
    covers an instruction.
    """
    program = program or number_program(hlo)
    newest = hlo.attributes().has_dma_priority
    if changelist is not None:
        newest = changelist > _BEFORE_NEWEST_LIBTPU
    schedule = flatten(program, is_scheduled=in_text_order or bool(hlo.header["is_scheduled"]))
    regions = find_regions(program, schedule)
    dataflow = trace_values(
        program, schedule, regions, InPlaceRules(program), any_opcode=any_opcode
    )
    liveness = live_ranges(program, schedule, dataflow, async_starts_late=newest)
    return Derived(program, schedule, dataflow, liveness, newest)
