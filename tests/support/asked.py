"""What commands ask of a warehouse: the statements with the parameters that they really have."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import duckdb
import pyarrow as pa

from memhouse.queries import catalogue
from memhouse.schema.stores.duckdb import Store

_ROOT = Path(__file__).parents[2]
FOLDERS = ("schema", "schema/causes", "schema/history")


@dataclass(frozen=True)
class Asked:
    """A query with its parameters, and the tables of the connection that it reads, by name."""

    query: str
    parameters: tuple[Any, ...] = ()
    tables: Mapping[str, pa.Table] = field(default_factory=dict, compare=False)


class _Listener:
    """A connection of DuckDB that notes what it is asked."""

    def __init__(self, connection: Any, heard: list[Asked]) -> None:
        self._connection = connection
        self._heard = heard
        self._tables: dict[str, pa.Table] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)

    def sql(self, query: str, params: Sequence[object] = ()) -> Any:
        self._note(query, params)
        return self._connection.sql(query, params=params)

    def execute(self, query: str, parameters: Sequence[object] = ()) -> Any:
        self._note(query, parameters)
        return self._connection.execute(query, parameters)

    def register(self, name: str, table: pa.Table) -> Any:
        self._tables[name] = table
        return self._connection.register(name, table)

    def unregister(self, name: str) -> Any:
        del self._tables[name]
        return self._connection.unregister(name)

    def _note(self, query: str, parameters: Sequence[object]) -> None:
        self._heard.append(Asked(query, tuple(parameters), dict(self._tables)))


@contextmanager
def listening(store: Store) -> Iterator[list[Asked]]:
    """All that the store's connection is asked in the block."""
    heard: list[Asked] = []
    connection = store.connection
    store.connection = cast(duckdb.DuckDBPyConnection, _Listener(connection, heard))
    try:
        yield heard
    finally:
        store.connection = connection


def statements() -> dict[str, str]:
    """The text of every statement by FOLDER/NAME; of a check as `verify` asks it."""
    found = {
        f"{folder}/{file.stem}": file.read_text()
        for folder in FOLDERS
        for file in sorted((_ROOT / folder).glob("*.sql"))
    }
    for file in sorted((_ROOT / "queries/statements").glob("*.sql")):
        named = catalogue.statements(file.stem)
        found |= {f"queries/statements/{name}": text for name, text in named.items()}
    named = found.pop("queries/statements/named_breaches")
    return found | {
        f"queries/checks/{check.name}": named.replace("{check}", check.sql)
        for check in catalogue.checks()
    }
