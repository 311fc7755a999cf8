"""Lines: how bytes come apart, and errors that name the line."""

import pytest

from memhouse.ingest.readers.lines import split_lines, whole_lines
from memhouse.xla.errors import LARGEST_ID, LARGEST_SIZE, DumpError


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


def test_only_newlines_end_lines():
    assert len(split_lines("a\x0bb\x0cc\x85d\u2028e\rf\n".encode())) == 1


@pytest.mark.parametrize("text", [b"", b"\n", b" \r\n\t\n"])
def test_an_empty_file_is_refused(text):
    with pytest.raises(DumpError):
        split_lines(text)


def test_bytes_that_are_no_text_are_refused_with_their_line():
    with pytest.raises(DumpError) as error:
        split_lines(b"one\ntwo\nthr\xff\xfee\n")
    assert error.value.line == 3


@pytest.mark.parametrize("most", [LARGEST_ID, LARGEST_SIZE])
def test_numbers_are_read_up_to_the_largest(most):
    found = split_lines(f"0\n{most}\n".encode())
    assert found.integers(found.text, most=most).to_pylist() == [0, most]
    for over in (1, 10**18, 2**63, 2**64, 10**40):
        found = split_lines(f"0\n{most + over}\n".encode())
        with pytest.raises(DumpError, match=str(most)) as error:
            found.integers(found.text, most=most)
        assert error.value.line == 2
