"""What to change first in a program, and by how much its peak would fall."""

from ..queries.arguments import parse_size
from ..queries.modules import find_module
from ..schema.store import Store
from .advice import Advice, advice_of


def advise(
    store: Store,
    module: str | int,
    *,
    run: str | None = None,
    target_saving: str | int | None = None,
    memory_space: int = 0,
) -> Advice:
    """See `Warehouse.advise`."""
    wanted_bytes = parse_size(target_saving, "target_saving")
    found = find_module(store, module, run)
    return advice_of(store, found, memory_space, wanted_bytes)
