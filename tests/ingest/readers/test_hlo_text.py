"""HLO text: header, computations, instructions, operands and calls, against the dumps' lines."""

import re
from functools import cache

import pytest

from memhouse.ingest.readers.hlo_header import header_name
from memhouse.ingest.readers.hlo_text import read_definitions, read_hlo_text
from memhouse.ingest.readers.instruction_line import operand_names, split_instruction
from memhouse.ingest.readers.lines import split_lines
from memhouse.xla.errors import DumpError
from memhouse.xla.program import NOT_READ, Program, ScopedMemory

from ...support.dumps import content, lines

SEED = "seeds/001*"
LLAMA = "tpu/llama-v5e/*optimizations.txt.gz"
LLAMA_OLD = "tpu/llama-v5e-jax0.7.0/*optimizations.txt.gz"
FLASH = "tpu/flash-v5e/*optimizations.txt"
DECODE = "tpu/decode8-v5e/*optimizations.txt.gz"
RESNET = "tpu/resnet-v5e/*optimizations.txt.gz"
MIXED = "cpu/jax-0.10.2/module_0018*optimizations.txt"
MIXED_0_4_23 = "cpu/jax-0.4.23/module_0009*optimizations.txt"
SHARDED = "cpu/jax-0.9.0/module_0023*optimizations.txt"
ALL = [SEED, LLAMA, LLAMA_OLD, FLASH, DECODE, RESNET, MIXED, MIXED_0_4_23, SHARDED]

TEXT = """\
HloModule tiny, is_scheduled=true

%double (x: f32[2]) -> f32[2] {
  %x = f32[2]{0} parameter(0)
  ROOT %sum = f32[2]{0} add(%x, %x)
}

ENTRY %main (p: f32[2]) -> f32[2] {
  %p = f32[2]{0} parameter(0)
  ROOT %fusion = f32[2]{0} fusion(%p), kind=kLoop, calls=%double
}
"""


@cache
def hlo(pattern: str) -> Program:
    return read_hlo_text(lines(pattern))


def read(text: str) -> Program:
    return read_hlo_text(split_lines(text.encode()))


def operands(program: Program, name: str) -> list[str]:
    return [program.names[operand] for operand in program.operands[program.row_of[name]]]


def calls(program: Program, name: str) -> list[tuple[str, str]]:
    pairs = program.calls[program.row_of[name]]
    return [(attribute, program.computation_names[callee]) for attribute, callee in pairs]


def left_out(program: Program) -> tuple[int, int, int]:
    """How many instructions of how many are not read, and the line of the first."""
    (unread,) = program.unread
    count, total = map(int, re.findall(r"\d+", unread.description)[:2])
    return count, total, unread.line


# --- header -----------------------------------------------------------------------------


def test_what_the_header_may_say():
    text = TEXT.replace("is_scheduled=true", "is_scheduled=true, replica_count=8")
    assert read(text).header.replica_count == 8
    llama = hlo(LLAMA)
    assert (llama.aliases[0], llama.aliases[-1]) == (((0,), 0, ()), ((34,), 34, ()))
    assert llama.donors == [(17, ()), (18, ()), (29, ()), (30, ())]
    header = llama.header
    assert header.num_partitions == 4
    assert header.entry_signature.startswith("(bf16[4096,512]{1,0:T(8,128)(2,1)}, bf16[512,")
    assert header.entry_signature.endswith("f32[]{:T(128)})")
    # A CPU dump of 2023 does not say that it is scheduled.
    assert hlo(MIXED_0_4_23).header.is_scheduled is False


def test_aliases_that_cannot_be_read_are_none():
    for attribute in ("input_output_alias={ {0}: 1 }", "buffer_donor={ 1 }"):
        found = read(TEXT.replace("=true", f"=true, {attribute}"))
        assert (found.aliases, found.donors) == ([], [])
        assert [unread.line for unread in found.unread] == [1]


def test_the_module_has_the_name_of_its_first_line():
    assert header_name(lines(SEED).text[0]) == "jit_conv_general_dilated"
    assert header_name(lines(LLAMA).text[0]) == "jit_train_step"
    assert header_name("HloModule tiny") == "tiny"
    assert header_name("BufferAssignment:") is None


# --- computations -----------------------------------------------------------------------


