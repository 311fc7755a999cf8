"""`memhouse compact`: the warehouse's file as small as it can be."""

from time import perf_counter

from ...schema.compaction import Compacted
from ...schema.readable import human_bytes
from ..opening import writing
from ..parameters import DEFAULT_DB, DEFAULT_WAIT, Db, Wait
from ..render.text import print_note

EXAMPLE = "memhouse compact"


def compact(db: Db = DEFAULT_DB, wait: Wait = DEFAULT_WAIT) -> None:
    """Return the space of deleted rows to the disk; all rows stay.

    The warehouse is copied to a file beside it, which then takes its place: the disk needs
    room for both. `ingest` and `prune` do this themselves where much is free and it is quick.
    """
    with writing(db, wait=wait) as store:
        start = perf_counter()
        compacted = store.compact()
        seconds = perf_counter() - start
    print_note(f"{what_was_gained(db, compacted)}, in {seconds:.1f} s")


def what_was_gained(name: str, compacted: Compacted) -> str:
    """The sizes before and after; that there is nothing to gain, if so."""
    now = human_bytes(compacted.after_bytes)
    if compacted.after_bytes == compacted.before_bytes:
        return f"{name}: {now}, there is nothing to gain"
    return f"{name}: {human_bytes(compacted.before_bytes)} before, {now} now"
