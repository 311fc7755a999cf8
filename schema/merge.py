"""`memhouse merge`: the runs of other warehouse files, added to a warehouse in one transaction.

Ids are hashes of content, so rows of two files are the same row if they have the same id. What a
file holds already is not added again, and the order of the files makes no difference.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import duckdb
import pyarrow as pa

from . import arrow
from .connection import connect, database_path
from .errors import WarehouseError
from .history import series
from .journal import entries, entry
from .readable import figures_table
from .store import Store
from .table_rows import SETS, delete, delete_orphans, insert, insert_all, insertion
from .tables import metadata

# Tables with a row per run, dump or message: small enough to compare in memory.
_RUN_TABLES = (
    "runs",
    "run_parts",
    "run_labels",
    "dumps",
    "oom_reports",
    "oom_buffers",
    "accepted_changes",
    "journal",
)
_MODULE_TABLES = [
    table.name
    for table in metadata.tables.values()
    if "module_id" in table.columns and table.name != "dumps"
]


@dataclass
class Merged:
    """How many runs, dumps and modules a merge added; `changed_runs` got rows or other modules."""

    files: int = 0
    runs: int = 0
    dumps: int = 0
    modules: int = 0
    changed_runs: set[str] = field(default_factory=set)

    def _repr_html_(self) -> str:
        counts = [(name, value) for name, value in vars(self).items() if isinstance(value, int)]
        return figures_table("merged", counts)


def check_files(db: str, files: Sequence[Path]) -> None:
    """Raise WarehouseError unless each file is a warehouse of its own that can be read."""
    main = database_path(db)
    seen = [main] if main is not None and main.exists() else []
    for file in files:
        if not file.is_file():
            raise WarehouseError(f"{file}: there is no such file")
        if any(map(file.samefile, seen)):
            raise WarehouseError(f"{file} is named twice: name each file once")
        seen.append(file)
        connect(str(file), read_only=True)[0].close()


def merge(
    store: Store,
    files: Sequence[Path],
    report: Callable[[Path, "Merged"], None] = lambda file, merged: None,
) -> Merged:
    """Add what the files hold and the warehouse lacks, all of it or nothing.

    Args:
        report: gets each file with what it added; only with the last one is anything stored.
    Raises:
        WarehouseError: a file cannot be read, or contradicts the warehouse.
    """
    check_files(store.name, files)
    total = Merged()
    with store.transaction():
        before = _names(store.connection, _RUNS_IN_ORDER)
        for file in files:
            merged = _merge_file(store.connection, file)
            report(file, merged)
            total.files += 1
            total.runs += merged.runs
            total.dumps += merged.dumps
            total.modules += merged.modules
            total.changed_runs |= merged.changed_runs
        # A dump that was read completely now has another module than the truncated one.
        delete_orphans(store.connection)
        if total.changed_runs:
            names = ", ".join(sorted(file.name for file in files))
            insert_all(store.connection, entries(entry("merge", names)))
        # Also where nothing was added, an earlier entry or a claim may change the order of runs.
        after = _names(store.connection, _RUNS_IN_ORDER)
        known = set(before)
        is_in_order = before == [run for run in after if run in known]
        moved = sorted(total.changed_runs) if is_in_order else after
        series.refresh(store.connection, moved, sorted(total.changed_runs), store.causes)
    return total


def _merge_file(connection: duckdb.DuckDBPyConnection, file: Path) -> Merged:
    """Add the rows that the file holds and the warehouse lacks, within a transaction.

    Args:
        connection: of the warehouse that gets the rows; its history is the caller's to refresh.
    Raises:
        WarehouseError: a run is in both with different dumps, labels or kinds of parts.
    """
    part, _ = connect(str(file), read_only=True)
    try:
        with _registered_run_tables(connection, part):
            _refuse_contradictions(connection, file)
            merged = Merged(1)
            merged.changed_runs = set(_names(connection, _RUNS_WITH_NEWS))
            merged.modules = _add_modules(connection, part, merged.changed_runs)
            for key, name in SETS.items():
                known = connection.sql(
                    f"SELECT DISTINCT {key} FROM {arrow.sql_name(name)}"
                ).to_arrow_table()
                _copy(connection, part, name, known, f"ANTI JOIN chosen USING ({key})")
            merged.runs = _count(connection, "part_runs ANTI JOIN runs USING (run_id)")
            merged.dumps = _count(connection, "part_dumps ANTI JOIN dumps USING (dump_id)")
            _add_runs(connection)
            return merged
    finally:
        part.close()


@contextmanager
def _registered_run_tables(
    connection: duckdb.DuckDBPyConnection, part: duckdb.DuckDBPyConnection
) -> Iterator[None]:
    """Show the part's small tables to the connection, as `part_runs`, `part_dumps` and so on."""
    for name in _RUN_TABLES:
        columns = ", ".join(f'"{column}"' for column in arrow.schema(name).names)
        rows = arrow.plain(part.sql(f"SELECT {columns} FROM {name}").to_arrow_table())
        connection.register(f"part_{name}", rows)
    try:
        yield
    finally:
        # After an error the transaction is aborted, and only its end unregisters.
        for name in _RUN_TABLES:
            with suppress(duckdb.Error):
                connection.unregister(f"part_{name}")


