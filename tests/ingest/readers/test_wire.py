"""The wire format: many messages in columns read as one message field by field."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memhouse.ingest.readers import wire
from memhouse.ingest.readers.wire import read_messages
from memhouse.ingest.readers.wire_bytes import distinct, wire_of
from memhouse.ingest.readers.wire_scalar import BYTES, VARINT, fields, signed
from memhouse.xla.errors import DumpError
from tests.support.protos import field, message, packed, varint
from tests.support.rounds import rounds

NUMBERS = st.integers(0, 2**64 - 1) | st.sampled_from([0, 127, 128, 2**56 - 1, 2**56, 2**63])
# Fields 1 and 2 hold numbers, 3 bytes, 4 lists; 7 and 300 nobody asks for.
FIELDS = st.one_of(
    st.tuples(st.sampled_from([1, 2, 7, 300]), NUMBERS),
    st.tuples(st.sampled_from([3, 7, 300, 40000]), st.binary(max_size=200)),
    st.tuples(st.just(4), st.lists(NUMBERS, max_size=5).map(lambda numbers: packed(*numbers))),
    st.tuples(st.just(4), NUMBERS),
)
MESSAGES = st.lists(st.lists(FIELDS, max_size=6), max_size=12)


def as_signed(number):
    return number - 2**64 if number >= 2**63 else number


def extents(texts):
    lengths = np.array([len(text) for text in texts], np.int64)
    return np.cumsum(lengths) - lengths, np.cumsum(lengths)


@pytest.fixture(params=[0, 1000], ids=["in turns", "one by one"], scope="module")
def _few(request):
    """How many messages are few, so that both ways are tried."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(wire, "_FEW", request.param)
        yield


@pytest.mark.usefixtures("_few")
@settings(max_examples=rounds(50))
@given(MESSAGES)
def test_columns_hold_what_the_messages_hold(written):
    texts = [message(*pairs) for pairs in written]
    read = read_messages(
        wire_of(b"".join(texts)), *extents(texts), numbers=(1, 2), contents=(3,), lists=(4,)
    )
    assert read.count == len(written)
    for number in (1, 2):
        last = [dict(pairs).get(number, 0) for pairs in written]
        assert read.numbers(number).tolist() == [as_signed(value) for value in last]
        assert read.has(number).tolist() == [number in dict(pairs) for pairs in written]
    found = read.each(3)
    assert [
        (owner, read.wire.data[first:end])
        for owner, first, end in zip(found.message, found.first, found.end, strict=True)
    ] == [(i, value) for i, pairs in enumerate(written) for number, value in pairs if number == 3]
    owners, numbers = read.lists(4)
    expected = []
    for i, pairs in enumerate(written):
        for number, value in pairs:
            if number == 4:
                listed = [value] if isinstance(value, int) else _unpacked(value)
                expected += [(i, as_signed(one)) for one in listed]
    assert list(zip(owners.tolist(), numbers.tolist(), strict=True)) == expected


def _unpacked(value):
    """The numbers of a packed list, read as fields: each gets a tag."""
    found, at = [], 0
    while at < len(value):
        end = next(i for i in range(at, len(value)) if value[i] < 0x80) + 1
        ((_, _, number, _),) = fields(b"\x08" + value[at:end], 0, end - at + 1)
        found.append(number)
        at = end
    return found


def test_fields_of_all_kinds():
    data = field(1, 2**64 - 1) + b"\x11" + bytes(7) + b"\x01" + field(3, b"abc") + b"\x25\1\0\0\0"
    found = list(fields(data, 0, len(data)))
    assert [(number, kind) for number, kind, _, _ in found] == [
        (1, VARINT), (2, 1), (3, BYTES), (4, 5)
    ]  # fmt: skip
    assert signed(found[0][2]) == -1
    assert found[1][2] == 1 << 56
    assert data[found[2][2] : found[2][3]] == b"abc"
    assert found[3][2] == 1


@pytest.mark.usefixtures("_few")
def test_damage_names_the_byte():
    for data, why in (
        (b"\x0a\x05abc", "field 1 at byte 0 .* 5 .* 3:"),
        (b"\x0a" + varint(2**63), "field 1 at byte 0 .* 9223372036854775808"),
        (b"\x08" + b"\xff" * 11, "at byte 1 "),
        (b"\x08\x80", "at byte 1 "),
        (b"\x0a", "at byte 1 "),
        (b"\x08\x01\x00\x00", "field number 0 at byte 2"),
        (b"\x0b\x01", "type 3 at byte 0"),
        (b"\x0f\x01", "type 7 at byte 0"),
        (b"\x0a\x01a", "field 1 .* byte 3 .* 2"),
        (b"\x18\x01", "field 3 .* byte 2 .* 0"),
        (b"\x25\0\0\0\0", "field 4 .* byte 5 .* 5"),
    ):
        with pytest.raises(DumpError, match=why):
            read_messages(wire_of(data), *extents([data]), numbers=(1,), contents=(3,), lists=(4,))


def test_a_list_that_ends_within_a_number_names_the_byte():
    data = field(4, b"\x01\x80")
    read = read_messages(wire_of(data), *extents([data]), lists=(4,))
    with pytest.raises(DumpError, match="byte 2"):
        read.lists(4)


def test_what_is_not_utf_8_names_the_byte():
    texts = [field(3, "größe".encode()), field(3, b"ab\xff")]
    read = read_messages(wire_of(b"".join(texts)), *extents(texts), contents=(3,))
    with pytest.raises(DumpError, match=r"the name .*byte 13"):
        read.texts(3, "the name")


def test_equal_pieces_have_one_code():
    data = b"abcabxab"
    starts = np.array([0, 3, 6])
    codes, first = distinct(wire_of(data), starts, starts + 2)
    assert codes.tolist() == [0, 0, 0]
    assert first.tolist() == [0]
