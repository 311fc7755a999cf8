"""The plain rules of attribution against buffers whose owner was read from HLO text by hand."""

import functools
import gzip
import json

import pytest
from hypothesis import HealthCheck, given, settings

from ...support.dumps import DATA, DUMPS
from ...support.history import nights
from .plain_origins import Rules, origins
from .plain_passes import Passes, passes
from .plain_residuals import saved_for_backward
from .plain_ways import Ways
from .random_programs import scheduled_hlo

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
# The rule further out is the one that is told, also of a wrapper's name.
SECOND_BEST = {"weak", "moved", "loop", "fused", "becomes", "operand"}
ROWS = [row for row in TRUTH if (row["dump"], row["module"]) not in ELSEWHERE]


def name_of(row):
    return f"{row['dump']}-{row['instruction'][:40]}{row['shape_index']}"


@functools.cache
def read(folder, module):
    """The HLO text of a module."""
    (path,) = folder.glob(f"*.{module}.*after_optimizations.txt*")
    text = path.read_bytes()
    return (gzip.decompress(text) if path.suffix == ".gz" else text).decode()


@functools.cache
def rules_of(text):
    """The rules on a module, with its passes."""
    rules = Rules(Ways(text))
    return rules, Passes(rules)


@pytest.fixture(scope="module")
def text_of(tmp_path_factory):
    """The HLO text of a module of a sample dump or of a night."""

    def text(dump, module):
        dump = SAME.get(dump, dump)
        if dump.startswith("nightly/"):
            return read(nights() / dump.removeprefix("nightly/"), module)
        return read(DUMPS / dump, module)

    return text


@pytest.fixture(scope="module")
def residuals_of(text_of):
    """What a module saves for backward in HBM, the largest first."""

    def residuals(dump, module="jit_train_step"):
        return [row for row in saved_for_backward(text_of(dump, module)) if row.space == "0"]

    return residuals


def test_every_row_is_compared_or_known_to_lie_elsewhere():
    assert len(TRUTH) == 46
    assert {(row["dump"], row["module"]) for row in TRUTH} >= ELSEWHERE
    assert len(ROWS) == 30


@pytest.mark.parametrize("row", ROWS, ids=name_of)
def test_truth(row, text_of):
    rules, its_passes = rules_of(text_of(row["dump"], row["module"]))
    index = tuple(int(part) for part in row["shape_index"].strip("{}").split(",") if part)
    value = (row["instruction"], index)
    origin = rules.origin(value)
    assert origin is not None
    owner = rules.module.instructions[origin.instruction]
    is_argument = rules.ways.is_argument((owner.name, ()))
    said = rules.names.op_name(owner) if is_argument else rules.names.line(owner)
    assert said == row["expected"]
    assert its_passes.of(value, origin) == row["expected_pass"]


def test_what_the_program_takes_owns_itself(text_of):
    rules, _ = rules_of(text_of("gpu/decode-h100", "jit_generate"))
    arguments = [v for v in rules.ways.array_values() if rules.ways.is_argument(v)]
    assert {rules.origin(value).rule for value in arguments} == {"argument"}


# What a forward pass keeps.


def test_a_stack_and_the_last_hidden_state_are_two_residuals(residuals_of):
    """Both are the sum at the end of a layer; only the stack is read by the layers again."""
    rows = residuals_of("tpu/llama-v5e")
    assert [(row.bytes / 1e6, row.layers, row.idle, row.made) for row in rows[:2]] == [
        (pytest.approx(16.8, abs=0.03), 2, 111, "zoo.py:35"),
        (pytest.approx(8.4, abs=0.02), 1, 624, "zoo.py:35"),
    ]
    assert {row.origin.instruction for row in rows[:2]} == {"add.510"}


@pytest.mark.parametrize(
    ("dump", "layers"),
    [
        ("tpu/llama7b-oom-v5e", 8),
        ("nightly/2026-10-08/llama-v5e", 3),
        ("nightly/2026-10-10/llama-v5e", 3),
        ("nightly/2026-10-05/llama-cpu", 2),
        ("tpu/llama-v5e", 2),
    ],
)
def test_layers(dump, layers, residuals_of):
    stacks = [row.layers for row in residuals_of(dump) if row.origin.rule == "loop"]
    assert stacks[0] == layers


def test_without_a_derivative_nothing_is_saved(text_of):
    text = text_of("gpu/decode-h100", "jit_generate")
    assert saved_for_backward(text) == []
    assert set(passes(text).values()) == {"argument", "other"}


# Any program.


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(scheduled_hlo())
def test_random_programs_have_one_answer(text):
    """Each array value has one, and who owns is an argument or has a name that allows it."""
    rules = Rules(Ways(text))
    found = origins(text)
    assert list(found) == rules.ways.array_values()
    for origin in found.values():
        if origin is not None:
            owner = rules.module.instructions[origin.instruction]
            named = rules.names.is_strong(owner) or rules.names.is_second_best(owner)
            assert named or rules.ways.is_argument((owner.name, ()))
            assert rules.names.is_second_best(owner) <= (origin.rule in SECOND_BEST)
    assert passes(text).keys() == {value for value, origin in found.items() if origin}
