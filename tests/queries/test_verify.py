"""`verify`: clean on what was ingested, and each check finds the damage it is for."""

import csv
import json
from contextlib import closing

import pytest

from memhouse.queries.catalogue import checks, statement
from memhouse.queries.history_breaches import (
    HISTORY_HOLDS,
    HISTORY_IS_CURRENT,
    history_breaches,
)
from memhouse.schema.stores.duckdb import open_store
from memhouse.schema.tables import KEYS

from ..support.command import run_memhouse
from ..support.warehouse import rows

# The module that is damaged: it has loops, temp memory and HLO text.
MODULE = "(SELECT module_id FROM dumps WHERE workload = 'jax-0.10.2' AND module_name = 'jit_mixed')"
OF = f"WHERE module_id = {MODULE}"
VALUE = f"{OF} AND value_id = 127"
# The module whose residuals are damaged: a training step.
STEP = "WHERE module_id = (SELECT module_id FROM dumps WHERE workload = 'llama-v5e')"

# check, what is done to the warehouse, what is then said.
DAMAGES = [
    (
        "origins_are_instructions",
        f'UPDATE "values" SET origin_instruction_id = 99999 {VALUE}',
        "value 127 has the origin 99999",
    ),
    (
        "origins_are_instructions",
        f"UPDATE \"values\" SET origin_rule = NULL {OF} AND origin_rule = 'argument'",
        "by the rule null and the pass argument",
    ),
    (
        "scopes_are_named",
        f"DELETE FROM scopes {OF} AND scope_id = 0",
        "is in scope 0, which is not in scopes",
    ),
    (
        "scopes_are_named",
        f"UPDATE instructions SET scope_id = NULL {OF} AND scope_id = 0",
        "no instruction is in scope 0",
    ),
    (
        "allocations_show_their_values",
        f"UPDATE allocations SET value_id = NULL {OF} AND is_parameter",
        "is shown by no value",
    ),
    (
        "alias_sets_are_their_values",
        f"UPDATE alias_sets SET end_time = end_time + 1 {OF}",
        "is idle from",
    ),
    (
        "alias_sets_are_their_values",
        f"DELETE FROM alias_sets {OF} AND alias_set = (SELECT MIN(alias_set) FROM alias_sets {OF})",
        "which is not there",
    ),
    (
        "residuals_are_kept",
        f"UPDATE residuals SET idle_end_time = end_time + 1 {STEP} AND residual_id = 0",
        "residual 0 is made in forward",
    ),
    (
        "residuals_are_kept",
        f"UPDATE \"values\" SET pass = 'backward' {STEP} AND residual_id = 0",
        "residual 0 is made in backward",
    ),
    (
        "last_uses_are_live",
        f'UPDATE "values" SET last_use_time = 4000 {OF} AND last_use_time IS NOT NULL',
        "is used last at 4000",
    ),
    (
        "bounds_fit_temps",
        f"UPDATE module_memory SET live_bound_bytes = temp_bytes + 1 {OF}",
        "must be live in temps of",
    ),
    (
        "liveness_follows_from_text",
        f"UPDATE modules SET liveness_difference = 'add{{}} lives from 1 to 2' {OF}",
        "add{} lives from 1 to 2",
    ),
    (
        "allocations_add_up",
        f"UPDATE allocations SET size_bytes = size_bytes + 1 {OF} AND allocation_index = 0",
        "allocations add up to 148384 bytes, XLA reports 148383",
    ),
    (
        "dumps_are_complete",
        "UPDATE dump_files SET status = 'failed', line = 3, message = 'cut short' "
        "WHERE path = '000_e0d5fae9bf2de249.txt'",
        "run seeds, 000_e0d5fae9bf2de249.txt:3: cut short",
    ),
    (
        "instructions_have_one_number",
        f"UPDATE instructions SET instruction = 'x.1' {OF} AND instruction = 'x.5'",
        "instruction x.1 has two numbers",
    ),
    (
        "keys_are_unique",
        f"UPDATE uses SET use_index = 0 {VALUE} AND use_index = 1",
        "uses 127, 0 occurs twice",
    ),
    (
        "live_ranges_have_values",
        f'DELETE FROM "values" {VALUE}',
        "live range without a value: 127",
    ),
    (
        "live_ranges_have_values",
        f"DELETE FROM live_ranges {VALUE}",
        "value 127 has no live range",
    ),
    (
        "live_ranges_have_values",
        f"UPDATE live_ranges SET end_time = 48 {VALUE}",
        "value 127 lives from 21 to 48 in a schedule of 47",
    ),
    (
        "live_ranges_have_values",
        f"UPDATE live_ranges SET start_time = end_time + 1 {VALUE}",
        "value 127 lives from 48 to 47",
    ),
    (
        "modules_are_there",
        f"DELETE FROM modules {OF}",
        "the module of run cpu is not there",
    ),
    ("modules_are_there", "DELETE FROM runs WHERE run_id = 'cpu'", "run cpu is not there"),
    (
        "modules_are_there",
        f"UPDATE occupancy SET module_id = 7 {OF}",
        "rows without their module",
    ),
    (
        "names_are_in_hlo_text",
        f"UPDATE instructions SET computation = NULL {OF} AND instruction = 'x.5'",
        "x.5 is not in the HLO text",
    ),
    (
        "occupied_fits_allocations",
        f"UPDATE occupancy SET occupied_bytes = 999999 {OF} AND start_time = 0",
        "memory space 0: 999999 bytes are occupied of 148383",
    ),
    (
        "occurrences_are_unique",
        "UPDATE dumps SET occurrence = 1 "
        "WHERE workload = 'jax-0.4.23' AND module_name = 'jit_convert_element_type'",
        "jit_convert_element_type: 2 dumps have the occurrence 1",
    ),
    (
        "operands_are_instructions",
        f"UPDATE operands SET operand_instruction_id = -1 {OF} AND operand_number = 2",
        "operand without its instruction",
    ),
    (
        "operands_are_instructions",
        f"UPDATE calls SET computation = 'gone' {OF} AND attribute = 'body'",
        "call of an unknown computation: gone",
    ),
    (
        "peak_is_the_maximum",
        f"UPDATE module_memory SET peak_bytes = peak_bytes - 1 {OF}",
        "memory space 0: the peak is 148052 bytes at",
    ),
    (
        "peak_is_the_maximum",
        f"UPDATE module_memory SET peak_time = peak_time + 1 {OF}",
        "memory space 0: the peak is 148052 bytes at",
    ),
    (
        "peak_is_the_maximum",
        f"UPDATE module_memory SET peak_bytes = NULL, peak_time = NULL {OF}",
        "memory space 0: the peak is 148052 bytes at",
    ),
    (
        "reported_peak_is_live",
        f"UPDATE modules SET reported_peak_time = 20 {OF}",
        "fft.0{} is reported as live at 20 and is not",
    ),
    (
        "reported_peak_is_live",
        f"UPDATE reported_peak SET instruction = 'gone' {OF} AND rank = 0",
        "gone{} is reported as live at 10 and is not",
    ),
    (
        "schedule_follows_text",
        f"UPDATE instructions SET schedule_time = 11 - schedule_time {OF} "
        "AND schedule_time IN (5, 6)",
        "is scheduled before the instruction that precedes it in the HLO text",
    ),
    (
        "schedule_is_whole",
        f"UPDATE instructions SET schedule_time = NULL {OF} AND schedule_time = 46",
        "the schedule has 46 times up to 45, XLA reports 47",
    ),
    (
        "schedule_is_whole",
        f"UPDATE instructions SET schedule_time = 3 {OF} AND schedule_time = 4",
        "the schedule has 46 times up to 46, XLA reports 47",
    ),
    (
        "values_in_both_parts",
        f"DELETE FROM positions {VALUE}",
        "value 127 of BufferAssignment is not in Used values",
    ),
    (
        "values_in_both_parts",
        f'UPDATE "values" SET allocation_index = NULL {VALUE}',
        "value 127 of Used values is in no allocation",
    ),
    (
        "values_lie_within_allocations",
        f'UPDATE "values" SET offset_bytes = 8 {VALUE}',
        "value 127 is at 8 to 16392 in allocation 1 of 16384 bytes",
    ),
    (
        "values_lie_within_allocations",
        f'UPDATE "values" SET memory_space = 3 {VALUE}',
        "value 127 is at 0 to 16384 in allocation 1",
    ),
    (
        "values_lie_within_allocations",
        f'UPDATE "values" SET allocation_index = 999 {VALUE}',
        "value 127 is at 0 to 16384 in allocation 999",
    ),
    (
        "uses_are_operands",
        f"UPDATE uses SET operand_number = operand_number + 7 {VALUE}",
        "value 127 is not at operand 7 of its use 0",
    ),
    ("uses_are_operands", f"DELETE FROM uses {VALUE}", "value 127 is at operand 0 of"),
    (
        "values_stand_alone",
        f"UPDATE positions SET shape_index = '{{9}}' {VALUE} AND position_index = 0",
        "the first position of value 127 is not where it is defined",
    ),
    (
        "values_stand_alone",
        "INSERT INTO positions SELECT module_id, 9999, position_index, instruction_id, "
        f"shape_index FROM positions {VALUE} AND position_index = 0",
        "values 127 and 9999 share a position",
    ),
    (
        "allocations_reach_their_values",
        f"UPDATE allocations SET size_bytes = size_bytes + 1 {OF} AND allocation_index = 1",
        "allocation 1 has 16385 bytes, its values reach 16384",
    ),
    (
        "sizes_follow_shapes",
        f"UPDATE \"values\" SET _short_shape = 'f32[7]' {OF} AND shape_index = '{{}}'",
        " is f32[7], its instruction",
    ),
    (
        "sizes_follow_shapes",
        f'UPDATE "values" SET size_bytes = logical_bytes - 1 {VALUE}',
        "value 127 takes 16383 bytes, its elements 16384",
    ),
    (
        "sizes_follow_shapes",
        'UPDATE "values" SET size_bytes = size_bytes + 1 '
        f"{OF} AND value_id = (SELECT MIN(value_id) FROM \"values\" {OF} AND shape = 'f32[]')",
        "values of f32[] take 4 and 5 bytes",
    ),
    (
        "lives_start_at_definitions",
        f"UPDATE live_ranges SET start_time = start_time + 1 {VALUE}",
        "value 127 lives from 22",
    ),
    (
        "live_at_peak_is_reported",
        f"DELETE FROM reported_peak {OF} AND rank = 0",
        "fft.0{} is live at 10 and not reported",
    ),
    (
        "live_at_peak_is_reported",
        f"UPDATE reported_peak SET size_bytes = size_bytes + 1 {OF} AND rank = 0",
        "fft.0{} is reported with 33281 bytes, its elements take 33280",
    ),
    (
        "arguments_match_signature",
        f"UPDATE allocations SET parameter_number = 7 {OF} AND parameter_number = 0",
        "its allocation is not there",
    ),
    (
        "arguments_match_signature",
        f"UPDATE allocations SET parameter_shape_index = '{{5}}' {OF} AND parameter_number = 0",
        "is not in the signature",
    ),
    (
        "arguments_match_signature",
        f"INSERT INTO allocations SELECT * FROM allocations {OF} AND parameter_number = 0",
        "argument 0{} has two allocations",
    ),
    (
        "frames_are_there",
        f"UPDATE instructions SET stack_frame_id = 999 {OF} AND stack_frame_id = 2",
        "stack frame 999 is not there",
    ),
    (
        "frames_are_there",
        f"UPDATE stack_frames SET parent_frame_id = 999 {OF} AND stack_frame_id = 2",
        "stack frame 2 was called by 999, which is not there",
    ),
    (
        "frames_are_there",
        f"UPDATE stack_frames SET function = NULL {OF} AND stack_frame_id = 2",
        "stack frame 2 has no file or no function",
    ),
    (
        "computations_are_called",
        f"DELETE FROM calls {OF} AND attribute = 'body'",
        "is not called",
    ),
    (
        "spaces_are_named",
        f"UPDATE memory_spaces SET memory_space = 7 {OF}",
        "memory space 7 has a name and no allocations",
    ),
    (
        "spaces_are_named",
        f"INSERT INTO memory_spaces SELECT module_id, 7, 'x' FROM memory_spaces {OF}",
        "memory space 7 has a name and no allocations",
    ),
]