def test_a_computation_may_run_on_another_thread():
    text = """\
HloModule offloaded, is_scheduled=true

%sparse (p: f32[8]) -> f32[8] {
  %p = f32[8]{0} parameter(0)
  ROOT %minus = f32[8]{0} negate(%p)
}, execution_thread="sparsecore"

ENTRY %main (a: f32[8]) -> f32[8] {
  %a = f32[8]{0} parameter(0)
  %start = ((f32[8]{0}), f32[8]{0}, u32[]{:S(8)}) async-start(%a), async_execution_thread="sparsecore", calls=%sparse
  ROOT %done = f32[8]{0} async-done(%start)
}
"""  # noqa: E501
    found = read(text)
    assert not found.unread
    assert found.computation_names == ["sparse", "main"]
    assert found.computation[found.row_of["minus"]] == 0


def test_no_line_of_an_instruction_is_lost_and_every_computation_is_called():
    for pattern in ALL:
        said = [text for text in content(pattern).decode().splitlines() if text.startswith("  ")]
        found = hlo(pattern)
        assert found.names == [
            text.split(" = ")[0].strip().removeprefix("ROOT ").removeprefix("%") for text in said
        ]
        assert len(found.row_of) == len(said)
        called = {callee for pairs in found.calls.values() for _, callee in pairs}
        assert {*range(len(found.computation_names))} - called == {found.entry}


# --- instructions -----------------------------------------------------------------------


def test_what_a_kernel_used_beside_what_was_set_aside():
    config = (
        '"scoped_memory_configs":[{"memory_space":"0","offset":"0","size":"67108864"}],'
        '"used_scoped_memory_configs":[{"memory_space":"1","offset":"0","size":"4096"},'
        '{"memory_space":"2","offset":"0","size":"100"}]'
    )
    text = TEXT.replace("calls=%double", f"calls=%double, backend_config={{{config}}}")
    found = read(text)
    assert found.scoped == {found.row_of["fusion"]: ScopedMemory(64 << 20, 0, 4196)}


@pytest.mark.parametrize(
    ("printed", "meant"),
    [
        (r"a\"b", 'a"b'),
        (r"a\\b", "a\\b"),
        (r"a\\", "a\\"),
        (r"a\'b, calls=%double", "a'b, calls=%double"),
        # XLA prints bytes that are not ASCII in octal: absl::CEscape.
        (r"jit(gr\303\266\303\237e)/add", "jit(größe)/add"),
    ],
)
def test_escapes_within_an_op_name(printed, meant):
    text = TEXT.replace("add(%x, %x)", f'add(%x, %x), metadata={{op_name="{printed}"}}')
    found = read(text)
    assert found.metadata[found.row_of["sum"]].op_name == meant
    assert operands(found, "sum") == ["x", "x"]


# --- operands ---------------------------------------------------------------------------


def test_operands_of_every_printing():
    """Without percent signs, without types, with comments that count them, with types."""
    flash = "flash_mha_bwd_dkv_block_q_major_128_block_q_128_block_k_major_128_block_k_128.1"
    broadcasts = ["broadcast_in_dim.3", "broadcast_in_dim.7", "broadcast.1", "broadcast_in_dim.11"]
    for found, name, expected in (
        (hlo(SEED), "fusion", ["Arg_1.2", "Arg_0.1"]),
        (hlo(SEED), "convolution.0", ["fusion.1", "fusion.2"]),
        (hlo(SEED), "Arg_0.1", []),
        (hlo(MIXED), "ynn_fusion.4", ["sort.0", "constant.22"]),
        (hlo(MIXED), "cond.1.clone", ["compare_convert_fusion", "tuple.4", "tuple.4"]),
        (hlo(MIXED), "constant.22", []),
        # `(%q.1, …, %broadcast_in_dim.7, /*index=5*/%broadcast.1, %broadcast_in_dim.11)`
        (hlo(FLASH), flash, ["q.1", "k.1", "v.1", *broadcasts]),
    ):
        assert operands(found, name) == expected, name


def test_operands_of_used_values_have_types():
    """As `copy-start(f32[4,1,5120]{2,1,0:T(1,128)} %Arg_1.2)`."""
    for pattern, name, expected in (
        ("seeds/000*", "copy-start", ["Arg_1.2"]),
        ("seeds/000*", "fusion.5", ["copy-done", "fusion", "copy-done.1"]),
        ("seeds/004*", "fusion.5", ["param.1", "bitcast.11", "param.3", "bitcast.12"]),
        ("seeds/004*", "partition-id", []),
    ):
        (text,) = (line for line in definitions(pattern) if f"%{name} = " in line)
        assert operand_names(split_instruction(text).operands) == expected, name


