"""The pairs of programs that advice is held against: what JAX and XLA made of each change."""

import pytest

from ..support.advice import PLATFORMS, fill_with_pairs, told_by_jax, unpack_pairs
from ..support.warehouse import rows


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """All pairs in a warehouse; the folder of their dumps."""
    folder = tmp_path_factory.mktemp("advice")
    pairs = unpack_pairs(folder)
    fill_with_pairs(folder / "db", pairs)
    return folder / "db", pairs


def peaks(db, platform, pair):
    """The peak before and after, in MB."""
    found = rows(
        db,
        "SELECT round(peak_bytes / 1e6, 1) FROM dumps INNER JOIN module_memory USING (module_id) "
        f"WHERE memory_space = 0 AND run_id = '{platform}' AND workload LIKE '{pair}/%' "
        "ORDER BY workload DESC",
    )
    return tuple(peak for (peak,) in found)


def test_a_cache_that_a_scan_takes_and_gives_is_donated_for_nothing_on_a_tpu(compiled):
    db, _ = compiled
    assert peaks(db, "tpu", "cache_scanned_over") == (2818.7, 2818.7)
    assert peaks(db, "cpu", "cache_scanned_over") == (6325.4, 5520.1)
    assert peaks(db, "tpu", "cache_carried_by_scan") == (3087.3, 2013.6)


def test_xla_takes_a_donated_argument_for_an_output_of_another_type_and_as_many_bytes(compiled):
    db, pairs = compiled
    for platform in PLATFORMS:
        assert told_by_jax(pairs, platform, "types_of_one_size")["after"]["aliases"] == {"{}": 0}
        assert told_by_jax(pairs, platform, "types_differ")["after"]["aliases"] == {}
    assert peaks(db, "cpu", "types_of_one_size") == (805.3, 536.9)
    assert peaks(db, "tpu", "types_of_one_size") == (1073.7, 805.3)


def test_a_checkpoint_of_layers_in_a_row_holds_on_a_tpu_alone(compiled):
    db, _ = compiled
    assert peaks(db, "tpu", "gated_unrolled_full") == (1359.0, 822.1)
    assert peaks(db, "cpu", "gated_unrolled_full") == (3774.9, 3774.9)


def test_padding_up_never_saves(compiled):
    db, _ = compiled
    for platform in PLATFORMS:
        before, after = peaks(db, platform, "heads_96_to_128")
        assert after > before
