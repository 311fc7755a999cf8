"""Instructions over several lines: joined where all is closed, and no further."""

import time
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memhouse.ingest.readers.hlo_text import read_hlo_text
from memhouse.ingest.readers.lines import split_lines
from memhouse.ingest.readers.used_values import read_definition_lines, read_used_values
from memhouse.xla.errors import DumpError

from ...support.dumps import content

SPLASH = """\
HloModule jit_f, is_scheduled=true, entry_computation_layout={(f32[8]{0})->f32[8]{0}}

ENTRY %main (p: f32[8]) -> f32[8] {
  %p = f32[8]{0} parameter(0)
  ROOT %a = f32[8]{0} negate(%p), frontend_attributes={kernel_metadata={
"xprof_metadata":"{\\"block_q\\": 128}"
}}, metadata={op_name="jit(f)/neg"}
}
"""
JSON = '={\n"xprof_metadata":"{\\"block_q\\": 128}"\n}'
# What may stand between the braces of an instruction.
PIECES = (
    '"a":1', "\n", "\n}\n{", '"}"', '"\\""', '"\\\\"', "{}", "[\n1,\n2\n]", "/* } */", "(\n)", "  ",
    "\n\n", "ENTRY e {\n}", "{\n  a b\n}", "HloModule", "1 {}", "ä",
)  # fmt: skip


def read(text):
    return read_hlo_text(split_lines(text.encode()))


def rows(program):
    """All that the text says, but the lines and what is passed over."""
    attributes = vars(program).items()
    return {name: value for name, value in attributes if name not in ("lines", "not_understood")}


@given(st.lists(st.sampled_from(PIECES), max_size=12).map("".join))
def test_what_stands_in_closed_braces_changes_nothing(piece):
    text = SPLASH.replace(JSON, "={" + piece + "}")
    found = read(text)
    assert rows(found) == rows(read(SPLASH.replace("kernel_metadata" + JSON, "")))
    assert found.unread == []
    assert found.lines == [4, 5]


@pytest.mark.parametrize(
    ("lost", "names"),
    [("}}, ", ["p", "a"]), ('128}"', ["p", "a"]), ("={\n", ["p", "a"]), ("\n}}, ", ["p", "a"])],
)
def test_an_instruction_that_does_not_close_costs_itself(lost, names):
    """The computations around it are read whole."""
    inner = "%inner (x: f32[8]) -> f32[8] {\n  ROOT %x = f32[8]{0} parameter(0)\n}\n\nENTRY"
    found = read(SPLASH.replace("ENTRY", inner).replace(lost, "", 1) + "\n" + inner[:-6].replace(
        "x", "y") + "\n")  # fmt: skip
    assert found.names == ["x", *names, "y"]
    assert found.computation_names == ["inner", "main", "inner"]
    assert [unread.line for unread in found.unread] == [10]


def test_used_values_repeat_such_an_instruction():
    text = content("cpu/jax-0.10.2/module_0018*values.txt").decode().lstrip()
    section = split_lines(text.encode())
    places = (", metadata={", ", frontend_attributes={kernel_metadata" + JSON + "}, metadata={")
    longer = split_lines(text.replace(*places).encode())
    found, used = read_used_values(longer), read_used_values(section)
    for name in ("values", "positions", "uses"):
        assert getattr(found, name) == getattr(used, name)
    before, after = places[0], places[1].replace("\n", " ")
    assert [text.replace(after, before) for _, text in read_definition_lines(longer)] == [
        text for _, text in read_definition_lines(section)
    ]


@pytest.mark.parametrize("piece", ['"', '\\"', '"\\', "/*", "{", "}", "{\n", '"a\n', "/*\n", "x\n"])
def test_hostile_texts_take_linear_time(piece):
    def seconds(count):
        text = split_lines(
            (SPLASH + piece * count + "\n" + SPLASH[SPLASH.index("ENTRY") :]).encode()
        )
        before = time.process_time()
        with suppress(DumpError):
            read_hlo_text(text)
        return time.process_time() - before

    # Sixteen times the text; quadratic time would be 256 times as long.
    assert seconds(400_000) < 40 * seconds(25_000) + 0.5