def _refuse_contradictions(connection: duckdb.DuckDBPyConnection, file: Path) -> None:
    """Raise WarehouseError for the first run that is in both and cannot be one run."""
    for query, contradiction, remedy in _CONTRADICTIONS:
        for run, detail in connection.sql(query).fetchall():
            raise WarehouseError(
                f"cannot merge {file}: run {run!r} {contradiction.format(detail)}. {remedy}"
            )


def _add_modules(
    connection: duckdb.DuckDBPyConnection,
    part: duckdb.DuckDBPyConnection,
    changed_runs: set[str],
) -> int:
    """Add modules that are missing, replace those of a lower rank; how many were missing.

    A module's rank is by its readers' version, then by whether a dump of it was read completely,
    then by whether it has the metrics of orders.
    """
    ranks = dict(connection.sql(_RANKS).fetchall())
    part_ranks = dict(part.sql(_RANKS).fetchall())
    missing = part_ranks.keys() - ranks.keys()
    better = [id_ for id_, rank in part_ranks.items() if id_ in ranks and rank > ranks[id_]]
    if better:
        query = "SELECT run_id FROM dumps WHERE module_id IN (SELECT UNNEST($1))"
        changed_runs.update(_names(connection, query, [better]))
        delete(connection, "module_id", better, but=("dumps",))
    chosen = pa.table({"module_id": pa.array(sorted({*missing, *better}), pa.int64())})
    for name in _MODULE_TABLES:
        _copy(connection, part, name, chosen, "SEMI JOIN chosen USING (module_id)")
    return len(missing)


def _copy(
    connection: duckdb.DuckDBPyConnection,
    part: duckdb.DuckDBPyConnection,
    name: str,
    chosen: pa.Table,
    condition: str,
) -> None:
    """Insert those rows of the part's table that fulfil the condition on the table `chosen`."""
    columns = arrow.schema(name).names
    part.register("chosen", chosen)
    selected = ", ".join(f'"{column}"' for column in columns)
    relation = part.sql(f"SELECT {selected} FROM {arrow.sql_name(name)} {condition}")
    connection.register("incoming", relation.to_arrow_reader())
    try:
        connection.execute(insertion(name, columns, "incoming"))
    finally:
        with suppress(duckdb.Error):
            connection.unregister("incoming")
    part.unregister("chosen")


def _add_runs(connection: duckdb.DuckDBPyConnection) -> None:
    """Add the rows of runs, and number runs and journal entries by time."""
    for statement in _ADD_RUNS:
        connection.execute(statement)
    journal = connection.sql(_JOURNAL).to_arrow_table()
    if len(journal) > _count(connection, "journal"):
        connection.execute("DELETE FROM journal")
        insert(connection, "journal", arrow.plain(journal))


def _names(
    connection: duckdb.DuckDBPyConnection, query: str, parameters: Sequence[object] = ()
) -> list[str]:
    return [name for (name,) in connection.sql(query, params=list(parameters)).fetchall()]


def _count(connection: duckdb.DuckDBPyConnection, relation: str) -> int:
    ((count,),) = connection.sql(f"SELECT COUNT(*) FROM {relation}").fetchall()
    return int(count)


