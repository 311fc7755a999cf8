"""The rows of modules as lists, and as one Arrow table a relation for the store."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from ..schema.arrow import schema
from ..xla.agreement import Contradiction

# By column, an entry a row, None for null; and by relation, without module_id.
Columns = dict[str, list[Any]]
Rows = dict[str, Columns]


@dataclass
class Module:
    """A module's rows.

    Attributes:
        header: the columns of the module's row in `modules`.
        rows: those of the other relations.
        contradictions: where the parts of the dump contradict each other.
        disagreements: where they are at odds with the HLO text.
        n_pass_texts: the number of texts between passes.
        unread_passes: those that cannot be read, each with its step and pass.
    """

    header: dict[str, object]
    rows: Rows
    contradictions: list[Contradiction] = field(default_factory=list)
    disagreements: list[str] = field(default_factory=list)
    n_pass_texts: int = 0
    unread_passes: list[str] = field(default_factory=list)

    @property
    def cells(self) -> int:
        """The number of cells of all rows: a measure of their memory."""
        return sum(len(column) for columns in self.rows.values() for column in columns.values())

    @property
    def tables(self) -> dict[str, pa.Table]:
        """The rows as an Arrow table by relation."""
        return {name: _table(name, [columns]) for name, columns in self.rows.items()}


def module_tables(modules: Mapping[int, Module]) -> dict[str, pa.Table]:
    """The rows of modules, by module_id, as one Arrow table a relation.

    The rows are taken out of the modules, so that a relation is in memory once. A corrupt dump's
    rows lack columns: these are null.
    """
    tables = {}
    for name in dict.fromkeys(name for module in modules.values() for name in module.rows):
        parts = {
            module_id: module.rows.pop(name)
            for module_id, module in modules.items()
            if name in module.rows
        }
        module_ids: list[int] = []
        for module_id, columns in parts.items():
            module_ids += [module_id] * _length(columns)
        table = _table(name, list(parts.values()))
        tables[name] = table.add_column(0, "module_id", pa.array(module_ids, pa.int64()))
    return tables


def columns_of(names: Sequence[str], rows: Sequence[tuple[Any, ...]]) -> Columns:
    """Rows as columns."""
    columns = map(list, zip(*rows, strict=True)) if rows else ([] for _ in names)
    return dict(zip(names, columns, strict=True))


def _table(name: str, parts: Sequence[Columns]) -> pa.Table:
    """The rows of several modules, one after the other."""
    types = {column.name: column.type for column in schema(name)}
    present = dict.fromkeys(column for columns in parts for column in columns)
    arrays = {}
    for column in present:
        values: list[Any] = []
        for columns in parts:
            values += columns.get(column) or [None] * _length(columns)
        arrays[column] = pa.array(values, types[column])
    return pa.table(arrays)


def _length(columns: Columns) -> int:
    """The number of rows."""
    return len(next(iter(columns.values()), ()))
