"""`peak_buffers`: what fills a memory space at its peak adds up to that peak, byte by byte."""

import pytest

from ..support.warehouse import reading, rows

# Each finds what is wrong in a warehouse: rows that there must not be, by the law.
LAWS = {
    "counted bytes and shares add up to the peak": """
        SELECT module_id, memory_space, peak_bytes, SUM(counted_bytes), SUM(share)
        FROM module_memory LEFT JOIN internal.peak_buffers USING (module_id, memory_space)
        WHERE module_memory.peak_bytes > 0 GROUP BY ALL
        HAVING COALESCE(SUM(counted_bytes), 0) <> peak_bytes OR ABS(SUM(share) - 1) > 1e-6""",
    "a category adds up to its metric": """
        WITH found AS (
            SELECT module_id, memory_space, category, SUM(counted_bytes) AS bytes
            FROM internal.peak_buffers AS peak_buffers GROUP BY ALL
        ), expected AS (
            UNPIVOT (
                SELECT
                    module_id,
                    memory_space,
                    argument_bytes AS argument,
                    output_bytes - alias_bytes AS output,
                    constant_bytes AS constant
                FROM module_memory
            ) ON argument, output, constant INTO NAME category VALUE bytes
        )
        SELECT * FROM expected LEFT JOIN found USING (module_id, memory_space, category)
        WHERE expected.bytes <> COALESCE(found.bytes, 0)""",
    "every buffer has a category": """
        SELECT * FROM internal.peak_buffers AS peak_buffers
        WHERE category NOT IN ('argument', 'constant', 'output', 'temp')""",
    "the temps are the temp values that are live at the peak": """
        WITH live AS (
            SELECT module_id, value_id
            FROM "values"
            INNER JOIN live_ranges USING (module_id, value_id)
            INNER JOIN allocations USING (module_id, allocation_index)
            INNER JOIN module_memory ON module_memory.module_id = "values".module_id
                AND module_memory.memory_space = "values".memory_space
            WHERE is_temp AND module_memory.peak_time BETWEEN start_time AND end_time
        ), shown AS (SELECT module_id, value_id FROM internal.peak_buffers WHERE category = 'temp')
        (FROM live EXCEPT ALL FROM shown) UNION ALL (FROM shown EXCEPT ALL FROM live)""",
    "what is not a temp is there throughout": """
        SELECT * FROM internal.peak_buffers AS peak_buffers INNER JOIN modules USING (module_id)
        WHERE category <> 'temp' AND (occupied_from <> 0 OR occupied_to <> schedule_length
            OR counted_bytes <> size_bytes OR offset_bytes <> 0)""",
    "an output is shown by a value that lives out": """
        SELECT * FROM internal.peak_buffers AS peak_buffers
        INNER JOIN modules USING (module_id)
        INNER JOIN live_ranges USING (module_id, value_id)
        WHERE category = 'output' AND live_ranges.end_time <> schedule_length""",
    "ranks go from 1 down in size, and a running sum ends at the peak": """
        SELECT * FROM (
            SELECT
                *,
                ROW_NUMBER() OVER (w) AS place,
                LAG(counted_bytes) OVER (w) AS before,
                SUM(counted_bytes) OVER (w) AS so_far
            FROM internal.peak_buffers AS peak_buffers
            WINDOW w AS (PARTITION BY module_id, memory_space ORDER BY rank)
        )
        WHERE rank <> place OR counted_bytes > before OR running_bytes <> so_far""",
    "padding adds up to that of the module": """
        SELECT module_id, memory_space, module_memory.padding_bytes, SUM(buffers.padding_bytes)
        FROM module_memory
        LEFT JOIN internal.peak_buffers AS buffers USING (module_id, memory_space)
        WHERE module_memory.peak_bytes > 0 GROUP BY ALL
        HAVING COALESCE(SUM(buffers.padding_bytes), 0) <> module_memory.padding_bytes""",
    "no buffer counts for more than it takes": """
        SELECT * FROM internal.peak_buffers AS peak_buffers
        WHERE counted_bytes NOT BETWEEN 0 AND size_bytes
            OR padding_bytes NOT BETWEEN 0 AND counted_bytes""",
    "no peak is over its total": """
        SELECT * FROM module_memory WHERE peak_bytes > total_bytes - thread_local_bytes""",
    "an argument has its own name": """
        SELECT * FROM internal.peak_buffers AS buffers
        INNER JOIN instructions AS arguments USING (module_id, instruction)
        WHERE category = 'argument' AND buffers.opcode IS NOT NULL
            AND buffers.op_name IS DISTINCT FROM arguments.op_name""",
    "at the time of the peak the buffers are those of the peak": """
        WITH of_peak AS (
            SELECT module_id, memory_space, allocation_index, value_id, counted_bytes
            FROM internal.peak_buffers AS peak_buffers
        ), at_time AS (
            SELECT taken.module_id, taken.memory_space, allocation_index, value_id, counted_bytes
            FROM module_memory AS memory,
                buffers_at(memory.module_id, memory.memory_space, memory.peak_time) AS taken
            WHERE memory.peak_time IS NOT NULL
        )
        (FROM of_peak EXCEPT ALL FROM at_time) UNION ALL (FROM at_time EXCEPT ALL FROM of_peak)""",
    "the timeline covers the schedule and reaches the peak": """
        SELECT module_id, memory_space
        FROM internal.timeline AS timeline
        INNER JOIN modules USING (module_id)
        INNER JOIN module_memory USING (module_id, memory_space)
        GROUP BY module_id, memory_space, schedule_length, peak_bytes
        HAVING MIN(start_time) <> 0 OR MAX(end_time) <> schedule_length - 1
            OR SUM(end_time - start_time + 1) <> schedule_length
            OR MAX(occupied_bytes) <> peak_bytes""",
}
# How many there must be, so that the laws hold of something.
THERE = """SELECT
    (SELECT COUNT(*) FROM module_memory WHERE peak_bytes > 0) >= 30,
    (SELECT COUNT(*) FROM module_memory WHERE peak_bytes IS NOT NULL AND total_bytes > 0) >= 14,
    (SELECT COUNT(*) FROM internal.peak_buffers WHERE category = 'temp') > 100,
    (SELECT COUNT(*) FROM internal.peak_buffers WHERE category = 'output') > 20,
    (SELECT COUNT(*) FROM internal.peak_buffers WHERE category = 'argument') > 200,
    (SELECT COUNT(*) FROM module_memory WHERE padding_bytes > 0) >= 3,
    (SELECT COUNT(*) FROM internal.timeline AS timeline) > 100"""


