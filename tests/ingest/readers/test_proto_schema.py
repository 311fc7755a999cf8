"""Damage of a protocol buffer has a byte, at any depth."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memhouse.ingest.readers.proto_schema import damage_located, parse, schema
from memhouse.ingest.readers.wire import encode_varint, fields
from memhouse.xla.errors import DumpError
from tests.support.protos import field, message, packed, varint
from tests.support.rounds import rounds

TYPE = "HloInstructionProto"


def test_the_schema_has_every_message_that_it_names():
    for name, known in schema().items():
        for number, known_field in known.items():
            assert known_field.number == number, name
            assert known_field.type in ("int64", "bytes", "string", *schema()), name


@settings(max_examples=rounds(60))
@given(st.integers(0, 2**64 - 1), st.binary(max_size=300))
def test_fields_are_read_as_they_are_written(number, content):
    data = message((1, number), (2**29 - 1, content), (3, b""))
    assert encode_varint(number) == varint(number)
    assert [
        (found, first if kind == 0 else data[first:end])
        for found, kind, first, end in fields(data, 0, len(data))
    ] == [(1, number), (2**29 - 1, content), (3, b"")]


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"\x0a\x05abc", "field 1 at byte 0 .* 5 .* 3:"),
        (b"\x0a" + varint(2**63), "field 1 at byte 0 .* 9223372036854775808"),
        (b"\x08" + b"\xff" * 11, "at byte 1 "),
        (b"\x08\x80", "at byte 1 "),
        (b"\x0a", "at byte 1 "),
        (b"\x08\x01\x00\x00", "field number 0 at byte 2"),
        (b"\x0f\x01", "type 7 at byte 0"),
        (field(36, b"\x01\x80"), "byte 4 is cut short"),
        (field(36, b"\xff" * 12), "byte 3 is longer"),
    ],
)
def test_damage_names_the_byte(data, why):
    whole = message((1, b"add.1"), (35, 7), (36, packed(1, 2)))
    with damage_located(whole, TYPE):
        assert list(parse(TYPE, whole).operand_ids) == [1, 2]
    with pytest.raises(DumpError, match=why), damage_located(data, TYPE):
        parse(TYPE, data)


@pytest.mark.parametrize("depth", [1, 99, 5000])
def test_damage_is_found_in_messages_within_messages(depth):
    shape = b"\x10\x80"
    for _ in range(depth - 1):
        shape = field(4, shape)
    data = field(1, field(3, field(2, field(3, shape))))
    with pytest.raises(DumpError, match="dump the program again"), damage_located(data, "HloProto"):
        parse("ShapeProto", b"\x10\x80")


def test_a_text_that_is_not_utf_8_is_shown():
    data = message((1, b"ab\xff"))
    with pytest.raises(DumpError, match=r"text .*ab\\xff"), damage_located(data, TYPE):
        parse(TYPE, data).name.decode()
