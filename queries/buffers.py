"""The buffers that fill a module's memory."""

from ..schema.store import Store
from .catalogue import statement
from .modules import find_module
from .owners import callers_of
from .questions import At, Callers, Limit, Module, RunOfModule, Space, question
from .result import Rows


@question(example="memhouse buffers llama-v5e -n 4", screen="buffers", tool="Buffers at the peak")
def buffers(
    store: Store,
    module: Module,
    *,
    run: RunOfModule = None,
    memory_space: Space = 0,
    at: At = None,
    callers: Callers = 0,
    limit: Limit = None,
) -> Rows:
    """Show the buffers that fill a module's memory at its peak, or at any time.

    Columns: counted_bytes (they add up to what is occupied), share (of that, from 0 to 1),
    shape, source (file:line), called_by (with `callers`, so many Python frames), op_name,
    category, role, pass, value (the instruction that makes it), padding_bytes, start_time,
    end_time, last_use_time, layout, is_guess (what it holds is a guess). The largest
    is first; beyond `limit` the rest is one row. Raises UsageError.
    """
    found = find_module(store, module, run)
    stacks = callers_of(store, found.module_id, callers)
    parameters = [found.module_id, memory_space, at, limit, *stacks]
    rows = store.rows(statement("buffers"), parameters).drop_columns(["place"])
    if not callers:
        rows = rows.drop_columns(["called_by"])
    return Rows(rows, found.caption, f"nothing is live in memory space {memory_space} then")
