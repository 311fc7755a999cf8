"""Edits of programs as people write them, compared with XLA: chunks, batches, copies.

The figures are peaks of programs that were recompiled.
"""

import pytest

from memhouse.advice.findings.cut import batched, chunked
from memhouse.advice.findings.returned import returned
from memhouse.advice.peak import largest_kind, shape_of_peak

from ..support.advised import compiled, program_of
from ..support.warehouse import reading

_FINDERS = (chunked, batched, returned)


@pytest.fixture(scope="module")
def program():
    """A program of `advice-edits`, before the edit."""
    with reading(compiled()) as store:
        yield lambda name: program_of(store, name, "advice-edits")


@pytest.mark.parametrize(
    ("name", "finder", "says", "after_bytes"),
    [
        ("tpu/chunk_loss", chunked, "in 8 chunks", 751_246_336),
        ("cpu/chunk_nearest_centers", chunked, "in 16 chunks", 173_047_844),
        ("cpu/chunk_perplexity", chunked, "in 8 chunks", 468_844_572),
        ("cpu/map_rendering", batched, "1024 at a time", 269_616_708),
        ("cpu/microbatch_images", batched, "4 microbatches", 925_086_632),
        ("tpu/returned_by_scan", returned, "do not return", 406_854_144),
        ("cpu/returned_with_state", returned, "do not return", 301_285_460),
    ],
)
def test_the_peak_after_the_edit_is_as_told(program, name, finder, says, after_bytes):
    before = program(name)
    (finding,) = (each for each in finder(before) if says in each.title)
    peak = before.layout.peak_bytes
    tolerance = 1 + max(finding.tolerance or 0, 0.001)
    assert (peak - finding.high_bytes) / tolerance <= after_bytes
    assert after_bytes <= (peak - finding.low_bytes) * tolerance


@pytest.mark.parametrize("name", ["right_contrast", "right_batch_norm", "right_transport"])
def test_what_needs_its_whole_axis_is_not_cut(program, name):
    """Losses over rows and columns, means of the batch, sums over both sides in turn."""
    assert [each.title for find in _FINDERS for each in find(program(f"cpu/{name}"))] == []


def test_what_a_peak_is(program):
    before = program("tpu/chunk_loss")
    kind = largest_kind(before, before.layout.peak_time)
    assert kind.words.startswith("f32[8,1024,32000]")
    assert kind.size_bytes == 8 * 1024 * 32_000 * 4
    assert kind.source.startswith("pairs/edits.py:")
    shape = shape_of_peak(before)
    assert shape.is_needle
    assert 0 < shape.needle_steps < 0.1 * shape.schedule_length
    # The dual variables change the matrix of costs in no step but the last.
    assert not shape_of_peak(program("cpu/returned_with_state")).is_needle
