"""Attribution: the owner, pass and role of each value; the scope and pass of each instruction."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from .columns.bridge_o import OPERAND, Named, Origins, Values, find_origins
from .columns.liveness import Derived
from .columns.parts import HloText
from .columns.program import NONE, Ints, Mask
from .names import Kind
from .passes import Passes, passes, value_pass, without_optimizer
from .residuals import Residuals, find_residuals
from .roles import Touches, find_reads, find_roles, find_touches, lives_out


@dataclass(frozen=True)
class Attribution:
    """The attribution of the values and instructions of programs, by their numbers in HLO texts.

    `scope` is each instruction's number in `scopes`, where those of a program start at
    `scope_starts`; `residual_starts` is the same of residuals. `value_pass` and `roles` are numbers
    of PASSES and ROLES by value. `is_argument` marks the values that are arguments, `lives_out`
    those that are part of the result. The times of `touches` are valid only if `is_scheduled`.
    """

    derived: Derived
    is_scheduled: bool
    scope: Ints
    scopes: pa.Table
    scope_starts: Ints
    passes: Passes
    origins: Origins
    value_pass: Ints
    roles: Ints
    residuals: Residuals
    residual_starts: Ints
    touches: Touches
    is_argument: Mask
    lives_out: Mask


def attribute(hlo: HloText, derived: Derived, *, is_scheduled: bool = True) -> Attribution:
    """Find each value's origin, pass and role, and each instruction's scope and pass.

    `hlo` has the instructions of all programs that `derived` is of. `is_scheduled` says whether the
    times of `derived` are those of the modules' figures.
    """
    program = derived.program
    alias_set, time = derived.liveness.alias_set, derived.schedule.time
    named = Named(hlo, derived)
    names, caller = named.names, named.caller
    scope, scope_table = named.scopes()
    scope_starts = np.array([0, len(scope_table)])
    values = Values(named)
    columns = (hlo.instructions[name] for name in ("source_file", "source_line"))
    instruction_passes = passes(program, names, caller, *columns)
    origins = find_origins(named, alias_set)
    uses_maker = (origins.rule == OPERAND) & (names.kind[values.row] == Kind.JOINED)
    pass_of_value = value_pass(
        instruction_passes, values.row, origins.instruction, uses_maker
    ).astype(np.int64)
    reads = find_reads(named, instruction_passes)
    residuals = find_residuals(values, origins, pass_of_value, reads, alias_set, time)
    is_residual = residuals.of != NONE
    roles, trains = find_roles(
        values, origins, pass_of_value, reads, instruction_passes, alias_set, is_residual
    )
    instruction_passes, pass_of_value = without_optimizer(
        instruction_passes, pass_of_value, values.row, trains
    )
    touches = find_touches(named, derived.schedule, derived.liveness.start)
    numbers = np.arange(len(program.entries) + 1)
    return Attribution(
        derived,
        is_scheduled,
        scope,
        scope_table,
        scope_starts,
        instruction_passes,
        origins,
        pass_of_value,
        roles,
        residuals,
        np.searchsorted(program.program_of[values.row[residuals.value]], numbers),
        touches,
        named.is_entry_parameter[values.row],
        lives_out(values),
    )
