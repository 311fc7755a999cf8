"""The buffers that fill a module's memory."""

from ..schema.stores.base import Store
from .callers import callers_of
from .catalogue import statement
from .find_module import find_module
from .result import Rows


def buffers(
    store: Store,
    module: str | int,
    run: str | None = None,
    memory_space: int = 0,
    at: int | None = None,
    limit: int | None = None,
    *,
    callers: int = 0,
) -> Rows:
    """The buffers live at the peak, or at the time `at` of the schedule, the largest first.

    Columns: counted_bytes (they add up to what is occupied), share (of that, from 0 to 1),
    shape, source (file:line), called_by (with `callers`, so many Python frames), op_name,
    category, role, pass, value (the instruction that makes it), padding_bytes, start_time,
    end_time, last_use_time, layout, is_guess (what it holds is a guess). Beyond `limit` the rest
    is one row. Raises UsageError.
    """
    found = find_module(store, module, run)
    stacks = callers_of(store, found.module_id, callers)
    parameters = [found.module_id, memory_space, at, limit, *stacks]
    rows = store.rows(statement("buffers"), parameters).drop_columns(["place"])
    if not callers:
        rows = rows.drop_columns(["called_by"])
    return Rows(rows, found.caption, f"nothing is live in memory space {memory_space} then")
