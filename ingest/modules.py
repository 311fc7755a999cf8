"""The rows of modules: those that were read together have one set of tables, until they are stored.

To cut each table by module, and to put the pieces together again, takes as long as making them.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pyarrow as pa

from ..xla.agreement import Contradiction
from ..xla.shifts import Divided


@dataclass
class Rows:
    """The rows of one or several modules by table, without module_id."""

    tables: dict[str, Divided]

    @staticmethod
    def alone(tables: Mapping[str, pa.Table]) -> "Rows":
        """Those of one module."""
        return Rows({name: Divided.of([table]) for name, table in tables.items()})

    def of(self, place: int) -> dict[str, pa.Table]:
        """The tables in which the module at this place has rows, with these."""
        parts = {name: table.part(place) for name, table in self.tables.items()}
        return {name: table for name, table in parts.items() if len(table)}

    @cached_property
    def nbytes(self) -> int:
        """The memory of all rows."""
        return sum(table.nbytes for table, _ in self.tables.values())


@dataclass
class Module:
    """A module's rows, which are those at its place, and the contradictions of its parts.

    `header` has the columns of the module's row in `modules`; `unread_passes` are the texts between
    passes that cannot be read, each with its step and pass; `disagreements` are messages about
    rows that are at odds with the HLO text.
    """

    header: dict[str, object]
    rows: Rows
    place: int = 0
    contradictions: list[Contradiction] = field(default_factory=list)
    unread_passes: list[str] = field(default_factory=list)
    disagreements: list[str] = field(default_factory=list)

    @property
    def tables(self) -> dict[str, pa.Table]:
        """The rows by table."""
        return self.rows.of(self.place)

    @property
    def nbytes(self) -> int:
        """The module's share of the memory of the rows, about."""
        every = (len(starts) - 1 for _, starts in self.rows.tables.values())
        return self.rows.nbytes // max(every, default=1)


def rows_of(modules: Iterable[Module | None]) -> list[Rows]:
    """The rows of all of these modules, each once."""
    return list({id(module.rows): module.rows for module in modules if module}.values())


def with_ids(modules: Mapping[int, Module]) -> dict[str, pa.Table]:
    """The rows of modules as one table each, with module_id; a damaged dump's rows lack columns."""
    ids_of: dict[int, dict[int, int]] = {}
    for module_id, module in modules.items():
        ids_of.setdefault(id(module.rows), {})[module.place] = module_id
    by_table: dict[str, list[pa.Table]] = {}
    for rows in rows_of(modules.values()):
        ids = ids_of[id(rows)]
        for name, (table, starts) in rows.tables.items():
            counts = np.diff(starts)
            wanted = np.array([place in ids for place in range(len(counts))])
            if not wanted.all():
                table = table.filter(pa.array(np.repeat(wanted, counts)))
            module_ids = [ids[place] for place in np.flatnonzero(wanted).tolist()]
            owner = pa.array(np.repeat(np.array(module_ids, np.int64), counts[wanted]))
            by_table.setdefault(name, []).append(table.add_column(0, "module_id", owner))
    return {
        name: pa.concat_tables(found, promote_options="permissive")
        for name, found in by_table.items()
    }
