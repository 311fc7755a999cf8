"""Copies between a lake and a DuckDB file."""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import duckdb
import pyarrow as pa

from .. import arrow
from ..errors import WarehouseError, duckdb_says, with_remedy
from ..journal import entries, entry
from ..private_folder import private_folder, remove_leftovers
from ..readable import quoted
from ..stores.base import SETS
from ..stores.duckdb import connect, database_path, insert, insertion
from .changes import Begun, Change
from .data_files import HISTORY, SMALL, Sized, portions, relations, write_file

# Import: the runs of a DuckDB file that the lake does not have, as a change.

# The columns that may differ in a run that both have: when, from where and by whom it was ingested.
_OF_INGEST = (
    "run_seq",
    "run_at",
    "ingested_at",
    "compiled_at",
    "entered_at",
    "source",
    "tool_version",
)
# The key by which each small table belongs to runs.
_OF_RUNS = {
    "runs": "run_id",
    "run_parts": "run_id",
    "run_labels": "run_id",
    "dumps": "run_id",
    "oom_reports": "run_id",
    "accepted_changes": "dump_id",
    "oom_buffers": "oom_id",
}


@contextmanager
def attached(connection: duckdb.DuckDBPyConnection, db: str) -> Iterator[None]:
    """Attach the warehouse at `db` as the read-only catalog `given` of the connection.

    Raises WarehouseError, and WarehouseBusyError while another process writes to it.
    """
    path = database_path(db)
    if path is None:
        raise WarehouseError(f"{db} is no file: name the file of a warehouse")
    # Raises an error that says what is wrong with the file.
    connect(db, read_only=True)[0].close()
    connection.execute(f"ATTACH {quoted(str(path))} AS given (READ_ONLY)")
    try:
        yield
    finally:
        connection.execute("DETACH given")


def change_from(connection: duckdb.DuckDBPyConnection, place: str) -> Change:
    """The rows of the attached warehouse that the lake lacks; those of modules are in files.

    The connection has the lake's tables. Raises WarehouseError if both have a run, but with
    different rows.
    """
    runs = _new_runs(connection)
    change = Change(
        changed_runs=runs,
        # Another process may store these runs before the commit: with the same dumps, or else the
        # commit is refused.
        begun={run: Begun(None, {}, set(), {key: set() for key in SETS}) for run in runs},
        oom_runs=set(runs),
        seen_reports=arrow.schema("oom_reports").empty_table(),
    )
    for name, key in _OF_RUNS.items():
        query = f"SELECT {_columns(name)} FROM given.{name} WHERE {key} IN ({_ids_of_runs(key)})"
        rows = arrow.plain(connection.sql(query, params=[runs]).to_arrow_table())
        change.add_rows({name: rows})
    change.add_rows(entries(*(entry("import", "from a file", run) for run in runs)))
    for key, name in SETS.items():
        rows = connection.sql(_NEW_SETS.format(name, key)).to_arrow_table()
        change.add_rows({name: arrow.plain(rows)})
    modules = connection.sql(_NEW_MODULES).to_arrow_table()["module_id"]
    connection.register("_wanted", pa.table({"module_id": modules}))
    try:
        for name in relations():
            if name not in HISTORY and name not in SMALL:
                _write(connection, place, name, change)
    finally:
        connection.unregister("_wanted")
    change.rows = {name: rows for name, rows in change.rows.items() if len(rows)}
    return change


def _new_runs(connection: duckdb.DuckDBPyConnection) -> list[str]:
    """The runs that the lake does not have. Raises if a run that it has is not the same."""
    both = _names(connection, "SELECT run_id FROM given.runs INTERSECT SELECT run_id FROM runs")
    for name, key in _OF_RUNS.items():
        if not _differs(connection, name, key, both):
            continue
        run = next(run for run in both if _differs(connection, name, key, [run]))
        raise WarehouseError(
            f"the lake holds the run {run!r} with other {name}: drop the run there or in the file "
            "with `memhouse prune`, then give the same command again"
        )
    return _names(
        connection,
        "SELECT run_id FROM given.runs WHERE run_id NOT IN (SELECT run_id FROM runs)"
        " ORDER BY run_seq",
    )


def _differs(
    connection: duckdb.DuckDBPyConnection, name: str, key: str, runs: Sequence[str]
) -> bool:
    columns = _columns(name, but=_OF_INGEST)
    given, own = (
        f"SELECT {columns} FROM {place}.{name} WHERE {key} IN ({_ids_of_runs(key, place)})"
        for place in ("given", "memory")
    )
    query = f"({given} EXCEPT ALL {own}) UNION ALL ({own} EXCEPT ALL {given}) LIMIT 1"
    return bool(connection.sql(query, params=[list(runs)]).fetchall())


def _write(connection: duckdb.DuckDBPyConnection, place: str, name: str, change: Change) -> None:
    """Write the rows of the wanted modules to files, a portion at a time."""
    for rows in _portions(connection, "given", name, "SEMI JOIN _wanted USING (module_id)"):
        change.files.append(write_file(place, name, rows))


