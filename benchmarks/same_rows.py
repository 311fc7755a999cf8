"""Hold all rows of two warehouses against each other.

    python benchmarks/same_rows.py A.duckdb B.duckdb [--views]

Each table must have the same rows as often in both, in any order; with `--views` so must each
public view, floats to seven digits. Prints what differs; exit status 1 if anything does.
"""

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pyarrow as pa

# When and by which version rows were written: two ingests of the same dumps differ in these.
_LEFT_OUT_COLUMNS = ("ingested_at", "entered_at", "tool_version")
_MODULES_AT_ONCE = 8


def differences(a: Path, b: Path, *, views: bool) -> Iterator[str]:
    """What differs, a line each. Raises duckdb.Error if a file cannot be read."""
    with (
        duckdb.connect(str(a), read_only=True) as left,
        duckdb.connect(str(b), read_only=True) as right,
    ):
        yield from _differences(left, right, views)


def _differences(
    a: duckdb.DuckDBPyConnection, b: duckdb.DuckDBPyConnection, views: bool
) -> Iterator[str]:
    for kind in ("table", *(["view"] if views else [])):
        columns_a, columns_b = _columns(a, kind), _columns(b, kind)
        for name in sorted({**columns_a, **columns_b}):
            if name not in columns_a or name not in columns_b:
                yield f"{kind} {name}: only in {'A' if name in columns_a else 'B'}"
                continue
            here, there = columns_a[name], columns_b[name]
            for column in sorted(set(here) ^ set(there)):
                yield f"{kind} {name}: column {column} only in {'A' if column in here else 'B'}"
            common = [column for column in here if column in there]
            yield from _different_rows(a, b, kind, name, common)


def _different_rows(
    a: duckdb.DuckDBPyConnection,
    b: duckdb.DuckDBPyConnection,
    kind: str,
    name: str,
    columns: list[str],
) -> Iterator[str]:
    query = f"SELECT {', '.join(map(_quoted, columns))} FROM {_quoted(name)}"
    only = {"A": 0, "B": 0}
    examples: dict[str, object] = {}
    for condition in _parts(a, b, kind, columns):
        rows = {"A": _rows(a, query + condition), "B": _rows(b, query + condition)}
        if kind == "view":
            rows = {side: _rounded(found) for side, found in rows.items()}
        for side, other in (("A", "B"), ("B", "A")):
            alone = _only_in(rows[side], rows[other])
            only[side] += alone.num_rows
            if alone.num_rows:
                examples.setdefault(side, alone.slice(0, 1).to_pylist()[0])
    if any(only.values()):
        yield f"{kind} {name}: {only['A']:,} rows only in A, {only['B']:,} only in B"
        for side, row in examples.items():
            yield f"  an example from {side}: {row}"


def _parts(
    a: duckdb.DuckDBPyConnection, b: duckdb.DuckDBPyConnection, kind: str, columns: list[str]
) -> list[str]:
    """Conditions that divide the rows, because a view of all modules takes much memory."""
    if kind == "table" or "module_id" not in columns:
        return [""]
    found = {row[0] for connection in (a, b) for row in connection.sql(_MODULES).fetchall()}
    ids = sorted(found)
    together = [ids[at : at + _MODULES_AT_ONCE] for at in range(0, len(ids), _MODULES_AT_ONCE)]
    return [
        " WHERE module_id IS NULL",
        *(f" WHERE module_id IN ({', '.join(map(str, some))})" for some in together),
    ]


def _rows(connection: duckdb.DuckDBPyConnection, query: str) -> pa.Table:
    return connection.sql(query).to_arrow_table()


def _rounded(rows: pa.Table) -> pa.Table:
    """The rows with floats of seven digits: the last digits of a sum depend on its order."""
    return rows.cast(
        pa.schema(
            field.with_type(pa.float32()) if pa.types.is_float64(field.type) else field
            for field in rows.schema
        )
    )


def _only_in(these: pa.Table, those: pa.Table) -> pa.Table:
    """The rows that `these` have more often than `those`."""
    with duckdb.connect() as connection:
        connection.register("these", these)
        connection.register("those", those)
        return _rows(connection, "FROM these EXCEPT ALL FROM those")


def _columns(connection: duckdb.DuckDBPyConnection, kind: str) -> dict[str, list[str]]:
    """The columns of each public table or view, in order, but those of time and the journal."""
    found: dict[str, list[str]] = {}
    for name, column in connection.execute(_COLUMNS, [kind]).fetchall():
        columns = found.setdefault(name, [])
        if column not in _LEFT_OUT_COLUMNS:
            columns.append(column)
    return {name: columns for name, columns in found.items() if name != "journal"}


def _quoted(name: str) -> str:
    return f'"{name}"'


_MODULES = """
SELECT module_id FROM modules
UNION
SELECT module_id FROM dumps WHERE module_id IS NOT NULL
"""
_COLUMNS = """
WITH named AS (
    SELECT table_name AS name, 'table' AS kind FROM duckdb_tables()
    WHERE NOT internal AND NOT starts_with(table_name, '_')
    UNION ALL
    SELECT view_name, 'view' FROM duckdb_views()
    WHERE schema_name = 'main' AND NOT internal AND NOT starts_with(view_name, '_')
)
SELECT table_name, column_name
FROM duckdb_columns()
INNER JOIN named ON named.name = table_name
WHERE schema_name = 'main' AND named.kind = $1 AND NOT starts_with(column_name, '_')
ORDER BY table_name, column_index
"""


def main() -> None:
    """Read the command line, and print what differs."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("a", metavar="A.duckdb", type=Path)
    parser.add_argument("b", metavar="B.duckdb", type=Path)
    parser.add_argument("--views", action="store_true", help="also compare the public views")
    given = parser.parse_args()
    same = True
    try:
        for line in differences(given.a, given.b, views=given.views):
            print(line)
            same = False
    except duckdb.Error as error:
        sys.exit(str(error))
    print(f"the warehouses {'have the same rows' if same else 'differ'}")
    sys.exit(0 if same else 1)


if __name__ == "__main__":
    main()
