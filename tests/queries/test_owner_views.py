"""Who owns the peak: by operation, source line and scope; what lives long, pads, wastes."""

import pytest

import memhouse
from memhouse.schema.metrics import METRICS

from ..support.warehouse import reading, rows

# Each finds what is wrong in a warehouse: rows that there must not be, by the law.
LAWS = {
    "the owners of each kind add up to the peak": """
        WITH kinds AS (SELECT DISTINCT kind FROM internal.owners)
        SELECT module_id, memory_space, kind, peak_bytes, SUM(counted_bytes), SUM(share)
        FROM module_memory CROSS JOIN kinds
        LEFT JOIN internal.owners USING (module_id, memory_space, kind)
        WHERE peak_bytes > 0 GROUP BY ALL
        HAVING COALESCE(SUM(counted_bytes), 0) <> peak_bytes OR ABS(SUM(share) - 1) > 1e-6""",
    "owners_of has the same owners": """
        WITH llama AS (SELECT MODULE('llama-v5e') AS module_id)
        (SELECT memory_space, owner, is_guess, buffers, counted_bytes
            FROM OWNERS_OF(MODULE('llama-v5e'), 'source'))
        EXCEPT ALL
        (SELECT memory_space, owner, is_guess, buffers, counted_bytes
            FROM internal.owners SEMI JOIN llama USING (module_id) WHERE kind = 'source')""",
    "waste is what the fullest moment leaves": """
        SELECT * FROM internal.fragmentation AS fragmentation
        WHERE live_bound_bytes NOT BETWEEN 0 AND size_bytes
            OR fragmentation_bytes <> size_bytes - live_bound_bytes
            OR ABS(wasted - fragmentation_bytes / size_bytes) > 1e-6""",
    "waste of a space's only temp is the module's fragmentation": """
        SELECT module_id, memory_space
        FROM internal.fragmentation AS fragmentation
        INNER JOIN module_memory USING (module_id, memory_space)
        GROUP BY module_id, memory_space, module_memory.fragmentation_bytes
        HAVING COUNT(*) = 1
            AND SUM(fragmentation.fragmentation_bytes) <> module_memory.fragmentation_bytes""",
    "every value that is padded is there": """
        (
            SELECT module_id, value_id, size_bytes - logical_bytes FROM "values"
            WHERE size_bytes > logical_bytes
        ) EXCEPT ALL (SELECT module_id, value_id, padding_bytes FROM internal.padding)""",
    "nothing else is": """
        SELECT * FROM internal.padding
        WHERE padding_bytes <> size_bytes - logical_bytes OR padding_bytes <= 0""",
    "arguments, outputs and constants take their memory throughout": """
        SELECT * FROM internal.padding
        INNER JOIN internal.buffer_extents USING (module_id, memory_space, value_id)
        INNER JOIN modules USING (module_id)
        INNER JOIN live_ranges USING (module_id, value_id)
        WHERE category <> 'temp' AND NOT padding.is_live_at_peak
            AND (padding.opcode IN ('parameter', 'constant')
                OR live_ranges.end_time = schedule_length)""",
    "an argument and an output that could be donated pair once": """
        SELECT module_id FROM internal.missed_donations AS missed_donations GROUP BY module_id
        HAVING COUNT(*) <> COUNT(DISTINCT output_allocation_index)
            OR COUNT(*) <> COUNT(DISTINCT (parameter_number, parameter_shape_index))""",
    # An output's allocation also holds other values before it: only the output lives out.
    "the output that is named is one": """
        SELECT parameter_number, output_instruction FROM internal.missed_donations AS missed
        WHERE output_instruction IS NOT NULL AND NOT EXISTS (SELECT 1 FROM instructions
            INNER JOIN "values" USING (module_id, instruction_id)
            INNER JOIN live_ranges USING (module_id, value_id)
            INNER JOIN modules USING (module_id)
            WHERE instructions.module_id = missed.module_id AND instruction = output_instruction
                AND allocation_index = output_allocation_index AND end_time = schedule_length)""",
    "a metric is a column of module_memory": " UNION ALL ".join(
        f"""(SELECT module_id, memory_space, value FROM internal.metrics
            WHERE metric = '{metric}'
            EXCEPT ALL SELECT module_id, memory_space, {metric} FROM module_memory)"""
        for metric in METRICS
    ),
}