def _portions(
    connection: duckdb.DuckDBPyConnection, catalog: str, name: str, wanted: str = ""
) -> Iterator[pa.Table]:
    """The rows of a table of modules, whole modules at a time."""
    columns = len(arrow.schema(name))
    source = f'{catalog}."{name}" {wanted}'
    counted = connection.sql(
        f"SELECT module_id, COUNT(*) FROM {source} GROUP BY module_id ORDER BY module_id"
    ).fetchall()
    sized = ((module, Sized(0, rows * columns)) for module, rows in counted)
    for modules in portions(sized):
        query = f"SELECT {_columns(name)} FROM {source} WHERE module_id BETWEEN $1 AND $2"
        yield connection.sql(query, params=[modules[0], modules[-1]]).to_arrow_table()


def _columns(name: str, *, but: Sequence[str] = ()) -> str:
    return ", ".join(f'"{column}"' for column in arrow.schema(name).names if column not in but)


def _ids_of_runs(key: str, place: str = "given") -> str:
    """SQL for the ids of the rows that belong to the runs in the parameter."""
    if key == "run_id":
        return "SELECT UNNEST($1)"
    table = {"dump_id": "dumps", "oom_id": "oom_reports"}[key]
    return f"SELECT {key} FROM {place}.{table} WHERE run_id IN (SELECT UNNEST($1))"


def _names(connection: duckdb.DuckDBPyConnection, query: str) -> list[str]:
    return [name for (name,) in connection.sql(query).fetchall()]


_NEW_SETS = "SELECT * FROM given.{0} WHERE {1} NOT IN (SELECT {1} FROM {0})"
# Modules that the lake lacks, or has only incomplete.
_NEW_MODULES = """SELECT module_id FROM given.modules
    WHERE module_id NOT IN (SELECT module_id FROM modules)
        OR (
            module_id IN (SELECT module_id FROM given.dumps WHERE status = 'ok')
            AND module_id NOT IN (
                SELECT module_id FROM dumps WHERE status = 'ok' AND module_id IS NOT NULL
            )
        )"""


# Export: a new DuckDB file with the rows of a lake.


def write_duckdb(
    connection: duckdb.DuckDBPyConnection, path: Path, finish: Callable[[Path], None]
) -> int:
    """Write all tables of the connection to a new file; how many rows.

    `finish` gets the file before it has its name. The file appears as a whole or not at all.
    Raises WarehouseError, also if there is a file of this name.
    """
    if path.exists():
        raise WarehouseError(f"{path} is there already: name a file that is not")
    if not path.parent.is_dir():
        raise WarehouseError(f"cannot make {path}: there is no folder {path.parent}")
    remove_leftovers(path.parent)
    try:
        with private_folder(path) as folder:
            fresh = folder / "fresh"
            connect(str(fresh), create=True)[0].close()
            rows = _copy(connection, fresh)
            finish(fresh)
            _give_name(fresh, path)
    except OSError as error:
        said = with_remedy(error.strerror or str(error))
        raise WarehouseError(f"cannot make {path}: {said}") from error
    except duckdb.Error as error:
        raise WarehouseError(f"cannot make {path}: {with_remedy(duckdb_says(error))}") from error
    return rows


def _copy(connection: duckdb.DuckDBPyConnection, fresh: Path) -> int:
    """Copy table by table; DuckDB reads, sorts and writes without all rows in memory."""
    rows = 0
    with _attached(connection, fresh):
        for name in relations():
            ((expected,),) = connection.sql(f'SELECT COUNT(*) FROM memory."{name}"').fetchall()
            if name == "instructions":
                for portion in _portions(connection, "memory", name):
                    insert(connection, name, portion, "_fresh")
            elif expected:
                columns = arrow.schema(name).names
                target, source = f'_fresh."{name}"', f'memory."{name}"'
                connection.execute(insertion(name, columns, target, source))
            ((copied,),) = connection.sql(f'SELECT COUNT(*) FROM _fresh."{name}"').fetchall()
            if copied != expected:
                raise WarehouseError(f"the copy of {name} differs from the lake: try again")
            rows += expected
    return rows


@contextmanager
def _attached(connection: duckdb.DuckDBPyConnection, fresh: Path) -> Iterator[None]:
    # Rows that do not fit into memory are sorted beside the file. Frequent checkpoints keep the
    # write-ahead log small.
    settings = {"temp_directory": str(fresh.parent / "sorted"), "checkpoint_threshold": "1KB"}
    for name, value in settings.items():
        connection.execute(f"SET {name} = {quoted(value)}")
    connection.execute(f"ATTACH {quoted(str(fresh))} AS _fresh")
    try:
        yield
    finally:
        with suppress(duckdb.Error):
            connection.execute("DETACH _fresh")
        for name in settings:
            with suppress(duckdb.Error):
                connection.execute(f"RESET {name}")


def _give_name(fresh: Path, path: Path) -> None:
    """Give the file its name, unless another process has made a file of that name meanwhile."""
    try:
        os.link(fresh, path)
    except FileExistsError:
        raise WarehouseError(f"{path} is there already: name a file that is not") from None
    except OSError:  # A file system without links.
        fresh.rename(path)