def test_definitions_are_instructions_without_operands():
    lines = definitions("seeds/004*")
    found = read_definitions(list(enumerate([*lines, "gone"], 1)))
    assert len(found) == len(lines)
    assert set(found.operands) == {()}
    assert NOT_READ not in found.opcode
    assert left_out(found) == (1, len(lines) + 1, len(lines) + 1)


@pytest.mark.parametrize(
    "text",
    [
        "(s32[], f32[2]{0:T(128)}) %t, /*index=1*/() %e, f32[2]{0} %x",
        "(s32[], f32[2]{0:T(128)}) t, /*index=1*/() e, f32[2]{0} x",
    ],
)
def test_operands_with_types_that_are_tuples(text: str):
    module = f"""\
HloModule types, is_scheduled=true

ENTRY %main () -> () {{
  %t = (s32[], f32[2]{{0:T(128)}}) parameter(0)
  %x = f32[2]{{0}} parameter(1)
  %e = () tuple()
  %one = (()) tuple({"() %e" if "%" in text else "() e"})
  ROOT %all = ((s32[], f32[2]{{0}}), (), f32[2]{{0}}) tuple({text})
}}
"""
    found = read(module)
    assert operands(found, "all") == ["t", "e", "x"]
    assert operands(found, "one") == ["e"]


def test_operands_of_every_form_stand_among_plain_ones():
    line = "  ROOT %fusion"
    for said in (
        "%p, %p",
        "%p, /*index=1*/%p",
        "%p, f32[2]{0:T(256)} %p",
        "(f32[2]{0}, ()) %p, %p",
        "(f32[4,1]{1,0:T(1,128)S(1)}, (u32[]{:S(2)}, s32[])) %p, /*index=1*/f32[2]{0:T(256)} %p",
        "p, p",
        "f32[2]{0} p, f32[2]{0} p",
    ):
        for after in ("", ', metadata={op_name="a (b), c"}', ", to_apply=%double"):
            found = read(TEXT.replace(line, f"  %more = f32[2]{{0}} add({said}){after}\n{line}"))
            for name, expected in (("sum", ["x", "x"]), ("more", ["p", "p"]), ("fusion", ["p"])):
                assert operands(found, name) == expected, (said, after)


@pytest.mark.parametrize("said", ["%p", "%p, /*index=1*/", "%p, (%p", "/", "/*index=1*/%p"])
def test_an_instruction_whose_operands_do_not_close_is_left_out(said):
    found = read(TEXT.replace("fusion(%p), kind=kLoop, calls=%double", f"fusion({said}"))
    assert found.names == ["x", "sum", "p"]
    assert left_out(found) == (1, 4, 10)


def test_a_parameter_has_a_number():
    found = read(TEXT.replace("parameter(0)", "parameter(x)"))
    assert left_out(found) == (2, 4, 4)
    assert "at most nine digits" in found.unread[0].description


@pytest.mark.parametrize(
    "said",
    [
        'custom_call_target="__cublas$gemm"',
        'metadata={op_name="a" scheduling_name="b"}',
        'backend_config={"fusion_backend_config":{}}',
    ],
)
def test_attributes_of_a_gpus_compiler(said):
    assert not read(TEXT).is_gpu
    assert read(TEXT.replace("kind=kLoop", f"kind=kLoop, {said}")).is_gpu


def definitions(pattern: str) -> list[str]:
    """The defining instructions of a dump's used values."""
    text = content(pattern).decode()
    # A tuple's stands with each of its elements, and in seed 000 the next value behind it.
    found = re.findall(r"^ from instruction: ?(.*?)(?:<\d+ [^>]*>)?$", text, re.MULTILINE)
    return list(dict.fromkeys(found))


# --- calls ------------------------------------------------------------------------------


def test_calls_of_every_attribute():
    for pattern, name, expected in (
        (SEED, "fusion.1", [("calls", "fused_computation.1")]),
        (MIXED, "while.5", [("condition", "region_6.9"), ("body", "region_5.8")]),
        (MIXED, "reduce_sum.0", [("to_apply", "region_4.7")]),
        (
            MIXED_0_4_23,
            "conditional.43.clone",
            [("branch_computations", "region_1.31"), ("branch_computations", "region_2.38")],
        ),
        (RESNET, "select-and-scatter", [("select", "region_46.53"), ("scatter", "region_47.54")]),
    ):
        assert calls(hlo(pattern), name) == expected, name
    ((attribute, called),) = calls(hlo(DECODE), "top_k.8")
    assert attribute == "called_computations"
    assert called.startswith("compare_greater_than.1.clone")


