"""Instruction lines taken apart by position."""

import re
from contextlib import suppress

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memhouse.ingest.readers.hlo_text import read_instructions, split_instructions
from memhouse.ingest.readers.lines import lines_of, split_lines
from memhouse.xla.errors import DumpError

from ...support.dumps import DUMPS, lines
from ...support.rounds import rounds

HLO = sorted(
    str(path.relative_to(DUMPS))
    for path in DUMPS.glob("*/*/*after_optimizations.txt*")
    if path.name.endswith((".txt", ".txt.gz"))
)
# The grammar as one regular expression, slow and plain.
GRAMMAR = re.compile(r"^ *(?:ROOT )?%?([^ ]+) = (\(.*?\)|[^ (][^ ]*) ([a-z][a-z0-9\-]*)\((.*)$")


def read(text: str) -> list[dict[str, object]]:
    return read_instructions(split_instructions(split_lines(text.encode()))).to_pylist()


def test_every_line_of_the_samples_is_taken_apart_as_the_grammar_says():
    for pattern in HLO:
        check_against_grammar(lines(pattern))


def check_against_grammar(text):
    instructions = text.where(text.starting("  "))
    found = split_instructions(instructions)
    expected = [GRAMMAR.match(line).groups() for line in instructions.text.to_pylist()]
    assert found.names.to_pylist() == [name for name, *_ in expected]
    assert found.shapes.to_pylist() == [shape for _, shape, *_ in expected]
    assert found.opcodes.cast(pa.large_string()).to_pylist() == [row[2] for row in expected]
    behind = [
        bytes(found.lines.content[start:end]).decode()
        for start, end in zip(found.operands, found.lines.ends, strict=True)
    ]
    assert behind == [row[3] for row in expected]


@pytest.mark.parametrize(
    "line",
    [
        "  %a f32[] add(%b, %c)",
        "  %a = ",
        "  %a = f32[]",
        "  %a = f32[] add",
        "  %a = f32[] Add(%b)",
        "  %a = f32[] (%b)",
        "  %a = (f32[], f32[] add(%b)",
        "  % = f32[] add(%b)",
        "   = f32[] add(%b)",
        "  ROOTS %a = f32[] add(%b)",
        "  so %a = f32[] add(%b)",
        "  %a =  add(%b)",
        f"  %a = f32[] {'a' * 100}(%b)",
    ],
)
def test_what_is_no_instruction_is_refused_with_its_line(line):
    with pytest.raises(DumpError) as refused:
        read(f"  %b = f32[] constant(0)\n{line}\n  %c = f32[] copy(%b)\n")
    assert refused.value.line == 2


def test_a_brace_within_quotes_does_not_end_the_metadata():
    (row,) = read('  a = f32[] add(b), metadata={op_name="einsum{}/x" source_line=7}, c={}\n')
    assert (row["op_name"], row["source_line"]) == ("einsum{}/x", 7)


def test_metadata_that_does_not_close_is_refused():
    with pytest.raises(DumpError) as refused:
        read('  a = f32[] copy(b)\n  c = f32[] copy(b), metadata={op_name="x\n')
    assert refused.value.line == 2


def test_metadata_that_lines_share_is_read_for_each():
    text = '  a{} = f32[] add(b), metadata={{op_name="f" source_line={}}}\n'
    found = read("".join(text.format(i, i % 3) for i in range(9)) + "  z = f32[] copy(b)\n")
    assert [row["source_line"] for row in found] == [0, 1, 2] * 3 + [None]
    assert [row["op_name"] for row in found] == ["f"] * 9 + [None]


def test_what_looks_like_an_attribute_in_quotes_is_none():
    (row,) = read(
        '  a = f32[] add(b), frontend_attributes={k="v \\", metadata={source_line=6}"}, '
        'metadata={op_name="real" source_line=7}\n'
    )
    assert (row["op_name"], row["source_line"]) == ("real", 7)


def test_lines_made_of_texts_stay_apart():
    texts = pa.array(["a = f32[] add(b), metadata", '={x} = f32[] c(), metadata={op_name="m"}'])
    made = lines_of(texts.cast(pa.large_string()), np.array([3, 5]))
    found = read_instructions(split_instructions(made)).to_pylist()
    assert [row["op_name"] for row in found] == [None, "m"]


def test_a_number_out_of_range_is_refused_where_it_first_stands():
    text = "  a = f32[] add(b)\n" + "  c = f32[] add(b), metadata={source_line=99999999999}\n" * 2
    with pytest.raises(DumpError) as refused:
        read(text)
    assert refused.value.line == 2


def test_no_lines_are_no_rows():
    assert read_instructions(split_instructions(split_lines(b"x\n").between(0, 0))).num_rows == 0


@settings(max_examples=rounds(50))
@given(st.text(st.characters(exclude_characters="\n\r", exclude_categories=["Cs"])))
def test_any_line_is_read_as_the_grammar_says_or_refused(text):
    with suppress(DumpError):
        assert read(f"  {text}\n")[0]["instruction"] == GRAMMAR.match(f"  {text}")[1]


@settings(max_examples=rounds(50))
@given(
    st.text('ab()[]{},= %"/*.:-', max_size=30),
    st.sampled_from(["f32[2]{0}", "(f32[2]{0:T(8)}, /*index=5*/u32[])", "()"]),
)
def test_whatever_stands_behind_the_parenthesis(rest, shape):
    (row,) = read(f"  ROOT %a.1 = {shape} fusion({rest}\n")
    assert (row["instruction"], row["shape"], row["opcode"]) == ("a.1", shape, "fusion")
