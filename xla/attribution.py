"""Attribution: the owner, pass and role of each value; the scope and pass of each instruction."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from .liveness import Derived
from .op_names import Kind, callers, joined_names, name_rows, scopes
from .origins import OPERAND, Named, Origins, Values, find_origins
from .parts import HloText
from .passes import Passes, passes, value_pass, without_optimizer
from .program import NONE, Ints, Mask, NumberedProgram
from .residuals import Residuals, find_residuals
from .roles import Touches, find_reads, find_roles, find_touches, lives_out
from .runs import starts_of
from .shifts import Shifts, less
from .union import bounds_of


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

    `is_scheduled` says whether the times of `derived` are those of the module's figures.
    """
    return attribute_all([hlo], [derived.program], derived, is_scheduled=is_scheduled)


def attribute_all(
    texts: Sequence[HloText],
    programs: Sequence[NumberedProgram],
    derived: Derived,
    *,
    is_scheduled: bool,
) -> Attribution:
    """The attribution of several programs: see `attribute`.

    `derived` is what was worked out of all of them, whose programs these are.
    """
    program, dataflow = derived.program, derived.dataflow
    alias_set, time = derived.liveness.alias_set, derived.schedule.time
    caller = callers(program)
    bounds = bounds_of(derived)
    # What a scope is called and how layers fold are questions of one program.
    names_of_each, scope_of_each, scopes_of_each = [], [], []
    for number, (hlo, each) in enumerate(zip(texts, programs, strict=True)):
        of_program = slice(*bounds.computations[number : number + 2])
        names = name_rows(each, hlo.instructions["op_name"])
        names_of_each.append(names)
        scope, table = scopes(each, names, less(caller[of_program], bounds.rows[number]))
        scope_of_each.append(scope)
        scopes_of_each.append(table)
    scope_starts = starts_of(np.array([len(table) for table in scopes_of_each]))
    names = joined_names(names_of_each)
    named = Named(program, dataflow, names, caller)
    values = Values(named)
    columns = (_joined_column(texts, name) for name in ("source_file", "source_line"))
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
    numbers = np.arange(len(programs) + 1)
    return Attribution(
        derived,
        is_scheduled,
        _numbered(scope_of_each, scope_starts),
        Shifts({"scope": scope_starts}).joined(scopes_of_each),
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


def _numbered(of_each: Sequence[Ints], starts: Ints) -> Ints:
    """The numbers of each program, shifted to where they start."""
    return np.concatenate(
        [less(each, -start) for each, start in zip(of_each, starts.tolist(), strict=False)]
    )


def _joined_column(texts: Sequence[HloText], name: str) -> pa.ChunkedArray:
    """A column of the instructions of several programs."""
    columns = [hlo.instructions[name] for hlo in texts]
    if len(columns) == 1:
        return columns[0]
    return pa.chunked_array([chunk for column in columns for chunk in column.chunks])
