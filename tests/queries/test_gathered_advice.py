"""Arrays that are gathered and kept, held against the same program that gathers them again.

`data/gathered.tar.zst` holds the gradient step of three layers, whose weights of 128 MiB lie on
four devices of TPU v5e: as it is, and with each layer in a checkpoint that keeps its products.
"""

import pytest

from memhouse.queries.advising.finding import Grade
from memhouse.queries.advising.gathered import gathered

from ..support.advised import program_of, unpacked
from ..support.warehouse import reading

MIB = 2**20


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """The program before and after the change."""
    with reading(unpacked("gathered", tmp_path_factory)) as opened:
        yield opened


def test_weights_that_stay_gathered_over_the_peak_are_told(store):
    program = program_of(store, "tpu/fsdp_layers/before")
    (finding,) = gathered(program)
    assert finding.title == "gather 2 arrays again for the backward pass: 256.00 MiB kept"
    assert finding.source.endswith("fsdp.py:13")
    names = {row["value_id"]: row["instruction"] for row in values(store, program)}
    assert [names[each] for each in finding.value_ids] == [
        "async-collective-done",
        "async-collective-done.1",
    ]


def test_no_figure_is_promised_as_xla_orders_gathers_and_gradients_anew(store):
    # Recompiled, the peak fell by 79 MiB; the replay with the same schedule told 16 MiB.
    before = program_of(store, "tpu/fsdp_layers/before")
    after = program_of(store, "tpu/fsdp_layers/after")
    assert (before.layout.peak_bytes, after.layout.peak_bytes) == (536880128, 454042624)
    (finding,) = gathered(before)
    assert finding.grade is Grade.fact
    assert (finding.saving_bytes, finding.change) == (None, None)
    assert 0 < before.layout.peak_bytes - after.layout.peak_bytes < 256 * MIB


def test_weights_that_are_gathered_again_are_not_told(store):
    assert gathered(program_of(store, "tpu/fsdp_layers/after")) == []


def values(store, program):
    """The arrays of a program and the instructions that make them."""
    return store.rows(
        "SELECT value_id, instruction FROM _values WHERE module_id = $1", [program.module_id]
    ).to_pylist()
