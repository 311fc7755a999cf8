"""Instruction lines taken apart by position."""

import re
from contextlib import suppress

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from memhouse.ingest.readers.hlo_text import read_instructions, split_instructions
from memhouse.ingest.readers.line_columns import column_lines
from memhouse.ingest.readers.lines import split_lines
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
    text = column_lines(text)
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


def test_a_brace_within_quotes_does_not_end_the_metadata():
    (row,) = read('  a = f32[] add(b), metadata={op_name="einsum{}/x" source_line=7}, c={}\n')
    assert (row["op_name"], row["source_line"]) == ("einsum{}/x", 7)


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
