"""Writes what was read into the warehouse, as Arrow, in one transaction a batch."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime

import pyarrow as pa
import sqlalchemy as sa

from ..schema.stores.duckdb import driver
from ..schema.tables import (
    SHORT_TEXT_BYTES,
    compiler_flags,
    dump_files,
    dumps,
    metadata,
    modules,
    run_labels,
    runs,
)
from .read_dump import DumpOutcome


def write_run(
    connection: sa.Connection,
    run_id: str,
    *,
    run_at: datetime | None,
    fallback_at: datetime,
    source: str,
    tool_version: str,
    labels: dict[str, str],
) -> None:
    """Add the run, or, if it is there, set the `run_at` and labels that were given."""
    there = connection.execute(sa.select(runs.c.run_id).where(runs.c.run_id == run_id)).first()
    if there is None:
        row = {
            "run_id": run_id,
            "run_at": run_at or fallback_at,
            "ingested_at": datetime.now(UTC),
            "source": source,
            "tool_version": tool_version,
        }
        connection.execute(runs.insert(), row)
    elif run_at is not None:
        connection.execute(runs.update().where(runs.c.run_id == run_id).values(run_at=run_at))
    for key, value in labels.items():
        label = (run_labels.c.run_id == run_id) & (run_labels.c.key == key)
        connection.execute(run_labels.delete().where(label))
        connection.execute(run_labels.insert(), {"run_id": run_id, "key": key, "value": value})


def write_dumps(
    connection: sa.Connection,
    rows: list[tuple[dict[str, object], DumpOutcome]],
    new_modules: Iterable[DumpOutcome],
    new_flags: Mapping[int, dict[str, str]],
    replaced: Sequence[int],
) -> None:
    """Write dumps (each as its row and its outcome), their files, new modules and flag sets.

    The dumps whose ids are `replaced` are there already, with other content.
    """
    if replaced:
        for table in (dump_files, dumps):
            connection.execute(table.delete().where(table.c.dump_id.in_(replaced)))
    files = [
        {"dump_id": row["dump_id"], **vars(file)} for row, outcome in rows for file in outcome.files
    ]
    _insert(connection, "dumps", _table(dumps, [row for row, _ in rows]))
    _insert(connection, "dump_files", _table(dump_files, files))
    if new_flags:
        flags: list[dict[str, object]] = [
            {"flags_id": flags_id, "flag": flag, "value": value}
            for flags_id, flag_set in new_flags.items()
            for flag, value in sorted(flag_set.items())
        ]
        _insert(connection, "compiler_flags", _table(compiler_flags, flags))
    by_table: dict[str, list[pa.Table]] = {}
    for outcome in new_modules:
        assert outcome.module is not None
        assert outcome.module_id is not None
        module_row = {"module_id": outcome.module_id, "module_name": outcome.module_name}
        by_table.setdefault("modules", []).append(
            _table(modules, [{**module_row, **outcome.module.header}])
        )
        for name, table in outcome.module.tables.items():
            owner = pa.repeat(pa.scalar(outcome.module_id, pa.int64()), len(table))
            by_table.setdefault(name, []).append(table.add_column(0, "module_id", owner))
    for name in metadata.tables:
        if name in by_table:
            _insert(connection, name, pa.concat_tables(by_table[name], promote_options="default"))


_ARROW_TYPES = {
    sa.Text: pa.string(),
    sa.BigInteger: pa.int64(),
    sa.Integer: pa.int32(),
    sa.Boolean: pa.bool_(),
}


def _table(table: sa.Table, rows: list[dict[str, object]]) -> pa.Table:
    """A few rows, typed as the table is."""
    schema = pa.schema([(column.name, _ARROW_TYPES[type(column.type)]) for column in table.c])
    return pa.Table.from_pylist(rows, schema=schema)


def _insert(connection: sa.Connection, name: str, rows: pa.Table) -> None:
    columns = "*"
    if "shape" in rows.column_names and "_long_shape" in metadata.tables[name].c:
        columns = f"""* EXCLUDE shape,
            CASE WHEN strlen(shape) <= {SHORT_TEXT_BYTES} THEN shape END AS _short_shape,
            CASE WHEN strlen(shape) > {SHORT_TEXT_BYTES} THEN [shape] END AS _long_shape"""
    duck = driver(connection)
    duck.register("incoming", rows)
    connection.exec_driver_sql(f'INSERT INTO "{name}" BY NAME SELECT {columns} FROM incoming')
    duck.unregister("incoming")
