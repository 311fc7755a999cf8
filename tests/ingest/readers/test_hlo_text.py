"""HLO text: header, computations, instructions, operands and calls, against the dumps' lines."""

import re
from functools import cache

import pytest

from memhouse.ingest.errors import DumpError
from memhouse.ingest.readers.hlo_text import HloText, header_name, read_hlo_text
from memhouse.ingest.readers.lines import split_lines

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
def hlo(pattern: str) -> HloText:
    return read_hlo_text(lines(pattern))


def read(text: str) -> HloText:
    return read_hlo_text(split_lines(text.encode()))


def instruction(text: HloText, name: str) -> dict:
    (found,) = [row for row in text.instructions.to_pylist() if row["instruction"] == name]
    return {column: value for column, value in found.items() if value is not None}


def operands(text: HloText, name: str) -> list[str]:
    rows = [row for row in text.operands.to_pylist() if row["instruction"] == name]
    assert [row["operand_number"] for row in rows] == list(range(len(rows)))
    return [row["operand"] for row in rows]


def calls(text: HloText, name: str) -> list[tuple[str, str]]:
    rows = [row for row in text.calls.to_pylist() if row["instruction"] == name]
    return [(row["attribute"], row["computation"]) for row in rows]


# --- header -----------------------------------------------------------------------------


def test_the_header_of_seed_001():
    assert hlo(SEED).header == {
        "is_scheduled": True,
        "entry_signature": "(f32[4,4096,5120]{2,1,0:T(8,128)}, f32[4,4099,5120]{2,0,1:T(4,128)})"
        "->f32[4,1,5120]{2,1,0:T(1,128)}",
        "input_output_alias": None,
        "buffer_donor": None,
        "num_partitions": 1,
        "replica_count": 1,
    }


def test_partitions_are_counted_where_the_header_says_so():
    assert hlo(SHARDED).header["num_partitions"] == 4
    assert hlo(LLAMA).header["num_partitions"] == 4


def test_replicas_are_counted_where_the_header_says_so():
    text = TEXT.replace("is_scheduled=true", "is_scheduled=true, replica_count=8")
    assert read(text).header["replica_count"] == 8


def test_donated_arguments_are_in_the_header():
    alias = hlo(LLAMA).header["input_output_alias"]
    assert alias.startswith("{0}: (0, {}, may-alias), {1}: (1, {}, may-alias), {2}: (2, ")
    assert alias.endswith("{34}: (34, {}, may-alias)")
    assert alias.count("may-alias") == 32


def test_donated_arguments_that_no_result_takes_are_in_the_header():
    assert hlo(LLAMA).header["buffer_donor"] == "(17, {}), (18, {}), (29, {}), (30, {})"


def test_the_signature_holds_everything_between_its_braces():
    signature = hlo(LLAMA).header["entry_signature"]
    assert signature.startswith("(bf16[4096,512]{1,0:T(8,128)(2,1)}, bf16[512,4096]{1,0:T(8,")
    assert signature.endswith("f32[]{:T(128)})")
    assert signature.count("->") == 1


def test_a_cpu_dump_of_2023_does_not_say_that_it_is_scheduled():
    assert hlo(MIXED_0_4_23).header["is_scheduled"] is False
    assert hlo(MIXED).header["is_scheduled"] is True


def test_the_module_has_the_name_of_its_first_line():
    assert header_name(lines(SEED).first()) == "jit_conv_general_dilated"
    assert header_name(lines(LLAMA).first()) == "jit_train_step"
    assert header_name("HloModule tiny") == "tiny"
    assert header_name("BufferAssignment:") is None


# --- computations -----------------------------------------------------------------------


def test_the_computations_of_seed_001():
    assert hlo(SEED).computations.to_pylist() == [
        {"computation": "fused_computation.1", "is_entry": False},
        {"computation": "bitcast_fusion", "is_entry": False},
        {"computation": "fused_computation", "is_entry": False},
        {"computation": "main.4", "is_entry": True},
    ]


