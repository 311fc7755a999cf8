"""`memhouse donations`: which arguments could be donated, or are donated for nothing."""

from ..options import (
    DEFAULT_DB,
    DEFAULT_WAIT,
    AsFormat,
    Db,
    Format,
    Limit,
    Module,
    RunOfModule,
    Space,
    Wait,
    Wide,
)

EXAMPLE = "memhouse donations llama-v5e --run 2026-10-08"


def donations(
    module: Module,
    db: Db = DEFAULT_DB,
    run: RunOfModule = None,
    space: Space = 0,
    limit: Limit = 20,
    wide: Wide = False,
    output: AsFormat = Format.table,
    wait: Wait = DEFAULT_WAIT,
) -> None:
    """Show which arguments could be donated, or are donated for nothing.

    **not donated**: an output could take the argument's memory. **read later**: likewise, but
    an instruction reads the argument after the output is written, so that XLA copies it, unless
    it can run the instruction earlier. **copied**: donated, and XLA copies it all the same.
    **unused**: donated, and no output takes its memory. The saving is an upper bound.
    """
    from ...queries.donations import donations as find
    from ..opening import reading
    from ..render.rows import print_rows
    from ..render.text import print_note

    with reading(db, wait=wait) as store:
        found = find(store, module, run, space, limit)
    print_note(found.caption)
    print_rows(found, output, wide=wide)
