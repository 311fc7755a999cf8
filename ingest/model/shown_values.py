"""Which value an allocation is for, where it holds others too: XLA reuses outputs as scratch."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .attribution import Attribution
from .numbered_program import NONE, Ints, Mask
from .parts import LiveRange


@dataclass(frozen=True)
class Ends:
    """Of each value: whether it is an argument of the program, and part of its result."""

    is_argument: Mask
    lives_out: Mask


def ends_of(attribution: Attribution, number: Ints) -> Ends:
    """What the HLO text says; `number` is each value's number there, NONE if it has none."""
    has = number != NONE
    return Ends(attribution.is_argument[number] & has, attribution.lives_out[number] & has)


def guessed_ends(
    values: pa.Table, instructions: pa.Table, ranges: pa.Table | None, live_range: LiveRange | None
) -> Ends:
    """Without HLO text: parameters are taken for arguments, what lives until the end for results.

    `instructions` are by instruction_id, `ranges` the live ranges by value_id.
    """
    is_argument = lives_out = np.zeros(len(values), bool)
    if "opcode" in instructions.column_names and len(values):
        opcode = instructions["opcode"].take(values["instruction_id"].combine_chunks())
        is_argument = pc.fill_null(pc.equal(opcode, "parameter"), False).to_numpy()
    if ranges is not None and live_range is not None:
        at_end = pc.equal(ranges["end_time"], live_range.schedule_length)
        ids = ranges["value_id"].filter(at_end).combine_chunks()
        lives_out = pc.is_in(values["value_id"], value_set=ids).to_numpy()
    return Ends(is_argument, lives_out)


def shown_values(allocations: pa.Table, values: pa.Table, ends: Ends) -> pa.Int32Array:
    """The value that each allocation is for, null for temps and where there is none.

    An argument's allocation is for the argument, an output's for what lives out, a constant's
    for the constant; of several such values for the largest array. `allocations` and `values`
    have the columns of the warehouse.
    """
    place = pc.index_in(
        values["allocation_index"], value_set=allocations["allocation_index"].combine_chunks()
    )
    held = np.flatnonzero(pc.is_valid(place).to_numpy())
    at = place.drop_null().to_numpy()
    shared = pc.or_(allocations["is_temp"], allocations["is_thread_local"]).to_numpy()
    held, at = held[~shared[at]], at[~shared[at]]
    of_argument = allocations["is_parameter"].to_numpy()[at]
    of_output = allocations["maybe_live_out"].to_numpy()[at]
    fits = np.where(of_argument, ends.is_argument[held], ~of_output | ends.lives_out[held])
    is_array = pc.is_valid(values["element_type"]).to_numpy()[held]
    size = values["size_bytes"].to_numpy()[held]
    number = values["value_id"].to_numpy()[held]
    order = np.lexsort((number, -size, ~is_array, ~fits, at))
    owner, first = np.unique(at[order], return_index=True)
    found = np.full(len(allocations), -1)
    found[owner] = number[order[first]]
    return pa.array(found, pa.int32(), mask=found < 0)