@pytest.mark.parametrize(
    ("pattern", "count", "entry"),
    [
        (SHARDED, 2, "main.0_spmd"),
        (MIXED, 22, "main.11"),
        (MIXED_0_4_23, 14, "main.115"),
        (LLAMA, 338, "main.26_spmd"),
        (LLAMA_OLD, 350, "main.922_spmd"),
    ],
)
def test_one_computation_is_the_entry(pattern, count, entry):
    found = hlo(pattern).computations.to_pylist()
    assert len(found) == count
    assert [row["computation"] for row in found if row["is_entry"]] == [entry]


def test_a_closing_brace_may_name_its_computation():
    # jax 0.4.23: `} // region_5.57`.
    assert b"} // region_5.57\n" in content(MIXED_0_4_23)
    assert instruction(hlo(MIXED_0_4_23), "copy.13")["computation"] == "region_5.57"


@pytest.mark.parametrize("pattern", ALL)
def test_no_line_of_an_instruction_is_lost(pattern):
    said = [text for text in content(pattern).decode().splitlines() if text.startswith("  ")]
    found = hlo(pattern).instructions
    assert found["instruction"].to_pylist() == [
        text.split(" = ")[0].strip().removeprefix("ROOT ").removeprefix("%") for text in said
    ]
    assert len(set(found["instruction"].to_pylist())) == len(said)


# --- instructions -----------------------------------------------------------------------


def test_an_instruction_without_percent_signs():
    found = instruction(hlo(SEED), "fusion.1")
    assert found == {
        "instruction": "fusion.1",
        "opcode": "fusion",
        "shape": "bf16[4,4096,5120]{2,0,1:T(4,128)(2,1)}",
        "op_name": "args[0]",
        "computation": "fused_computation",
    }


def test_source_file_and_line_stand_in_older_metadata():
    found = instruction(hlo(SEED), "fusion")
    assert found["source_file"].endswith("/site-packages/flax/linen/linear.py")
    assert found["source_line"] == 663
    assert found["op_name"].startswith("jit(conv_general_dilated)/jit(main)/conv_general_dilated[")
    assert found["op_name"].endswith("preferred_element_type=None]")
    assert "stack_frame_id" not in found


def test_source_file_and_line_come_from_the_frame_in_newer_metadata():
    found = instruction(hlo(MIXED), "sort.0")
    assert (found["source_file"], found["source_line"]) == ("/train/ver/prog.py", 34)
    assert found["stack_frame_id"] == 14


def test_an_instruction_with_a_tuple_shape():
    found = instruction(hlo(LLAMA), "while.47")
    assert found["opcode"] == "while"
    assert found["shape"].startswith("(s32[]{:T(128)}, bf16[8,1024,512]{2,1,0:T(8,128)(2,1)S(1)}, ")
    assert found["shape"].endswith("pred[1024,1024]{0,1:T(8,128)(4,1)S(1)}, s32[]{:T(128)})")
    assert found["op_name"] == "jit(train_step)/jvp()/while"


def test_a_root_is_an_instruction_like_others():
    found = instruction(hlo(MIXED), "lt_to.1")
    assert (found["opcode"], found["shape"]) == ("compare", "pred[]")
    assert found["computation"] == "region_0.1"


def test_the_kernel_that_a_custom_call_calls():
    assert instruction(hlo(MIXED), "cholesky.0")["custom_call_target"] == "lapack_spotrf_ffi"
    assert instruction(hlo(MIXED_0_4_23), "custom-call.0")["custom_call_target"] == "lapack_spotrf"
    flash = instruction(hlo(FLASH), "jvp_jit_flash_attention__.1")
    assert flash["custom_call_target"] == "tpu_custom_call"
    targets = hlo(LLAMA).instructions["custom_call_target"].to_pylist()
    assert {"ConcatBitcast", "AssumeGatherIndicesInBound"} <= set(targets)


@pytest.mark.parametrize(("pattern", "count"), [(LLAMA, 24), (LLAMA_OLD, 24), (DECODE, 5)])
def test_what_kernels_reserve_for_themselves(pattern, count):
    reserved = [
        size for size in hlo(pattern).instructions["scoped_bytes"].to_pylist() if size is not None
    ]
    assert reserved == [64 << 20] * count


