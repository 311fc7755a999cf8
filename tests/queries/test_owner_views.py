"""Who owns the peak: by operation, source line and scope; what lives long, pads, wastes."""

import pytest

import memhouse

from ..support.warehouse import rows

LLAMA = "(SELECT module_id FROM dumps WHERE workload = 'llama-v5e') AND memory_space = 0"


@pytest.fixture(scope="session", params=["dumps", "nightly"])
def db(request):
    """A warehouse of all sample dumps, and one of the ten nights."""
    if request.param == "dumps":
        return request.getfixturevalue("filled")
    return request.getfixturevalue("history")


# --- owners -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "view", ["memory_by_op", "memory_by_source", "(FROM memory_by_scope WHERE depth = 0)"]
)
def test_owners_add_up_to_the_peak(db, view):
    found = rows(
        db,
        "SELECT peak_bytes, SUM(counted_bytes), SUM(share) "
        f"FROM module_memory INNER JOIN {view} AS owners USING (module_id, memory_space) "
        "GROUP BY module_id, memory_space, peak_bytes",
    )
    assert rows(db, "SELECT COUNT(*) FROM module_memory WHERE peak_bytes > 0") == [(len(found),)]
    for peak, counted, share in found:
        assert counted == peak
        assert share == pytest.approx(1)


def test_the_operations_that_own_the_peak_of_llama(warehouse):
    found = warehouse.sql(
        "SELECT opcode, buffers, counted_bytes, largest_bytes FROM memory_by_op "
        f"WHERE module_id = {LLAMA} ORDER BY counted_bytes DESC LIMIT 4"
    ).fetchall()
    assert found == [
        ("parameter", 46, 127480320, 8388608),
        ("fusion", 11, 69367296, 23068672),
        ("all-gather", 1, 67108864, 67108864),
        ("copy-start", 20, 37982720, 8388608),
    ]


def test_the_lines_that_own_the_peak_of_llama(warehouse):
    found = warehouse.sql(
        "SELECT source_file, source_line, counted_bytes, categories FROM memory_by_source "
        f"WHERE module_id = {LLAMA} ORDER BY counted_bytes DESC LIMIT 5"
    ).fetchall()
    file = "/train/zoo/zoo.py"
    assert found == [
        (None, None, 106244096, "argument"),
        (file, 35, 69206528, "temp"),
        (file, 43, 67109376, "constant, temp"),
        (None, None, 62362112, "temp"),
        (file, 40, 16779264, "output, temp"),
    ]


def test_scopes_nest(db):
    """What is under a scope never exceeds it, and every scope's parent is there."""
    found = rows(
        db,
        """
        WITH under AS (
            SELECT module_id, memory_space, pass, depth - 1 AS depth,
                REGEXP_REPLACE(scope, '/?[^/]*$', '') AS scope,
                SUM(counted_bytes) AS counted_bytes, SUM(buffers) AS buffers
            FROM memory_by_scope WHERE depth > 0
            GROUP BY ALL
        )
        SELECT over.counted_bytes, under.counted_bytes, over.buffers, under.buffers
        FROM under LEFT JOIN memory_by_scope AS over
            USING (module_id, memory_space, pass, depth, scope)
        """,
    )
    assert len(found) > 100
    for over_bytes, under_bytes, over_buffers, under_buffers in found:
        assert under_bytes <= over_bytes
        assert under_buffers <= over_buffers


def test_only_what_has_no_name_is_in_no_scope(db):
    found = rows(
        db,
        "SELECT SUM(counted_bytes) FILTER (WHERE depth = 0), "
        "SUM(counted_bytes) FILTER (WHERE depth = 1) FROM memory_by_scope",
    )
    named = rows(
        db,
        "SELECT SUM(counted_bytes), SUM(counted_bytes) FILTER (WHERE op_name <> '') "
        "FROM peak_buffers",
    )
    assert found == named


@pytest.mark.parametrize("workload", ["llama-v5e", "llama-v5e-jax0.7.0"])
def test_forward_backward_and_rematerialised_are_told_apart(warehouse, workload):
    found = warehouse.sql(
        "SELECT pass, counted_bytes FROM memory_by_scope INNER JOIN dumps USING (module_id) "
        "WHERE workload = $1 AND memory_space = 0 AND depth = 0",
        params=[workload],
    ).fetchall()
    passes = dict(found)
    assert set(passes) == {"forward", "backward", "rematerialised", "other"}
    # The scan's carry; the logits' gradient and the gradient of a layer's hidden
    # activations; the hidden activations computed a second time.
    assert round(passes["forward"] / 2**20) == 16
    assert round(passes["backward"] / 2**20) == 64 + 22
    assert round(passes["rematerialised"] / 2**20) == 44


def test_a_scope_says_where_it_is(warehouse):
    (found,) = warehouse.sql(
        "SELECT step, is_wrapper, pass, buffers, counted_bytes FROM memory_by_scope "
        f"WHERE module_id = {LLAMA} AND depth = 3 "
        "AND scope = 'jit(train_step)/transpose(jvp())/dot_general'"
    ).fetchall()
    assert found == ("dot_general", False, "backward", 1, 67108864)