_RUNS_IN_ORDER = "SELECT run_id FROM runs ORDER BY run_at, run_seq"

_RANKS = """SELECT
    module_id,
    (
        COALESCE(reader_version, 0),
        module_id IN (SELECT module_id FROM dumps WHERE status = 'ok'),
        module_id IN (SELECT module_id FROM module_memory WHERE order_bytes IS NOT NULL)
    )
FROM modules"""

# Dumps of the warehouse that were not read completely, and in the part were.
_COMPLETED = """SELECT dump_id FROM part_dumps
    INNER JOIN dumps AS main USING (dump_id)
    WHERE part_dumps.status = 'ok' AND main.status <> 'ok'"""

# Runs of the part that bring a dump, a message or a host that the warehouse lacks.
_RUNS_WITH_NEWS = f"""SELECT run_id FROM part_dumps
WHERE dump_id NOT IN (SELECT dump_id FROM dumps) OR dump_id IN ({_COMPLETED})
UNION
SELECT run_id FROM part_run_parts
WHERE (run_id, COALESCE(host, '')) NOT IN (SELECT (run_id, COALESCE(host, '')) FROM run_parts)
UNION
SELECT run_id FROM part_oom_reports WHERE oom_id NOT IN (SELECT oom_id FROM oom_reports)
UNION
SELECT run_id FROM part_runs WHERE run_id NOT IN (SELECT run_id FROM runs)"""

# The dumps of one host's part of a run, in the warehouse (main) and in the file (part). Of two
# dumps the same module is the same content; without a module the files decide. A dump that was
# read completely in one of the two only, as its files were still written, contradicts nothing.
_CONTENTS = """WITH contents AS (
    SELECT 'main' AS side, run_id, host, dump_id, COALESCE(module_id, files_id) AS content
    FROM dumps
    WHERE NOT EXISTS (
        FROM part_dumps AS part
        WHERE part.dump_id = dumps.dump_id AND (part.status = 'ok') <> (dumps.status = 'ok')
    )
    UNION ALL
    SELECT 'part', run_id, host, dump_id, COALESCE(module_id, files_id)
    FROM part_dumps
    WHERE NOT EXISTS (
        FROM dumps
        WHERE dumps.dump_id = part_dumps.dump_id
            AND (part_dumps.status = 'ok') <> (dumps.status = 'ok')
    )
),

in_both AS (
    SELECT main.run_id, main.host
    FROM run_parts AS main
    INNER JOIN part_run_parts AS part
        ON main.run_id = part.run_id AND main.host IS NOT DISTINCT FROM part.host
),

only_in_one AS (
    SELECT run_id, host, dump_id, content, ANY_VALUE(side) AS side
    FROM contents
    GROUP BY run_id, host, dump_id, content
    HAVING COUNT(*) = 1
)
"""

# Queries for runs that contradict (run_id and a detail), what is wrong, and what to do.
_CONTRADICTIONS = (
    (
        """SELECT run_id, '' FROM (
            SELECT run_id, host FROM run_parts UNION SELECT run_id, host FROM part_run_parts
        ) GROUP BY run_id HAVING COUNT(host) > 0 AND BOOL_OR(host IS NULL) ORDER BY run_id""",
        "has parts of hosts in one file, and dumps without a host in the other",
        "Ingest the parts of one run with --host.",
    ),
    # A part that has grown holds all that it held before.
    (
        f"""{_CONTENTS} SELECT shared.run_id, COALESCE(' of host ' || shared.host, '')
        FROM in_both AS shared
        INNER JOIN only_in_one AS one
            ON shared.run_id = one.run_id AND shared.host IS NOT DISTINCT FROM one.host
        GROUP BY shared.run_id, shared.host
        HAVING COUNT(DISTINCT side) > 1
        ORDER BY ALL""",
        "holds other dumps{} there than in the warehouse",
        "Drop it in one of them with `memhouse prune`, or ingest it under another name.",
    ),
    (
        """SELECT part.run_id, part.path FROM part_oom_reports AS part
        INNER JOIN oom_reports AS main USING (oom_id)
        WHERE (main.message, main.requested_bytes)
            IS DISTINCT FROM (part.message, part.requested_bytes)
        ORDER BY ALL""",
        "has another message in its log {}",
        "Ingest logs of several hosts from folders of the hosts' names.",
    ),
    (
        """SELECT part.run_id, part.key || ': ' || main.value || ' and ' || part.value
        FROM part_run_labels AS part
        INNER JOIN run_labels AS main USING (run_id, key)
        WHERE main.value <> part.value AND part.run_id IN (
            SELECT new.run_id FROM part_run_parts AS new
            WHERE NOT EXISTS (
                FROM run_parts AS old
                WHERE old.run_id = new.run_id AND old.host IS NOT DISTINCT FROM new.host
            )
        )
        ORDER BY ALL""",
        "has two values of the label {}",
        "Set one value in both with `memhouse label`.",
    ),
)

