"""`scope_trends`: what each scope of a program adds to the peak, from night to night."""

from ..support.warehouse import rows


def test_the_scopes_add_up_to_the_peaks_and_their_changes(history):
    compared = rows(
        history,
        """
        SELECT
            trends.value_bytes,
            trends.change_bytes,
            SUM(scope_trends.counted_bytes)::BIGINT,
            SUM(scope_trends.change_bytes)::BIGINT
        FROM scope_trends
        INNER JOIN trends
            ON trends.dump_id = scope_trends.dump_id
                AND trends.memory_space = scope_trends.memory_space
                AND trends.metric = 'peak_bytes'
        GROUP BY scope_trends.dump_id, scope_trends.memory_space, 1, 2
        """,
    )
    assert len(compared) > 40
    for peak, change, counted, changed in compared:
        assert (peak, change) == (counted, changed)


def test_a_night_without_rematerialisation_shows_what_forward_keeps_instead(history):
    changes = rows(
        history,
        """
        SELECT pass, SUM(change_bytes)::BIGINT
        FROM scope_trends
        WHERE workload = 'llama-v5e' AND run_id = '2026-10-10' AND memory_space = 0
        GROUP BY pass
        """,
    )
    found = dict(changes)
    assert found["forward"] > 1.9 * 2**30
    assert found["rematerialised"] < -200 * 2**20
