"""Collects the outcomes of a run's programs and writes their rows."""

from collections.abc import Set
from typing import Any

import pyarrow as pa

from ..schema import arrow, ids
from ..schema.journal import entries
from ..schema.store import Batch, Known, Store
from ..schema.versions import READER_VERSION
from .choose_run import Occurrences
from .outcomes import OK
from .read_program import ProgramOutcome
from .rows import module_tables

# Rows wait in memory until there are this many cells (about 64 MB), because a transaction for each
# small module costs more than reading it. Dumps of known modules take little, and each transaction
# computes the history of the whole run again.
_MAX_CELLS = 4_000_000
_MAX_DUMPS = 8_000

_Row = dict[str, Any]


class Writer:
    """A run's dumps that wait for the store; `new_modules` counts the modules written.

    `run` is the run's own row and labels, if they change: they are part of the first batch, so
    that a stored run has dumps. The dumps in `kept` stay as they are stored.
    `device_memory_bytes` is each dump's device's memory, if the user says so.
    `entry` is what the journal says of the ingest, with the first batch that changes anything.
    `read_again` counts the modules whose rows an older reader had stored.
    """

    def __init__(
        self,
        store: Store,
        run_id: str,
        known: Known,
        occurrences: Occurrences,
        run: Batch | None = None,
        kept: Set[int] = frozenset(),
        device_memory_bytes: int | None = None,
        *,
        host: str | None = None,
        entry: _Row | None = None,
    ) -> None:
        self._host, self._entry = host, entry
        self._store, self._run_id, self._known = store, run_id, known
        self._occurrences = occurrences
        self._run, self._kept = run, kept
        self._device_memory_bytes = device_memory_bytes
        self._stored, self._complete = set(known.modules), set(known.complete)
        self._outdated = set(known.outdated)
        self._flag_sets, self._file_sets = map(
            set, (known.sets["flags_id"], known.sets["files_id"])
        )
        self.new_modules = self.read_again = 0
        self._dumps: list[tuple[_Row, ProgramOutcome]] = []
        self._modules: dict[int, ProgramOutcome] = {}
        # Those of kept dumps, whose rows a repeated program may need.
        self._spare: dict[int, ProgramOutcome] = {}
        self._flags: dict[int, dict[str, str]] = {}
        self._files: dict[int, list[_Row]] = {}
        self._waiting_cells = 0

    def add(self, outcome: ProgramOutcome) -> bool:
        """Add a program's outcome; False if the dump stays as it is stored."""
        key = outcome.key
        if ids.dump_id(self._run_id, *key.in_run) in self._kept:
            if outcome.module is not None and outcome.status == OK:
                assert outcome.module_id is not None
                self._spare[outcome.module_id] = outcome
            return False
        occurrence = self._occurrences.number(key.workload, outcome.module_name, key.platform)
        files = [file.row(key.workload) for file in outcome.files]
        row = {
            **_dump_row(self._run_id, outcome, occurrence),
            "host": self._host,
            "files_id": ids.files_id(files),
        }
        self._set_device_memory(row)
        stored = self._known.dumps.get(row["dump_id"], row)
        # The folder of a whole night holds the parts that hosts ingested.
        row["host"] = stored["host"]
        # A message in a log may have said so.
        row["oom"] |= stored["oom"]
        if self._is_stored(row, outcome):
            return False
        self._dumps.append((row, outcome))
        flags_id = row["flags_id"]
        if flags_id is not None and flags_id not in self._flag_sets:
            self._flags[flags_id] = outcome.settings.flags or {}
        if row["files_id"] not in self._file_sets:
            self._files[row["files_id"]] = files
        if outcome.is_repeated and outcome.module_id in self._spare:
            outcome.module = self._spare[outcome.module_id].module
        if outcome.module is not None and self._is_wanted(outcome):
            assert outcome.module_id is not None
            self._modules[outcome.module_id] = outcome
            self._waiting_cells += outcome.module.cells
        else:
            # Its rows would wait in memory for nothing.
            outcome.module = None
        if self._waiting_cells > _MAX_CELLS or len(self._dumps) >= _MAX_DUMPS:
            self.write()
        return True

    def _is_stored(self, row: _Row, outcome: ProgramOutcome) -> bool:
        """Whether the dump, its files and its module are stored as they were read now."""
        stored = self._known.dumps.get(row["dump_id"])
        if outcome.status != OK:
            is_wanted = outcome.module is not None and self._is_wanted(outcome)
            return stored == row and not is_wanted
        # Only who reads a file notes what it does not say.
        if stored is None or {**stored, "files_id": row["files_id"]} != row:
            return False
        was_read = outcome.module is not None or outcome.is_repeated
        return not was_read or outcome.module_id not in self._outdated

    def _set_device_memory(self, row: _Row) -> None:
        """Set the memory that the user says; what was said of a stored dump stays."""
        said = self._device_memory_bytes
        stored = self._known.dumps.get(row["dump_id"])
        if said is None and stored is not None and stored["device_kind"] == row["device_kind"]:
            said = stored["device_memory_bytes"]
        if said is not None:
            row["device_memory_bytes"] = said

    def _is_wanted(self, outcome: ProgramOutcome) -> bool:
        """Whether the module is not stored, or by an older reader, or is complete only now."""
        return (
            outcome.module_id not in self._stored
            or outcome.module_id in self._outdated
            or (outcome.status == OK and outcome.module_id not in self._complete)
        )

    def _action(self) -> _Row:
        """What becomes of the entry if no night enters: its dumps are stored, and read again."""
        is_again = (
            self._run is None
            and self._modules.keys() <= self._stored & self._outdated
            and all(row["dump_id"] in self._known.dumps for row, _ in self._dumps)
        )
        return {"action": "read again"} if is_again and self._modules else {}

    def write(self) -> None:
        """Write all waiting rows in one transaction."""
        if not self._dumps and self._run is None:
            return
        rows = [row for row, _ in self._dumps]
        run = self._run or Batch({})
        told = {} if self._entry is None else entries(self._entry | self._action())
        tables = {
            **run.tables,
            **told,
            "dumps": arrow.rows("dumps", rows),
        }
        if self._files:
            of_sets = [{"files_id": id_, **row} for id_, of in self._files.items() for row in of]
            tables["file_sets"] = arrow.rows("file_sets", of_sets)
        if self._flags:
            flags = [
                {"flags_id": flags_id, "flag": flag, "value": value}
                for flags_id, flag_set in self._flags.items()
                for flag, value in sorted(flag_set.items())
            ]
            tables["compiler_flags"] = arrow.rows("compiler_flags", flags)
        self._store.write(
            Batch(
                tables | _module_tables(self._modules),
                modules=sorted(self._stored & self._modules.keys()),
                dumps=sorted(self._known.dumps.keys() & {row["dump_id"] for row in rows}),
                runs=run.runs,
            )
        )
        self._run = self._entry = None
        self.read_again += len(self._outdated & self._modules.keys())
        self._outdated -= self._modules.keys()
        self.new_modules += len(self._modules.keys() - self._stored)
        self._stored.update(self._modules)
        self._complete.update(id_ for id_, of in self._modules.items() if of.status == OK)
        self._flag_sets.update(self._flags)
        self._file_sets.update(self._files)
        for written in (self._dumps, self._modules, self._flags, self._files):
            written.clear()
        self._waiting_cells = 0