def test_wrappers_are_no_layers(warehouse):
    found = warehouse.sql(
        "SELECT DISTINCT step, is_wrapper FROM memory_by_scope WHERE depth > 0"
    ).fetchall()
    wrappers = {step for step, is_wrapper in found if is_wrapper}
    layers = {step for step, is_wrapper in found if not is_wrapper}
    assert {"jit(train_step)", "transpose(jvp())", "while", "body", "checkpoint"} <= wrappers
    assert {"dot_general", "add", "scatter-add", "p['emb']"} <= layers
    assert not wrappers & layers


# --- long lived -------------------------------------------------------------------------


def test_what_is_large_and_idle_for_long(warehouse):
    found = warehouse.sql(
        "SELECT instruction, shape_index, size_bytes, start_time, end_time, life, byte_steps, "
        "idle_time, idle_byte_steps, is_live_at_peak, source_line FROM long_lived "
        f"WHERE module_id = {LLAMA} ORDER BY byte_steps DESC LIMIT 2"
    ).fetchall()
    # `all-gather.19{}:303-914`.
    size, carry = 64 << 20, 16 << 20
    assert found == [
        ("all-gather.19", "{}", size, 303, 914, 612, 612 * size, 479, 479 * size, True, 43),
        ("while.47", "{2}", carry, 231, 609, 379, 379 * carry, 222, 222 * carry, True, 40),
    ]


def test_no_value_is_idle_for_longer_than_it_lives(db):
    ((count, wrong),) = rows(
        db,
        "SELECT COUNT(*), COUNT(*) FILTER (WHERE idle_time NOT BETWEEN 0 AND life - 1 OR "
        "idle_time IS NULL AND life > 1) FROM long_lived",
    )
    assert count > 1000
    assert wrong == 0


def test_every_temp_value_has_a_life(db):
    assert rows(db, "SELECT COUNT(*) FROM long_lived") == rows(
        db,
        'SELECT COUNT(*) FROM live_ranges INNER JOIN "values" USING (module_id, value_id) '
        "INNER JOIN allocations USING (module_id, allocation_index) WHERE is_temp",
    )


# --- fragmentation ----------------------------------------------------------------------


def test_what_packing_wastes(warehouse):
    found = warehouse.sql(
        "SELECT workload, fragmentation.memory_space, size_bytes, live_bound_bytes, "
        "packing_bytes, peak_time, instruction FROM fragmentation "
        "INNER JOIN dumps USING (module_id) WHERE workload IN ('llama-v5e', 'decode8-v5e') "
        "ORDER BY packing_bytes DESC LIMIT 2"
    ).fetchall()
    assert found == [
        ("decode8-v5e", 1, 108019712, 78647808, 29371904, 190, "copy.17"),
        ("llama-v5e", 0, 241271296, 215622656, 25648640, 438, "all-reduce.77"),
    ]


def test_waste_is_what_the_fullest_moment_leaves(db):
    found = rows(
        db, "SELECT size_bytes, live_bound_bytes, packing_bytes, wasted FROM fragmentation"
    )
    for size, most, waste, wasted in found:
        assert 0 <= most <= size
        assert waste == size - most
        assert wasted == pytest.approx(waste / size)


def test_waste_of_a_spaces_only_temp_is_the_modules_fragmentation(db):
    found = rows(
        db,
        "SELECT ANY_VALUE(fragmentation_bytes), SUM(fragmentation.packing_bytes) "
        "FROM fragmentation "
        "INNER JOIN module_memory USING (module_id, memory_space) "
        "GROUP BY module_id, memory_space HAVING COUNT(*) = 1",
    )
    assert len(found) > 10
    assert [figure for figure, _ in found] == [wasted for _, wasted in found]


def test_without_a_run_the_latest_night_of_each_series_is_shown(history):
    """An allocation's number drifts from night to night; old nights are not shown for it."""
    with memhouse.open(history, read_only=True) as warehouse:
        found = warehouse.fragmentation().arrow().to_pylist()
        last = warehouse.fragmentation(run="2026-10-10").arrow().to_pylist()
    assert {row["run"] for row in found} == {"2026-10-10"}
    assert found == last
    temps = rows(
        history,
        "SELECT COUNT(*) FROM allocations INNER JOIN dumps USING (module_id) "
        "WHERE run_id = '2026-10-10' AND is_temp",
    )
    assert temps == [(len(found),)]


# --- padding ----------------------------------------------------------------------------


def test_what_tiles_cost(warehouse):
    (found,) = warehouse.sql(
        "SELECT instruction, shape, size_bytes, logical_bytes, padding_bytes, times_logical, "
        "is_live_at_peak, element_type FROM padding INNER JOIN dumps USING (module_id) "
        "WHERE workload = 'resnet-v5e' AND memory_space = 0 ORDER BY padding_bytes DESC LIMIT 1"
    ).fetchall()
    # 3 channels by 16 images in tiles of 4 by 128.
    size, logical = 224 * 224 * 4 * 128 * 2, 224 * 224 * 3 * 16 * 2
    shape = "bf16[16,224,224,3]{0,3,2,1:T(4,128)(2,1)}"
    assert found[:5] == ("copy-start.1", shape, size, logical, size - logical)
    assert found[5:] == (pytest.approx(32 / 3), True, "bf16")


