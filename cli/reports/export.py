"""Writes a view or table to a file."""

import os
from contextlib import suppress
from pathlib import Path

import duckdb
import pyarrow as pa
import sqlalchemy as sa
import typer

from ...schema.errors import duckdb_says, with_remedy
from ...schema.stores.duckdb import driver, fetch
from ..options import parse_time
from ..render.output import print_error, print_note
from ..warehouse import reading

# DuckDB writes these itself; Arrow's file format is pyarrow's.
_COPY_OPTIONS = {
    ".csv": "FORMAT csv, HEADER",
    ".json": "FORMAT json, ARRAY true",
    ".parquet": "FORMAT parquet, COMPRESSION zstd",
}
_ENDINGS = (*_COPY_OPTIONS, ".arrow")


def export_view(
    db: str,
    view: str,
    file: Path,
    *,
    where: str | None,
    since: str | None,
    workload: str | None,
) -> None:
    """Write the chosen rows of a view or table to a file, whole or not at all."""
    if file.suffix not in _ENDINGS:
        raise typer.BadParameter(f"{file.name} ends in none of {', '.join(_ENDINGS)}")
    if not file.parent.is_dir():
        raise typer.BadParameter(f"there is no folder {file.parent}")
    with reading(db) as connection:
        query = _query(connection, view, where, since, workload)
        # A reader of the file never sees half of it, nor does a failure leave half behind.
        partial = file.with_name(f".{file.name}.part")
        try:
            count = _write(connection, query, partial, file.suffix)
            partial.replace(file)
        except (duckdb.ParserException, duckdb.BinderException, duckdb.CatalogException) as error:
            raise typer.BadParameter(duckdb_says(error), param_hint="--where") from None
        except (duckdb.Error, OSError) as error:
            reason = duckdb_says(error) if isinstance(error, duckdb.Error) else error.strerror
            print_error(with_remedy(f"cannot write {file}: {reason}"))
            raise typer.Exit(1) from None
        finally:
            # It may not be there: on a disk that can only be read, not even that can be told.
            with suppress(OSError):
                partial.unlink()
    print_note(f"{file}: {count} rows of {view}")


def _query(
    connection: sa.Connection, view: str, where: str | None, since: str | None, workload: str | None
) -> str:
    """The rows asked for. A view of modules is narrowed by the dumps of these modules."""
    columns = fetch(
        connection,
        "SELECT column_name FROM duckdb_columns() WHERE table_name = $1 AND NOT internal",
        [view],
    )["column_name"].to_pylist()
    if not columns:
        raise typer.BadParameter(f"there is no view or table {view}: see `memhouse views`")
    conditions = [f"({where})"] if where else []
    time = parse_time(since, "--since")
    narrow = {
        "run_at": f"run_at >= {_literal(time.isoformat())}::TIMESTAMPTZ" if time else None,
        "workload": f"workload = {_literal(workload)}" if workload else None,
    }
    for column, condition in narrow.items():
        if condition is None:
            continue
        # What does not say it itself is chosen by the dumps or the run it belongs to.
        key = next((name for name in ("dump_id", "run_id", "module_id") if name in columns), None)
        if column in columns:
            conditions.append(condition)
        elif key is None:
            raise typer.BadParameter(f"{view} tells no {column}, run or module to choose by")
        else:
            chosen = f"SELECT {key} FROM dumps INNER JOIN runs USING (run_id) WHERE {condition}"
            conditions.append(f"{key} IN ({chosen})")
    clause = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    # In the same order every night, so that two exports can be compared line by line.
    quoted = view.replace('"', '""')
    return f'SELECT * FROM "{quoted}"{clause} ORDER BY ALL'


def _write(connection: sa.Connection, query: str, file: Path, ending: str) -> int:
    if ending == ".arrow":
        rows = fetch(connection, query)
        with pa.OSFile(os.fspath(file), "wb") as sink, pa.ipc.new_file(sink, rows.schema) as out:
            out.write_table(rows)
        return int(rows.num_rows)
    target = _literal(os.fspath(file))
    copied = driver(connection).execute(f"COPY ({query}) TO {target} ({_COPY_OPTIONS[ending]})")
    return int(copied.fetchall()[0][0])


def _literal(text: str) -> str:
    """A text as SQL: COPY takes no parameters."""
    return "'" + text.replace("'", "''") + "'"
