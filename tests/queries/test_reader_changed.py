"""Figures that moved because another memhouse read the dump are no growth of the program."""

import memhouse
from memhouse.schema.causes.changes import READER_CHANGED

from ..support.warehouse import writing

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


def told(db):
    """The outcome of llama-v5e, and whether its causes tell of another reader."""
    with memhouse.open(db, read_only=True) as warehouse:
        found = warehouse.check(baseline="2026-10-09", max_growth=["2%"])
        (verdict,) = (each for each in found.verdicts if each.workload == "llama-v5e")
        steps = warehouse.trends(workload="llama-v5e").rows.table["cause"].to_pylist()
    causes = (verdict.cause, steps[-1])
    return verdict.outcome, [(cause or "").startswith(READER_CHANGED.text) for cause in causes]


def test_what_only_the_reader_moved_is_told_and_does_not_fail(own):
    """The peak of 2026-10-10 is four times that of the night before."""
    assert told(own) == ("fail", [False, False])
    for change, expected in ((OLDER, ("fail", False)), (SAME, ("pass", True))):
        with writing(own) as store:
            store.change(change)
        outcome, is_told = expected
        assert told(own) == (outcome, [is_told, is_told])
    # The same of one reader is a growth.
    with writing(own) as store:
        store.change(
            "UPDATE modules SET reader_version = (SELECT MAX(reader_version) FROM modules)"
        )
    assert told(own) == ("fail", [False, False])
