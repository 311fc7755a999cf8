"""What each value and each instruction of a program is to its user: whose, in which pass, why."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from .liveness import Derived
from .op_names import Kind, callers, name_rows, scopes
from .origins import OPERAND, Named, Origins, Values, find_origins
from .parts import HloText
from .passes import Passes, passes, value_pass
from .program import NONE, Ints, Mask
from .residuals import Residuals, find_residuals
from .roles import Touches, find_reads, find_roles, find_touches, lives_out


@dataclass(frozen=True)
class Attribution:
    """What the HLO text says about values and instructions, by their numbers there.

    `scope` is each instruction's number in `scopes`; `value_pass` and `roles` are numbers of
    PASSES and ROLES; `is_argument` and `lives_out` mark the arguments among the values and what
    is part of the result. The times of `touches` mean nothing unless the text `is_scheduled`.
    If it `is_guess`, results of an opcode that is not known may count as values of its own.
    """

    derived: Derived
    is_scheduled: bool
    is_guess: bool
    scope: Ints
    scopes: pa.Table
    passes: Passes
    origins: Origins
    value_pass: Ints
    roles: Ints
    residuals: Residuals
    touches: Touches
    is_argument: Mask
    lives_out: Mask


def attribute(hlo: HloText, derived: Derived, *, is_guess: bool = False) -> Attribution:
    """Find each value's origin, pass and role, and each instruction's scope and pass."""
    program, dataflow = derived.program, derived.dataflow
    alias_set, time = derived.liveness.alias_set, derived.schedule.time
    names = name_rows(program, hlo.instructions["op_name"])
    caller = callers(program)
    named = Named(program, dataflow, names, caller)
    values = Values(named)
    scope, table = scopes(program, names, caller)
    columns = (hlo.instructions[name] for name in ("source_file", "source_line"))
    row_pass = passes(program, names, caller, *columns)
    origins = find_origins(named, alias_set)
    told = (origins.rule == OPERAND) & (names.kind[values.row] == Kind.JOINED)
    of_values = value_pass(row_pass, values.row, origins.instruction, told).astype(np.int64)
    reads = find_reads(named, row_pass)
    residuals = find_residuals(values, origins, of_values, reads, alias_set, time)
    is_residual = residuals.of != NONE
    roles = find_roles(values, origins, of_values, reads, row_pass, alias_set, is_residual)
    touches = find_touches(named, derived.schedule)
    return Attribution(
        derived,
        bool(hlo.header["is_scheduled"]),
        is_guess,
        scope,
        table,
        row_pass,
        origins,
        of_values,
        roles,
        residuals,
        touches,
        named.is_entry_parameter[values.row],
        lives_out(values),
    )