@pytest.mark.parametrize("name", ["filled", "history"])
def test_the_laws_of_the_peak_hold(name, request):
    """In the warehouse of all samples, and in that of the ten nights."""
    with reading(request.getfixturevalue(name)) as store:
        broken = {law: store.rows(query).to_pylist()[:3] for law, query in LAWS.items()}
        assert {law: found for law, found in broken.items() if found} == {}
        (there,) = store.connection.sql(THERE).fetchall()
    assert all(there), there


def test_what_is_shown_is_live_at_the_peak_or_belongs_to_the_program(history):
    """XLA uses outputs as scratch; a dead scratch value never stands for its allocation."""
    found = rows(
        history,
        """
        SELECT DISTINCT category
        FROM peak_buffers_by_space AS peak_buffers
        INNER JOIN module_memory USING (module_id, memory_space)
        LEFT JOIN live_ranges AS live USING (module_id, value_id)
        WHERE live.start_time IS NULL OR peak_time NOT BETWEEN live.start_time AND live.end_time
        """,
    )
    assert {category for (category,) in found} == {"argument", "output", "constant"}


# --- what a buffer holds ----------------------------------------------------------------


def test_a_loops_result_is_what_the_body_computes(warehouse):
    """The second of the while's results is a stack of what each layer adds to its input."""
    (found,) = warehouse.sql(
        "SELECT op_name, source_line, operation, pass, role, origin_instruction, origin_rule, "
        "is_saved_for_backward, opcode, made_op_name, made_source_line, element_type, shape "
        "FROM peak_buffers "
        "WHERE workload = 'llama-v5e' AND instruction = 'while.47' AND shape_index = '{2}'"
    ).fetchall()
    held = ("jit(train_step)/jvp()/while/body/closed_call/add", 35, "add", "forward")
    made = ("while", "jit(train_step)/jvp()/while", 40, "bf16")
    shape = "bf16[2,8,1024,512]{3,2,1,0:T(8,128)(2,1)}"
    assert found == (*held, "activation", "add.510", "loop", True, *made, shape)


def test_the_caches_of_a_decoding_step_are_its_arguments(warehouse):
    found = warehouse.sql(
        "SELECT op_name, opcode, role, source_file FROM peak_buffers "
        "WHERE workload = 'decode-h100' "
        "AND category = 'argument' ORDER BY counted_bytes DESC, op_name LIMIT 4"
    ).fetchall()
    caches = [f"cache[{layer}][{part}]" for layer in (0, 1) for part in (0, 1)]
    assert found == [(name, "parameter", "state", None) for name in caches]
