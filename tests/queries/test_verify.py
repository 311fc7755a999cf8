"""`verify`: clean on what was ingested, and each check finds the damage it is for."""

import csv
import json
from contextlib import contextmanager

from memhouse.queries.catalogue import checks, statement
from memhouse.queries.verify import checks_list, verify
from memhouse.schema.arrow import sql_name, stored_keys
from memhouse.schema.ddl import INDEXED

from ..support.command import run_memhouse
from ..support.warehouse import reading, writing

# The module that is damaged: it has loops, temp memory and HLO text.
MODULE = "(SELECT module_id FROM dumps WHERE workload = 'jax-0.10.2' AND module_name = 'jit_mixed')"
OF = f"WHERE module_id = {MODULE}"
VALUE = f"{OF} AND value_id = 127"
# The module whose residuals are damaged: a training step.
STEP = "WHERE module_id = (SELECT module_id FROM dumps WHERE workload = 'llama-v5e')"

# By check: what is done to the warehouse, and the facts that a breach must then name.
DAMAGES = {
    "origins_are_instructions": {
        f'UPDATE "values" SET origin_instruction_id = 99999 {VALUE}': "127 99999",
        f"UPDATE \"values\" SET origin_rule = NULL {OF} AND origin_rule = 'argument'": "",
    },
    "scopes_have_instructions": {
        f"UPDATE instructions SET scope_id = NULL {OF} AND scope_id = 0": "0",
    },
    "allocations_show_their_values": {
        f"UPDATE allocations SET value_id = NULL {OF} AND is_parameter": "",
    },
    "alias_sets_are_their_values": {
        f"UPDATE alias_sets SET end_time = end_time + 1 {OF}": "",
        f"DELETE FROM alias_sets {OF} "
        f"AND alias_set = (SELECT MIN(alias_set) FROM alias_sets {OF})": "",
    },
    "residuals_are_kept": {
        f"UPDATE residuals SET idle_end_time = end_time + 1 {STEP} AND residual_id = 0": "0",
        f"UPDATE \"values\" SET pass = 'backward' {STEP} AND residual_id = 0": "0",
    },
    "last_uses_are_live": {
        f'UPDATE "values" SET last_use_time = 4000 {OF} AND last_use_time IS NOT NULL': "4000",
    },
    "bounds_fit_temps": {
        f"UPDATE module_memory SET live_bound_bytes = temp_bytes + 1 {OF}": "",
    },
    "liveness_follows_from_text": {
        f"UPDATE modules SET liveness_difference = 'add{{}} lives from 1 to 2' {OF}": "add{} 1 2",
    },
    "allocations_add_up": {
        f"UPDATE allocations SET size_bytes = size_bytes + 1 "
        f"{OF} AND allocation_index = 0": "148384 148383",
    },
    "peak_parts_add_up": {
        "UPDATE internal.peak_parts SET counted_bytes = counted_bytes + 1 "
        f"{OF} AND part = 0": "add up",
    },
    "dumps_are_complete": {
        "UPDATE file_sets SET status = 'failed', line = 3, message = 'cut short' "
        "WHERE name = '000_e0d5fae9bf2de249.txt'": "000_e0d5fae9bf2de249.txt:3",
    },
    "dumps_have_series": {
        f"DELETE FROM dump_series WHERE dump_id IN (SELECT dump_id FROM dumps {OF})": "no series",
        f"""UPDATE dump_series SET explained_dump_id = 7
            WHERE dump_id IN (SELECT dump_id FROM dumps {OF})""": "7 none",
        "UPDATE dump_series SET series_id = 7": "series 7",
    },
    "instructions_have_one_number": {
        f"UPDATE instructions SET instruction = 'x.1' {OF} AND instruction = 'x.5'": "x.1",
    },
    "keys_are_unique": {
        f"UPDATE uses SET use_index = 0 {VALUE} AND use_index = 1": "127 0",
    },
    "values_have_live_ranges": {
        f"DELETE FROM live_ranges {VALUE}": "127",
        f"UPDATE live_ranges SET end_time = 48 {VALUE}": "127 21 48 47",
        f"UPDATE live_ranges SET start_time = end_time + 1 {VALUE}": "127 48 47",
    },
    "references_lead_to_rows": {
        f"DELETE FROM modules {OF}": "dumps modules",
        "DELETE FROM runs WHERE run_id = 'cpu'": "dumps cpu runs",
        f"UPDATE occupancy SET module_id = 7 {OF}": "occupancy 7 modules",
        f'DELETE FROM "values" {VALUE}': "live_ranges 127 values",
        f"DELETE FROM scopes {OF} AND scope_id = 0": "instructions 0 scopes",
        f"UPDATE stack_frames SET parent_frame_id = 999 {OF} AND stack_frame_id = 2": "999",
        f"UPDATE calls SET computation = 'gone' {OF} AND attribute = 'body'": "gone",
    },
    "names_are_in_hlo_text": {
        f"UPDATE instructions SET computation = NULL {OF} AND instruction = 'x.5'": "x.5",
    },
    "occupied_fits_allocations": {
        f"UPDATE occupancy SET occupied_bytes = 999999 {OF} AND start_time = 0": "0 999999 148312",
    },
    "occurrences_are_unique": {
        "UPDATE dumps SET occurrence = 1 "
        "WHERE workload = 'jax-0.4.23' AND module_name = 'jit_convert_element_type'": "2 1",
    },
    "operands_are_instructions": {
        f"UPDATE operands SET operand_instruction_id = -1 {OF} AND operand_number = 2": "",
    },
    "peak_is_the_maximum": {
        f"UPDATE module_memory SET peak_bytes = peak_bytes - 1 {OF}": "0 148052",
        f"UPDATE module_memory SET peak_time = peak_time + 1 {OF}": "0 148052",
        f"UPDATE module_memory SET peak_bytes = NULL, peak_time = NULL {OF}": "0 148052",
    },
    "reported_peak_is_live": {
        f"UPDATE modules SET reported_peak_time = 20 {OF}": "fft.0{} 20",
        f"UPDATE reported_peak SET instruction = 'gone' {OF} AND rank = 0": "gone{} 10",
    },
    "schedule_follows_text": {
        f"UPDATE instructions SET schedule_time = 11 - schedule_time {OF} "
        "AND schedule_time IN (5, 6)": "",
    },
    "schedule_is_whole": {
        f"UPDATE instructions SET schedule_time = NULL {OF} AND schedule_time = 46": "46 45 47",
        f"UPDATE instructions SET schedule_time = 3 {OF} AND schedule_time = 4": "46 46 47",
    },
    "values_in_both_parts": {
        f"DELETE FROM positions {VALUE}": "127",
        f'UPDATE "values" SET allocation_index = NULL {VALUE}': "127",
    },
    "values_lie_within_allocations": {
        f'UPDATE "values" SET offset_bytes = 8 {VALUE}': "127 8 16392 1 16384",
        f'UPDATE "values" SET memory_space = 3 {VALUE}': "127 0 16384 1",
        f'UPDATE "values" SET allocation_index = 999 {VALUE}': "127 0 16384 999",
    },
    "uses_are_operands": {
        f"UPDATE uses SET operand_number = operand_number + 7 {VALUE}": "127 7 0",
        f"DELETE FROM uses {VALUE}": "127 0",
    },
    "values_stand_alone": {
        f"UPDATE positions SET shape_index = '{{9}}' {VALUE} AND position_index = 0": "127",
        "INSERT INTO positions SELECT module_id, 9999, position_index, instruction_id, "
        f"shape_index FROM positions {VALUE} AND position_index = 0": "127 9999",
    },
    "allocations_reach_their_values": {
        f"UPDATE allocations SET size_bytes = size_bytes + 1 "
        f"{OF} AND allocation_index = 1": "1 16385 16384",
    },
    "sizes_follow_shapes": {
        f"UPDATE \"values\" SET _short_shape = 'f32[7]' {OF} AND shape_index = '{{}}'": "f32[7]",
        f'UPDATE "values" SET size_bytes = logical_bytes - 1 {VALUE}': "127 16383 16384",
        'UPDATE "values" SET size_bytes = size_bytes + 1 '
        f"{OF} AND value_id = "
        f"(SELECT MIN(value_id) FROM \"values\" {OF} AND shape = 'f32[]')": "f32[] 4 5",
    },
    "lives_start_at_definitions": {
        f"UPDATE live_ranges SET start_time = start_time + 1 {VALUE}": "127 22",
    },
    "live_at_peak_is_reported": {
        f"DELETE FROM reported_peak {OF} AND rank = 0": "fft.0{} 10",
        f"UPDATE reported_peak SET size_bytes = size_bytes + 1 "
        f"{OF} AND rank = 0": "fft.0{} 33281 33280",
    },
    "arguments_match_signature": {
        f"UPDATE allocations SET parameter_number = 7 {OF} AND parameter_number = 0": "",
        f"UPDATE allocations SET parameter_shape_index = '{{5}}' {OF} AND parameter_number = 0": "",
        f"INSERT INTO allocations SELECT * FROM allocations {OF} AND parameter_number = 0": "0{}",
    },
    "frames_are_named": {
        f"UPDATE stack_frames SET function = NULL {OF} AND stack_frame_id = 2": "2",
    },
    "computations_are_called": {
        f"DELETE FROM calls {OF} AND attribute = 'body'": "",
    },
    "spaces_are_named": {
        f"UPDATE module_memory SET space_name = NULL {STEP} AND memory_space = 1": "1",
    },
}


