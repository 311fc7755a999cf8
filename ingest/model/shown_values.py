"""Which value an allocation is for, where it holds others too: XLA reuses outputs as scratch."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .numbered_program import Mask


def shown_values(
    allocations: pa.Table, values: pa.Table, is_argument: Mask, lives_out: Mask
) -> pa.Int32Array:
    """The value that each allocation is for, null for temps and where there is none.

    An argument's allocation is for the argument, an output's for what lives out, a constant's
    for the constant; of several such values for the largest array. `allocations` and `values`
    have the columns of the warehouse; `is_argument` and `lives_out` say of each value whether
    it is an argument of the program, and whether it is part of the result.
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
    fits = np.where(of_argument, is_argument[held], ~of_output | lives_out[held])
    is_array = pc.is_valid(values["element_type"]).to_numpy()[held]
    size = values["size_bytes"].to_numpy()[held]
    number = values["value_id"].to_numpy()[held]
    order = np.lexsort((number, -size, ~is_array, ~fits, at))
    owner, first = np.unique(at[order], return_index=True)
    found = np.full(len(allocations), -1)
    found[owner] = number[order[first]]
    return pa.array(found, pa.int32(), mask=found < 0)
