"""The history of a lake: stored after ingest, and updated in memory by readers before that.

Writers that add dumps do not wait for each other, so that a stored history may be of an earlier
version. The file names of `lineages` and `gone` have that version. Every commit names the runs
that it changed; from these runs on the history is worked out anew, in memory.

The rows of `history` and of `causes` are in one file for every 32 runs, so that a further run
rewrites the last file only. The name of each file has the hash of its rows.
"""

import re

import duckdb

from ..history import work_out
from ..history.work_out import Causes
from .commits import Actions
from .data_files import HISTORY, DataFile, write_file
from .lake_errors import DamagedFileError
from .lake_tables import add_rows
from .snapshot import Lake, Snapshot

_DIGITS = 20
_VERSIONED = re.compile(rf"v(\d{{{_DIGITS}}})-")
_HASHED = re.compile(r"s-?\d+-\d+-\d+-")
_RUNS_IN_FILE = 32


def stored_version(snapshot: Snapshot) -> int | None:
    """The version whose history is stored, or None."""
    matches = [_VERSIONED.match(_name(file)) for key in _WHOLE for file in snapshot.of(key)]
    # The name of a file that another program rewrote has no hash.
    if not all(_HASHED.match(_name(file)) for name in _PARTED for file in snapshot.of(name)):
        return None
    versions = {int(match[1]) if match else None for match in matches}
    return versions.pop() if len(versions) == 1 else None


def changed_runs(lake: Lake) -> list[str] | None:
    """The runs that changed since the stored history; None if it must be worked out anew."""
    version = stored_version(lake.snapshot)
    return None if version is None else lake.runs_changed_since(version)


def use_history(
    connection: duckdb.DuckDBPyConnection,
    lake: Lake,
    causes: Causes,
    held: Snapshot | None = None,
) -> bool:
    """Fill the tables of the history for the lake's snapshot; whether the stored one is outdated.

    held: the snapshot whose history the tables have, None for no history.
    """
    changed = changed_runs(lake)
    since = None if held is None else lake.runs_changed_since(held.version)
    if since is None:
        try:
            _fill(connection, lake.place, lake.snapshot if changed is not None else None)
        except DamagedFileError:
            # The history is worked out from the other relations, and replaces the damaged files
            # when it is stored.
            _fill(connection, lake.place, None)
            changed = None
        since = changed
    if since is None or since:
        work_out.refresh(connection, since or [], causes)
    return changed is None or bool(changed)


def _fill(connection: duckdb.DuckDBPyConnection, place: str, snapshot: Snapshot | None) -> None:
    """Fill the tables of the history with the rows of the snapshot; with None, empty them."""
    for name in HISTORY:
        connection.execute(f'DELETE FROM "{name}"')
        if snapshot is not None and (files := snapshot.of(name)):
            add_rows(connection, place, name, files)


def history_actions(connection: duckdb.DuckDBPyConnection, lake: Lake) -> Actions:
    """The actions that store the history of the connection's tables, for the lake's snapshot."""
    snapshot = lake.snapshot
    version = f"v{snapshot.version:0{_DIGITS}}-"
    adds: list[DataFile] = []
    for name in _WHOLE:
        rows = connection.sql(f'SELECT * FROM "{name}"').to_arrow_table()
        # An empty table also has a file, because its name has the version.
        adds.append(write_file(lake.place, name, rows, version))
    removes = [file for name in _WHOLE for file in snapshot.of(name)]
    for name in _PARTED:
        stored = {match[0]: f for f in snapshot.of(name) if (match := _HASHED.match(_name(f)))}
        kept = set()
        for part, hashed, count in connection.sql(_PARTS.format(name)).fetchall():
            mark = f"s{part}-{count}-{hashed}-"
            if mark in stored:
                kept.add(stored[mark].path)
                continue
            rows = connection.sql(_ROWS.format(name), params=[part]).to_arrow_table()
            adds.append(write_file(lake.place, name, rows, mark))
        removes += [file for file in snapshot.of(name) if file.path not in kept]
    return Actions(adds, removes)


def _name(file: DataFile) -> str:
    return file.path.rsplit("/", 1)[1]


# The tables that have a file for every few runs, and those that are stored anew as a whole.
_PARTED = ("history", "causes")
_WHOLE = tuple(name for name in HISTORY if name not in _PARTED)
_PARTS = f"""
SELECT run_seq // {_RUNS_IN_FILE} AS part, BIT_XOR(HASH({{0}})) AS hashed, COUNT(*) AS n
FROM {{0}}
INNER JOIN dumps ON dumps.dump_id = {{0}}.dump_id
INNER JOIN runs ON runs.run_id = dumps.run_id
GROUP BY part
ORDER BY part
"""
_ROWS = f"""
SELECT {{0}}.*
FROM {{0}}
INNER JOIN dumps ON dumps.dump_id = {{0}}.dump_id
INNER JOIN runs ON runs.run_id = dumps.run_id
WHERE run_seq // {_RUNS_IN_FILE} = $1
ORDER BY run_seq, {{0}}.rowid
"""