def test_a_conditional_of_old_names_its_two_branches():
    text = TEXT.replace(
        "fusion(%p), kind=kLoop, calls=%double",
        "conditional(%p, %p, %p), true_computation=%double, false_computation=%double",
    )
    assert calls(read(text), "fusion") == [
        ("true_computation", "double"),
        ("false_computation", "double"),
    ]


# --- newer text -------------------------------------------------------------------------


def test_newer_tables_and_opcodes_are_passed_over_and_named():
    tables = "NewTable\n1 {x=1}\n\nOther\n1 {y=2}\n\n"
    text = TEXT.replace("\n%double", f"\n{tables}%double").replace("add(%x, %x)", "conjure(%x)")
    found = read(text)
    assert found.names == read(TEXT).names
    told = [(newer.line, newer.description.split("'")[1]) for newer in found.not_understood]
    assert sorted(told) == [(3, "NewTable"), (6, "Other"), (11, "conjure")]


# --- refusals ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ("HloModule tiny", "Module tiny", 1),
        ("ENTRY %main", "%main", 11),
        ("calls=%double\n}", "calls=%double", 10),
        ("true\n", "true, entry_computation_layout={(f32[]\n", 1),
    ],
)
def test_what_is_wrong_is_refused_with_its_line(old, new, line):
    assert old in TEXT
    with pytest.raises(DumpError) as error:
        read(TEXT.replace(old, new, 1))
    assert error.value.line == line


@pytest.mark.parametrize(
    ("old", "new", "lost"),
    [
        ("ROOT %fusion", "ROOT fusion of", (1, 4, 10)),
        ("  %x =", "%x =", (1, 4, 4)),
        ("  ROOT %sum", "%sum = {\n  ROOT %sum", (1, 5, 5)),
        ("%double (x", "%dou ble (x", (4, 6, 3)),
        ("}\n\nENTRY", "}\n}\nENTRY", (1, 5, 7)),
        ("add(%x, %x)", 'add(%x, %x), metadata={op_name="', (1, 4, 5)),
        ("add(%x, %x)", "add(%x, %x), metadata={source_line=99999999999}", (1, 4, 5)),
        ("%sum = f32[2]", "%sum = f32[2", (1, 4, 5)),
        ("%sum =", "%x =", (1, 4, 5)),
        ("  ROOT %sum", "@\n \n\t\n  ROOT %sum", (3, 7, 5)),
    ],
)
def test_what_cannot_be_read_costs_that_alone(old, new, lost):
    found = read(TEXT.replace(old, new, 1))
    assert left_out(found) == lost
    assert len(found) == lost[1] - lost[0]


def test_an_instruction_without_an_operand_is_told():
    found = read(TEXT.replace("add(%x, %x)", "add(%x, %y)"))
    assert (found.opcode[1], found.operands[1]) == (NOT_READ, (0,))
    assert left_out(found)[2] == 5
    assert found.unread[0].description.startswith("1 of 4 instructions has an operand")
    assert found.unread[0].description.endswith("operand 1 of add sum")


def test_a_computation_without_its_root_is_not_used():
    for text, line in (
        (TEXT.replace("ROOT %sum", "?? %sum"), 5),
        (TEXT.replace("ROOT %sum", "%sum"), None),
        (TEXT.replace("ENTRY", "%empty (x: f32[]) -> f32[] {\n}\n\nENTRY"), None),
    ):
        with pytest.raises(DumpError) as error:
            read(text).check_computations()
        assert error.value.line == line


def test_a_brace_that_is_lost_costs_nothing_where_the_next_computation_starts():
    found = read(TEXT.replace("}\n\nENTRY", "\nENTRY"))
    assert (found.names, found.operands) == (read(TEXT).names, read(TEXT).operands)
    assert [unread.line for unread in found.unread] == [7]


def test_stack_frames_that_cannot_be_read_are_none():
    text = content(MIXED).decode()
    found = read(text.replace("file_name_id=", "file=", 1))
    assert len(found.frames) == 0
    assert len(found) == len(hlo(MIXED))
    assert len(found.unread) == 1


@pytest.mark.parametrize(
    ("pattern", "end", "line"),
    [(SEED, b"  ROOT convolution.0", 17), (SEED, b"ENTRY", 20), (MIXED, b" conditional(", 245)],
)
def test_a_text_cut_short_is_refused_with_its_last_line(pattern, end, line):
    text = content(pattern)
    with pytest.raises(DumpError) as error:
        read_hlo_text(split_lines(text[: text.index(end)]))
    assert error.value.line == line
