"""`memhouse advise`: what to change first in a program, and what it brings."""

from ...queries.parameters import Module, RunOfModule, Saving, Space
from ..options import (
    DEFAULT_DB,
    DEFAULT_WAIT,
    AsFormat,
    Db,
    Format,
    Wait,
)

EXAMPLE = "memhouse advise llama-v5e --run 2026-10-08"


def advise(
    module: Module,
    db: Db = DEFAULT_DB,
    run: RunOfModule = None,
    save: Saving = None,
    memory_space: Space = 0,
    output: AsFormat = Format.table,
    wait: Wait = DEFAULT_WAIT,
) -> None:
    """Say what to change in a program, and by how much its peak would fall.

    Each figure is the program replayed with the change made, not a buffer's size. Its grade says
    how sure it is: **exact**, **expected** within some percent, **between** two figures,
    **at most**, or **estimated** if the dump is HLO text alone; a **fact** promises nothing.
    """
    from ...queries.advise import advise as find
    from ..opening import reading
    from ..render.advice import print_advice
    from ..render.rows import print_rows
    from ..render.text import print_note

    with reading(db, wait=wait) as store:
        found = find(store, module, run, memory_space, save)
    print_note(found.rows.caption)
    if output is Format.table:
        print_advice(found)
    else:
        print_rows(found.rows, output)
