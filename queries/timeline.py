"""How full a module's memory is over its schedule."""

from ..schema.store import Store
from .catalogue import statement
from .modules import find_module
from .questions import Module, RunOfModule, Space, question
from .result import Rows


@question(example="memhouse timeline llama-v5e", screen="timeline", chart="with_timeline")
def timeline(
    store: Store, module: Module, *, run: RunOfModule = None, memory_space: Space = 0
) -> Rows:
    """Show how full a module's memory is over its schedule, as a chart on a terminal.

    Columns: start_time, end_time (positions in the schedule, both inclusive), occupied_bytes,
    live_bytes, instruction, op_name. Raises UsageError.
    """
    found = find_module(store, module, run)
    rows = store.rows(statement("timeline"), [found.module_id, memory_space])
    return Rows(rows, found.caption, f"memory space {memory_space} has no known occupancy")
