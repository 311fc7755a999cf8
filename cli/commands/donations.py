"""`memhouse donations`: arguments that could be donated."""

from ..opening import open_warehouse
from ..parameters import (
    DEFAULT_DB,
    DEFAULT_WAIT,
    AsFormat,
    Db,
    Limit,
    Module,
    RunOfModule,
    Space,
    Wait,
    Wide,
)
from ..render.text import print_captioned

EXAMPLE = "memhouse donations llama-v5e --run 2026-10-08"


def donations(
    module: Module,
    db: Db = DEFAULT_DB,
    run: RunOfModule = None,
    memory_space: Space = 0,
    limit: Limit = 20,
    wide: Wide = False,
    output: AsFormat = "table",
    wait: Wait = DEFAULT_WAIT,
) -> None:
    """Show arguments that could be donated, and donations without effect.

    **not donated**: an output could reuse the argument's memory. **read later**: likewise, but an
    instruction reads the argument after the output is written, so that XLA copies it unless it can
    reorder the instruction. **copied**: donated, but XLA copies it. **unused**: donated, but no
    output reuses its memory. The saving is an upper bound.
    """
    with open_warehouse(db, wait) as warehouse:
        rows = warehouse.donations(module, run=run, memory_space=memory_space, limit=limit)
    print_captioned(rows, output, wide=wide)
