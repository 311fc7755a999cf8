"""`saved_for_backward` and `long_lived`: what is kept for long, and when nothing touches it."""

import pytest

from ..support.warehouse import reading

LLAMA = "(SELECT module_id FROM dumps WHERE workload = 'llama-v5e')"
# Residuals and alias sets part the temp values: each is in one of them.
PARTS = """
SELECT
    COUNT(DISTINCT (module_id, COALESCE(alias_set, value_id)))
        FILTER (residual_id IS NULL),
    COUNT(DISTINCT (module_id, residual_id)) FILTER (residual_id IS NOT NULL)
FROM "values"
INNER JOIN live_ranges USING (module_id, value_id)
INNER JOIN allocations USING (module_id, allocation_index)
WHERE is_temp AND module_id IN (SELECT module_id FROM alias_sets)
"""


@pytest.mark.parametrize("name", ["filled", "history"])
def test_each_residual_and_each_temp_value_is_in_one_row(request, name):
    with reading(request.getfixturevalue(name)) as store:

        def row(query):
            (found,) = store.connection.sql(query).fetchall()
            return found

        (residuals,) = row("SELECT COUNT(*) FROM residuals")
        rows = "COUNT(*), COUNT(DISTINCT (module_id, residual_id))"
        assert residuals > 50
        assert row(f"SELECT {rows} FROM internal.saved_for_backward") == (residuals, residuals)
        kept = f"SELECT {rows} FROM internal.long_lived WHERE is_saved_for_backward"
        assert row(kept) == (residuals, residuals)
        sets, kept = row(PARTS)
        shown = "SELECT COUNT(*) FROM internal.long_lived SEMI JOIN alias_sets USING (module_id)"
        assert row(shown) == (sets + kept,)
        assert sets + kept > 1000
        # Nothing is idle for longer than it lives, and what is idle across the peak lives there.
        count, at_peak, wrong, unknown = row(
            """SELECT COUNT(*), COUNT(*) FILTER (peak_idle_time > 0),
                COUNT(*) FILTER (idle_time NOT BETWEEN 0 AND life - 1
                    OR peak_idle_time NOT BETWEEN 0 AND idle_time
                    OR (peak_idle_time > 0 AND NOT is_live_at_peak)),
                COUNT(*) FILTER (idle_time IS NULL
                    AND module_id IN (SELECT module_id FROM alias_sets))
            FROM internal.long_lived"""
        )
        assert count > 1000
        assert at_peak > 50
        assert (wrong, unknown) == (0, 0)


def test_what_waits_is_idle_between_its_writing_and_its_reading(warehouse):
    """As read by hand in the dump of llama.

    The stack of the layers' inputs is made in the forward loop, which ends at 231, and read in the
    backward loop, from 342 to 591; `all-gather.19{}:303-914` is read last at 893.
    """
    ((*idle, is_live),) = warehouse.sql(
        "SELECT start_time, end_time, idle_start_time, idle_end_time, idle_time, peak_idle_time, "
        f"is_live_at_peak FROM saved_for_backward WHERE module_id = {LLAMA} "
        "AND memory_space = 0 ORDER BY size_bytes DESC LIMIT 1"
    ).fetchall()
    assert (idle, is_live) == ([90, 609, 231, 342, 111, 0], True)
    (found,) = warehouse.sql(
        "SELECT instruction, start_time, end_time, life, byte_steps, idle_time, peak_idle_time "
        f"FROM long_lived WHERE module_id = {LLAMA} AND memory_space = 0 "
        "ORDER BY byte_steps DESC LIMIT 1"
    ).fetchall()
    assert found == ("all-gather.19", 303, 914, 612, 612 * (64 << 20), 479, 479)
