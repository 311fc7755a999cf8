"""The entry computation's arguments and results, array by array."""

import pytest

from memhouse.ingest.readers.entry_shapes import read_entry_shapes
from memhouse.xla.errors import DumpError


def test_tiles_pad():
    (argument, _) = read_entry_shapes("(bf16[3,3,64,64]{3,2,1,0:T(8,128)(2,1)})->f32[]", {})
    assert argument.logical_bytes == 3 * 3 * 64 * 64 * 2
    # 64 to 64 by 8, 64 to 128.
    assert argument.padded_bytes == 3 * 3 * 64 * 128 * 2


def test_results_of_a_tuple_are_numbered():
    found = read_entry_shapes("()->(f32[2]{0}, (s8[3]{0}, pred[]), /*index=2*/bf16[4,4]{1,0})", {})
    assert [(row.shape_index, row.shape) for row in found] == [
        ("{0}", "f32[2]{0}"),
        ("{1,0}", "s8[3]{0}"),
        ("{1,1}", "pred[]"),
        ("{2}", "bf16[4,4]{1,0}"),
    ]
    assert [row.logical_bytes for row in found] == [8, 3, 1, 32]
    assert {row.is_output for row in found} == {True}


def test_an_argument_may_be_a_tuple():
    found = read_entry_shapes("((f32[2]{0}, s32[]), f32[3]{0})->f32[]", {})
    assert [(row.parameter_number, row.shape_index) for row in found] == [
        (0, "{0}"),
        (0, "{1}"),
        (1, "{}"),
        (None, "{}"),
    ]


def test_what_has_no_size_has_none():
    found = read_entry_shapes("(f32[?,4]{1,0}, token[])->s32[<=7]{0}", {})
    assert found[0].logical_bytes is None
    assert found[0].padded_bytes is None
    assert (found[1].shape, found[1].logical_bytes) == ("token[]", 0)
    assert found[2].logical_bytes == 28


def test_padded_arguments_are_the_parameter_allocations(warehouse):
    """What the signature's layouts need is what XLA set aside for each argument."""
    found = warehouse.sql(
        "SELECT COUNT(*), COUNT(*) FILTER (WHERE padded_bytes <> size_bytes) "
        "FROM entry_shapes INNER JOIN allocations "
        "ON allocations.module_id = entry_shapes.module_id AND allocations.is_parameter "
        "AND allocations.parameter_number = entry_shapes.parameter_number "
        "AND parameter_shape_index = shape_index"
    ).fetchall()
    assert found[0][0] > 200
    assert found[0][1] == 0


def test_a_wrong_signature_is_refused():
    for signature in (
        *("(f32[2]{0})", "f32[2]{0}, f32[])->f32[]", "(f32[2]{0})->", "(float[2]{0})->f32[]"),
    ):
        with pytest.raises(DumpError):
            read_entry_shapes(signature, {})
