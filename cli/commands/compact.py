"""`memhouse compact`: return the space of deleted rows to the disk."""

from time import perf_counter

from ...schema.compaction import Compacted
from ...schema.readable import human_bytes
from ..opening import open_warehouse
from ..parameters import DEFAULT_DB, DEFAULT_WAIT, Db, Wait
from ..render.text import print_note

EXAMPLE = "memhouse compact"


def compact(db: Db = DEFAULT_DB, wait: Wait = DEFAULT_WAIT) -> None:
    """Return the space of deleted rows to the disk; all rows stay.

    The warehouse is copied to a new file in the same folder, which then replaces it: the disk
    needs space for both. `ingest` and `prune` compact it too, if much space is free and the copy
    is quick.
    """
    with open_warehouse(db, wait, write=True) as warehouse:
        start = perf_counter()
        sizes = warehouse.compact()
        seconds = perf_counter() - start
    print_note(f"{size_change(db, sizes)}, in {seconds:.1f} s")


def size_change(db: str, sizes: Compacted) -> str:
    """The size of a warehouse before and after it was compacted, as text."""
    now = human_bytes(sizes.after_bytes)
    if sizes.after_bytes == sizes.before_bytes:
        return f"{db}: {now}, no space to return"
    return f"{db}: {human_bytes(sizes.before_bytes)} before, {now} now"
