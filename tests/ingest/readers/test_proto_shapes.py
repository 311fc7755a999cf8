"""Shapes and shardings of protocol buffers are printed as HLO text prints them."""

import pytest

from memhouse.ingest.readers.proto_shapes import (
    ShapeReader,
    shape_without_layout,
    sharding_text,
)
from memhouse.xla.errors import DumpError
from memhouse.xla.shapes import parse_shape
from tests.support.protos import message, packed

F32, S32, TUPLE, OPAQUE, TOKEN, BUFFER = 11, 4, 13, 14, 17, 34
UNKNOWN_SIZE = -(2**63)


def array(element_type, *dimensions, layout=None, dynamic=None):
    found = [(2, element_type)]
    if dimensions:
        found.append((3, packed(*dimensions)))
    if dynamic:
        found.append((6, packed(*dynamic)))
    if layout is not None:
        found.append((5, layout))
    return message(*found)


def layout(*order, rest=()):
    return message(*([(1, packed(*order))] if order else []), *rest)


TILE = (6, message((1, packed(8, 128))))
COMBINED = (6, message((1, packed(UNKNOWN_SIZE, 128))))
SHAPES = {
    "f32[2,3]{1,0}": array(F32, 2, 3, layout=layout(1, 0)),
    "f32[2,3]": array(F32, 2, 3),
    "f32[]": array(F32, layout=layout()),
    "f32[]{:T(128)}": array(F32, layout=layout(rest=[(6, message((1, packed(128))))])),
    "f32[0]{0}": array(F32, 0, layout=layout(0)),
    "token[]": array(TOKEN, layout=layout()),
    "opaque[]": array(OPAQUE),
    "f32[2,3]{1,0:T(8,128)(2,1)S(1)}": array(
        F32, 2, 3, layout=layout(1, 0, rest=[TILE, (6, message((1, packed(2, 1)))), (8, 1)])
    ),
    "f32[2,3]{1,0:T(*,128)L(4)E(4)S(5)}": array(
        F32, 2, 3, layout=layout(1, 0, rest=[COMBINED, (16, 4), (7, 4), (8, 5)])
    ),
    "f32[2]{0}": array(F32, 2, layout=layout(0, rest=[(16, 1)])),
    "f32[<=2,3]{1,0:M(8)}": array(F32, 2, 3, dynamic=(1, 0), layout=layout(1, 0, rest=[(15, 8)])),
    "f32[?,3]{1,0}": array(F32, UNKNOWN_SIZE, 3, dynamic=(1, 0), layout=layout(1, 0)),
    "f32[4,3]{1,0:SC(0:2)(1:1,2)}": array(
        F32,
        4,
        3,
        layout=layout(
            1, 0, rest=[(17, message((2, packed(2)))), (17, message((1, 1), (2, packed(1, 2))))]
        ),
    ),
    "f32[4]{0:P(s32[2]{0})}": array(
        F32, 4, layout=layout(0, rest=[(10, array(S32, 2, layout=layout(0)))])
    ),
    "b(f32[2]{0})": message((2, BUFFER), (4, array(F32, 2, layout=layout(0)))),
    "()": message((2, TUPLE)),
    "(f32[], (s32[2]{0}))": message(
        (2, TUPLE),
        (4, array(F32)),
        (4, message((2, TUPLE), (4, array(S32, 2, layout=layout(0))))),
    ),
    "(f32[], f32[], f32[], f32[], f32[], /*index=5*/s32[])": message(
        (2, TUPLE), *[(4, array(F32))] * 5, (4, array(S32))
    ),
}


def test_a_shape_is_printed_as_text_prints_it():
    for text, data in SHAPES.items():
        assert str(ShapeReader().read(data)) == text
        assert str(parse_shape(text)) == text


def test_tuples_that_nest_too_deep_are_refused():
    data = array(F32)
    for _ in range(200):
        data = message((2, TUPLE), (4, data))
    with pytest.raises(DumpError, match="100 nested"):
        ShapeReader().read(data)


OTHER = 3
SHARDINGS = {
    "{replicated}": b"",
    "{manual}": message((1, 4)),
    "{maximal device=3}": message((1, 1), (3, packed(1)), (4, packed(3))),
    "{devices=[2,1]0,1}": message((1, OTHER), (3, packed(2, 1)), (4, packed(0, 1))),
    "{devices=[4,1]<=[4]}": message((1, OTHER), (3, packed(4, 1)), (9, packed(4)), (10, packed(0))),
    "{devices=[4,1,2]<=[2,4]T(1,0) last_tile_dim_replicate}": message(
        (1, OTHER), (3, packed(4, 1, 2)), (6, 1), (9, packed(2, 4)), (10, packed(1, 0))
    ),
    "{devices=[2,2]<=[4] last_tile_dims={manual}}": message(
        (1, OTHER), (3, packed(2, 2)), (8, packed(4)), (9, packed(4)), (10, packed(0))
    ),
    "{{replicated}, {manual}}": message((1, 2), (5, b""), (5, message((1, 4)))),
}


def test_a_sharding_is_printed_as_text_prints_it():
    for text, data in SHARDINGS.items():
        assert sharding_text(data) == text


def test_a_sharding_by_names_of_axes_is_not_known():
    data = message((14, message((2, b""))))
    assert sharding_text(data) is None


def test_allocations_have_shapes_without_layouts():
    for text, plain in (
        ("f32[2,3]{1,0:T(8,128)(2,1)S(1)}", "f32[2,3]"),
        ("b(f32[2]{0})", "b(f32[2])"),
        ("(f32[], (s32[2]{0}))", "(f32[], (s32[2]))"),
    ):
        assert str(shape_without_layout(ShapeReader().read(SHAPES[text]))) == plain
