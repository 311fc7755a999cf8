"""The order of a stored program's instructions, as `xla/order.py` asks it."""

from typing import NamedTuple

import numpy as np

from ...xla.order import Laid, Ordering, ordering_of
from .asked_program import Program


class StoredOrder(NamedTuple):
    """The orders of a program, and the values that each buffer holds."""

    ordering: Ordering
    values: list[list[int]]


def order_of(program: Program) -> StoredOrder:
    """The orders of a program's instructions. What they do must be known."""
    assert program.hlo is not None
    layout = program.layout
    values = program.rows(
        "SELECT value_id, instruction_id, alias_set, memory_space, size_bytes"
        ' FROM "values" WHERE module_id = $1 ORDER BY value_id'
    )
    is_temp = np.isin(layout.allocation, layout.allocation_index[layout.is_temp])
    laid = Laid(layout.value_id, layout.allocation, layout.offset, layout.size, is_temp)
    return StoredOrder(
        *ordering_of(
            program.hlo,
            program.instructions["schedule_time"],
            values,
            program.uses,
            laid,
            layout.memory_space,
            platform=program.platform,
        )
    )