def test_what_a_kernel_used_tells_more_than_what_was_set_aside():
    config = (
        '"scoped_memory_configs":[{"memory_space":"0","offset":"0","size":"67108864"}],'
        '"used_scoped_memory_configs":[{"memory_space":"1","offset":"0","size":"4096"},'
        '{"memory_space":"2","offset":"0","size":"100"}]'
    )
    text = TEXT.replace("calls=%double", f"calls=%double, backend_config={{{config}}}")
    assert instruction(read(text), "fusion")["scoped_bytes"] == 4196
    assert "scoped_bytes" not in instruction(read(text), "p")


@pytest.mark.parametrize(
    ("pattern", "name", "op_name"),
    [
        (LLAMA, "dynamic-slice.213", "p['layers']['n1']"),
        (LLAMA_OLD, "bitcast.270", "p['head']"),
        (FLASH, "slice.5", "jit(<lambda>)/jvp(jit(flash_attention))/slice"),
    ],
)
def test_op_names_lose_their_escapes(pattern, name, op_name):
    assert instruction(hlo(pattern), name)["op_name"] == op_name


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
    assert instruction(found, "sum")["op_name"] == meant
    assert operands(found, "sum") == ["x", "x"]


# --- operands ---------------------------------------------------------------------------


def test_operands_without_percent_signs_or_types():
    assert operands(hlo(SEED), "fusion") == ["Arg_1.2", "Arg_0.1"]
    assert operands(hlo(SEED), "convolution.0") == ["fusion.1", "fusion.2"]
    assert operands(hlo(SEED), "Arg_0.1") == []


def test_operands_without_types():
    assert operands(hlo(MIXED), "ynn_fusion.4") == ["sort.0", "constant.22"]
    assert operands(hlo(MIXED), "cond.1.clone") == ["compare_convert_fusion", "tuple.4", "tuple.4"]
    assert operands(hlo(MIXED), "constant.22") == []


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
    found = read_hlo_text(split_lines(module.encode()))
    assert operands(found, "all") == ["t", "e", "x"]
    assert operands(found, "one") == ["e"]


@pytest.mark.parametrize(
    "said",
    [
        "%x, %x",
        "%x, /*index=1*/%x",
        "%x, f32[2]{0:T(256)} %x",
        "(f32[2]{0}, ()) %x, %x",
        "x, x",
        "f32[2]{0} x, f32[2]{0} x",
    ],
)
@pytest.mark.parametrize("after", ["", ', metadata={op_name="a (b), c"}', ", to_apply=%double"])
def test_operands_of_every_form_stand_among_plain_ones(said, after):
    line = "  ROOT %fusion"
    found = read(TEXT.replace(line, f"  %more = f32[2]{{0}} add({said}){after}\n{line}"))
    assert operands(found, "sum") == ["x", "x"]
    assert operands(found, "more") == ["x", "x"]
    assert operands(found, "fusion") == ["p"]


@pytest.mark.parametrize("said", ["%p", "%p, /*index=1*/", "%p, (%p", "/", "/*index=1*/%p"])
def test_operands_that_do_not_close_are_refused_with_their_line(said):
    with pytest.raises(DumpError, match="operands do not close") as error:
        read(TEXT.replace("fusion(%p), kind=kLoop, calls=%double", f"fusion({said}"))
    assert error.value.line == 10


def test_operands_that_close_before_a_word():
    found = read(TEXT.replace("fusion(%p), kind=kLoop", "fusion(%p) (%p), kind=kLoop"))
    assert operands(found, "fusion") == ["p"]


def test_attributes_are_read_once():
    attributes = read(TEXT).attributes
    assert attributes() is attributes()
    damaged = read(TEXT.replace("parameter(0)", "parameter(x)")).attributes
    for _ in range(2):
        with pytest.raises(DumpError, match="expected a number"):
            damaged()


