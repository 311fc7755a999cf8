"""Which arguments of a module could be donated, and which are donated for nothing."""

from ..schema.stores.base import Store
from .catalogue import statement
from .find_module import find_module
from .result import Rows


def donations(
    store: Store,
    module: str | int,
    run: str | None = None,
    memory_space: int = 0,
    limit: int | None = None,
) -> Rows:
    """What donating arguments would save at most, or does not save, the largest first.

    A finding is one of these:
    - not donated: an output could take the argument's memory
    - read later: likewise, but an instruction reads the argument after the output is written.
      XLA then copies the argument, unless it can run the instruction earlier
    - copied: the argument is donated, and XLA copies it all the same
    - unused: the argument is donated, and no output takes its memory

    Columns: saving_bound_bytes (at most so much less is needed), finding, argument (its name),
    shape, instruction (what computes the output, reads the argument later, or copies), output
    (which part of the result), paired_by (shape or bytes), parameter_number. Raises UsageError.
    """
    found = find_module(store, module, run)
    rows = store.rows(statement("donations"), [found.module_id, memory_space, limit])
    ((is_known,),) = store.rows(statement("has_signature"), [found.module_id]).to_pydict().values()
    empty = "no argument could be donated, and none is donated for nothing"
    if not is_known:
        empty = "the dump has no HLO text, which says what arguments and results there are"
    return Rows(rows, found.caption, empty)
