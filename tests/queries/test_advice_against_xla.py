"""Advice compared with XLA: figures of "after" are peaks of programs recompiled with the change."""

import pytest

from memhouse.advice.advice import save
from memhouse.advice.asked_program import replay
from memhouse.advice.finding import Grade
from memhouse.advice.findings.narrower import narrower
from memhouse.advice.findings.residuals import (
    Cost,
    read_residuals,
    read_scans,
    rematerialise,
    unrolled,
)

from ..support.advised import compiled, program_of
from ..support.warehouse import reading

MIXER_FULL, MIXER_DOTS = 722317824, 2227784192
FLOAT32_CARRY_FULL = 637540352
RECURRENT_FULL = 721426432
GPT = {
    "full": 838011392,
    "dots_with_no_batch_dims_saveable": 1264710144,
    "dots_saveable": 2120348160,
}
MESSAGES = 654970880
ON_CHIP = 128 * 2**20
GIB = 2**30


@pytest.fixture(scope="module")
def store():
    with reading(compiled()) as opened:
        yield opened


@pytest.fixture(scope="module")
def remat(store):
    """A program that was compiled without a checkpoint."""
    return lambda name: program_of(store, f"tpu/{name}/before", "remat")


@pytest.fixture(scope="module")
def sizes(store):
    """A program of `advice-sizes`: scan is inference over stacked weights, rnn the gradient of a
    scan over inputs, decode a step with a cache in the carry.
    """
    return lambda workload: program_of(store, workload, "advice-sizes")


@pytest.fixture(scope="module")
def nightly(history):
    with reading(history) as opened:
        yield opened


def told(program, finding):
    """The peak that a finding tells."""
    return program.layout.peak_bytes - finding.saving_bytes


def is_nothing(finding):
    """A finding without a figure."""
    return (finding.grade, finding.saving_bytes, finding.change) == (Grade.fact, None, None)


def by_policy(findings):
    """The findings by the policy to write; without one by `full`."""
    names = ("dots_saveable", "dots_with_no_batch_dims_saveable", "save_only_these_names")
    return {
        next((name for name in names if f".{name}" in finding.write), "full"): finding
        for finding in reversed(findings)
    }


def test_what_xla_made_of_each_change(store):
    """The peak in MB before and after, and what aliases after: the claims of `docs/advice/`."""
    query = """SELECT workload, round(peak_bytes / 1e6, 1), alias_bytes > 0 FROM dumps
        INNER JOIN module_memory USING (module_id) WHERE memory_space = 0 AND run_id = 'advice'"""
    rows = store.connection.sql(query).fetchall()
    peaks = {workload: peak for workload, peak, _ in rows}
    aliases = {workload: is_aliased for workload, _, is_aliased in rows}
    for name, made in {
        # What a scan takes and gives is donated for nothing on a TPU.
        "tpu/cache_scanned_over": (2818.7, 2818.7),
        "cpu/cache_scanned_over": (6325.4, 5520.1),
        "tpu/cache_carried_by_scan": (3087.3, 2013.6),
        # An output of another type and as many bytes takes a donated argument.
        "cpu/types_of_one_size": (805.3, 536.9),
        "tpu/types_of_one_size": (1073.7, 805.3),
        # A checkpoint of layers in a row holds on a TPU alone.
        "tpu/gated_unrolled_full": (1359.0, 822.1),
        "cpu/gated_unrolled_full": (3774.9, 3774.9),
    }.items():
        assert (peaks[f"{name}/before"], peaks[f"{name}/after"]) == made, name
    for platform in ("cpu", "tpu"):
        assert aliases[f"{platform}/types_of_one_size/after"]
        assert not aliases[f"{platform}/types_differ/after"]


# --- rematerialisation ------------------------------------------------------------------


def test_the_layers_of_a_scan_computed_again_are_within_ten_percent(remat):
    for name, real in {
        "mixer_scan_full": MIXER_FULL,
        "float32_carry_scan_full": FLOAT32_CARRY_FULL,
        "recurrent_scan_full": RECURRENT_FULL,
    }.items():
        program = remat(name)
        full = by_policy(rematerialise(program))["full"]
        assert told(program, full) == pytest.approx(real, rel=0.1), name
    # The states for all times are the scan's result, and as the carry they are saved once more.
    assert told(program, full) == pytest.approx(RECURRENT_FULL, rel=0.001)
    (scan,) = read_scans(program, read_residuals(program))
    assert (scan.layers, scan.carry_bytes, len(scan.stacks)) == (512, 64 * 1024 * 4, 8)
    # A carry that each layer converts is saved converted.
    program = remat("float32_carry_scan_full")
    (scan,) = read_scans(program, read_residuals(program))
    assert scan.carry_bytes == 8192 * 1024 * 2


def test_gradients_of_scores_take_the_room_of_scores_made_again(remat):
    """Before and after the softmax they are live at one time with or without checkpoints."""
    program = remat("gpt_scan_full")
    found = by_policy(rematerialise(program))
    for policy, real in GPT.items():
        assert told(program, found[policy]) == pytest.approx(real, rel=0.04), policy
    # Where the memory on chip is more than the tolerance a range is told.
    full, dots = found["full"], found["dots_saveable"]
    assert (full.grade, dots.grade, dots.tolerance) == (Grade.between, Grade.expected, 0.1)
    assert full.high_bytes - full.low_bytes == 2 * ON_CHIP > 0.2 * GPT["full"]
    assert 0.1 * GPT["dots_saveable"] > ON_CHIP