@contextmanager
def damaged(store, script):
    """The store with the damage, which must do something, for as long as the block runs."""
    store.connection.begin()
    try:
        ((changed,),) = store.connection.execute(script).fetchall()
        assert changed > 0, script
        yield
    finally:
        store.connection.rollback()


def breaches(store, check):
    """The breaches that a check finds."""
    query = statement("named_breaches").replace("{check}", check.sql)
    return [breach for _, breach in store.connection.sql(query).fetchall()]


def test_what_was_ingested_is_clean(filled):
    with reading(filled) as store:
        found = verify(store)
        ((modules,),) = store.connection.sql("SELECT COUNT(*) FROM modules").fetchall()
    assert found.rows.table.to_pylist() == []
    assert (found.checks, found.modules) == (len(checks()), modules)


def test_each_check_finds_its_damage(copied):
    assert DAMAGES.keys() == {check.name for check in checks()}
    wrong = []
    with writing(copied) as store:
        for check in checks():
            for script, facts in DAMAGES[check.name].items():
                with damaged(store, script):
                    found = breaches(store, check)
                named = [each for each in found if all(fact in each for fact in facts.split())]
                wrong += [(check.name, script, found)] * (not named)
    assert wrong == []


def test_a_row_that_occurs_twice_is_found(copied):
    (check,) = [found for found in checks() if found.name == "keys_are_unique"]
    with writing(copied) as store:
        # No sample's message lists buffers.
        row = "INSERT INTO oom_buffers (oom_id, run_id, rank, size_bytes, is_rounded)"
        store.execute(f"{row} VALUES (1, 'cpu', 1, 8, FALSE)")
        # Nor has one texts between the compiler's passes.
        row = "INSERT INTO compiler_passes (module_id, step, instructions, estimated_peak_bytes,"
        store.execute(f"{row} digest, text_bytes) VALUES (1, 0, 1, 8, 1, 9)")
        row = "INSERT INTO compiler_pass_events (module_id, value_id, event_number, event, step,"
        store.execute(f"{row} instruction, is_certain) VALUES (1, 1, 0, 'fused', 0, 'x', TRUE)")
        # Nor an order that no operand asks for.
        store.execute("INSERT INTO control_dependencies VALUES (1, 2, 1)")
        # Nor a donated argument that XLA copies.
        store.execute("INSERT INTO donation_copies VALUES (1, 0, '{}', 2, 3)")
        # No growth of a sample was accepted.
        columns = "dump_id, memory_space, metric, accepted_bytes, reason, accepted_at"
        row = f"INSERT INTO accepted_changes ({columns})"
        store.execute(f"{row} VALUES (1, 0, 'peak_bytes', 8, 'ours', TIMESTAMP '2026-10-01')")
        # Every sample is the first dump of its chain.
        store.execute("INSERT INTO causes (dump_id, rank, kind, term) VALUES (1, 1, 'line', 'x')")
        for table in stored_keys().keys() - INDEXED:
            # Their shape is worked out when it is read.
            stored = "* EXCLUDE (shape)" if table in ("values", "instructions") else "*"
            name = sql_name(table)
            again = f"INSERT INTO {name} BY NAME SELECT {stored} FROM {name} LIMIT 1"
            with damaged(store, again):
                (breach,) = breaches(store, check)
            assert breach.startswith(f"{table} ")


