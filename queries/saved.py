"""What the forward pass of a module keeps for its backward pass."""

from ..schema.store import Store
from .catalogue import statement
from .modules import find_module
from .questions import Limit, Module, RunOfModule, Space, question
from .result import Rows


@question(example="memhouse saved llama-v5e", screen="wide_table", tool="Saved for backward")
def saved(
    store: Store,
    module: Module,
    *,
    run: RunOfModule = None,
    memory_space: Space = 0,
    limit: Limit = None,
) -> Rows:
    """Show what the forward pass saves for the backward pass, by line and shape.

    The largest first: what `jax.checkpoint` could compute again. `advise` says what that would
    save. A tensor that is stacked over layers takes its bytes for all of them.

    Columns: size_bytes, tensors (a count), layers (over which each is stacked), shape, source (the
    line that makes it), operation, read_by (the line that reads it first in the backward pass),
    at_peak_bytes (of size_bytes, what lives at the peak). Raises UsageError.
    """
    found = find_module(store, module, run)
    rows = store.rows(statement("saved.by_line"), [found.module_id, memory_space, limit])
    empty = "nothing is saved for a backward pass, or the dump has no HLO text, which says so"
    return Rows(rows, found.caption, empty)
