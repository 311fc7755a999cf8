"""Instruction lines taken apart by position."""

import re
from contextlib import suppress

from hypothesis import given, settings
from hypothesis import strategies as st

from memhouse.ingest.readers.hlo_text import read_definitions
from memhouse.ingest.readers.instruction_line import split_instruction
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


def test_every_line_of_the_samples_is_split_as_the_grammar_says():
    for pattern in HLO:
        for line in lines(pattern).text:
            if line.startswith("  "):
                name, shape, opcode, rest = GRAMMAR.match(line).groups()
                found = split_instruction(line)
                assert (found.name, found.shape, found.opcode) == (name, shape, opcode)
                assert f"{found.operands}){found.attributes}" == rest


def test_a_brace_within_quotes_does_not_end_the_metadata():
    line = 'a = f32[] add(b), metadata={op_name="einsum{}/x" source_line=7}, c={}'
    (metadata,) = read_definitions([(1, line)]).metadata
    assert (metadata.op_name, metadata.source_line) == ("einsum{}/x", 7)


@settings(max_examples=rounds(50))
@given(st.text(st.characters(exclude_characters="\n\r", exclude_categories=["Cs"])))
def test_any_line_is_split_as_the_grammar_says_or_refused(text):
    with suppress(DumpError):
        assert split_instruction(f"  {text}").name == GRAMMAR.match(f"  {text}")[1]


@settings(max_examples=rounds(50))
@given(
    st.text('ab()[]{},= %"/*.:-', max_size=30),
    st.sampled_from(["f32[2]{0}", "(f32[2]{0:T(8)}, /*index=5*/u32[])", "()"]),
)
def test_whatever_stands_behind_the_parenthesis(rest, shape):
    found = read_definitions([(1, f"  ROOT %a.1 = {shape} fusion({rest}")])
    if found.unread:
        assert "the operands do not close" in found.unread[0].description
    else:
        assert (found.names, found.shape, found.opcode) == (["a.1"], [shape], ["fusion"])