def test_every_value_that_is_padded_is_there(db):
    assert rows(db, "SELECT COUNT(*), SUM(padding_bytes) FROM padding") == rows(
        db,
        'SELECT COUNT(*), SUM(size_bytes - logical_bytes) FROM "values" '
        "WHERE size_bytes > logical_bytes",
    )


def test_arguments_outputs_and_constants_take_their_memory_throughout(db):
    """Their allocations are there at the peak, before they are made and after their last use."""
    found = rows(
        db,
        "SELECT category, COUNT(*), "
        "COUNT(*) FILTER (WHERE module_memory.peak_time NOT BETWEEN "
        "live_ranges.start_time AND live_ranges.end_time), "
        "BOOL_AND(padding.is_live_at_peak) "
        "FROM padding INNER JOIN _buffers USING (module_id, memory_space, value_id) "
        "INNER JOIN module_memory USING (module_id, memory_space) "
        "INNER JOIN modules USING (module_id) "
        "INNER JOIN live_ranges USING (module_id, value_id) "
        "WHERE category <> 'temp' AND (padding.opcode IN ('parameter', 'constant') "
        "OR live_ranges.end_time = schedule_length) GROUP BY category",
    )
    there = {category: row for category, *row in found}
    assert {"argument", "output"} <= set(there)
    assert sum(not_live for _, not_live, _ in there.values()) > 10
    assert all(all_there for _, _, all_there in there.values())


# --- missed donations -------------------------------------------------------------------


def test_donated_arguments_are_not_missed(history):
    found = rows(
        history,
        "SELECT run_id, SUM(size_bytes) FROM missed_donations INNER JOIN dumps USING (module_id) "
        "WHERE workload = 'llama-v5e' GROUP BY run_id",
    )
    assert [run for run, _ in found] == ["2026-10-08"]
    assert found[0][1] > 120 << 20


def test_what_is_missed_is_what_the_signature_pairs(history):
    """As many as there are arguments and results of one shape, in the night without donation.

    Layouts make no difference.
    """
    module = "(SELECT module_id FROM dumps WHERE run_id = '2026-10-08' AND workload = 'llama-v5e')"
    pairs = rows(
        history,
        "SELECT SPLIT_PART(shape, '{', 1) AS plain, LEAST(COUNT(*) FILTER (WHERE is_output), "
        "COUNT(*) FILTER (WHERE NOT is_output)) AS pairs FROM entry_shapes "
        f"WHERE module_id = {module} GROUP BY plain HAVING pairs > 0 ORDER BY plain",
    )
    missed = rows(
        history,
        "SELECT SPLIT_PART(shape, '{', 1) AS plain, COUNT(*) FROM missed_donations "
        f"WHERE module_id = {module} AND paired_by = 'shape' GROUP BY plain ORDER BY plain",
    )
    assert missed == pairs


def test_the_output_that_is_named_is_one(history):
    """An output's allocation also holds other values before it: only the output lives out."""
    found = rows(
        history,
        "SELECT parameter_number, output_instruction FROM missed_donations AS missed "
        "WHERE NOT EXISTS (SELECT 1 FROM instructions "
        'INNER JOIN "values" USING (module_id, instruction_id) '
        "INNER JOIN live_ranges USING (module_id, value_id) "
        "INNER JOIN modules USING (module_id) "
        "WHERE instructions.module_id = missed.module_id AND instruction = output_instruction "
        "AND allocation_index = output_allocation_index AND end_time = schedule_length)",
    )
    assert found == []


def test_a_missed_donation_names_the_argument_and_the_output(history):
    found = rows(
        history,
        "SELECT parameter_number, argument_name, shape, size_bytes, output_instruction "
        "FROM missed_donations INNER JOIN dumps USING (module_id) "
        "WHERE run_id = '2026-10-08' AND workload = 'llama-v5e' "
        "AND parameter_number IN (0, 21) ORDER BY 1",
    )
    assert found == [
        (
            0,
            "p['emb']",
            "bf16[4096,512]{1,0:T(8,128)(2,1)}",
            4194304,
            "subtract_convert_fusion.4",
        ),
        (
            21,
            "m['layers']['up']",
            "f32[3,512,1408]{2,1,0:T(8,128)}",
            8650752,
            # That of the result {21}; `subtract_convert_fusion.1` is {15}.
            "subtract_convert_fusion",
        ),
    ]


def test_an_argument_and_an_output_pair_once(db):
    found = rows(
        db,
        "SELECT COUNT(*), COUNT(DISTINCT (module_id, output_allocation_index)), "
        "COUNT(DISTINCT (module_id, parameter_number, parameter_shape_index)) "
        "FROM missed_donations",
    )
    ((count, outputs, arguments),) = found
    assert count == outputs == arguments > 0
