"""`memhouse saved`: residuals of the forward pass."""

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

EXAMPLE = "memhouse saved llama-v5e"


def saved(
    module: Module,
    db: Db = DEFAULT_DB,
    run: RunOfModule = None,
    memory_space: Space = 0,
    limit: Limit = 20,
    wide: Wide = False,
    output: AsFormat = "table",
    wait: Wait = DEFAULT_WAIT,
) -> None:
    """Show what the forward pass saves for the backward pass, by line and shape.

    Each could be recomputed instead: `memhouse advise` computes the saving. A tensor
    that is stacked over layers has the bytes of all of them.
    """
    with open_warehouse(db, wait) as warehouse:
        rows = warehouse.saved(module, run=run, memory_space=memory_space, limit=limit)
    print_captioned(rows, output, wide=wide)
