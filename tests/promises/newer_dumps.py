"""Real dumps as a newer XLA might print them."""

import tempfile
from pathlib import Path

from ..support.dumps import copy_dump
from ..support.warehouse import fill, reading

NEW, OLD, TPU = "cpu/jax-0.10.2/module_0018*", "cpu/jax-0.9.0/module_0019*", "tpu/flash-v5e/*"
ASSIGNMENT, VALUES, LIVES, HLO = (
    "buffer-assignment", "buffer-assignment-values", "live-range", "hlo",
)  # fmt: skip
# As XLA's own error messages of 2023 print them, and as scripts expect them in dumps.
STATS = b"""
BufferAssignment stats:
             parameter allocation:    1.02GiB
              constant allocation:         0B
        maybe_live_out allocation:    4.89GiB
     preallocated temp allocation:    1.97GiB
  preallocated temp fragmentation:         0B (0.00%)
                 total allocation:    7.88GiB
              total fragmentation:       112B (0.00%)
Peak buffers:
\tBuffer 1:
\t\tSize: 4.89GiB
\t\tXLA Label: custom-call
\t\t==========================
"""
_ENDINGS = {HLO: "after_optimizations.txt"}


def change(folder, dump, kind, alter):
    """A copy of a dump with one of its files altered, or all of them."""
    night = copy_dump(dump, folder / "night")
    ending = "" if kind is None else _ENDINGS.get(kind, f"-{kind}.txt")
    altered = 0
    for path in night.glob(f"module*{ending}"):
        before = path.read_bytes()
        after = alter(before)
        path.write_bytes(after)
        altered += before != after
    assert altered
    return night


def figures(night, db=None):
    """Every row of a module, by table, without the ids that hold the files' hash."""
    with tempfile.TemporaryDirectory() as folder:
        db = db or Path(folder) / "db"
        (summary,) = fill(db, night)
        assert summary.problems == []
        with reading(db) as store:
            duck = store.connection
            tables = duck.sql(
                "SELECT table_name FROM duckdb_columns() WHERE column_name = 'module_id' AND "
                "table_name IN (SELECT table_name FROM duckdb_tables()) AND table_name <> 'dumps'"
            ).fetchall()
            return {
                table: duck.sql(f'SELECT * EXCLUDE (module_id) FROM "{table}" ORDER BY ALL')
                .fetchall()
                for (table,) in sorted(tables)
            }  # fmt: skip
