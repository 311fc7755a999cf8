"""`peak_buffers`: what fills a memory space at its peak adds up to that peak, byte by byte."""

import pytest

from ..support.warehouse import rows

JOINED = """
FROM peak_buffers
INNER JOIN module_memory
    ON module_memory.module_id = peak_buffers.module_id
    AND module_memory.memory_space = peak_buffers.memory_space
"""


@pytest.fixture(scope="session", params=["dumps", "nightly"])
def db(request):
    """A warehouse of all sample dumps, and one of the ten nights."""
    if request.param == "dumps":
        return request.getfixturevalue("filled")
    return request.getfixturevalue("history")


def test_there_is_something_to_add_up(db):
    ((spaces, modules),) = rows(
        db, "SELECT COUNT(*), COUNT(DISTINCT module_id) FROM module_memory WHERE peak_bytes > 0"
    )
    assert modules >= 14
    assert spaces > modules


def test_counted_bytes_add_up_to_the_peak(db):
    found = rows(
        db,
        f"SELECT ANY_VALUE(peak_bytes), SUM(counted_bytes) {JOINED} "
        "GROUP BY peak_buffers.module_id, peak_buffers.memory_space",
    )
    assert [peak for peak, _ in found] == [counted for _, counted in found]
    spaces = rows(db, "SELECT COUNT(*) FROM module_memory WHERE peak_bytes > 0")
    assert [(len(found),)] == spaces


@pytest.mark.parametrize(
    ("category", "metric"),
    [
        ("argument", "argument_bytes"),
        ("output", "output_bytes - alias_bytes"),
        ("constant", "constant_bytes"),
    ],
)
def test_a_category_adds_up_to_its_metric(db, category, metric):
    found = rows(
        db,
        f"SELECT {metric}, COALESCE(SUM(counted_bytes), 0) FROM module_memory "
        "LEFT JOIN peak_buffers ON module_memory.module_id = peak_buffers.module_id "
        "AND module_memory.memory_space = peak_buffers.memory_space "
        f"AND category = '{category}' GROUP BY module_memory.module_id, "
        f"module_memory.memory_space, {metric}",
    )
    assert sum(value > 0 for value, _ in found) >= 6
    assert [value for value, _ in found] == [counted for _, counted in found]


def test_nothing_is_in_no_category(db):
    categories = rows(db, "SELECT DISTINCT category FROM peak_buffers ORDER BY 1")
    assert categories == [("argument",), ("constant",), ("output",), ("temp",)]


def test_temp_values_are_live_at_the_peak(db):
    ((temp, dead),) = rows(
        db,
        "SELECT COUNT(*), COUNT(*) FILTER (WHERE peak_time NOT BETWEEN live_ranges.start_time "
        f"AND live_ranges.end_time OR live_ranges.start_time IS NULL) {JOINED} "
        "LEFT JOIN live_ranges ON live_ranges.module_id = peak_buffers.module_id "
        "AND live_ranges.value_id = peak_buffers.value_id WHERE category = 'temp'",
    )
    assert temp > 100
    assert dead == 0


def test_every_temp_value_that_is_live_at_the_peak_is_there(db):
    live = rows(
        db,
        'SELECT "values".module_id, value_id FROM "values" '
        "INNER JOIN live_ranges USING (module_id, value_id) "
        "INNER JOIN allocations USING (module_id, allocation_index) "
        'INNER JOIN module_memory ON module_memory.module_id = "values".module_id '
        'AND module_memory.memory_space = "values".memory_space '
        "WHERE is_temp AND module_memory.peak_time BETWEEN start_time AND end_time ORDER BY ALL",
    )
    shown = rows(
        db, "SELECT module_id, value_id FROM peak_buffers WHERE category = 'temp' ORDER BY ALL"
    )
    assert live == shown


def test_what_is_not_a_temp_is_there_throughout(db):
    ((shown, other),) = rows(
        db,
        "SELECT COUNT(*), COUNT(*) FILTER (WHERE start_time <> 0 OR end_time <> schedule_length "
        "OR counted_bytes <> size_bytes OR offset_bytes <> 0) FROM peak_buffers "
        "INNER JOIN modules USING (module_id) WHERE category <> 'temp'",
    )
    assert (shown > 0, other) == (True, 0)