@pytest.mark.parametrize("name", ["filled", "history"])
def test_the_laws_of_ownership_hold(name, request):
    """In the warehouse of all samples, and in that of the ten nights."""
    with reading(request.getfixturevalue(name)) as store:
        broken = {law: store.rows(query).to_pylist()[:3] for law, query in LAWS.items()}
        there = store.connection.sql(
            "SELECT (SELECT COUNT(*) FROM owners WHERE kind = 'scope') > 50, "
            "(SELECT COUNT(*) FROM fragmentation_by_space) > 10, "
            "(SELECT COUNT(*) FROM padding) > 10, "
            "(SELECT COUNT(*) FROM missed_donations) > 0"
        ).fetchall()
    assert {law: found for law, found in broken.items() if found} == {}
    assert all(there[0]), there


def test_the_owners_of_the_peak_of_llama(warehouse):
    """What a reader of the program expects: whatever made a buffer, it holds what the program
    computes, and the stack of the layers' inputs is what the backward pass reads."""

    def owned(kind):
        query = f"""SELECT owner, SUM(counted_bytes) FROM owners
            WHERE workload = 'llama-v5e' AND kind = '{kind}' GROUP BY 1 ORDER BY 2 DESC"""
        return warehouse.sql(query).fetchall()

    assert [name for name, _ in owned("op")[:4]] == ["dot_general", "argument", "add", "add_any"]
    file = "/train/zoo/zoo.py"
    # The layers' inputs and hidden activations, the logits' gradient, and q, k and v again.
    assert [name for name, _ in owned("source")[:4]] == [
        "(arguments)",
        f"{file}:35",
        f"{file}:43",
        f"{file}:32",
    ]
    assert owned("dtype")[:2] == [("bf16", 235358720), ("f32", 85406720)]
    roles = dict(owned("role"))
    assert roles["activation"] >= 16 << 20
    assert roles["weight"] + roles["optimizer state"] + roles["input"] == 106252288
    steps = {step for owner, _ in owned("scope") for step in owner.split("/")}
    assert "btd,dhk->bthk" in steps
    # Transformations and loops are no scopes.
    wrappers = {"jit(train_step)", "transpose(jvp())", "jvp()", "while", "body", "checkpoint"}
    assert not steps & wrappers


def test_without_a_run_the_latest_night_of_each_series_is_shown(history):
    """An allocation's number drifts from night to night; old nights are not shown for it."""
    with memhouse.open(history, read_only=True) as warehouse:
        found = warehouse.fragmentation().table
        assert found == warehouse.fragmentation(run="2026-10-10").table
    assert set(found["run"].to_pylist()) == {"2026-10-10"}
    temps = rows(
        history,
        "SELECT COUNT(*) FROM allocations INNER JOIN dumps USING (module_id) "
        "WHERE run_id = '2026-10-10' AND is_temp",
    )
    assert temps == [(len(found),)]


def test_what_tiles_cost(warehouse):
    """3 channels by 16 images in tiles of 4 by 128."""
    (found,) = warehouse.sql(
        "SELECT shape, size_bytes, logical_bytes, times_logical "
        "FROM padding "
        "WHERE workload = 'resnet-v5e' AND memory_space = 0 ORDER BY padding_bytes DESC LIMIT 1"
    ).fetchall()
    size, logical = 224 * 224 * 4 * 128 * 2, 224 * 224 * 3 * 16 * 2
    shape = "bf16[16,224,224,3]{0,3,2,1:T(4,128)(2,1)}"
    assert found == (shape, size, logical, pytest.approx(32 / 3))
