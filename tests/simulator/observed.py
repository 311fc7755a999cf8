"""What is in a warehouse: the rows that a `Model` says something about."""

from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from ..schema import plain_history
from .model import Name

_Row = dict[str, Any]


@dataclass
class Observed:
    """The rows of a warehouse; nothing if there is none, or an empty one.

    dumps: by (run, name) the row; plain: the dumps as the oracle of the history takes them.
    """

    runs: dict[str, _Row] = field(default_factory=dict)
    parts: list[_Row] = field(default_factory=list)
    labels: list[_Row] = field(default_factory=list)
    journal: list[_Row] = field(default_factory=list)
    dumps: dict[tuple[str, Name], _Row] = field(default_factory=dict)
    modules: set[int] = field(default_factory=set)
    accepted: list[_Row] = field(default_factory=list)
    histories: plain_history.Histories = field(
        default_factory=lambda: plain_history.Histories({}, set(), {})
    )
    is_there: bool = False

    @property
    def plain(self) -> list[plain_history.Dump]:
        return [
            plain_history.Dump(
                row["dump_id"],
                run,
                name.workload,
                name.module,
                row["platform"],
                row["occurrence"],
                row["program_id"],
                row["entry_signature"],
                row["skeleton_id"],
                row["total_bytes"],
                row["is_tiny"],
                row["origin"] if row["peak_bytes"] is not None else None,
            )
            for (run, name), row in self.dumps.items()
        ]


_DUMPS = """SELECT dumps.dump_id, dumps.run_id, workload, module_number, dumps.module_name,
    occurrence, platform, dumps.module_id, host, status, program_id, skeleton_id, entry_signature,
    origin, total_bytes, peak_bytes,
    COALESCE(total_bytes, 0) < 1048576 AND COALESCE(schedule_length, 0) < 50 AS is_tiny
    FROM dumps LEFT JOIN modules USING (module_id)
    LEFT JOIN module_memory ON module_memory.module_id = dumps.module_id AND memory_space = 0"""


def observe(db: Path) -> Observed:
    """The rows of the warehouse, opened as readers open it."""
    from memhouse.schema.errors import WarehouseError
    from memhouse.schema.store import open_store

    from ..support.plain_rows import stored_histories

    try:
        store: Any = open_store(str(db), read_only=True)
        store.rows("SELECT 1")
    except WarehouseError as error:
        if any(text in str(error) for text in ("there is no warehouse at", "is empty: fill it")):
            return Observed()
        raise
    try:

        def rows(query: str) -> list[_Row]:
            return store.rows(query).to_pylist()

        dumps = rows(_DUMPS)
        named = {
            (row["run_id"], Name(row["workload"], row["module_number"], row["module_name"])): row
            for row in dumps
        }
        assert len(named) == len(dumps), "two dumps of one name"
        assert len({row["dump_id"] for row in dumps}) == len(dumps), "two dumps of one id"
        modules = [row["module_id"] for row in rows("SELECT module_id FROM modules")]
        assert len(set(modules)) == len(modules), "two modules of one id"
        return Observed(
            {row["run_id"]: row for row in rows("SELECT * FROM runs")},
            rows("SELECT * FROM run_parts"),
            rows("SELECT * FROM run_labels"),
            rows("SELECT * FROM journal ORDER BY entry"),
            named,
            set(modules),
            rows("SELECT * FROM accepted_changes"),
            stored_histories(store),
            is_there=True,
        )
    finally:
        store.close()


def when(time: datetime | None) -> str | None:
    """A time to compare, without what a file system rounds."""
    return None if time is None else f"{time.timestamp():.3f}"