def test_the_running_sum_ends_at_the_peak(db):
    found = rows(
        db,
        "SELECT peak_bytes, MAX(running_bytes), MAX_BY(running_bytes, rank), "
        f"MIN_BY(running_bytes, rank), MAX(counted_bytes) {JOINED} "
        "GROUP BY peak_buffers.module_id, peak_buffers.memory_space, peak_bytes",
    )
    for peak, most, last, first, largest in found:
        assert peak == most == last
        assert first == largest


def test_ranks_go_from_1_and_down_in_size(db):
    found = rows(
        db,
        "SELECT COUNT(*), COUNT(DISTINCT rank), MIN(rank), MAX(rank) FROM peak_buffers "
        "GROUP BY module_id, memory_space",
    )
    for count, different, first, last in found:
        assert (count, 1, count) == (different, first, last)
    assert not rows(
        db,
        "SELECT * FROM peak_buffers QUALIFY counted_bytes > LAG(counted_bytes) OVER "
        "(PARTITION BY module_id, memory_space ORDER BY rank)",
    )


def test_shares_add_up_to_1(db):
    found = rows(db, "SELECT SUM(share) FROM peak_buffers GROUP BY module_id, memory_space")
    assert [share for (share,) in found] == pytest.approx([1] * len(found))


def test_padding_adds_up_to_that_of_the_module(db):
    found = rows(
        db,
        f"SELECT module_memory.padding_bytes, SUM(peak_buffers.padding_bytes) {JOINED} "
        "GROUP BY peak_buffers.module_id, peak_buffers.memory_space, module_memory.padding_bytes",
    )
    assert sum(padding > 0 for padding, _ in found) >= 3
    assert [padding for padding, _ in found] == [counted for _, counted in found]


def test_no_peak_is_over_its_total(db):
    figures = "SELECT peak_bytes, total_bytes, thread_local_bytes FROM module_memory"
    found = rows(db, f"{figures} WHERE total_bytes IS NOT NULL")
    assert [row for row in found if row[0] > row[1] - row[2]] == []


def test_no_buffer_counts_for_more_than_it_takes(db):
    assert not rows(
        db, "SELECT * FROM peak_buffers WHERE counted_bytes NOT BETWEEN 0 AND size_bytes"
    )
    assert not rows(
        db, "SELECT * FROM peak_buffers WHERE padding_bytes NOT BETWEEN 0 AND counted_bytes"
    )


def test_at_each_time_the_buffers_add_up_to_what_is_occupied(db):
    """Also beyond the peak: `_counted_buffers` counts at any time."""
    found = rows(
        db,
        """
        WITH counted AS (
            SELECT module_id, memory_space, time, SUM(counted_bytes) AS counted_bytes
            FROM _counted_buffers WHERE NOT is_peak GROUP BY ALL
        ),
        small AS (
            SELECT module_id FROM modules WHERE schedule_length > 0
            ORDER BY schedule_length LIMIT 9
        )
        SELECT occupancy.occupied_bytes, COALESCE(counted.counted_bytes, 0)
        FROM occupancy INNER JOIN small USING (module_id)
        LEFT JOIN counted ON counted.module_id = occupancy.module_id
            AND counted.memory_space = occupancy.memory_space
            AND counted.time = occupancy.start_time
        """,
    )
    assert len(found) > 20
    assert [row for row in found if row[0] != row[1]] == []


def test_at_the_peaks_time_the_buffers_are_those_of_the_peak(db):
    columns = "module_id, memory_space, time, counted_bytes, allocation_index, value_id"
    of_peak = rows(db, f"SELECT {columns} FROM _counted_buffers WHERE is_peak ORDER BY ALL")
    at_time = rows(
        db,
        f"SELECT {columns} FROM _counted_buffers SEMI JOIN "
        "(SELECT module_id, memory_space, peak_time AS time FROM module_memory) "
        "USING (module_id, memory_space, time) WHERE NOT is_peak ORDER BY ALL",
    )
    assert len(of_peak) > 500
    assert of_peak == at_time


