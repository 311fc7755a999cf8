"""What the store takes and returns: batches of rows, what it knows of a run, what it deleted."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

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
