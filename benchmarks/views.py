"""How long each canned view takes: for the largest module, and for all modules together.

python benchmarks/views.py PATH...
"""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from timing import milliseconds, show

import memhouse
from memhouse.queries.catalogue import public_views


def main(paths: list[str]) -> None:
    """Ingest the paths into a warehouse of their own and time every view on it."""
    with TemporaryDirectory() as folder:
        database = Path(folder, "views.duckdb")
        with memhouse.open(database) as warehouse:
            for path in paths:
                warehouse.ingest(path, jobs=2)
        with memhouse.open(database, read_only=True) as warehouse:
            largest = warehouse.sql(
                'SELECT module_id FROM "values" GROUP BY module_id ORDER BY COUNT(*) DESC LIMIT 1'
            ).arrow()["module_id"][0]
            rows = []
            for name, view in public_views().items():
                row: dict[str, object] = {"view": name}
                if "module_id" in view.columns:
                    query = f"SELECT * FROM {name} WHERE module_id = {largest}"
                    row["rows_of_one"] = len(warehouse.sql(query))
                    row["one_module_ms"] = milliseconds(lambda q=query: warehouse.sql(q))
                row["rows"] = len(warehouse.sql(f"SELECT * FROM {name}"))
                row["all_modules_ms"] = milliseconds(
                    lambda n=name: warehouse.sql(f"SELECT * FROM {n}")
                )
                rows.append(row)
    show(rows)


if __name__ == "__main__":
    main(sys.argv[1:] or ["tests/data/dumps"])
