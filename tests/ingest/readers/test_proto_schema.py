"""Damage of a protocol buffer is an error of the dump."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memhouse.ingest.readers.proto_schema import damage_as_dump_error, parse
from memhouse.ingest.readers.wire import encode_varint
from memhouse.xla.errors import DumpError
from tests.support.protos import field, fields, message, packed, varint
from tests.support.rounds import rounds

TYPE = "HloInstructionProto"


@settings(max_examples=rounds(60))
@given(st.integers(0, 2**64 - 1), st.binary(max_size=300))
def test_fields_are_read_as_they_are_written(number, content):
    data = message((1, number), (2**29 - 1, content), (3, b""))
    assert encode_varint(number) == varint(number)
    assert [
        (found, first if kind == 0 else data[first:end]) for found, kind, first, end in fields(data)
    ] == [(1, number), (2**29 - 1, content), (3, b"")]


@pytest.mark.parametrize(
    "data",
    [
        b"\x0a\x05abc",
        b"\x0a" + varint(2**63),
        b"\x08" + b"\xff" * 11,
        b"\x08\x80",
        b"\x0a",
        b"\x08\x01\x00\x00",
        b"\x0f\x01",
        field(36, b"\x01\x80"),
        field(36, b"\xff" * 12),
    ],
)
def test_damage_is_an_error(data):
    whole = message((1, b"add.1"), (35, 7), (36, packed(1, 2)))
    with damage_as_dump_error():
        assert list(parse(TYPE, whole).operand_ids) == [1, 2]
    with pytest.raises(DumpError, match="dump the program again"), damage_as_dump_error():
        parse(TYPE, data)


def test_a_text_that_is_not_utf_8_is_shown():
    data = message((1, b"ab\xff"))
    with pytest.raises(DumpError, match=r"text .*ab\\xff"), damage_as_dump_error():
        parse(TYPE, data).name.decode()
