"""A session that `jax.profiler` records has the figures of the dump of the same program."""

import numpy as np
import pytest

import memhouse

# Instructions count in the order of the file, so rows are compared with their names.
OWN = {
    "allocations": "* EXCLUDE (module_id)",
    "live_ranges": "* EXCLUDE (module_id)",
    "occupancy": "* EXCLUDE (module_id)",
    "entry_shapes": "* EXCLUDE (module_id)",
    "internal.traits": "* EXCLUDE (module_id)",
    "module_memory": "* EXCLUDE (module_id, space_name, peak_instruction_id),"
    " _name(module_id, peak_instruction_id)",
    "values": "* EXCLUDE (module_id, instruction_id, origin_instruction_id),"
    " _name(module_id, instruction_id), _name(module_id, origin_instruction_id)",
    "instructions": "* EXCLUDE (module_id, instruction_id, scope_id)",
    "operands": "_name(module_id, instruction_id), operand_number,"
    " _name(module_id, operand_instruction_id)",
}
# The text of newer XLA does not say where a get-tuple-element comes from.
ONLY = {"instructions": "AND opcode <> 'get-tuple-element'"}
NAME = (
    "CREATE TEMP MACRO _name(of, number) AS (SELECT instruction FROM instructions"
    " WHERE module_id = of AND instruction_id = number)"
)


def layers(weights, x):
    import jax
    import jax.numpy as jnp

    def layer(x, w):
        return jnp.sort(jnp.tanh(x @ w), axis=0), None

    return jax.lax.scan(layer, x, weights)[0].sum()


@pytest.mark.slow
def test_a_session_has_the_figures_of_the_dump(tmp_path, db):
    jax = pytest.importorskip("jax", reason="jax is not installed: it is in the dev extra")
    jax.config.update("jax_platforms", "cpu")
    step = jax.jit(jax.value_and_grad(layers))
    arguments = np.ones((3, 64, 64), np.float32), np.ones((32, 64), np.float32)
    with jax.profiler.trace(str(tmp_path / "logs")):
        jax.block_until_ready(step(*arguments))
    with memhouse.open(db) as warehouse:
        session = warehouse.ingest(tmp_path / "logs")
        assert session.problems == []
        dump = warehouse.record(step, *arguments, run="dump")
        assert dump.problems == []
        modules = warehouse.sql(
            "SELECT run_id, module_id, program_id FROM dumps JOIN modules USING (module_id)"
            " WHERE dumps.module_name = 'jit_layers'"
        ).arrow()
        ids = {row["run_id"]: row["module_id"] for row in modules.to_pylist()}
        assert ids.keys() == {session.run_id, "dump"}
        assert len(set(modules["program_id"].to_pylist())) == 1
        # Users do not read the internal tables.
        ask = warehouse.store.connection.execute
        ask(NAME)
        for table, columns in OWN.items():
            rows = f"{table} WHERE module_id = $1 {ONLY.get(table, '')}"
            query = f"SELECT {columns} FROM {rows} ORDER BY ALL"
            of_session = ask(query, [ids[session.run_id]]).to_arrow_table()
            of_dump = ask(query, [ids["dump"]]).to_arrow_table()
            assert of_session.num_rows
            assert of_session.equals(of_dump), table
        assert len(warehouse.verify().rows) == 0
