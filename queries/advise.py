"""What to change first in a program, and by how much its peak would fall."""

from ..advice.advice import Advice, advice_of
from ..schema.store import Store
from .arguments import parse_size
from .modules import find_module
from .questions import Module, RunOfModule, Saving, Space, question


@question(
    example="memhouse advise llama-v5e --run 2026-10-08",
    screen="advise",
    tool="What to change first",
)
def advise(
    store: Store,
    module: Module,
    *,
    run: RunOfModule = None,
    save: Saving = None,
    memory_space: Space = 0,
) -> Advice:
    """Say what to change in a program, and by how much its peak would fall.

    Each figure is the program replayed with the change made, not a buffer's size. Its grade says
    how sure it is: **exact**, **expected** within some percent, **between** two figures,
    **at most**, or **estimated** if the dump is HLO text alone; a **fact** promises nothing.

    Columns: saving_bytes (null of a fact), low_bytes, high_bytes, reserved_low_bytes and
    reserved_high_bytes (how much less XLA reserves), told_of (by which figure it is ranked),
    grade, tolerance, finding (its kind), title, source, write, why, value_ids, alone_bytes. Raises
    UsageError, also if no replay is possible: the dump has no live ranges.
    """
    wanted_bytes = parse_size(save, "save")
    found = find_module(store, module, run)
    return advice_of(store, found, memory_space, wanted_bytes)
