"""Compaction: many small files of a relation become few large ones; the rows stay.

Any number of compactions and writers may run at once. A merged file is written once; if another
process commits first, what it left in place is committed again without being merged anew.
"""

from collections.abc import Callable, Iterator

from .. import arrow
from ..stores.base import Compacted
from .commits import Actions, commit, discard
from .data_files import DataFile, read_files, write_file
from .lake_errors import lake_errors
from .layout import HISTORY
from .portions import MOST_BYTES, file_size, portions
from .snapshot import Lake, Snapshot

# A file of at least this size stays as it is.
_LARGE_BYTES = MOST_BYTES // 2
# What was merged is committed whenever it is this much: an interruption loses no more.
_COMMIT_BYTES = 1 << 30


def compact(lake: Lake, enter: Callable[[], None]) -> Compacted:
    """Merge the small files of each relation; how many bytes all files took and take.

    `enter` adds the entry of the journal. It is called first, and only if there are files to merge:
    its small file is merged as well, so that a compacted lake is left as it is. Raises
    WarehouseError.
    """
    before = _size(lake.refresh())
    if next(_groups(lake.snapshot), None) is None:
        return Compacted(before, before)
    enter()
    todo = _groups(lake.snapshot)
    merged: list[tuple[list[DataFile], DataFile]] = []
    for group in todo:
        if not lake.snapshot.paths.issuperset(file.path for file in group):
            continue
        with lake_errors(lake.place):
            rows = read_files(lake.place, group, group[0].relation)
            merged.append((group, write_file(lake.place, group[0].relation, rows)))
        if sum(file.size_bytes for group, _ in merged for file in group) >= _COMMIT_BYTES:
            _commit(lake, merged)
            merged = []
    if merged:
        _commit(lake, merged)
    return Compacted(before, _size(lake.snapshot))


def _commit(lake: Lake, merged: list[tuple[list[DataFile], DataFile]]) -> None:
    def plan(snapshot: Snapshot) -> Actions:
        """The merged files of which every part is still there."""
        there = [
            (group, file)
            for group, file in merged
            if snapshot.paths.issuperset(part.path for part in group)
        ]
        adds = [file for _, file in there]
        removes = [part for group, _ in there for part in group]
        return Actions(adds, removes, same_rows=True)

    done = commit(lake, plan)
    # A group of which a part left the lake meanwhile was merged in vain.
    discard(lake.place, (file for _, file in merged), but=done.adds if done else ())


def _groups(snapshot: Snapshot) -> Iterator[list[DataFile]]:
    """The files to merge into one each. Who stores the history merges its files."""
    for relation, files in sorted(snapshot.files.items()):
        if relation in HISTORY or relation not in arrow.stored_columns():
            continue
        small = sorted(
            (file for file in files if file.size_bytes < _LARGE_BYTES),
            key=lambda file: (file.size_bytes, file.path),
        )
        sized = ((file, file_size(file)) for file in small)
        yield from (group for group in portions(sized) if len(group) > 1)


def _size(snapshot: Snapshot) -> int:
    return sum(file.size_bytes for files in snapshot.files.values() for file in files)
