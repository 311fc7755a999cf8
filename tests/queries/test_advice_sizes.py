"""Advice on types and padding, against the peaks of programs compiled anew with the change.

`benchmarks/pairs` has most of the programs. `scan` is inference over stacked weights, `rnn` the
gradient of a scan over inputs, `decode` a step with a cache in the carry.
"""

import tarfile

import pytest
import zstandard

from memhouse.queries.advising.argument_dimensions import argument_dimensions
from memhouse.queries.advising.asked_program import read_program
from memhouse.queries.advising.dimensions import Dimensions
from memhouse.queries.advising.finding import Grade
from memhouse.queries.advising.narrower import narrower
from memhouse.queries.advising.padding import padding, resized_peak
from memhouse.queries.advising.resizing import Resizing
from memhouse.queries.advising.space_layout import read_layout

from ..support.dumps import DATA
from ..support.warehouse import fill, reading


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory):
    """The programs before the change."""
    folder = tmp_path_factory.mktemp("sizes")
    with (DATA / "advice-sizes.tar.zst").open("rb") as packed:
        reader = zstandard.ZstdDecompressor().stream_reader(packed)
        with tarfile.open(fileobj=reader, mode="r|") as tar:
            tar.extractall(folder, filter="data")
    (summary,) = fill(folder / "db", folder / "advice-sizes")
    assert summary.problems == []
    with reading(folder / "db") as store:
        yield store


@pytest.fixture
def program(warehouse):
    """A program by its folder."""

    def find(workload):
        (row,) = warehouse.rows(
            "SELECT module_id, dump_id FROM dumps WHERE workload = $1", [workload]
        ).to_pylist()
        layout = read_layout(warehouse, row["module_id"])
        assert layout is not None
        return read_program(warehouse, row["module_id"], row["dump_id"], layout)

    return find


def peak_of_size(program, now, size):
    """The told peak if the only dimension of a size had another one."""
    dimensions = Dimensions(program)
    resizing = Resizing(program, dimensions)
    (dimension,) = (
        each for each in argument_dimensions(program, dimensions, resizing) if each.size == now
    )
    return resized_peak(program, dimensions, resizing, dimension, size)


@pytest.mark.parametrize(
    ("workload", "after"),
    [
        ("cpu/weights_to_bfloat16", 1_342_177_280),
        # Here XLA's own copy in bfloat16, taken out of the loop, goes away too.
        ("tpu/stacked_weights_to_bfloat16", 553_651_712),
        # Here the gradient no longer saves the converted inputs, step by step.
        ("tpu/rnn", 1_211_113_472),
    ],
)
def test_arguments_that_are_only_converted_take_less_if_narrower(program, workload, after):
    """The peak of the recompiled program is told to the byte."""
    before = program(workload)
    (finding,) = narrower(before)
    assert finding.grade == Grade.exact
    assert before.layout.peak_bytes - finding.saving_bytes == after


@pytest.mark.parametrize("workload", ["cpu/scan", "cpu/stacked_weights_to_bfloat16"])
def test_on_cpu_a_loop_over_narrower_weights_needs_more(program, workload):
    """XLA widens all of them before the loop: 100.7 MB become 125.8, and 1,309 become 1,845."""
    assert narrower(program(workload)) == []


@pytest.mark.parametrize(
    ("workload", "now", "size", "after"),
    [
        ("tpu/heads_96_to_128", 96, 128, 293_705_728),
        ("tpu/heads_144_to_128", 144, 128, 293_705_728),
    ],
)
def test_a_multiple_of_the_tile_is_told(program, workload, now, size, after):
    """Heads of queries, keys, values, output and both caches change together."""
    assert peak_of_size(program(workload), now, size) == pytest.approx(after, rel=0.0001)


def test_padding_says_what_the_multiple_costs_and_promises_nothing(program):
    """Heads of 80 take 128 in the caches: at 128 the program needs 297 MiB more."""
    before = program("tpu/decode")
    (finding,) = padding(before)
    assert (finding.grade, finding.saving_bytes) == (Grade.expected, None)
    assert finding.title == "288.00 MiB of the peak are padding of a dimension of 80"
    assert finding.write.endswith("and 2 more: 128, a multiple of 128, costs 297.00 MiB")
    assert peak_of_size(before, 80, 128) == 1_635_816_960


def test_arguments_that_xla_lays_out_against_padding_are_a_fact_only(program):
    """At 128 features XLA needs no other layout and no copy: the peak was 19 % below a replay."""
    (finding,) = padding(program("tpu/features_200_to_128"))
    assert (finding.grade, finding.saving_bytes, finding.tolerance) == (Grade.fact, None, None)


def test_cpu_pads_nothing(program):
    """CPU has no tiles."""
    assert padding(program("cpu/scan")) == []
