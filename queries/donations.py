"""Which arguments of a module could be donated, and which are donated for nothing."""

from ..schema.store import Store
from .catalogue import statement
from .modules import find_module
from .questions import Limit, Module, RunOfModule, Space, question
from .result import Rows


@question(example="memhouse donations llama-v5e --run 2026-10-08", screen="wide_table")
def donations(
    store: Store,
    module: Module,
    *,
    run: RunOfModule = None,
    memory_space: Space = 0,
    limit: Limit = None,
) -> Rows:
    """Show which arguments could be donated, or are donated for nothing.

    **not donated**: an output could take the argument's memory. **read later**: likewise, but
    an instruction reads the argument after the output is written, so that XLA copies it, unless
    it can run the instruction earlier. **copied**: donated, and XLA copies it all the same.
    **unused**: donated, and no output takes its memory. The saving is an upper bound.

    Columns: saving_bound_bytes (at most so much less is needed), finding, argument (its name),
    shape, instruction (what computes the output, reads the argument later, or copies), output
    (which part of the result), paired_by (shape or bytes), parameter_number. Raises UsageError.
    """
    found = find_module(store, module, run)
    rows = store.rows(statement("donations"), [found.module_id, memory_space, limit])
    signature = store.rows(statement("donations.has_signature"), [found.module_id])
    empty = "no argument could be donated, and none is donated for nothing"
    if not signature["is_known"][0].as_py():
        empty = "the dump has no HLO text, which says what arguments and results there are"
    return Rows(rows, found.caption, empty)
