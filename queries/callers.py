"""Who calls a line of Python."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .catalogue import statement

if TYPE_CHECKING:
    from ..schema.stores.base import Store


def callers_of(store: Store, module_id: int, count: int) -> tuple[list[int], list[str]]:
    """The Python frames of a module, and of each up to `count` callers as text.

    For example `block at model.py:112, main at train.py:9`; frames without a caller are left
    out.
    """
    if not count:
        return [], []
    rows = store.rows(statement("callers"), [module_id, count])
    return rows["stack_frame_id"].to_pylist(), rows["called_by"].to_pylist()