def _dump_row(run_id: str, outcome: ProgramOutcome, occurrence: int) -> _Row:
    key, settings = outcome.key, outcome.settings
    return {
        "dump_id": ids.dump_id(run_id, *key.in_run),
        "run_id": run_id,
        "workload": key.workload,
        "module_name": outcome.module_name,
        "module_number": key.number,
        "occurrence": occurrence,
        "platform": key.platform,
        "target": key.target,
        "compiler": key.compiler,
        "module_id": outcome.module_id,
        "flags_id": None if settings.flags is None else ids.flags_id(settings.flags),
        "device_kind": settings.device.get("device_kind"),
        "device_memory_bytes": settings.device.get("device_memory_bytes"),
        "topology": settings.device.get("topology"),
        "status": outcome.status,
        "oom": outcome.oom,
    }


def _module_tables(outcomes: dict[int, ProgramOutcome]) -> dict[str, pa.Table]:
    """The rows of these modules, by table, with module_id."""
    modules = {id_: of.module for id_, of in outcomes.items() if of.module is not None}
    if not modules:
        return {}
    headers = [
        {"module_id": module_id, "module_name": outcomes[module_id].module_name}
        | module.header
        | {"reader_version": READER_VERSION}
        for module_id, module in modules.items()
    ]
    return {"modules": arrow.rows("modules", headers), **module_tables(modules)}
