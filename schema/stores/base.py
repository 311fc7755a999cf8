"""The Store protocol: a store keeps the tables, and adds and deletes whole batches of rows.

Only a store knows where the rows are. Ingest writes through a store and queries read through
a store; both use only what this module declares.
"""

import os
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import pyarrow as pa

from ..readable import figures_table

# A store is compacted unasked if it uses no more: about half a second, or 15 s after runs were
# deleted.
QUICK_BYTES = 8 << 20
DELETED_BYTES = 256 << 20
# What dumps refer to by the hash of its rows: by the key, the table. A set is stored once.
SETS = {"flags_id": "compiler_flags", "files_id": "file_sets"}


class StoredFile(NamedTuple):
    """What tells whether a file of a stored dump is the same: see `file_sets`."""

    kind: str
    status: str
    sha256: str | None


@dataclass(frozen=True)
class Known:
    """What a store holds when the ingest of a run begins.

    run: the run's row, None if the run is new; hosts: of its parts, see `run_parts`; labels: the
    run's labels; dumps: the rows of the run's dumps, by dump_id; files: the files of these dumps,
    by files_id; modules: the ids of all modules; complete: the ids of modules of
    dumps that were read whole by the readers of today; outdated: of modules that older readers
    read; sets: the ids of all sets of compiler flags and of files, by their key; next_run_seq: that
    of the next new run.
    """

    run: Mapping[str, Any] | None
    hosts: frozenset[str | None]
    labels: Mapping[str, str]
    dumps: Mapping[int, Mapping[str, Any]]
    files: Mapping[int, Sequence[StoredFile]]
    modules: frozenset[int]
    complete: frozenset[int]
    outdated: frozenset[int]
    sets: Mapping[str, frozenset[int]]
    next_run_seq: int


@dataclass(frozen=True)
class Batch:
    """Rows to add, by table, and the rows that they replace.

    The store first deletes the rows that `modules`, `dumps` and `runs` name: every row of
    these modules, these dumps, these runs with their labels, and the
    out-of-memory reports of the runs in `oom_runs`. What users said of a dump, that they accept
    its growth, stays. So do out-of-memory reports; a dump that has one gets `oom`. Entries of
    `journal` are numbered by the store.
    """

    tables: Mapping[str, pa.Table]
    modules: Sequence[int] = ()
    dumps: Sequence[int] = ()
    runs: Sequence[str] = ()
    oom_runs: Sequence[str] = ()


@dataclass
class Deleted:
    """How many runs, dumps and modules were deleted."""

    runs: int = 0
    dumps: int = 0
    modules: int = 0
    run_ids: Sequence[str] = field(default=())

    def _repr_html_(self) -> str:
        figures = [("runs", self.runs), ("dumps", self.dumps), ("modules", self.modules)]
        return figures_table(f"deleted: {', '.join(self.run_ids) or 'nothing'}", figures)


@dataclass(frozen=True)
class Compacted:
    """How many bytes a warehouse took before it was compacted, and how many it takes since."""

    before_bytes: int
    after_bytes: int

    def _repr_html_(self) -> str:
        figures = [("before_bytes", self.before_bytes), ("after_bytes", self.after_bytes)]
        return figures_table("compacted", figures)


