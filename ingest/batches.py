"""Writes what was read of a run's dumps, some at a time."""

from functools import cached_property

import sqlalchemy as sa

from ..schema.delete import delete_modules
from ..schema.stores.duckdb import forget_blocks
from ..schema.tables import compiler_flags, dumps, modules
from .read_dump import OK, DumpOutcome, hash64
from .write import write_dumps

# Rows wait in memory until so many bytes or dumps have come together: a transaction for each
# small module would cost more than reading it. A tiny one's tables take ten times their rows.
_BATCH_BYTES = 32 << 20
_BATCH_DUMPS = 500


class Batches:
    """A run's dumps on their way into the warehouse, each batch in one transaction.

    `complete` are the modules that are stored and read as far as can be; `new_modules` counts
    those that came to the stored ones.
    """

    def __init__(self, engine: sa.Engine, run_id: str) -> None:
        self._engine, self._run_id = engine, run_id
        is_complete = dumps.c.status == OK
        with engine.connect() as connection:
            self.complete = frozenset(
                connection.scalars(sa.select(dumps.c.module_id).distinct().where(is_complete))
            )
            self._there = {
                row.dump_id: row._asdict()
                for row in connection.execute(sa.select(dumps).where(dumps.c.run_id == run_id))
            }
        self.new_modules = 0
        self._rows: list[tuple[dict[str, object], DumpOutcome]] = []
        self._modules: dict[int, DumpOutcome] = {}
        self._flags: dict[int, dict[str, str]] = {}
        self._waiting_bytes = 0

    @cached_property
    def _stored(self) -> set[int]:
        """The modules that are there; most nights have nothing that makes us ask."""
        with self._engine.connect() as connection:
            return set(connection.scalars(sa.select(modules.c.module_id)))

    def add(self, outcome: DumpOutcome) -> bool:
        """Take a dump; False if it is there unchanged."""
        row = _dump_row(self._run_id, outcome)
        if self._there.get(row["dump_id"]) == row and outcome.status == OK:
            return False
        self._rows.append((row, outcome))
        flags_id = outcome.settings.flags_id
        if flags_id is not None:
            self._flags[flags_id] = outcome.settings.flags or {}
        if outcome.module is not None and (
            outcome.module_id not in self._stored
            # This version reads what the one that stored it could not.
            or (outcome.status == OK and outcome.module_id not in self.complete)
        ):
            assert outcome.module_id is not None
            self._modules[outcome.module_id] = outcome
            self._waiting_bytes += outcome.module.nbytes
        if self._waiting_bytes > _BATCH_BYTES or len(self._rows) >= _BATCH_DUMPS:
            self.write()
        return True

    def write(self) -> None:
        """Write what waits."""
        if not self._rows:
            return
        # Asked before the transaction: a warehouse in memory has but one connection.
        replaced_modules = sorted(self._stored.intersection(self._modules))
        with self._engine.begin() as connection:
            delete_modules(connection, replaced_modules)
            flags_id = compiler_flags.c.flags_id
            known_flags = set(
                connection.scalars(sa.select(flags_id).distinct().where(flags_id.in_(self._flags)))
            )
            new_flags = {key: flags for key, flags in self._flags.items() if key not in known_flags}
            replaced = sorted(self._there.keys() & {row["dump_id"] for row, _ in self._rows})
            write_dumps(connection, self._rows, self._modules.values(), new_flags, replaced)
        self.new_modules += len(self._modules.keys() - self._stored)
        self._stored.update(self._modules)
        for written in (self._rows, self._modules, self._flags):
            written.clear()
        self._waiting_bytes = 0
        forget_blocks(self._engine)


def _dump_row(run_id: str, outcome: DumpOutcome) -> dict[str, object]:
    dump, name = outcome.dump, outcome.dump.name
    device = outcome.settings.device
    return {
        "dump_id": hash64(run_id, dump.workload, dump.stem, dump.target or ""),
        "run_id": run_id,
        "workload": dump.workload,
        "module_name": outcome.module_name,
        "module_number": name.module_number,
        "occurrence": dump.occurrence,
        "platform": name.platform,
        "target": dump.target,
        "compiler": name.compiler,
        "module_id": outcome.module_id,
        "flags_id": outcome.settings.flags_id,
        "device_kind": device.get("device_kind"),
        "device_memory_bytes": device.get("device_memory_bytes"),
        "topology": device.get("topology"),
        "status": outcome.status,
        "oom": dump.oom,
    }
