"""What every store does: keep the tables, add to them and delete from them whole batches.

A store is the one place that knows where the rows lie. Ingest writes through it, queries
read through it, and the two know no more of it than this page.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

import pyarrow as pa


@dataclass(frozen=True)
class Known:
    """What a store has when the ingest of a run begins.

    run: the run's row, None if the run is new; labels: its labels; dumps: the rows of the
    run's dumps, by dump_id; modules: the ids of all modules; complete: of these, the modules
    of dumps that were read whole; flag_sets: the ids of all sets of compiler flags.
    """

    run: Mapping[str, Any] | None
    labels: Mapping[str, str]
    dumps: Mapping[int, Mapping[str, Any]]
    modules: frozenset[int]
    complete: frozenset[int]
    flag_sets: frozenset[int]


@dataclass(frozen=True)
class Batch:
    """Rows to add, by table, and the rows that they replace.

    The ids in `modules`, `dumps` and `runs` name what is deleted first: every row of these
    modules, these dumps with their files, these runs with their labels.
    """

    tables: Mapping[str, pa.Table]
    modules: Sequence[int] = ()
    dumps: Sequence[int] = ()
    runs: Sequence[str] = ()


@dataclass(frozen=True)
class Deleted:
    """How many runs, dumps and modules a deletion took."""

    runs: int = 0
    dumps: int = 0
    modules: int = 0
    run_ids: Sequence[str] = field(default=())


class Store(Protocol):
    """The tables of a warehouse, wherever they lie.

    Every method that changes rows is atomic, and leaves `history` true. All raise
    memhouse.schema.errors.WarehouseError for what is wrong with the store.
    """

    @property
    def name(self) -> str:
        """What messages call the store."""

    @property
    def is_new(self) -> bool:
        """Whether nothing was stored when the store was named: reading need not wait for it."""

    def known(self, run_id: str) -> Known:
        """What the store has of this run, and which modules and flag sets."""

    def write(self, batch: Batch) -> None:
        """Delete what the batch replaces and add its rows, all or nothing."""

    def delete_runs(self, run_ids: Sequence[str]) -> Deleted:
        """Delete these runs, and the modules and flag sets that no other run points to."""

    def runs_before(self, time: datetime) -> list[str]:
        """The runs that were compiled before a time."""

    def rows(self, query: str, parameters: Sequence[object] = ()) -> pa.Table:
        """The rows of a query; `$1` and so on in it are the parameters.

        Raises memhouse.schema.errors.QueryError for what is wrong with the query.
        """

    def worked_out_history(self) -> pa.Table:
        """What the rows of `history` must be."""

    def owns(self, file_status: os.stat_result) -> bool:
        """Whether a file, by its status, is a part of the store, and not a dump to ingest."""

    def close(self) -> None:
        """Let go of the store."""