@pytest.mark.parametrize(
    "said",
    [
        'custom_call_target="__cublas$gemm"',
        'metadata={op_name="a" scheduling_name="b"}',
        'backend_config={"fusion_backend_config":{}}',
    ],
)
def test_attributes_of_a_gpus_compiler(said):
    assert not read(TEXT).attributes().is_gpu
    assert read(TEXT.replace("kind=kLoop", f"kind=kLoop, {said}")).attributes().is_gpu


def test_operands_with_comments_that_count_them():
    # `(%q.1, …, %broadcast_in_dim.7, /*index=5*/%broadcast.1, %broadcast_in_dim.11)`
    name = "flash_mha_bwd_dkv_block_q_major_128_block_q_128_block_k_major_128_block_k_128.1"
    assert operands(hlo(FLASH), name) == [
        "q.1",
        "k.1",
        "v.1",
        "broadcast_in_dim.3",
        "broadcast_in_dim.7",
        "broadcast.1",
        "broadcast_in_dim.11",
    ]


def test_a_tuple_of_many_operands():
    line = next(
        text
        for text in content(LLAMA).decode().splitlines()
        if text.strip().removeprefix("ROOT ").startswith("%tuple.135 = ")
    )
    said = line.rpartition(" tuple(")[2].partition(")")[0].split("%")[1:]
    assert len(said) == 24
    assert operands(hlo(LLAMA), "tuple.135") == [text.split(",")[0] for text in said]


def test_operands_with_types():
    # As Used values print them: `copy-start(f32[4,1,5120]{2,1,0:T(1,128)} %Arg_1.2)`.
    found = wrapped("seeds/000*")
    assert operands(found, "copy-start") == ["Arg_1.2"]
    assert operands(found, "pad") == ["Arg_0.1", "constant.16"]
    assert operands(found, "fusion.5") == ["copy-done", "fusion", "copy-done.1"]
    assert operands(found, "constant.6") == []
    found = wrapped("seeds/004*")
    assert operands(found, "fusion.5") == ["param.1", "bitcast.11", "param.3", "bitcast.12"]
    assert operands(found, "partition-id") == []
    assert operands(found, "tuple.2") == ["add.2", "bitcast.7", "bitcast.8"]


def test_operands_with_the_types_of_tuples():
    text = TEXT.replace(
        "add(%x, %x)",
        "call((f32[4,1]{1,0:T(1,128)S(1)}, (u32[]{:S(2)}, s32[])) %x, "
        "/*index=1*/f32[2]{0:T(256)} %x), to_apply=%double",
    )
    assert operands(read(text), "sum") == ["x", "x"]


def wrapped(pattern: str) -> HloText:
    """The defining instructions of a dump's used values, as if they were a computation."""
    text = content(pattern).decode()
    # A tuple's stands with each of its elements, and in seed 000 the next value behind it.
    found = re.findall(r"^ from instruction: ?(.*?)(?:<\d+ [^>]*>)?$", text, re.MULTILINE)
    body = "".join(f"  {definition}\n" for definition in dict.fromkeys(found))
    return read(f"HloModule m\n\nENTRY %main {{\n{body}}}\n")


# --- calls ------------------------------------------------------------------------------


def test_a_fusion_calls_its_computation():
    assert calls(hlo(SEED), "fusion") == [("calls", "fused_computation")]
    assert calls(hlo(SEED), "fusion.1") == [("calls", "fused_computation.1")]
    assert calls(hlo(MIXED), "ynn_fusion.4") == [("calls", "fused_computation.4")]


def test_a_while_calls_its_condition_and_its_body():
    assert calls(hlo(MIXED), "while.5") == [("condition", "region_6.9"), ("body", "region_5.8")]
    assert calls(hlo(LLAMA), "while.46") == [
        ("condition", "wide.region_21.22_spmd"),
        ("body", "wide.region_11.21_spmd.sunk"),
    ]


def test_a_reduction_calls_what_it_applies():
    assert calls(hlo(MIXED), "reduce_sum.0") == [("to_apply", "region_4.7")]
    assert calls(hlo(SHARDED), "psum.7") == [("to_apply", "region_0.0")]


