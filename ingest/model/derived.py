"""A module's schedule, values and live ranges, worked out from its HLO text alone."""

from dataclasses import dataclass

from .dataflow import Dataflow, trace_values
from .flattening import Schedule, find_regions, flatten
from .in_place import InPlaceRules
from .liveness import Liveness, live_ranges
from .numbered_program import NumberedProgram, number_program
from .parts import HloText


@dataclass(frozen=True)
class Derived:
    """What the text of a scheduled module says exactly, as XLA's own analyses would."""

    program: NumberedProgram
    schedule: Schedule
    dataflow: Dataflow
    liveness: Liveness


def derive(hlo: HloText) -> Derived:
    """Work out a module's schedule, values, positions, uses and live ranges.

    Raises DumpError if the text is not scheduled, or holds what no rule covers.
    """
    program = number_program(hlo)
    schedule = flatten(program, is_scheduled=bool(hlo.header["is_scheduled"]))
    dataflow = trace_values(program, schedule, find_regions(program, schedule))
    liveness = live_ranges(program, schedule, dataflow, InPlaceRules(program))
    return Derived(program, schedule, dataflow, liveness)