def test_a_row_says_what_a_buffer_is(warehouse):
    found = warehouse.sql(
        "SELECT rank, counted_bytes, category, instruction, shape_index, opcode, shape, "
        "op_name, start_time, end_time FROM peak_buffers INNER JOIN dumps USING (module_id) "
        "WHERE workload = 'llama-v5e' AND memory_space = 0 AND rank IN (1, 5, 6) ORDER BY rank"
    ).fetchall()
    # bf16[8,1024,4096] is 64 MiB. The second of the while's results is a stack of what each
    # layer adds to its input: the while only made it.
    assert [row[:8] for row in found] == [
        (
            1,
            67108864,
            "temp",
            "all-gather.19",
            "{}",
            "all-gather",
            "bf16[8,1024,4096]{2,1,0:T(8,128)(2,1)}",
            "jit(train_step)/transpose(jvp())/dot_general",
        ),
        (
            5,
            16777216,
            "temp",
            "while.47",
            "{2}",
            "while",
            "bf16[2,8,1024,512]{3,2,1,0:T(8,128)(2,1)}",
            "jit(train_step)/jvp()/while/body/closed_call/add",
        ),
        (
            6,
            8388608,
            "argument",
            "param.5",
            "{}",
            "parameter",
            "f32[4096,512]{1,0:T(8,128)}",
            "m['emb']",
        ),
    ]


# --- what a buffer holds ----------------------------------------------------------------


def test_a_loops_result_is_what_the_body_computes(warehouse):
    (found,) = warehouse.sql(
        "SELECT op_name, source_line, operation, pass, role, origin_instruction, origin_rule, "
        "is_saved_for_backward, opcode, made_op_name, made_source_line, element_type "
        "FROM peak_buffers INNER JOIN dumps USING (module_id) "
        "WHERE workload = 'llama-v5e' AND instruction = 'while.47' AND shape_index = '{2}'"
    ).fetchall()
    held = ("jit(train_step)/jvp()/while/body/closed_call/add", 35, "add", "forward")
    made = ("while", "jit(train_step)/jvp()/while", 40, "bf16")
    assert found == (*held, "activation", "add.510", "loop", True, *made)


def test_the_caches_of_a_decoding_step_are_its_arguments(warehouse):
    found = warehouse.sql(
        "SELECT op_name, opcode, role, source_file FROM peak_buffers "
        "INNER JOIN dumps USING (module_id) WHERE workload = 'decode-h100' "
        "AND category = 'argument' ORDER BY counted_bytes DESC, op_name"
    ).fetchall()
    assert found[:4] == [
        (f"cache[{layer}][{part}]", "parameter", "state", None)
        for layer in (0, 1)
        for part in (0, 1)
    ]
    assert {opcode for _, opcode, _, _ in found} == {"parameter"}


def test_every_argument_has_its_name(db):
    found = rows(
        db,
        """
        SELECT peak_buffers.op_name, arguments.op_name
        FROM peak_buffers
        INNER JOIN allocations USING (module_id, allocation_index)
        INNER JOIN instructions AS arguments
            ON arguments.module_id = peak_buffers.module_id
            AND arguments.instruction = peak_buffers.instruction
        WHERE category = 'argument' AND peak_buffers.opcode IS NOT NULL
        """,
    )
    assert len(found) > 200
    assert [row for row in found if row[0] != row[1]] == []


def test_what_is_shown_is_live_at_the_peak_or_belongs_to_the_program(history):
    """XLA uses outputs as scratch; a dead scratch value never stands for its allocation."""
    found = rows(
        history,
        f"""
        SELECT instruction, category, live.start_time, live.end_time, peak_time {JOINED}
        INNER JOIN dumps ON dumps.module_id = peak_buffers.module_id
        LEFT JOIN live_ranges AS live
            ON live.module_id = peak_buffers.module_id AND live.value_id = peak_buffers.value_id
        WHERE run_id = '2026-10-08' AND workload = 'llama-v5e'
            AND (live.start_time IS NULL OR peak_time NOT BETWEEN live.start_time AND live.end_time)
        """,
    )
    assert {category for _, category, *_ in found} <= {"argument", "output", "constant"}


def test_an_output_is_shown_by_a_value_that_lives_out(db):
    ((outputs, others),) = rows(
        db,
        "SELECT COUNT(*), COUNT(*) FILTER (live_ranges.end_time <> schedule_length) "
        "FROM peak_buffers INNER JOIN modules USING (module_id) "
        "INNER JOIN live_ranges ON live_ranges.module_id = peak_buffers.module_id "
        "AND live_ranges.value_id = peak_buffers.value_id WHERE category = 'output'",
    )
    assert outputs > 20
    assert others == 0
