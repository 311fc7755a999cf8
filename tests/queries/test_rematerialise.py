"""What rematerialisation saves, held against the same programs compiled with it.

`data/remat.tar.zst` holds programs as `benchmarks/advice_pairs.py` compiled them without a
checkpoint. The peaks below are those of the recompiled programs, in bytes.
"""

import pytest

from memhouse.queries.advising.finding import Grade
from memhouse.queries.advising.idle import idle
from memhouse.queries.advising.narrower import narrower
from memhouse.queries.advising.rematerialise import rematerialise
from memhouse.queries.advising.replay import replay
from memhouse.queries.advising.save import save
from memhouse.queries.advising.saved_residuals import Cost, read_residuals, read_scans
from memhouse.queries.advising.scan_products import scan_products
from memhouse.queries.advising.unrolled import unrolled

from ..support.advice import fill_with_pairs, unpack_pairs
from ..support.advised import program_of, unpacked
from ..support.warehouse import reading

MIXER_FULL, MIXER_DOTS = 722317824, 2227784192
FLOAT32_CARRY_FULL = 637540352
RECURRENT_FULL = 721426432
GPT = {
    "full": 838011392,
    "dots_with_no_batch_dims_saveable": 1264710144,
    "dots_saveable": 2120348160,
}
OFFLOADED, MESSAGES = 2080447488, 654970880
GIB = 2**30


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """The programs that were compiled for this."""
    with reading(unpacked("remat", tmp_path_factory)) as opened:
        yield opened


@pytest.fixture(scope="module")
def pairs(tmp_path_factory):
    """Programs before and after a change, a run for each platform."""
    folder = tmp_path_factory.mktemp("pairs")
    fill_with_pairs(folder / "db", unpack_pairs(folder))
    with reading(folder / "db") as opened:
        yield opened


@pytest.fixture(scope="module")
def nightly(history):
    """The ten nights."""
    with reading(history) as opened:
        yield opened


def told(program, finding):
    """The peak that a finding tells."""
    return program.layout.peak_bytes - finding.saving_bytes


def by_policy(findings):
    """The findings by the policy to write; without one by `full`."""
    names = ("dots_saveable", "dots_with_no_batch_dims_saveable", "save_only_these_names")
    return {
        next((name for name in names if f".{name}" in finding.write), "full"): finding
        for finding in reversed(findings)
    }


def test_each_layer_computed_again_on_tpu_is_within_ten_percent(store):
    for workload, real in {
        "tpu/mixer_scan_full/before": MIXER_FULL,
        "tpu/float32_carry_scan_full/before": FLOAT32_CARRY_FULL,
        "tpu/recurrent_scan_full/before": RECURRENT_FULL,
    }.items():
        program = program_of(store, workload)
        finding = by_policy(rematerialise(program))["full"]
        assert told(program, finding) == pytest.approx(real, rel=0.1)


def test_gradients_of_scores_take_the_room_of_scores_made_again(store):
    # The gradients before and after the softmax are live at one time with or without checkpoints.
    program = program_of(store, "tpu/gpt_scan_full/before")
    found = by_policy(rematerialise(program))
    for policy, real in GPT.items():
        assert told(program, found[policy]) == pytest.approx(real, rel=0.04)


def test_where_the_memory_on_chip_is_more_than_the_tolerance_a_range_is_told(store):
    program = program_of(store, "tpu/gpt_scan_full/before")
    found = by_policy(rematerialise(program))
    full, dots = found["full"], found["dots_saveable"]
    assert (full.grade, dots.grade, dots.tolerance) == (Grade.between, Grade.expected, 0.1)
    on_chip = 128 * 2**20
    assert full.high_bytes - full.low_bytes == 2 * on_chip > 0.2 * GPT["full"]
    assert 0.1 * GPT["dots_saveable"] > on_chip


def test_a_policy_that_keeps_products_is_within_ten_percent_and_ranks_below(store):
    program = program_of(store, "tpu/mixer_scan_full/before")
    found = by_policy(rematerialise(program))
    assert told(program, found["dots_saveable"]) == pytest.approx(MIXER_DOTS, rel=0.1)
    assert found["full"].saving_bytes > found["dots_saveable"].saving_bytes
    assert found["full"].source.endswith("checkpoints.py:46")


def test_an_output_of_the_scan_stays_though_it_is_stacked(store):
    program = program_of(store, "tpu/recurrent_scan_full/before")
    (scan,) = read_scans(program, read_residuals(program))
    # The states for all times are the scan's result, and as the carry they are saved once more.
    assert scan.layers == 512
    assert (scan.carry_bytes, len(scan.stacks)) == (64 * 1024 * 4, 8)
    full = by_policy(rematerialise(program))["full"]
    assert told(program, full) == pytest.approx(RECURRENT_FULL, rel=0.001)


def test_a_carry_that_each_layer_converts_is_saved_converted(store):
    program = program_of(store, "tpu/float32_carry_scan_full/before")
    (scan,) = read_scans(program, read_residuals(program))
    assert scan.carry_bytes == 8192 * 1024 * 2


def test_a_program_that_is_right_already_is_told_nothing(store, pairs, nightly):
    right = [
        program_of(store, "tpu/float32_carry_scan_full/after"),
        program_of(pairs, "gated_unrolled_full/after", "tpu"),
        program_of(pairs, "right_mixed_precision/before", "tpu"),
        program_of(pairs, "right_mixed_precision/before", "cpu"),
        program_of(nightly, "llama-v5e", "2026-10-01"),
        program_of(nightly, "llama-cpu", "2026-10-01"),
        program_of(nightly, "llama-v5e", "2026-10-07"),
    ]
    for program in right:
        assert rematerialise(program) == unrolled(program) == []
        (nothing,) = save(program, GIB)
        assert (nothing.grade, nothing.change) == (Grade.fact, None)


