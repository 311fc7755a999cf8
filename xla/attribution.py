"""Attribution: the owner, pass and role of each value; the scope and pass of each instruction."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from .liveness import Derived
from .op_names import Kind, callers, joined_names, name_rows, scopes
from .origins import OPERAND, Named, Origins, Values, find_origins
from .parts import HloText
from .passes import Passes, passes, value_pass, without_optimizer
from .program import NONE, Ints, Mask
from .residuals import Residuals, find_residuals
from .roles import Touches, find_reads, find_roles, find_touches, lives_out
from .union import Bounds, bounds_of, less


@dataclass(frozen=True)
class Attribution:
    """The attribution of a program's values and instructions, by their numbers in the HLO text.

    `scope` is each instruction's number in `scopes`; `value_pass` and `roles` are numbers of
    PASSES and ROLES by value. `is_argument` marks the values that are arguments, `lives_out`
    those that are part of the result. The times of `touches` are valid only if `is_scheduled`.
    """

    derived: Derived
    is_scheduled: bool
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


def attribute(hlo: HloText, derived: Derived, *, is_scheduled: bool = True) -> Attribution:
    """Find each value's origin, pass and role, and each instruction's scope and pass.

    `is_scheduled` says whether the times of `derived` are those of the module's figures.
    """
    (found,) = attribute_all([hlo], derived, [derived], [is_scheduled])
    return found


def attribute_all(
    texts: Sequence[HloText],
    derived: Derived,
    of_each: Sequence[Derived],
    are_scheduled: Sequence[bool],
) -> Iterator[Attribution]:
    """The attribution of several programs: see `attribute`.

    `derived` is what was worked out of all of them, `of_each` what of each.
    """
    program, dataflow = derived.program, derived.dataflow
    alias_set, time = derived.liveness.alias_set, derived.schedule.time
    caller = callers(program)
    bounds = bounds_of(derived)
    # What a scope is called and how layers fold are questions of one program.
    names_of_each, scopes_of_each = [], []
    for number, (hlo, each) in enumerate(zip(texts, of_each, strict=True)):
        of_program = slice(*bounds.computations[number : number + 2])
        names = name_rows(each.program, hlo.instructions["op_name"])
        names_of_each.append(names)
        scopes_of_each.append(
            scopes(each.program, names, less(caller[of_program], bounds.rows[number]))
        )
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
    found = Attribution(
        derived,
        bool(are_scheduled[0]),
        np.concatenate([scope for scope, _ in scopes_of_each]),
        scopes_of_each[0][1],
        instruction_passes,
        origins,
        pass_of_value,
        roles,
        residuals,
        touches,
        named.is_entry_parameter[values.row],
        lives_out(values),
    )
    if len(of_each) == 1:
        yield found
        return
    tables = [table for _, table in scopes_of_each]
    yield from _of_each(found, bounds, of_each, are_scheduled, tables)


def _of_each(
    found: Attribution,
    bounds: Bounds,
    of_each: Sequence[Derived],
    are_scheduled: Sequence[bool],
    scopes_of_each: Sequence[pa.Table],
) -> Iterator[Attribution]:
    """The attribution of each program."""
    passes, origins, residuals, touches = (
        found.passes, found.origins, found.residuals, found.touches
    )  # fmt: skip
    flow = found.derived.dataflow
    program_of = found.derived.program.program_of[flow.instruction]
    numbers = np.arange(len(of_each) + 1)
    of_residuals = np.searchsorted(program_of[residuals.value], numbers).tolist()
    # All definitions come before all reads.
    of_touches = program_of[touches.value] + np.where(touches.is_read, len(of_each), 0)
    touched = np.searchsorted(of_touches, np.arange(2 * len(of_each) + 1)).tolist()
    for number, each in enumerate(of_each):
        row, time, value, residual = (
            starts[number] for starts in (bounds.rows, bounds.times, bounds.values, of_residuals)
        )
        rows, values, of = (
            slice(*starts[number : number + 2])
            for starts in (bounds.rows, bounds.values, of_residuals)
        )
        chosen = np.concatenate(
            [np.arange(*touched[at : at + 2]) for at in (number, number + len(of_each))]
        )
        yield Attribution(
            each,
            are_scheduled[number],
            found.scope[rows],
            scopes_of_each[number],
            Passes(
                passes.codes[rows],
                passes.is_clone[rows],
                passes.follows_gradient[rows],
                passes.is_differentiated[rows],
            ),
            Origins(
                less(origins.instruction[values], row),
                origins.rule[values],
                origins.moved_from[values] - value,
            ),
            found.value_pass[values],
            found.roles[values],
            Residuals(
                less(residuals.of[values], residual),
                residuals.value[of] - value,
                residuals.layers[of],
                less(residuals.reader[of], row),
            ),
            Touches(
                touches.value[chosen] - value,
                touches.start[chosen] - time,
                touches.end[chosen] - time,
                touches.is_read[chosen],
            ),
            found.is_argument[values],
            found.lives_out[values],
        )


def _joined_column(texts: Sequence[HloText], name: str) -> pa.ChunkedArray:
    """A column of the instructions of several programs."""
    columns = [hlo.instructions[name] for hlo in texts]
    if len(columns) == 1:
        return columns[0]
    return pa.chunked_array([chunk for column in columns for chunk in column.chunks])