def damage(db, script):
    """Do it, and see to it that it does something."""
    with closing(open_store(str(db))) as store:
        ((changed,),) = store.connection.execute(script).fetchall()
        assert changed > 0


def breaches(db, check):
    """The breaches that a check finds."""
    query = statement("named_breaches").replace("{check}", check.sql)
    return [breach for _, breach in rows(db, query)]


def test_what_was_ingested_is_clean(filled):
    assert [breach for check in checks() for breach in breaches(filled, check)] == []


def test_every_check_says_what_holds():
    for check in checks():
        assert check.holds.endswith("."), check.name


def test_every_check_has_its_damage():
    assert {check for check, _, _ in DAMAGES} == {check.name for check in checks()}


@pytest.mark.parametrize(("name", "script", "said"), DAMAGES, ids=[said for _, _, said in DAMAGES])
def test_each_check_finds_its_damage(copied, name, script, said):
    damage(copied, script)
    (check,) = [found for found in checks() if found.name == name]
    found = breaches(copied, check)
    assert any(said in breach for breach in found), found


@pytest.mark.parametrize("table", KEYS)
def test_a_row_that_occurs_twice_is_found(copied, table):
    # Their shape is worked out when it is read.
    stored = "* EXCLUDE shape" if table in ("values", "instructions") else "*"
    if table == "oom_buffers":
        # No sample's message lists buffers.
        row = "INSERT INTO oom_buffers (oom_id, run_id, rank, size_bytes, is_rounded)"
        damage(copied, f"{row} VALUES (1, 'cpu', 1, 8, FALSE)")
    damage(copied, f'INSERT INTO "{table}" BY NAME SELECT {stored} FROM "{table}" LIMIT 1')
    (check,) = [found for found in checks() if found.name == "keys_are_unique"]
    (breach,) = breaches(copied, check)
    assert breach.startswith(f"{table} ")
    assert breach.endswith(" occurs twice")


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("DELETE FROM history WHERE chain_index = 3", "has no row in `history`"),
        (
            "UPDATE history SET dump_id = 7 WHERE chain_index = 3",
            "has a row in `history` that the dumps do not give",
        ),
        (
            "UPDATE history SET series_id = 7 WHERE chain_index = 3",
            "has the series_id 7 in `history` instead of ",
        ),
        (
            "UPDATE history SET previous_dump_id = NULL WHERE chain_index = 3",
            "has the previous_dump_id None in `history` instead of ",
        ),
        (
            "UPDATE runs SET run_at = run_at + INTERVAL 20 DAY WHERE run_id = '2026-10-02'",
            "has the chain_index 2 in `history` instead of ",
        ),
    ],
)
def test_a_history_that_is_not_current_is_found(own, script, said):
    with closing(open_store(str(own), read_only=True)) as store:
        assert history_breaches(store).num_rows == 0
    damage(own, script)
    with closing(open_store(str(own), read_only=True)) as store:
        found = history_breaches(store).to_pylist()
    assert any(said in row["breach"] for row in found), found
    assert any(row["module"].endswith("/llama-v5e/jit_train_step") for row in found)


