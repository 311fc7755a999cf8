"""Figures that moved because another memhouse read the dump are no growth of the program."""

import shutil

import pytest

import memhouse

from ..support.warehouse import writing

READER_CHANGED = "reader changed: another memhouse read the same program"
# The night before was read by an older memhouse.
OLDER = """UPDATE modules SET reader_version = 0 WHERE module_id IN
    (SELECT module_id FROM dumps WHERE run_id = '2026-10-09' AND workload = 'llama-v5e')"""
# What XLA itself says of the two programs is the same.
SAME = """UPDATE modules SET
        reported_total_bytes = older.reported_total_bytes,
        schedule_length = older.schedule_length
    FROM modules AS older
    WHERE older.reader_version = 0 AND modules.module_id IN
        (SELECT module_id FROM dumps WHERE run_id = '2026-10-10' AND workload = 'llama-v5e')"""


@pytest.mark.parametrize(
    ("changes", "outcome"),
    [([], "fail"), ([OLDER], "fail"), ([SAME], "fail"), ([OLDER, SAME], "pass")],
)
def test_what_only_the_reader_moved_is_told_and_does_not_fail(history, tmp_path, changes, outcome):
    """The peak of 2026-10-10 is four times that of the night before."""
    db = shutil.copy(history, tmp_path / "nights.duckdb")
    with writing(db) as store:
        for change in changes:
            store.change(change)
    with memhouse.open(db, read_only=True) as warehouse:
        found = warehouse.check(baseline="2026-10-09", max_growth=["2%"])
        (verdict,) = (each for each in found.verdicts if each.workload == "llama-v5e")
        steps = warehouse.sql(
            "SELECT cause FROM trends WHERE run_id = '2026-10-10'"
        ).table.to_pylist()
    assert verdict.outcome == outcome
    assert (verdict.cause == READER_CHANGED) == (outcome == "pass")
    assert ({"cause": READER_CHANGED} in steps) == (outcome == "pass")
