"""Lines: how bytes come apart, and errors that name the line."""

import pytest

from memhouse.ingest.readers.lines import (
    read_integer,
    split_complete_lines,
    split_hlo_lines,
    split_lines,
)
from memhouse.xla.errors import LARGEST_ID, LARGEST_SIZE, DumpError


@pytest.mark.parametrize(
    "content",
    [b"one\ntwo\n", b"one\ntwo", b"one\r\ntwo\r\n", b"one\r\ntwo", b"one\ntwo\n\xe2\x82"],
    ids=["unix", "no last newline", "windows", "windows, no last newline", "half a character"],
)
def test_a_last_line_end_makes_no_further_line(content):
    lines = split_lines(content)
    assert lines.text == ["one", "two"]
    assert (lines.first_number, lines.last_number) == (1, 2)


@pytest.mark.parametrize("content", [b"one\ntwo", b"one\r\ntwo"])
def test_a_last_line_without_its_end_is_a_file_cut_short(content):
    with pytest.raises(DumpError) as error:
        split_complete_lines(content)
    assert error.value.line == 2
    assert split_complete_lines(content + b"\n").text == ["one", "two"]


def test_only_newlines_end_lines():
    assert len(split_lines("a\x0bb\x0cc\x85d\u2028e\rf\n".encode()).text) == 1


@pytest.mark.parametrize("content", [b"", b"\n", b" \r\n\t\n"])
def test_an_empty_file_is_refused(content):
    with pytest.raises(DumpError):
        split_lines(content)


def test_bytes_that_are_no_text_are_refused_with_their_line():
    with pytest.raises(DumpError) as error:
        split_lines(b"one\ntwo\nthr\xff\xfee\n")
    assert error.value.line == 3


def test_bytes_that_are_no_text_cost_the_instructions_of_a_module():
    lines, corrupt = split_hlo_lines(b"HloModule m\n  a\xff\n  b\n")
    assert (lines.text, corrupt) == (["HloModule m", "", "  b"], [2])
    for content in (b"HloModule \xff\n  a\n", b"m\n" + b"  \xff\n" * 101):
        with pytest.raises(DumpError):
            split_hlo_lines(content)


@pytest.mark.parametrize("largest", [LARGEST_ID, LARGEST_SIZE])
def test_numbers_are_read_up_to_the_largest(largest):
    assert [read_integer(str(number), largest) for number in (0, largest)] == [0, largest]
    for digits in (str(largest + 1), "9" * 18, str(2**63), "1" * 5000):
        with pytest.raises(DumpError, match=str(largest)):
            read_integer(digits, largest)
