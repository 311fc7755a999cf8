"""Used values: where values stand and are used, against figures read off the dumps."""

import pytest

from memhouse.ingest.readers.lines import split_lines
from memhouse.ingest.readers.used_values import read_definitions, read_used_values
from memhouse.xla.errors import DumpError

from ...support.dumps import section

TEXT = """\
Total bytes used: 12 (12B)

Used values:
<0 x @0>
 positions:
  x
 uses:
  add, operand 0
 from instruction: %x = f32[] parameter(0)
<1 add @0>
 positions:
  add
 uses:
 from instruction: %add = f32[] add(%x, %x)
"""
BROADCAST = "cpu/jax-0.10.2/module_0002*-values.txt"


def read(pattern):
    return read_used_values(section(pattern, "buffer-assignment-values"))


def definitions(pattern):
    """The definitions that the sample repeats."""
    lines = section(pattern, "buffer-assignment-values")
    return read_definitions(lines, read_used_values(lines)).definitions


def of_value(table, value_id):
    """A value's rows, without its number."""
    rows = [row for row in table.to_pylist() if row.pop("value_id") == value_id]
    return [tuple(row.values()) for row in rows]


def test_seed_000_has_glued_lines():
    used = read("seeds/000*")
    assert used.total_bytes == 1348651528
    assert used.values["value_id"].to_pylist() == list(range(26, 44))
    assert of_value(used.positions, 26) == [(0, "Arg_1.2", "{}"), (1, "copy-start", "{1}")]
    assert of_value(used.uses, 26) == [(0, "copy-start", 0, "{}"), (1, "copy-done", 0, "{1}")]
    assert used.values.to_pylist()[2] == {
        "value_id": 28,
        "instruction": "copy-start",
        "shape_index": "{0}",
        "is_phi": False,
        "memory_space": 1,
    }


def test_a_tuple_is_defined_once():
    names = definitions("seeds/000*")["instruction"].to_pylist()
    assert len(names) == len(set(names)) == 14
    # 2020: `from instruction:%x`.
    for pattern, first in (
        ("seeds/000*", ("Arg_1.2", "f32[4,1,5120]{2,1,0:T(1,128)}", "args[1]")),
        ("seeds/004*", ("parameter.51", "f32[]", None)),
    ):
        row = definitions(pattern).to_pylist()[0]
        assert (row["instruction"], row["shape"], row["op_name"]) == first


def test_definitions_are_kept_only_if_asked_for():
    assert read("seeds/000*").definitions is None


def test_the_first_position_is_where_a_value_is_defined():
    for pattern in ("seeds/003*", "tpu/llama-v5e/*-values.txt*"):
        used = read(pattern)
        first = [row for row in used.positions.to_pylist() if row["position_index"] == 0]
        defined = used.values.select(["value_id", "instruction", "shape_index"]).to_pylist()
        assert [{k: row[k] for k in defined[0]} for row in first] == defined


def test_no_uses_are_printed_as_none_or_as_nothing():
    for pattern, value_id in ((BROADCAST, 3), ("seeds/004*", 31), ("seeds/002*", 21)):
        used = read(pattern)
        assert of_value(used.uses, value_id) == []
        assert len(of_value(used.positions, value_id)) == 1


def test_glued_phi_values():
    text = TEXT.replace("parameter(0)\n", "parameter(0)").replace(
        "<1 add @0>", "<1 add{0} (phi) @0>"
    )
    lines = split_lines(text.encode())
    used = read_definitions(lines, read_used_values(lines))
    assert used.values["is_phi"].to_pylist() == [False, True]
    assert used.definitions["instruction"][0].as_py() == "x"


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ("Total bytes used: 12", "Total bytes: 12", 1),
        ("12 (12B)", "9" * 30, 1),
        ("Used values:\n", "", 13),
        ("<0 x @0>", "<0 x @>", 4),
        ("<1 add @0>\n", "", 10),
        (" positions:\n  x\n", "", 5),
        ("  add, operand 0", "  add, operand", 8),
        ("  add, operand 0", " add, operand 0", 8),
        ("  add, operand 0", "  add, operand 4294967296", 8),
        ("  add\n", "  add, operand 0\n", 12),
        (" from instruction: %add = f32[] add(%x, %x)\n", "", 13),
        ("f32[] parameter(0)\n", "f32[] parameter(0)\nx\n", 10),
    ],
)
def test_what_is_wrong_is_refused_with_its_line(old, new, line):
    assert old in TEXT
    with pytest.raises(DumpError) as error:
        read_used_values(split_lines(TEXT.replace(old, new).encode()))
    assert error.value.line == line
