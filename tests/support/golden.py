"""The rows of two warehouses as digests: a digest a column, so that a difference has a name."""

import json
from pathlib import Path

from memhouse.schema.arrow import sql_name, tables

from .history import history
from .samples import samples_warehouse
from .warehouse import reading

APPROVED = Path(__file__).parents[1] / "data" / "rows.json"
WAREHOUSES = {"samples": samples_warehouse, "nights": history}
# What is of the moment or of the machine, and not of the dumps.
VOLATILE = {
    "run_at",
    "last_run_at",
    "entered_at",
    "ingested_at",
    "compiled_at",
    "source",
    "tool_version",
}
# Of the moment as a whole.
LEFT_OUT = {"journal"}

Digests = dict[str, dict[str, int | str]]


def digests(db: Path) -> Digests:
    """Of each table and view: how many rows, and a digest of each column with its row's keys.

    A digest is the sum of the rows' digests, because the order of rows means nothing.
    """
    with reading(db) as store:
        duck = store.connection
        found: Digests = {}
        views = """SELECT IF(schema_name = 'main', '', 'internal.') || view_name
            FROM duckdb_views() WHERE NOT internal"""
        names = {sql_name(table).replace('"', "") for table in tables()}
        names |= {name for (name,) in duck.sql(views).fetchall()}
        for name in sorted(names - LEFT_OUT):
            source = ".".join(f'"{part}"' for part in name.split("."))
            columns = [c for c in duck.sql(f"FROM {source}").columns if c not in VOLATILE]
            keys = [column for column in columns if column.endswith("_id") or column == "name"]
            row = f"ROW({', '.join(keys)})" if keys else "''"
            sums = ", ".join(
                f'SUM(md5_number_lower(({row}, "{column}")::VARCHAR))::VARCHAR'
                for column in columns
            )
            query = f"SELECT COUNT(*), {sums} FROM {source}"
            (answer,) = duck.sql(query).fetchall()
            found[name] = {"rows": answer[0], **dict(zip(columns, answer[1:], strict=True))}
        return found


def approve() -> None:
    """Write the digests of today: a review looks at what changed."""
    approved = {name: digests(made()) for name, made in WAREHOUSES.items()}
    APPROVED.write_text(json.dumps(approved, indent=0, sort_keys=True) + "\n")