def test_what_the_history_check_holds_is_a_sentence():
    assert HISTORY_HOLDS.endswith(".")


# The checks as `memhouse verify` runs them.
ALL = sorted([*(check.name for check in checks()), HISTORY_IS_CURRENT])


def test_a_clean_warehouse_is_status_0(filled):
    run = run_memhouse("verify", "--db", filled)
    assert (run.returncode, run.stdout) == (0, "")
    counted = rows(filled, "SELECT COUNT(*) FROM modules")[0][0]
    assert run.stderr == f"{len(ALL)} checks of {counted} modules: no breaches\n"


def test_a_breach_is_status_1_and_named(copied):
    damage(copied, f"UPDATE live_ranges SET end_time = 48 {VALUE}")
    run = run_memhouse("verify", "--db", copied, "--format", "json")
    assert run.returncode == 1
    assert json.loads(run.stdout) == [
        {
            "check": "live_ranges_have_values",
            "module": "cpu/jax-0.10.2/jit_mixed",
            "breach": "value 127 lives from 21 to 48 in a schedule of 47",
        }
    ]
    assert run.stderr.endswith(" 1 breaches\n") or run.stderr.endswith(" 1 breach\n")


def test_of_many_breaches_a_table_shows_some_and_csv_all(copied):
    damage(copied, f"UPDATE live_ranges SET end_time = 1000000 {OF}")
    table = run_memhouse("verify", "--db", copied)
    assert table.returncode == 1
    assert len(table.stdout.splitlines()) == 21
    assert "more: --format csv shows all" in table.stderr
    found = list(
        csv.DictReader(run_memhouse("verify", "--db", copied, "-f", "csv").stdout.splitlines())
    )
    assert len(found) >= 40


def test_the_checks_can_be_listed(tmp_path):
    run = run_memhouse("verify", "--list", "--format", "json", cwd=tmp_path)
    assert run.returncode == 0
    listed = json.loads(run.stdout)
    assert [row["check"] for row in listed] == ALL
