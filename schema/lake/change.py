"""A change of a lake as it was asked for, before it is held against what the lake holds."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

import pyarrow as pa

from .. import arrow
from ..stores.base import Batch, Known
from .data_files import DataFile, read_files, write_file
from .layout import SMALL
from .removals import without_modules


@dataclass
class Begun:
    """A run as it was when this process began to ingest it, and what it has added since.

    ingested_at: None if the run was not there. A run that is deleted or replaced and stored
    again has another one.
    """

    ingested_at: datetime | None
    labels: Mapping[str, str]
    dumps: set[int]
    flag_sets: set[int]

    @classmethod
    def of(cls, known: Known) -> "Begun":
        """What a store knows of the run."""
        at = None if known.run is None else known.run["ingested_at"]
        return cls(at, dict(known.labels), set(known.dumps), set(known.flag_sets))

    def add(self, dump_id: int, flags_id: int | None) -> None:
        """This process stored a dump."""
        self.dumps.add(dump_id)
        if flags_id is not None:
            self.flag_sets.add(flags_id)


@dataclass
class Change:
    """Rows to add and ids whose rows go.

    rows: of the small relations, written at each attempt; files: of modules, written once. modules,
    dumps, runs, oom_runs, joins: as in `Batch`; emptied_runs: their dumps go with all that belongs
    to them; emptied_parts: the same of a run's part of a host; deleted_runs: they go altogether;
    without_labels: of these runs these labels go. drops_orphans: modules and flag sets that no dump
    refers to then go. changed_runs: the runs whose history changes, where the rest does not tell.
    begun: the runs as they were when the change was begun, where this is known. seen_reports: the
    out-of-memory reports of `oom_runs` that the rows were made from.
    """

    rows: dict[str, pa.Table] = field(default_factory=dict)
    files: list[DataFile] = field(default_factory=list)
    modules: set[int] = field(default_factory=set)
    dumps: set[int] = field(default_factory=set)
    runs: set[str] = field(default_factory=set)
    oom_runs: set[str] = field(default_factory=set)
    joins: bool = False
    emptied_runs: Sequence[str] = ()
    emptied_parts: Sequence[tuple[str, str]] = ()
    deleted_runs: Sequence[str] = ()
    without_labels: tuple[Sequence[str], Sequence[str]] = ((), ())
    drops_orphans: bool = False
    changed_runs: Sequence[str] = ()
    begun: Mapping[str, Begun] = field(default_factory=dict)
    seen_reports: pa.Table | None = None

    def add(self, place: str, batch: Batch) -> None:
        """Add what a batch says; the rows of its modules are written to files."""
        if again := self.own_modules(place) & {*batch.modules}:
            # An earlier batch of the same change has them, not whole.
            self.files = [without_modules(place, file, again) for file in self.files]
        self.modules.update(batch.modules)
        self.dumps.update(batch.dumps)
        self.runs.update(batch.runs)
        self.oom_runs.update(batch.oom_runs)
        self.joins |= batch.joins
        self.files += batch.files
        self.add_rows({name: rows for name, rows in batch.tables.items() if name in SMALL})
        self.files += [
            write_file(place, name, rows)
            for name, rows in batch.tables.items()
            if name not in SMALL and len(rows)
        ]

    def own_modules(self, place: str) -> set[int]:
        """The modules whose rows are in the files."""
        files = [file for file in self.files if file.relation == "modules"]
        return set(read_files(place, files, "modules")["module_id"].to_pylist())

    def add_rows(self, tables: Mapping[str, pa.Table]) -> None:
        """Add rows of small relations."""
        for name, rows in tables.items():
            self.rows[name] = pa.concat_tables(
                [self.rows_of(name), rows], promote_options="default"
            )

    def rows_of(self, name: str) -> pa.Table:
        """The rows to add to a small relation."""
        return self.rows.get(name, arrow.schema(name).empty_table())
