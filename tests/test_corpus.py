"""Programs over public packages: read whole, with JAX's totals, and with owners and roles.

JAX, TensorFlow and PyTorch/XLA compiled them ahead of time. `facts` has what JAX said of each: its
`memory_analysis()`, and the role of each argument in the pytree that was passed in.
"""

import json
import tarfile

import pytest
import zstandard

import memhouse

from .support.dumps import DATA

PROGRAMS = (
    "new-cpu/jax_md_nve",
    "new-cpu/keras_images",
    "new-cpu/nnx_lora",
    "new-7x/haiku_lstm",
    "new-v5e/jax_experts",
    "new-v5e/pallas_splash",
    "old-cpu/haiku_lstm",
    "old-v5e/jax_decode",
    "tensorflow-cpu/tensorflow_lstm",
    "torch-cpu/torch_images",
)
# The largest share of the peak, or of the arguments, that may be wrong.
MOST = 0.001
COUNTS = """
SELECT
    (SELECT COUNT(*) FROM instructions) AS instructions,
    (SELECT COUNT(DISTINCT module_id) FROM module_memory) AS modules
"""
TOTALS = """
SELECT
    SUM(argument_bytes)::BIGINT AS argument,
    SUM(output_bytes)::BIGINT AS output,
    SUM(alias_bytes)::BIGINT AS alias,
    SUM(temp_bytes)::BIGINT AS temp
FROM peaks
"""
# Arrays of the peak without an owner, and those that are no arguments and that a library owns.
OWNERS = """
SELECT
    COALESCE(SUM(counted_bytes) FILTER (
        WHERE origin_rule IS NULL AND op_name IS NULL AND category <> 'constant'
            AND element_type IS NOT NULL
    ) / SUM(counted_bytes), 0) AS nobody,
    COALESCE(SUM(counted_bytes) FILTER (
        WHERE category NOT IN ('argument', 'constant')
        AND REGEXP_MATCHES(source_file, '/(site|dist)-packages/')
    ) / SUM(counted_bytes) FILTER (
        WHERE category NOT IN ('argument', 'constant')
    ), 0) AS library
FROM peak_buffers_by_space AS peak_buffers
WHERE memory_space = 0
"""
ROLES = """
SELECT DISTINCT
    entry_shapes.argument_name,
    entry_shapes.parameter_number,
    "values".role
FROM entry_shapes
INNER JOIN allocations
    ON allocations.module_id = entry_shapes.module_id
        AND allocations.parameter_number = entry_shapes.parameter_number
INNER JOIN "values"
    ON "values".module_id = allocations.module_id
        AND "values".value_id = allocations.value_id
WHERE NOT entry_shapes.is_output
"""


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """Where the dumps and the facts are."""
    folder = tmp_path_factory.mktemp("corpus")
    with (DATA / "corpus.tar.zst").open("rb") as raw:
        stream = zstandard.ZstdDecompressor().stream_reader(raw)
        with tarfile.open(fileobj=stream, mode="r|") as tar:
            tar.extractall(folder, filter="data")
    return folder


def other_roles(facts, arguments):
    """The bytes of arguments that have another role than in the pytree, by both roles.

    JAX leaves out arguments that nothing reads, so its arguments are found by name; those of
    PyTorch/XLA have no names.
    """
    role_of = {row["argument_name"]: row["role"] for row in arguments}
    role_of |= {row["parameter_number"]: row["role"] for row in arguments}
    wrong = {}
    for argument in facts["arguments"]:
        expected, role = argument["role"], role_of.get(argument["argument"])
        if expected and role and role != expected:
            wrong[expected, role] = wrong.get((expected, role), 0) + argument["bytes"]
    return wrong


@pytest.mark.parametrize("program", PROGRAMS)
def test_real_programs_are_read_whole_and_as_jax_says(corpus, program):
    facts = json.loads((corpus / f"facts/{program}.json").read_text())
    with memhouse.open(":memory:") as warehouse:
        summary = warehouse.ingest(corpus / "dumps" / program)

        def rows(query):
            return warehouse.sql(query).arrow().to_pylist()

        assert [*summary.problems, *summary.notes] == []
        assert warehouse.verify().rows.table.to_pylist() == []
        (counts,), (totals,), (owners,) = rows(COUNTS), rows(TOTALS), rows(OWNERS)
        assert counts["modules"] == 1
        assert counts["instructions"] > 50
        expected = facts["analysis"] or {}
        if not program.split("/")[0].endswith("cpu"):
            # Of a TPU, JAX counts temps otherwise.
            expected.pop("temp", None)
        assert {kind: totals[kind] for kind in expected} == expected
        assert owners["nobody"] <= MOST
        assert owners["library"] <= MOST
        wrong = other_roles(facts, rows(ROLES))
    arguments = sum(a["bytes"] for a in facts["arguments"] if a["role"]) or 1
    assert sum(wrong.values()) / arguments <= MOST, wrong
