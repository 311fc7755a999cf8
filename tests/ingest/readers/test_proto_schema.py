"""Messages as columns are what protobuf reads one by one, and damage has a byte."""

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memhouse.ingest.readers import proto_schema
from memhouse.ingest.readers.proto_schema import (
    Columns,
    UnparsableError,
    checked_texts,
    damage_located,
    parse,
    schema,
)
from memhouse.xla.errors import DumpError
from tests.support.protos import field, message, packed, varint
from tests.support.rounds import rounds

NUMBERS = st.integers(0, 2**62) | st.sampled_from([127, 128, 2**63 - 1, 2**64 - 1])
TYPE = "HloInstructionProto"
KNOWN = schema()[TYPE].values()
# Fields of all kinds, some of which nobody asks for.
FIELDS = st.one_of(
    st.tuples(st.sampled_from([f.number for f in KNOWN if f.type == "int64"]), NUMBERS),
    st.tuples(
        st.sampled_from([f.number for f in KNOWN if f.type != "int64"]),
        st.text(max_size=200).map(str.encode),
    ),
    st.tuples(st.just(36), st.lists(NUMBERS, max_size=5).map(lambda numbers: packed(*numbers))),
    st.tuples(st.sampled_from([300, 40000]), NUMBERS | st.binary(max_size=9)),
)
MESSAGES = st.lists(st.lists(FIELDS, max_size=9).map(lambda pairs: message(*pairs)), max_size=12)


@settings(max_examples=rounds(60))
@given(MESSAGES, st.sampled_from([1, 2, 5, 100]))
def test_columns_hold_what_the_messages_hold(messages, batch):
    alone = [parse(TYPE, data) for data in messages]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(proto_schema, "_BATCH", batch)
        columns = Columns(TYPE, messages)
    assert columns.count == len(messages)
    for known in KNOWN:
        expected = [
            (at, value)
            for at, one in enumerate(alone)
            for value in (
                getattr(one, known.name)
                if known.is_repeated
                else [getattr(one, known.name)] * one.HasField(known.name)
            )
        ]
        read = columns.lists if known.type == "int64" else columns.contents
        owner, values = read(known.name)
        values = values.tolist() if known.type == "int64" else values.to_pylist()
        assert list(zip(owner.tolist(), values, strict=True)) == expected
        assert columns.has(known.name).tolist() == [
            at in dict(expected) for at in range(len(alone))
        ]
    assert columns.numbers("tuple_index").tolist() == [one.tuple_index for one in alone]
    assert columns.texts("name", "a name").to_pylist() == [one.name.decode() for one in alone]


@pytest.mark.parametrize("place", [0, 1, 2])
def test_damage_names_the_byte(place):
    """Of one message in any place among whole ones."""
    whole = message((1, b"add.1"), (35, 7), (36, packed(1, 2)))
    for data, why in (
        (b"\x0a\x05abc", "field 1 at byte 0 .* 5 .* 3:"),
        (b"\x0a" + varint(2**63), "field 1 at byte 0 .* 9223372036854775808"),
        (b"\x08" + b"\xff" * 11, "at byte 1 "),
        (b"\x08\x80", "at byte 1 "),
        (b"\x0a", "at byte 1 "),
        (b"\x08\x01\x00\x00", "field number 0 at byte 2"),
        (b"\x0f\x01", "type 7 at byte 0"),
        (field(36, b"\x01\x80"), "byte 4 is cut short"),
        (field(36, b"\xff" * 12), "byte 3 is longer"),
    ):
        messages = [whole] * place + [data] + [whole] * (2 - place)
        with pytest.raises(UnparsableError):
            Columns(TYPE, messages)
        with pytest.raises(DumpError, match=why), damage_located(data, TYPE):
            Columns(TYPE, messages)


def test_damage_is_found_in_messages_within_messages():
    data = field(1, field(3, field(2, field(3, b"\x10\x80"))))
    with pytest.raises(DumpError, match="byte 9 is cut short"), damage_located(data, "HloProto"):
        raise UnparsableError("damaged")


def test_what_is_not_utf_8_is_shown():
    texts = pa.array(["größe".encode(), b"ab\xff"], pa.large_binary())
    with pytest.raises(DumpError, match=r"the name .*ab\\xff"):
        checked_texts(texts, "the name")
