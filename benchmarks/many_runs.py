"""Makes warehouses of many runs from real modules: a history as nightly jobs leave it."""

from contextlib import closing
from pathlib import Path

from bench import Bench

import memhouse as library
from memhouse.schema.stores.duckdb import open_file

# The number of real programs to use, the largest first; most other programs are tiny.
_FAMILIES = 25
_HERE = Path(__file__).parent


def warehouse_of_runs(bench: Bench, runs: int) -> Path:
    """The warehouse of this many runs; it is made when it is first asked for."""
    if runs not in bench.warehouses_of_runs:
        path = bench.new_path(f"{runs}-runs.duckdb")
        _make(bench, runs, path)
        bench.warehouses_of_runs[runs] = path
    return bench.warehouses_of_runs[runs]


def _make(bench: Bench, runs: int, path: Path) -> None:
    library.open(path).close()
    with closing(open_file(str(path), files=True)) as store:
        connection = store.connection
        variables = {"nights": runs, "series": bench.options.series, "families": _FAMILIES}
        for name, value in variables.items():
            connection.execute(f"SET VARIABLE {name} = {value}")
        connection.execute(f"ATTACH '{bench.dumps.warehouse}' AS real (READ_ONLY)")
        connection.execute((_HERE / "many_runs.sql").read_text())
        template = (_HERE / "copy_module.sql").read_text()
        for table, sizes, generated in connection.execute(_OWNED).fetchall():
            scaled = "".join(f", owned.{size} * factor AS {size}" for size in sizes or ())
            connection.execute(
                template.format(
                    table=table,
                    scaled=scaled,
                    left_out=f"EXCLUDE ({', '.join(generated)})" if generated else "",
                )
            )
        # Works the history out, after changes that went past the store.
        store.change("SELECT 1")


# The tables whose rows belong to a module, their columns of sizes and offsets, and the generated
# columns, which cannot be inserted.
_OWNED = """
SELECT
    table_name,
    LIST(column_name) FILTER (column_name LIKE '%\\_bytes' ESCAPE '\\' AND NOT is_generated),
    LIST(column_name) FILTER (is_generated)
FROM duckdb_columns()
WHERE database_name = 'real' AND NOT internal AND table_name <> 'dumps'
    AND table_name IN (SELECT table_name FROM duckdb_tables() WHERE database_name = 'real')
GROUP BY table_name
HAVING BOOL_OR(column_name = 'module_id')
"""