# --- the command ------------------------------------------------------------------------------


def test_the_command_counts_names_and_lists(filled, copied):
    done = run_memhouse("verify", "--db", filled)
    assert (done.returncode, done.stdout) == (0, "")
    with writing(copied) as store:
        store.execute(f"UPDATE live_ranges SET end_time = 48 {VALUE}")
    done = run_memhouse("verify", "--db", copied, "--format", "json")
    assert done.returncode == 1
    (row,) = json.loads(done.stdout)
    assert (row["check"], row["module"]) == ("values_have_live_ranges", "cpu/jax-0.10.2/jit_mixed")
    # Of many a table shows some, and csv all.
    with writing(copied) as store:
        store.execute(f"UPDATE live_ranges SET end_time = 1000000 {OF}")
    table = run_memhouse("verify", "--db", copied)
    assert (table.returncode, len(table.stdout.splitlines())) == (1, 21)
    assert "--format csv" in table.stderr
    found = run_memhouse("verify", "--db", copied, "-f", "csv").stdout
    assert len(list(csv.DictReader(found.splitlines()))) >= 40
    listed = json.loads(run_memhouse("verify", "--list", "--format", "json").stdout)
    assert listed == checks_list().table.to_pylist()
    names = [check.name for check in checks()]
    assert [row["check"] for row in listed] == names
    assert [row for row in listed if not row["holds"].endswith(".")] == []