def test_a_policy_that_keeps_products_ranks_below_one_that_keeps_nothing(remat):
    program = remat("mixer_scan_full")
    found = by_policy(rematerialise(program))
    assert told(program, found["dots_saveable"]) == pytest.approx(MIXER_DOTS, rel=0.1)
    assert found["full"].saving_bytes > found["dots_saveable"].saving_bytes
    assert found["full"].source.endswith("checkpoints.py:46")


def test_a_wanted_saving_keeps_all_products_as_long_as_that_is_enough(remat):
    program = remat("mixer_scan_full")
    (enough,) = save(program, 4 * GIB)
    assert "dots_saveable" in enough.write
    assert told(program, enough) == pytest.approx(MIXER_DOTS, rel=0.1)
    (more,) = save(program, enough.saving_bytes + 1)
    assert "save_only_these_names" in more.write
    assert more.saving_bytes > enough.saving_bytes
    assert more.change is not None
    assert told(program, more) == replay(program.layout, more.change).peak_bytes
    (most,) = save(program, 20 * GIB)
    assert "20.00 GiB" in most.title
    assert told(program, most) == pytest.approx(MIXER_FULL, rel=0.1)


def test_a_program_that_is_right_already_is_told_nothing(store, nightly):
    for program in (
        program_of(store, "tpu/float32_carry_scan_full/after", "remat"),
        program_of(store, "tpu/gated_unrolled_full/after", "advice"),
        program_of(store, "tpu/right_mixed_precision/before", "advice"),
        program_of(store, "cpu/right_mixed_precision/before", "advice"),
        program_of(nightly, "llama-v5e", "2026-10-01"),
        program_of(nightly, "llama-cpu", "2026-10-01"),
        program_of(nightly, "llama-v5e", "2026-10-07"),
    ):
        assert rematerialise(program) == unrolled(program) == []
        (nothing,) = save(program, GIB)
        assert is_nothing(nothing)


def test_below_twice_the_memory_on_chip_a_range_is_told(nightly):
    """The night of 2026-10-03 saved products; without them it needs what it needed before."""
    program = program_of(nightly, "llama-v5e", "2026-10-03")
    real = program_of(nightly, "llama-v5e", "2026-10-01").layout.peak_bytes
    finding = by_policy(rematerialise(program))["full"]
    assert finding.grade is Grade.between
    assert finding.low_bytes <= program.layout.peak_bytes - real <= finding.high_bytes


def test_on_cpu_the_order_is_told_and_no_figure(nightly):
    program = program_of(nightly, "llama-cpu", "2026-10-05")
    found = rematerialise(program)
    assert all(map(is_nothing, found))
    order = list(by_policy(found))[::-1]
    assert order[0] == "full"
    assert order.index("dots_with_no_batch_dims_saveable") < order.index("dots_saveable")

    residuals = read_residuals(program)
    cost = {each.operation: each.cost for each in residuals}
    assert cost["dot_general"] is Cost.product
    assert cost["reduce_sum"] is Cost.reduction
    assert cost["exp"] is cost["mul"] is Cost.elementwise
    assert cost["broadcast_in_dim"] is Cost.free


def test_unrolled_layers_have_a_range_on_tpu_and_a_bound_on_cpu(store):
    program = program_of(store, "tpu/gated_unrolled_full/before", "advice")
    real = program_of(store, "tpu/gated_unrolled_full/after", "advice").layout.peak_bytes
    (finding,) = unrolled(program)
    assert finding.grade is Grade.between
    assert finding.high_bytes - finding.low_bytes == 2 * ON_CHIP
    assert told(program, finding) == pytest.approx(real, rel=0.01)
    assert finding.source.endswith("/checkpoints.py:144")
    # XLA for CPU computes the layers only once, whatever jax.checkpoint says.
    program = program_of(store, "cpu/gated_unrolled_full/before", "advice")
    (finding,) = unrolled(program)
    assert finding.grade is Grade.at_most
    assert rematerialise(program) == []
    (nothing,) = save(program, GIB)
    assert is_nothing(nothing)
    assert "jax.checkpoint" in nothing.why


# --- types ------------------------------------------------------------------------------


def test_arguments_that_are_only_converted_take_less_if_narrower(sizes):
    """The peak of the recompiled program is told to the byte."""
    for workload, after in {
        "cpu/weights_to_bfloat16": 1_342_177_280,
        # Here XLA's own copy in bfloat16, taken out of the loop, goes away too.
        "tpu/stacked_weights_to_bfloat16": 553_651_712,
        # Here the gradient no longer saves the converted inputs, step by step.
        "tpu/rnn": 1_211_113_472,
    }.items():
        program = sizes(workload)
        (finding,) = narrower(program)
        assert (finding.grade, told(program, finding)) == (Grade.exact, after), workload
    # XLA for CPU widens all of a loop's before it: 100.7 MB become 125.8, and 1,309 become 1,845.
    assert narrower(sizes("cpu/scan")) == narrower(sizes("cpu/stacked_weights_to_bfloat16")) == []


def test_a_residual_that_is_read_in_bfloat16_only_is_saved_so(remat):
    program = remat("messages_to_bfloat16")
    (finding,) = narrower(program)
    assert "bfloat16" in finding.title
    assert told(program, finding) == pytest.approx(MESSAGES, rel=finding.tolerance)
