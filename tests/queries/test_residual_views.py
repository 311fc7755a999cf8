"""`saved_for_backward` and `long_lived`: what is kept for long, and when nothing touches it."""

import pytest

from ..support.warehouse import rows

LLAMA = "(SELECT module_id FROM dumps WHERE workload = 'llama-v5e')"


@pytest.fixture(scope="session", params=["dumps", "nightly"])
def db(request):
    """A warehouse of all sample dumps, and one of the ten nights."""
    if request.param == "dumps":
        return request.getfixturevalue("filled")
    return request.getfixturevalue("history")


def test_the_stack_of_the_layers_inputs_is_kept(warehouse):
    found = warehouse.sql(
        "SELECT size_bytes, layers, element_type, source_line, operation, read_source_line, "
        "read_operation, start_time, end_time, idle_start_time, idle_end_time, idle_time, "
        f"peak_idle_time, is_live_at_peak FROM saved_for_backward WHERE module_id = {LLAMA} "
        "AND memory_space = 0 ORDER BY size_bytes DESC LIMIT 1"
    ).fetchall()
    # Made in the forward loop, which ends at 231; read in the backward loop, from 342 to 591.
    assert found[0][:7] == (16 << 20, 2, "bf16", 35, "add", 27, "reduce_sum")
    assert found[0][7:] == (90, 609, 231, 342, 111, 0, True)


def test_a_residual_has_one_row(db):
    ((count, residuals, held),) = rows(
        db,
        "SELECT COUNT(*), (SELECT COUNT(*) FROM residuals), "
        "COUNT(DISTINCT (module_id, residual_id)) FROM saved_for_backward",
    )
    assert count == residuals == held > 50
    ((count, held),) = rows(
        db,
        "SELECT COUNT(*), COUNT(DISTINCT (module_id, residual_id)) FROM long_lived "
        "WHERE is_saved_for_backward",
    )
    assert count == held == residuals


def test_what_is_large_and_idle_for_long(warehouse):
    found = warehouse.sql(
        "SELECT instruction, shape_index, size_bytes, start_time, end_time, life, byte_steps, "
        "idle_time, idle_byte_steps, peak_idle_time, is_live_at_peak, source_line "
        f"FROM long_lived WHERE module_id = {LLAMA} AND memory_space = 0 "
        "ORDER BY byte_steps DESC LIMIT 1"
    ).fetchall()
    # `all-gather.19{}:303-914`.
    size = 64 << 20
    life = (303, 914, 612, 612 * size)
    assert found == [("all-gather.19", "{}", size, *life, 479, 479 * size, 479, True, 43)]


def test_nothing_is_idle_for_longer_than_it_lives(db):
    ((count, wrong, unknown),) = rows(
        db,
        "SELECT COUNT(*), COUNT(*) FILTER (idle_time NOT BETWEEN 0 AND life - 1 "
        "OR peak_idle_time NOT BETWEEN 0 AND idle_time), "
        "COUNT(*) FILTER (idle_time IS NULL AND module_id IN (SELECT module_id FROM alias_sets)) "
        "FROM long_lived",
    )
    assert count > 1000
    assert wrong == unknown == 0


def test_every_temp_value_is_in_one_row(db):
    """Residuals and alias sets part the temp values: each is in one of them."""
    ((values, sets, kept),) = rows(
        db,
        """
        SELECT
            COUNT(DISTINCT (module_id, COALESCE(alias_set, value_id))),
            COUNT(DISTINCT (module_id, COALESCE(alias_set, value_id)))
                FILTER (residual_id IS NULL),
            COUNT(DISTINCT (module_id, residual_id)) FILTER (residual_id IS NOT NULL)
        FROM "values"
        INNER JOIN live_ranges USING (module_id, value_id)
        INNER JOIN allocations USING (module_id, allocation_index)
        WHERE is_temp AND module_id IN (SELECT module_id FROM alias_sets)
        """,
    )
    assert values > 1000
    shown = "SELECT COUNT(*) FROM long_lived SEMI JOIN alias_sets USING (module_id)"
    assert rows(db, shown) == [(sets + kept,)]


def test_what_is_idle_across_the_peak_is_live_there(db):
    found = rows(db, "SELECT COUNT(*) FROM long_lived WHERE peak_idle_time > 0")
    assert found[0][0] > 50
    wrong = "SELECT COUNT(*) FROM long_lived WHERE peak_idle_time > 0 AND NOT is_live_at_peak"
    assert rows(db, wrong) == [(0,)]


def test_without_a_schedule_each_value_has_a_row(warehouse):
    # The text of jax 0.4.23 on a CPU says which values share a buffer, but not the schedule.
    found = warehouse.sql(
        """
        SELECT COUNT(*), COUNT(DISTINCT value_id), COUNT("values".alias_set), COUNT(idle_time)
        FROM long_lived
        INNER JOIN "values" USING (module_id, value_id)
        WHERE module_id IN (
            SELECT module_id FROM dumps
            WHERE workload LIKE '%jax-0.4.23' AND module_name = 'jit_mixed'
        )
        """
    ).fetchall()
    assert found == [(17, 17, 17, 0)]