@pytest.mark.parametrize(
    ("pattern", "name", "branches"),
    [
        (MIXED, "cond.1.clone", ["region_1.4", "region_2.5"]),
        (MIXED_0_4_23, "conditional.43.clone", ["region_1.31", "region_2.38"]),
    ],
)
def test_a_conditional_calls_its_branches(pattern, name, branches):
    assert calls(hlo(pattern), name) == [("branch_computations", branch) for branch in branches]


def test_a_conditional_of_old_names_its_two_branches():
    text = TEXT.replace(
        "fusion(%p), kind=kLoop, calls=%double",
        "conditional(%p, %p, %p), true_computation=%double, false_computation=%double",
    )
    assert calls(read(text), "fusion") == [
        ("true_computation", "double"),
        ("false_computation", "double"),
    ]


def test_a_select_and_scatter_calls_two():
    assert calls(hlo(RESNET), "select-and-scatter") == [
        ("select", "region_46.53"),
        ("scatter", "region_47.54"),
    ]


def test_a_custom_call_may_call_too():
    (called,) = calls(hlo(DECODE), "top_k.8")
    assert called[0] == "called_computations"
    assert called[1].startswith("compare_greater_than.1.clone")


@pytest.mark.parametrize("pattern", ALL)
def test_every_computation_but_the_entry_is_called(pattern):
    found = hlo(pattern)
    called = set(found.calls["computation"].to_pylist())
    assert called == {
        row["computation"] for row in found.computations.to_pylist() if not row["is_entry"]
    }


def test_no_calls_are_no_rows():
    found = read(TEXT.replace(", calls=%double", ""))
    assert found.calls.num_rows == 0
    assert found.calls.column_names == ["instruction", "attribute", "computation"]


# --- refusals ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        ("HloModule tiny", "Module tiny", 1, "not HLO text: it starts with 'Module tiny"),
        ("ENTRY %main", "%main", 11, "no entry computation"),
        ("ROOT %fusion", "ROOT fusion of", 10, "expected an instruction, found"),
        ("  %x =", "%x =", 4, "expected a computation or an instruction, found '%x = f32"),
        ("}\n\nENTRY", "\nENTRY", 7, "expected an instruction of an open computation"),
        ("%double (x", "%dou ble (x", 3, "expected a computation"),
        ("}\n\nENTRY", "}\n}\nENTRY", 7, "expected an instruction of an open computation"),
        (
            "true\n",
            "true, entry_computation_layout={(f32[]\n",
            1,
            "entry_computation_layout do not",
        ),
    ],
)
def test_what_is_wrong_is_refused_with_its_line(old, new, line, message):
    assert old in TEXT
    with pytest.raises(DumpError, match=message) as error:
        read(TEXT.replace(old, new, 1))
    assert error.value.line == line


def test_a_text_cut_short_within_a_computation():
    text = content(SEED)
    cut = text[: text.index(b"  ROOT convolution.0")]
    with pytest.raises(DumpError, match="ends within a computation: it is cut short") as error:
        read_hlo_text(split_lines(cut))
    assert error.value.line == 17


def test_a_text_cut_short_between_computations():
    text = content(SEED)
    cut = text[: text.index(b"ENTRY")]
    with pytest.raises(DumpError, match="no entry computation: it is cut short") as error:
        read_hlo_text(split_lines(cut))
    assert error.value.line == cut.count(b"\n")


def test_a_text_cut_short_within_an_instruction():
    text = content(MIXED)
    cut = text[: text.index(b" conditional(")]
    with pytest.raises(DumpError, match="ends within a computation") as error:
        read_hlo_text(split_lines(cut))
    assert error.value.line == 245


def test_binary_is_no_text():
    with pytest.raises(DumpError, match="binary or damaged") as error:
        split_lines(b"HloModule m\n\n\xff\xfe\x00")
    assert error.value.line == 3


def test_a_text_of_two_computations():
    found = read(TEXT)
    assert found.computations["computation"].to_pylist() == ["double", "main"]
    assert calls(found, "fusion") == [("calls", "double")]
