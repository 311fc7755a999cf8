"""Used values: where values stand and are used, against figures read off the dumps."""

import pytest

from memhouse.ingest.errors import DumpError
from memhouse.ingest.readers.lines import split_lines
from memhouse.ingest.readers.used_values import read_definitions, read_used_values

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
MIXED = "cpu/jax-0.10.2/module_0018*-values.txt"
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


def test_of_glued_lines_the_definition_stays_whole():
    first, *_ = definitions("seeds/000*").to_pylist()
    assert (first["instruction"], first["opcode"], first["op_name"]) == (
        "Arg_1.2",
        "parameter",
        "args[1]",
    )
    assert first["shape"] == "f32[4,1,5120]{2,1,0:T(1,128)}"


def test_a_tuple_is_defined_once():
    names = definitions("seeds/000*")["instruction"].to_pylist()
    assert names.count("copy-start") == 1
    assert len(names) == len(set(names)) == 14


def test_definitions_are_kept_only_if_asked_for():
    assert read("seeds/000*").definitions is None


def test_a_definition_needs_no_space():
    # 2020: `from instruction:%x`.
    first, *_ = definitions("seeds/004*").to_pylist()
    assert (first["instruction"], first["shape"]) == ("parameter.51", "f32[]")


def test_positions_and_uses_keep_their_order():
    used = read("seeds/004*")
    assert of_value(used.positions, 25) == [
        (0, "fusion.5", "{0}"),
        (1, "get-tuple-element", "{}"),
        (2, "bitcast.7", "{}"),
        (3, "tuple.2", "{1}"),
    ]
    assert of_value(used.uses, 13) == [
        (0, "fusion.5", 2, "{}"),
        (1, "cublas-gemm.5", 1, "{}"),
        (2, "cublas-gemm.3", 1, "{}"),
    ]


def test_the_first_position_is_where_a_value_is_defined():
    for pattern in ("seeds/003*", "tpu/llama-v5e/*-values.txt*"):
        used = read(pattern)
        first = [row for row in used.positions.to_pylist() if row["position_index"] == 0]
        defined = used.values.select(["value_id", "instruction", "shape_index"]).to_pylist()
        assert [{k: row[k] for k in defined[0]} for row in first] == defined


@pytest.mark.parametrize(
    ("pattern", "value_id"), [(BROADCAST, 3), ("seeds/004*", 31), ("seeds/002*", 21)]
)
def test_no_uses_printed_as_none_or_as_nothing(pattern, value_id):
    used = read(pattern)
    assert of_value(used.uses, value_id) == []
    assert len(of_value(used.positions, value_id)) == 1


def test_phi_values():
    used = read(MIXED)
    phi = [row for row in used.values.to_pylist() if row["is_phi"]]
    assert [row["value_id"] for row in phi] == list(range(126, 137))
    assert (phi[1]["instruction"], phi[1]["shape_index"]) == ("cond.1.clone", "{0}")


def test_phi_values_of_a_tpu_train_step():
    used = read("tpu/llama-v5e/*-values.txt*")
    assert used.total_bytes == 465105484
    assert of_value(used.positions, 2955) == [(0, "wide.param.42", "{}")]
    assert of_value(used.uses, 2955) == [(0, "get-tuple-element.1042", 0, "{}")]


def test_glued_phi_values():
    text = TEXT.replace("parameter(0)\n", "parameter(0)").replace(
        "<1 add @0>", "<1 add{0} (phi) @0>"
    )
    lines = split_lines(text.encode())
    used = read_definitions(lines, read_used_values(lines))
    assert used.values["is_phi"].to_pylist() == [False, True]
    assert used.definitions["instruction"][0].as_py() == "x"


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        ("Total bytes used: 12", "Total bytes: 12", 1, "expected 'Total bytes used: N'"),
        ("12 (12B)", "9" * 30, 1, "a number is over"),
        ("Used values:\n", "", 13, "the file ends before 'Used values:'"),
        ("<0 x @0>", "<0 x @>", 4, "expected a value"),
        ("<1 add @0>\n", "", 10, "not in order"),
        (" positions:\n  x\n", "", 5, "not in order"),
        ("  add, operand 0", "  add, operand", 8, "expected a use"),
        ("  add, operand 0", " add, operand 0", 8, "expected a position or a use"),
        ("  add, operand 0", "  add, operand 4294967296", 8, "a number is over"),
        ("  add\n", "  add, operand 0\n", 12, "expected a position"),
        (" from instruction: %add = f32[] add(%x, %x)\n", "", 13, "the file ends within a value"),
        ("f32[] parameter(0)\n", "f32[] parameter(0)\nx\n", 10, "expected a position or a use"),
    ],
)
def test_what_is_wrong_is_refused_with_its_line(old, new, line, message):
    assert old in TEXT
    with pytest.raises(DumpError, match=message) as error:
        read_used_values(split_lines(TEXT.replace(old, new).encode()))
    assert error.value.line == line