class Store(Protocol):
    """The tables of a warehouse, wherever they are.

    Every method that changes rows is atomic and keeps `history` correct. All methods raise
    memhouse.schema.errors.WarehouseError if the store cannot be read or written.
    """

    @property
    def name(self) -> str:
        """The store's name in messages."""

    how_sql_changes: str
    """What lets a user's SQL change the store, or what does instead."""

    @property
    def is_new(self) -> bool:
        """Whether the store is yet to be made: reading dumps need not wait for it."""

    @property
    def keeps_views(self) -> bool:
        """Whether views that are made in it are there when it is opened again."""

    def known(self, run_id: str, *hosts: str | None) -> Known:
        """What the store holds of this run, and the ids of all modules and sets.

        With hosts only the dumps of their parts of the run; None is the part without a host.
        """

    def write(self, batch: Batch) -> None:
        """Delete what the batch replaces and add its rows, all or nothing."""

    def delete_runs(self, run_ids: Sequence[str]) -> Deleted:
        """Delete these runs, and the modules and sets that no other run refers to."""

    def replacing(self, run_id: str, host: str | None) -> AbstractContextManager[Deleted]:
        """Delete the run's dumps, and at the end of the block what no dump refers to then.

        With a host only those of its part. All that is written in the block is part of it: all or
        nothing. The run and its labels stay. At the end the yielded value says what was deleted.
        """

    def label(self, run_ids: Sequence[str], labels: Mapping[str, str | None]) -> None:
        """Set these labels of each of these runs; a label that is None is removed."""

    def nights(self, name: str) -> list[Mapping[str, Any]]:
        """The rows of the run `name` and of runs named NAME@…, the last to enter first."""

    def runs_before(self, time: datetime) -> list[str]:
        """The runs that claim a time before this one, and of which all parts entered before it."""

    def rows(self, query: str, parameters: Sequence[object] = ()) -> pa.Table:
        """The rows of a query; `$1`, `$2` and so on stand for the parameters.

        Raises memhouse.schema.errors.QueryError if the query is wrong.
        """

    def ask(self, query: str, parameters: Sequence[object] = ()) -> pa.Table:
        """The rows of a user's query, as `rows`, in a transaction that only reads."""

    def opened_to_files(self, *, writes: bool) -> AbstractContextManager["Store"]:
        """The same store, whose SQL may open other files; it is this store's for the block.

        It is open for reading, unless `writes`. Raises QueryError where that cannot be.
        """

    def listed_tables(self) -> pa.Table:
        """The tables. Columns: table, rows (in a file an estimate), holds."""

    def listed_columns(self, table: str) -> pa.Table:
        """The columns of a table: column, type, meaning; no rows if there is no such table."""

    def execute(self, script: str) -> None:
        """Run SQL statements that have no rows, all or nothing: they define the views."""

    def equip(self, script: str) -> None:
        """Run SQL statements that make temporary views and macros, for as long as it is open."""

    def change(self, query: str, parameters: Sequence[object] = ()) -> pa.Table:
        """Run a user's statements, all or nothing; the rows of the last one.

        Raises memhouse.schema.errors.QueryError.
        """

    def worked_out_history(self) -> Mapping[str, pa.Table]:
        """What the rows of `lineages`, `history`, `causes` and `gone` must be, by table."""

    def pairs(self, a_run_id: str, b_run_id: str) -> pa.Table:
        """Which dump of run B follows which of run A, by the rule of the chains.

        Columns: a_dump_id and b_dump_id, null where a dump has no partner, and matched_by.
        """

    def causes(self, pairs: Sequence[tuple[int, int]]) -> pa.Table:
        """Why the second dump of each pair differs from the first, in the order of the pairs.

        Columns: a_dump_id, b_dump_id; cause, one line of fewer than 100 characters, null if
        only names, lines and constants differ; terms, the rows of `causes`: kind, term,
        change_bytes, source and role. The change_bytes add up to the change of the peak.
        """

    def compact(self) -> Compacted:
        """Make the store as small as it can be; every row stays."""

    def tidy(self, most_bytes: int = QUICK_BYTES) -> Compacted | None:
        """Compact if much of the store is free room and at most `most_bytes` are used.

        None if the store stays as it is, also because it cannot be compacted now. A call ends the
        use of a store: between it and the next call other processes may use the store.
        """

    def owns(self, file_status: os.stat_result) -> bool:
        """Whether the file with this status is part of the store, not a dump to ingest."""

    def holds(self, path: Path) -> bool:
        """Whether a file that is written at this path would be one of the store's own."""

    def close(self) -> None:
        """Close the store."""
