"""Lakes: made in a folder, compared row by row, and written to by two at once."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import memhouse.lake
from memhouse.queries.catalogue import public_views, use_views
from memhouse.schema import arrow
from memhouse.schema.lake.data_files import HISTORY, relations
from memhouse.schema.stores import delta
from memhouse.schema.stores.base import Store
from memhouse.schema.stores.delta import DeltaStore

_OF_THE_INGEST = ("ingested_at", "entered_at", "source", "tool_version")


@contextmanager
def lake_in(place: Path | str, *, create: bool = True, files: bool = False) -> Iterator[DeltaStore]:
    """A lake to write to, made if it is not there; with `files` it can import one."""
    store = DeltaStore(str(place), create=create, files=files)
    try:
        use_views(store, read_only=False)
        yield store
    finally:
        store.close()


def lake_of(db: Path, folder: Path) -> Path:
    """A new lake with the rows of the file, and the same times."""
    memhouse.lake.init(folder)
    memhouse.lake.import_file(folder, db)
    return folder


def table_rows(store: Store) -> dict[str, list[tuple[Any, ...]]]:
    """Every row of every table that a lake has but the journal, sorted; not who ingested when."""
    names = [name for name in relations() if name != "journal"]
    return {name: _rows(store, name, arrow.schema(name).names) for name in names}


def journal_rows(store: Store) -> list[dict[str, Any]]:
    """What the journal tells, in order; not of compactions, which a file and a lake need apart."""
    query = "SELECT action, run_id, host, detail FROM journal WHERE action <> 'compact'"
    return list(store.rows(f"{query} ORDER BY entry").to_pylist())


def view_rows(store: Store) -> dict[str, list[tuple[Any, ...]]]:
    """Every row of every view, as `table_rows` tells it; doubles without their last digits."""
    return {
        name: [tuple(map(_shortened, row)) for row in _rows(store, name, view.columns)]
        for name, view in public_views().items()
    }


def _shortened(cell: Any) -> Any:
    """Doubles are added up in any order, so the last digits differ."""
    return float(f"{cell:.12g}") if isinstance(cell, float) else cell


def _rows(store: Store, name: str, columns: Iterable[str]) -> list[tuple[Any, ...]]:
    listed = ", ".join(f'"{column}"' for column in columns if column not in _OF_THE_INGEST)
    rows = store.rows(f'SELECT {listed} FROM "{name}" ORDER BY ALL').to_pylist()
    return [tuple(row.values()) for row in rows]


def history_rows(store: Store) -> dict[str, list[tuple[Any, ...]]]:
    """What the history must be, worked out anew, as `table_rows` tells it."""
    worked_out = store.worked_out_history()
    found = {}
    for name in HISTORY:
        columns = [c for c in arrow.schema(name).names if c not in _OF_THE_INGEST]
        rows = worked_out[name].select(columns).to_pylist()
        found[name] = sorted((tuple(row.values()) for row in rows), key=_nulls_last)
    return found


def _nulls_last(row: tuple[Any, ...]) -> list[tuple[bool, Any]]:
    return [(value is None, value) for value in row]


@contextmanager
def between_plan_and_commit(
    monkeypatch: pytest.MonkeyPatch, do: Callable[[], object]
) -> Iterator[None]:
    """Another writer is faster: it does something after the next change was planned."""
    planned, has_come = delta.plan, False

    def interrupted(*arguments: Any) -> Any:
        nonlocal has_come
        found = planned(*arguments)
        if not has_come:
            has_come = True
            do()
        return found

    with monkeypatch.context() as patched:
        patched.setattr(delta, "plan", interrupted)
        yield
