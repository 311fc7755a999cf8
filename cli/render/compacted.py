"""What compacting a warehouse gained, in a line."""

from ...schema.readable import human_bytes
from ...schema.stores.base import Compacted


def what_was_gained(name: str, compacted: Compacted) -> str:
    """The sizes before and after; that there is nothing to gain, if so."""
    now = human_bytes(compacted.after_bytes)
    if compacted.after_bytes == compacted.before_bytes:
        return f"{name}: {now}, there is nothing to gain"
    return f"{name}: {human_bytes(compacted.before_bytes)} before, {now} now"
