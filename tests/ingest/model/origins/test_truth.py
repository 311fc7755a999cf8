"""Owners, passes and residuals, against what was read from the HLO text by hand."""

import json

from ....support.dumps import DATA
from ....support.warehouse import rows

TRUTH = json.loads((DATA / "truth-origins.json").read_text())
# The first night has the same program.
SAME = {"gpu/resnet-h100": "nightly/2026-10-01/resnet-h100"}
# Dumps of which no small copy is kept; their rows were checked by hand.
ELSEWHERE = {
    ("cpu/jax-0.4.35", "jit_train_step"),
    ("cpu/jax-0.9.0", "jit_train_step"),
    ("gpu/llama-h100", "jit_train_step"),
    ("gpu/moe-h100", "jit__lambda"),
    ("large/llama7b-32layers-v5e-4x4", "jit_train_step"),
    ("oom/jax0.9.2-temps", "jit_f"),
    ("tpu/llama-v5e-jax0.5.3", "jit_train_step"),
    ("tpu/moe-v5e", "jit__lambda"),
}
OWNERS = """
    SELECT made.instruction, shape_index,
        CASE WHEN owner.opcode = 'parameter' THEN owner.op_name
            ELSE split(coalesce(owner.library_file, owner.source_file), '/')[-1]
                || ':' || coalesce(owner.library_line, owner.source_line) END,
        "values".pass
    FROM dumps
    INNER JOIN "values" USING (module_id)
    INNER JOIN instructions AS made USING (module_id, instruction_id)
    INNER JOIN instructions AS owner ON owner.module_id = "values".module_id
        AND owner.instruction_id = "values".origin_instruction_id
    WHERE run_id = '{}' AND workload = '{}' AND module_name = '{}'"""
RESIDUALS = """
    SELECT DISTINCT round(size_bytes / 1e6, 1), layers, owner.instruction, origin_rule
    FROM dumps
    INNER JOIN residuals USING (module_id)
    INNER JOIN "values" USING (module_id, value_id)
    INNER JOIN instructions AS owner ON owner.module_id = "values".module_id
        AND owner.instruction_id = "values".origin_instruction_id
    WHERE run_id = '{}' AND workload = '{}' AND memory_space = 0
    ORDER BY ALL DESC"""


def of_dump(filled, history, query, dump, *more):
    """The query's rows of a dump, which is a sample's or a night's."""
    dump = SAME.get(dump, dump)
    db = history if dump.startswith("nightly/") else filled
    return rows(db, query.format(*dump.removeprefix("nightly/").split("/"), *more))


def test_owners_and_passes(filled, history):
    here = [row for row in TRUTH if (row["dump"], row["module"]) not in ELSEWHERE]
    assert len(here) == 30
    owners = {
        (dump, module): {
            (instruction, index): said
            for instruction, index, *said in of_dump(filled, history, OWNERS, dump, module)
        }
        for dump, module in {(row["dump"], row["module"]) for row in here}
    }
    failures = []
    for row in here:
        found = owners[row["dump"], row["module"]].get((row["instruction"], row["shape_index"]))
        if found != [row["expected"], row["expected_pass"]]:
            failures.append((found, row))
    assert failures == []


def test_a_stack_has_a_layer_for_each_turn_of_the_scan(filled, history):
    layers = {
        "tpu/llama7b-oom-v5e": 8,
        "nightly/2026-10-08/llama-v5e": 3,
        "nightly/2026-10-10/llama-v5e": 3,
        "nightly/2026-10-05/llama-cpu": 2,
        "tpu/llama-v5e": 2,
    }
    found = {
        dump: next(
            layers
            for _, layers, _, rule in of_dump(filled, history, RESIDUALS, dump)
            if rule == "loop"
        )
        for dump in layers
    }
    assert found == layers


def test_a_stack_and_the_last_hidden_state_are_two_residuals(filled, history):
    """Both are the sum at the end of a layer; only the stack is read by the layers again."""
    found = of_dump(filled, history, RESIDUALS, "tpu/llama-v5e")
    assert [row[:3] for row in found[:2]] == [(16.8, 2, "add.510"), (8.4, 1, "add.510")]