def test_below_twice_the_memory_on_chip_a_range_is_told(nightly):
    # The night of 2026-10-03 saved products; without them the program needs what it needed before.
    program = program_of(nightly, "llama-v5e", "2026-10-03")
    real = program_of(nightly, "llama-v5e", "2026-10-01").layout.peak_bytes
    finding = by_policy(rematerialise(program))["full"]
    assert finding.grade is Grade.between
    assert finding.low_bytes <= program.layout.peak_bytes - real <= finding.high_bytes


def test_on_cpu_the_order_is_told_and_no_figure(nightly):
    program = program_of(nightly, "llama-cpu", "2026-10-05")
    found = rematerialise(program)
    assert {finding.grade for finding in found} == {Grade.fact}
    assert {(finding.saving_bytes, finding.change) for finding in found} == {(None, None)}
    order = list(by_policy(found))[::-1]
    assert order[0] == "full"
    assert order.index("dots_with_no_batch_dims_saveable") < order.index("dots_saveable")


def test_a_policy_without_batch_dimensions_leaves_out_attention(nightly):
    program = program_of(nightly, "llama-cpu", "2026-10-05")
    (scan,) = read_scans(program, read_residuals(program))
    products = scan_products(program, scan)
    # Scores at line 39, and at line 40 what they weigh; the projection there has no batch.
    lines = sorted(product.source.rpartition(":")[2] for product in products)
    assert lines == ["38", "38", "38", "39", "40", "40", "41", "41"]
    batched = [product for product in products if product.is_batched]
    assert sorted(product.source.rpartition(":")[2] for product in batched) == ["39", "40"]


def test_residuals_say_what_it_costs_to_compute_them_again(nightly):
    program = program_of(nightly, "llama-cpu", "2026-10-05")
    cost = {each.operation: each.cost for each in read_residuals(program)}
    assert cost["dot_general"] is Cost.product
    assert cost["reduce_sum"] is Cost.reduction
    assert cost["exp"] is cost["mul"] is Cost.elementwise
    assert cost["broadcast_in_dim"] is Cost.free


def test_unrolled_layers_on_tpu_have_a_range_that_holds(pairs):
    program = program_of(pairs, "gated_unrolled_full/before", "tpu")
    real = program_of(pairs, "gated_unrolled_full/after", "tpu").layout.peak_bytes
    (finding,) = unrolled(program)
    assert finding.grade is Grade.between
    assert finding.high_bytes - finding.low_bytes == 2 * 2**27
    assert told(program, finding) == pytest.approx(real, rel=0.01)
    assert finding.source.rpartition("/")[2] == "checkpoints.py:144"


def test_unrolled_layers_on_cpu_are_not_told(pairs):
    # XLA computes them only once, whatever jax.checkpoint says.
    program = program_of(pairs, "gated_unrolled_full/before", "cpu")
    assert (
        program_of(pairs, "gated_unrolled_full/after", "cpu").layout.peak_bytes
        == program.layout.peak_bytes
    )
    assert rematerialise(program) == unrolled(program) == []
    (nothing,) = save(program, GIB)
    assert nothing.why.startswith("XLA for CPU undoes jax.checkpoint")


def test_a_wanted_saving_keeps_all_products_as_long_as_that_is_enough(store):
    program = program_of(store, "tpu/mixer_scan_full/before")
    (enough,) = save(program, 4 * GIB)
    assert "dots_saveable" in enough.write
    assert told(program, enough) == pytest.approx(MIXER_DOTS, rel=0.1)
    (more,) = save(program, enough.saving_bytes + 1)
    assert "save_only_these_names" in more.write
    assert more.change is not None
    assert more.saving_bytes > enough.saving_bytes
    assert (
        program.layout.peak_bytes - more.saving_bytes
        == replay(program.layout, more.change).peak_bytes
    )


def test_a_saving_that_is_out_of_reach_says_how_far_it_comes(store):
    program = program_of(store, "tpu/mixer_scan_full/before")
    (finding,) = save(program, 20 * GIB)
    assert "less than the 20.00 GiB wanted" in finding.title
    assert told(program, finding) == pytest.approx(MIXER_FULL, rel=0.1)


def test_what_a_scan_saves_could_be_on_the_host_across_the_peak(store):
    program = program_of(store, "tpu/offload_checkpointed_scan/before")
    (finding,) = idle(program)
    assert finding.grade is Grade.at_most
    assert "save_and_offload_only_these_names" in finding.write
    assert told(program, finding) == pytest.approx(OFFLOADED, rel=0.001)


def test_residuals_outside_of_a_scan_promise_nothing_for_the_host(pairs):
    # Recompiled, two such programs needed 7 % less and 5 % more.
    (finding,) = idle(program_of(pairs, "gated_unrolled_full/before", "tpu"))
    assert finding.grade is Grade.fact
    assert (finding.saving_bytes, finding.change) == (None, None)
    assert idle(program_of(pairs, "gated_unrolled_full/before", "cpu")) == []


def test_a_residual_that_is_read_in_bfloat16_only_is_saved_so(store):
    program = program_of(store, "tpu/messages_to_bfloat16/before")
    (finding,) = narrower(program)
    assert finding.title == "save 3 residuals in bfloat16"
    assert told(program, finding) == pytest.approx(MESSAGES, rel=finding.tolerance)