_ADD_RUNS = (
    # A run that is in both is as it entered first; a claim of its date counts, whoever made it.
    """UPDATE runs SET
        claimed_at = GREATEST(runs.claimed_at, part.claimed_at),
        run_at = COALESCE(
            GREATEST(runs.claimed_at, part.claimed_at),
            LEAST(runs.ingested_at, part.ingested_at)
        )
    FROM part_runs AS part WHERE part.run_id = runs.run_id""",
    """UPDATE runs SET
        ingested_at = part.ingested_at,
        source = part.source,
        tool_version = part.tool_version,
        compiled_at = part.compiled_at
    FROM part_runs AS part
    WHERE part.run_id = runs.run_id
        AND (part.ingested_at, part.source) < (runs.ingested_at, runs.source)""",
    # Labels that a run of the warehouse has or lost since stay, unless the part brings a host.
    """INSERT INTO run_labels BY NAME
    SELECT part.* FROM part_run_labels AS part
    WHERE part.run_id IN (
        SELECT new.run_id FROM part_run_parts AS new
        WHERE NOT EXISTS (
            FROM run_parts AS old
            WHERE old.run_id = new.run_id AND old.host IS NOT DISTINCT FROM new.host
        )
    ) AND NOT EXISTS (
        FROM run_labels AS main WHERE main.run_id = part.run_id AND main.key = part.key
    )""",
    "INSERT INTO runs BY NAME SELECT * FROM part_runs ANTI JOIN runs USING (run_id)",
    """INSERT INTO run_parts BY NAME
    SELECT part.* FROM part_run_parts AS part
    WHERE NOT EXISTS (
        FROM run_parts AS main
        WHERE main.run_id = part.run_id AND main.host IS NOT DISTINCT FROM part.host
    )""",
    f"DELETE FROM dumps WHERE dump_id IN ({_COMPLETED})",
    "INSERT INTO dumps BY NAME SELECT * FROM part_dumps ANTI JOIN dumps USING (dump_id)",
    """INSERT INTO oom_buffers BY NAME
    SELECT * FROM part_oom_buffers ANTI JOIN oom_reports USING (oom_id)""",
    """INSERT INTO oom_reports BY NAME
    SELECT * FROM part_oom_reports ANTI JOIN oom_reports USING (oom_id)""",
    """UPDATE dumps SET oom = TRUE
    WHERE NOT oom AND (
        dump_id IN (SELECT dump_id FROM part_dumps WHERE oom)
        OR dump_id IN (SELECT dump_id FROM oom_reports)
    )""",
    """INSERT INTO accepted_changes BY NAME
    FROM part_accepted_changes EXCEPT ALL FROM accepted_changes""",
    """UPDATE runs SET run_seq = numbered.run_seq
    FROM (
        SELECT run_id, ROW_NUMBER() OVER (ORDER BY ingested_at, run_id) AS run_seq FROM runs
    ) AS numbered
    WHERE numbered.run_id = runs.run_id AND numbered.run_seq <> runs.run_seq""",
)

# The entries of both journals, numbered by time.
_JOURNAL = """SELECT
    CAST(
        ROW_NUMBER() OVER (ORDER BY entered_at, run_id, host, action, detail) AS INTEGER
    ) AS entry,
    *
FROM (
    SELECT * EXCLUDE (entry) FROM journal
    UNION ALL
    (SELECT * EXCLUDE (entry) FROM part_journal EXCEPT ALL SELECT * EXCLUDE (entry) FROM journal)
)"""
