"""Lines: how bytes come apart, and errors that name the line."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memhouse.ingest.readers.lines import split_lines, standing, whole_lines
from memhouse.xla.errors import LARGEST_ID, LARGEST_SIZE, DumpError

from ...support.rounds import rounds


@pytest.mark.parametrize(
    "text",
    [b"one\ntwo\n", b"one\ntwo", b"one\r\ntwo\r\n", b"one\r\ntwo"],
    ids=["unix", "no last newline", "windows", "windows, no last newline"],
)
def test_a_last_line_end_makes_no_further_line(text):
    found = split_lines(text)
    assert found.text.to_pylist() == ["one", "two"]
    assert found.numbers.tolist() == [1, 2]


@pytest.mark.parametrize("text", [b"one\ntwo", b"one\r\ntwo"])
def test_a_last_line_without_its_end_is_a_file_cut_short(text):
    with pytest.raises(DumpError) as error:
        whole_lines(text)
    assert error.value.line == 2
    assert whole_lines(text + b"\n").text.to_pylist() == ["one", "two"]


def test_blank_lines_count():
    found = split_lines(b"\none\n\n\ntwo\n\n")
    assert found.text.to_pylist() == ["", "one", "", "", "two", ""]
    assert found.where(found.starting("t")).numbers.tolist() == [5]


def test_only_newlines_end_lines():
    assert len(split_lines("a\x0bb\x0cc\x85d\u2028e\rf\n".encode())) == 1


def test_lines_keep_their_numbers():
    found = split_lines(b"a\nb\na\nb\n")
    assert found.where(found.equal("b")).numbers.tolist() == [2, 4]
    assert found.between(1, 3).numbers.tolist() == [2, 3]
    assert found.between(4, 4).first() == ""


@pytest.mark.parametrize("text", [b"", b"\n", b" \r\n\t\n"])
def test_an_empty_file_is_refused(text):
    with pytest.raises(DumpError):
        split_lines(text)


def test_bytes_that_are_no_text_are_refused_with_their_line():
    with pytest.raises(DumpError) as error:
        split_lines(b"one\ntwo\nthr\xff\xfee\n")
    assert error.value.line == 3


def test_names_need_not_be_ascii():
    assert split_lines("größe\n".encode()).first() == "größe"


def test_a_line_that_does_not_match_is_refused_with_its_number():
    found = split_lines(b"\nsize 12\nsize 13\nsize x\nsize y\n").between(1, 5)
    with pytest.raises(DumpError, match=r"a size.*'size x'") as error:
        found.extract(r"^size (?P<size>\d+)$", "a size")
    assert error.value.line == 4


def test_a_long_line_is_shown_in_part():
    found = split_lines(b"x" * 50_000 + b"\n")
    with pytest.raises(DumpError) as error:
        found.extract("^(?P<y>y)$", "a y")
    assert len(str(error.value)) < 100


def test_a_group_without_part_is_empty_and_no_number():
    found = split_lines(b"a1\na\n")
    digits = found.extract(r"^a(?P<digits>\d+)?$", "an a")["digits"]
    assert digits.to_pylist() == ["1", ""]
    assert found.integers(digits).to_pylist() == [1, None]


@pytest.mark.parametrize("most", [LARGEST_ID, LARGEST_SIZE])
def test_numbers_are_read_up_to_the_largest(most):
    found = split_lines(f"0\n{most}\n".encode())
    assert found.integers(found.text, most=most).to_pylist() == [0, most]
    for over in (1, 10**18, 2**63, 2**64, 10**40):
        found = split_lines(f"0\n{most + over}\n".encode())
        with pytest.raises(DumpError, match=str(most)) as error:
            found.integers(found.text, most=most)
        assert error.value.line == 2


SHORT = st.text("ab ", max_size=20)


@settings(max_examples=rounds(50))
@given(st.lists(SHORT, min_size=1), SHORT.filter(bool))
def test_lines_that_start_with_a_prefix_or_are_a_text(texts, wanted):
    found = split_lines("".join(f"{text}\n" for text in ["x", *texts]).encode())
    assert found.starting(wanted).tolist() == [False, *(t.startswith(wanted) for t in texts)]
    assert found.equal(wanted).tolist() == [False, *(t == wanted for t in texts)]
    # What is known of lines is known of a part of them.
    part = found.between(1, len(found))
    assert part.starting(wanted).tolist() == [t.startswith(wanted) for t in texts]


@settings(max_examples=rounds(50))
@given(st.binary(min_size=1, max_size=30), st.binary(min_size=1, max_size=20))
def test_where_a_text_stands(content, text):
    at = np.arange(len(content))
    # Zeros count as standing behind the end; no text that a reader looks for has any.
    text = text.replace(b"\0", b"\1")
    found = standing(np.frombuffer(content, np.uint8), at, text)
    assert found.tolist() == [content.startswith(text, i) for i in at]
