"""`benchmarks/same_rows.py` tells which rows of two warehouses differ."""

from pathlib import Path

import duckdb

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"
MADE = """
CREATE TABLE modules (module_id BIGINT);
CREATE TABLE dumps (dump_id BIGINT, module_id BIGINT, ingested_at TIMESTAMP);
CREATE TABLE uses (module_id BIGINT, name VARCHAR);
CREATE VIEW named AS SELECT module_id, name FROM uses WHERE name <> 'hidden';
CREATE SCHEMA internal;
CREATE VIEW internal.named AS SELECT RANDOM() AS other;
CREATE VIEW internal.helper AS SELECT RANDOM() AS other;
CREATE VIEW shares AS SELECT 0.9999934899647804::DOUBLE AS share;
INSERT INTO modules FROM range(20);
INSERT INTO dumps SELECT range, range, now() FROM range(20);
INSERT INTO uses VALUES (1, 'a'), (1, 'a'), (2, 'b'), (3, NULL);
"""
SHARE = "CREATE OR REPLACE VIEW shares AS SELECT {}::DOUBLE AS share"
B = "  an example from B: {'module_id': 2, 'name': 'b'}"
# What is done to a copy, and what then differs.
CHANGES = {
    # Neither the order of rows nor the time of ingest counts, nor the last digit of a float.
    "DELETE FROM uses WHERE name = 'b'; INSERT INTO uses VALUES (2, 'b')": [],
    "UPDATE dumps SET ingested_at = NULL": [],
    SHARE.format("0.9999934899647805"): [],
    # How often a row is there counts.
    "INSERT INTO uses VALUES (2, 'b')": [
        *("table uses: 0 rows only in A, 1 only in B", B),
        *("view named: 0 rows only in A, 1 only in B", B),
    ],
    SHARE.format("0.99998"): [
        "view shares: 1 rows only in A, 1 only in B",
        "  an example from A: {'share': 0.9999935030937195}",
        "  an example from B: {'share': 0.9999799728393555}",
    ],
    "CREATE TABLE more (n BIGINT); ALTER TABLE modules ADD COLUMN size BIGINT": [
        *("table modules: column size only in B", "table more: only in B"),
    ],
}


def made(path, change=""):
    """A small warehouse, with what changes it."""
    with duckdb.connect(str(path)) as connection:
        connection.execute(MADE + change)
    return path


def test_what_differs_is_counted_and_shown(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    from same_rows import differences

    a = made(tmp_path / "a.duckdb")
    for number, (change, told) in enumerate(CHANGES.items()):
        b = made(tmp_path / f"{number}.duckdb", change)
        assert [*differences(a, b, views=True)] == told, change
        if told and told[0].startswith("view"):
            assert [*differences(a, b, views=False)] == [], change
