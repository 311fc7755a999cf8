"""Commits to a lake: files are added and removed at once, or not at all.

A commit is made for one version of the lake and fails if another process committed first, because
the rows to write depend on the stored ones: a module is stored once. deltalake's own retries do
not notice that two commits remove the same files, and would store rows twice.
"""

import json
import random
import time
import uuid
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from ..errors import ChangedMeanwhileError, WarehouseError
from . import storage
from .data_files import DataFile, union_schema
from .lake_errors import lake_error, lake_errors
from .snapshot import CHANGED_RUNS, Lake, Snapshot

# The waits between attempts grow up to this. They are random, so that writers do not collide.
_LONGEST_WAIT_SECONDS = 2.0
# Even with many writers, fewer attempts suffice. After so many, there is another reason.
_MOST_ATTEMPTS = 1000
# A checkpoint of the log is written after so many commits, and in a lake of many files later: it
# names each of them, so that at a fixed interval the log would grow as commits times files.
_COMMITS_TO_CHECKPOINT = 20
_FILES_TO_COMMIT = 50


@dataclass(frozen=True)
class Actions:
    """The files that a commit adds and removes.

    changed_runs: the runs whose history may change; same_rows: the rows stay, in other files.
    """

    adds: Sequence[DataFile] = ()
    removes: Sequence[DataFile] = ()
    changed_runs: Sequence[str] = ()
    same_rows: bool = False


def commit(
    lake: Lake, plan: Callable[[Snapshot], Actions], *, most_attempts: int | None = None
) -> Actions | None:
    """Commit the actions that `plan` returns for the newest snapshot, and return them.

    `plan` is called again after another process committed first. An empty plan commits nothing.
    None if other processes were first `most_attempts` times. The files of failed attempts are
    removed. Raises WarehouseError, and what `plan` raises.
    """
    mark = uuid.uuid4().hex
    attempts = 0
    failed: list[DataFile] = []
    while True:
        try:
            actions = plan(lake.snapshot)
        except ChangedMeanwhileError:
            discard(lake.place, failed, but=())
            raise
        if not actions.adds and not actions.removes:
            discard(lake.place, failed, but=())
            return actions
        if try_commit(lake, actions, mark):
            lake.refresh()
            discard(lake.place, failed, but=actions.adds)
            return actions
        attempts += 1
        time.sleep(random.uniform(0, min(_LONGEST_WAIT_SECONDS, 0.02 * 2**attempts)))
        lake.refresh()
        failed += actions.adds
        if attempts == most_attempts:
            discard(lake.place, failed, but=())
            return None
        if attempts == _MOST_ATTEMPTS:
            discard(lake.place, failed, but=())
            raise WarehouseError(
                f"cannot change the lake {lake.place}: others committed in each of {attempts} "
                "attempts: give the same command again when fewer write"
            )


def discard(place: str, files: Iterable[DataFile], *, but: Iterable[DataFile]) -> None:
    """Remove files that no commit will name, except those of `but`; `vacuum` removes the rest."""
    kept = {file.path for file in but}
    for path in {file.path for file in files} - kept:
        # The commit is made, so that no error of any package here is a reason to fail.
        with suppress(Exception):
            storage.filesystem(place).rm_file(f"{place}/{path}")


def try_commit(lake: Lake, actions: Actions, mark: str) -> bool:
    """Commit for the version that was read last; False if another process committed first.

    `mark` identifies the commit. True also if deltalake failed after the commit, or if its answer
    was lost. Raises WarehouseError if the commit was not made and no other process committed.
    """
    from deltalake import CommitProperties, PostCommitHookProperties, Transaction
    from deltalake.exceptions import CommitFailedError
    from deltalake.transaction import AddAction, RemoveAction

    base = lake.snapshot.version
    now = int(time.time() * 1000)
    adds = [
        AddAction(
            file.path,
            file.size_bytes,
            {"relation": file.relation},
            now,
            not actions.same_rows,
            _statistics(file),
        )
        for file in actions.adds
    ]
    removes = [
        RemoveAction(
            file.path,
            # True also if the rows stay, because a compaction by deltalake ignores removals
            # without changes of data, and would store the rows of these files twice.
            True,
            now,
            file.size_bytes,
            {"relation": file.relation},
        )
        for file in actions.removes
    ]
    properties = CommitProperties(
        custom_metadata={CHANGED_RUNS: json.dumps(list(actions.changed_runs))},
        max_commit_retries=0,
        # Without a time the transaction would stay in the log for ever.
        app_transactions=[Transaction(mark, 1, now)],
    )
    try:
        with lake_errors(lake.place):
            lake.table.create_write_transaction(
                adds + removes,
                "append",
                union_schema(),
                partition_by=["relation"],
                commit_properties=properties,
                post_commithook_properties=PostCommitHookProperties(
                    create_checkpoint=False, cleanup_expired_logs=False
                ),
            )
    except (CommitFailedError, WarehouseError) as error:
        version = lake.refresh().version
        if _is_made(lake, mark):
            return True
        if isinstance(error, WarehouseError):
            raise
        if version == base:
            raise lake_error(lake.place, error) from error
        return False
    # The commit is made, so that no error here is a reason to fail.
    with suppress(Exception):
        _write_checkpoint(lake)
    return True


def _write_checkpoint(lake: Lake) -> None:
    """Write a checkpoint of the log, after a commit to the snapshot, if it is time for one."""
    version = lake.snapshot.version + 1
    if version % _COMMITS_TO_CHECKPOINT:
        return
    path = f"{lake.place}/_delta_log/_last_checkpoint"
    try:
        last = int(json.loads(storage.filesystem(lake.place).cat_file(path))["version"])
    except FileNotFoundError:
        last = 0
    if version - last >= len(lake.snapshot.paths) / _FILES_TO_COMMIT:
        lake.refresh()
        lake.table.create_checkpoint()


def _is_made(lake: Lake, mark: str) -> bool:
    """Whether the commit with this mark is in the version that was read last."""
    with lake_errors(lake.place):
        return lake.table.transaction_version(mark) is not None


def _statistics(file: DataFile) -> str:
    return json.dumps(
        {"numRecords": file.rows, "minValues": dict(file.least), "maxValues": dict(file.most)}
    )
