"""Sizes, sharing and peaks, estimated from HLO text alone."""

import pytest

from memhouse.xla.errors import DumpError
from memhouse.xla.estimate import estimate_assignment
from memhouse.xla.parts import BufferAssignment
from memhouse.xla.shapes import ArrayShape, parse_shape
from memhouse.xla.sizes import CPU, GPU, TPU, array_bytes, platform_of

from .texts import IN_PLACE, analyse_text, figures, read_program

FUSED = """\
HloModule fused, is_scheduled=true

%half (a: f32[256], b: f32[256]) -> f32[256] {
  %a = f32[256]{0} parameter(0)
  %b = f32[256]{0} parameter(1)
  ROOT %sum = f32[256]{0} add(%a, %b)
}

ENTRY %main (p: f32[256], q: f32[256]) -> f32[256] {
  %p = f32[256]{0} parameter(0)
  %q = f32[256]{0} parameter(1)
  %x = f32[256]{0} negate(%p)
  %y = f32[256]{0} fusion(%x, %q), kind=kLoop, calls=%half
  %z = f32[256]{0} reverse(%y), dimensions={0}
  ROOT %out = f32[256]{0} fusion(%z, %q), kind=kLoop, calls=%half
}
"""

# Two operands end with the add; the compiler says that its result takes the second's place.
RECORDED = """\
HloModule recorded, is_scheduled=true

ENTRY %main (p: f32[1024]) -> f32[1024] {
  %p = f32[1024]{0:T(1024)} parameter(0)
  %x = f32[1024]{0:T(1024)S(1)} negate(%p)
  %y = f32[1024]{0:T(1024)S(1)} sine(%p)
  %z = f32[1024]{0:T(1024)S(1)} add(%x, %y), backend_config={"flag_configs":[],\
"aliasing_operands":{"lists":[LISTS]}}
  ROOT %out = f32[1024]{0:T(1024)} copy(%z)
}
"""


def estimated(text: str) -> BufferAssignment:
    analysis = analyse_text(text)
    return estimate_assignment(analysis, platform_of(analysis.program))


def places(text: str) -> dict[str, str]:
    """The first value at the address of each other temp value."""
    assignment = estimated(text)
    temps = {row.allocation_index for row in assignment.allocations if row.is_temp}
    at_address: dict[tuple[int | None, int | None], list[str]] = {}
    for value in assignment.values:
        if value.allocation_index in temps:
            address = (value.allocation_index, value.offset_bytes)
            at_address.setdefault(address, []).append(f"{value.instruction}{value.shape_index}")
    return {name: first for first, *others in at_address.values() for name in others}


def peak(text: str, space: int = 0) -> dict[str, int]:
    return next(row for row in figures(text) if row["memory_space"] == space)


@pytest.mark.parametrize(
    ("shape", "platform", "size"),
    [
        ("f32[8,100]{1,0}", CPU, 3200),
        ("f32[8,100]{1,0:T(8,128)}", TPU, 4096),
        ("f32[100]{0:S(6)}", TPU, 4096),  # no tile: whole units of 1,024 elements
        ("u32[]{:S(2)}", TPU, 4),  # but not in space 2
        ("f32[0]{0}", TPU, 0),
    ],
)
def test_size_of_an_array(shape: str, platform: str, size: int):
    array = parse_shape(shape)
    assert isinstance(array, ArrayShape)
    assert array_bytes(array, platform) == size


def test_platform_of_a_text():
    def platform(text: str) -> str:
        return platform_of(read_program(text))

    assert platform(FUSED) == CPU
    assert platform(RECORDED) == TPU
    on_gpu = 'kind=kLoop, calls=%half, metadata={scheduling_name="y"}'
    assert platform(FUSED.replace("kind=kLoop, calls=%half", on_gpu)) == GPU


def test_a_loop_fusion_takes_the_place_of_an_operand_that_ends():
    # z reverses y, so that z needs a place of its own; the output's is free until then.
    assert (
        peak(FUSED).items()
        >= {
            "argument_bytes": 2048,
            "output_bytes": 1024,
            "alias_bytes": 0,
            "constant_bytes": 0,
            "peak_bytes": 4096,
            "peak_time": 4,
            "peak_live_bytes": 4096,
        }.items()
    )


@pytest.mark.parametrize("kind", ["kLoop", "kInput", "kCustom"])
def test_a_fusion_that_reads_out_of_order_takes_no_place(kind: str):
    elementwise = FUSED.replace("kLoop", kind)
    assert peak(elementwise)["peak_bytes"] == 4096
    # y cannot lie where x does, so that y and z are live beside the output's allocation.
    assert peak(elementwise.replace("add(%a, %b)", "dot(%a, %b)"))["peak_bytes"] == 5120


def test_a_copy_takes_no_place():
    assert peak(FUSED.replace("reverse(%y), dimensions={0}", "negate(%y)"))["peak_bytes"] == 3072
    assert peak(FUSED.replace("reverse(%y), dimensions={0}", "copy(%y)"))["peak_bytes"] == 4096


@pytest.mark.parametrize(
    ("lists", "place", "vmem"),
    [
        ('{"indices":["1","2"]}', {"z{}": "y{}"}, 8192),
        ('{"indices":["0","2"]}', {"z{}": "x{}"}, 8192),
        ("", {}, 12288),
    ],
)
def test_a_tpu_records_what_shares(lists: str, place: dict[str, str], vmem: int):
    text = RECORDED.replace("LISTS", lists)
    assert places(text) == place
    assert peak(text, space=1)["peak_bytes"] == vmem


def test_a_donated_parameter_is_argument_output_and_alias():
    found = peak(IN_PLACE)
    assert (found["argument_bytes"], found["output_bytes"], found["alias_bytes"]) == (40, 32, 32)
    assert found["peak_bytes"] == 40


def test_a_shape_without_a_size_is_refused_where_the_size_is_needed():
    for shape in ("f32[?]{0}", "f32[999999999999999999]{0}", "f32[256]{0:S(999999999999)}"):
        text = FUSED.replace("f32[256]{0}", shape)
        analyse_text(text)
        with pytest.raises(DumpError):
            estimated(text)


TWO_RESULTS = """\
HloModule two, is_scheduled=true

%both (a: f32[256]) -> (f32[256], f32[256]) {
  %a = f32[256]{0} parameter(0)
  %sine = f32[256]{0} sine(%a)
  %cosine = f32[256]{0} cosine(%a)
  ROOT %pair = (f32[256]{0}, f32[256]{0}) tuple(%sine, %cosine)
}

ENTRY %main (p: f32[64]) -> f32[] {
  %p = f32[64]{0} parameter(0)
  %x = f32[256]{0} concatenate(%p, %p, %p, %p), dimensions={0}
  %y = (f32[256]{0}, f32[256]{0}) fusion(%x), kind=kLoop, calls=%both
  %s = f32[256]{0} get-tuple-element(%y), index=0
  %c = f32[256]{0} get-tuple-element(%y), index=1
  ROOT %out = f32[] dot(%s, %c), lhs_contracting_dims={0}, rhs_contracting_dims={0}
}
"""


def test_of_two_results_the_one_that_ends_first_takes_the_place():
    assert places(TWO_RESULTS) == {"y{0}": "x{}"}
    longer = TWO_RESULTS.replace("ROOT %out = f32[] dot(%s, %c)", "%d = f32[] dot(%c, %c)")
    longer = longer.replace("}\n}\n", "}\n  ROOT %out = f32[] dot(%s, %s)\n}\n")
    assert places(longer) == {"y{1}": "x{}"}


def test_a_value_that_must_alias_another_takes_no_operands_place():
    # The sine is updated in place afterwards, which makes them one alias set.
    text = """\
HloModule update, is_scheduled=true

ENTRY %main (p: f32[64], at: s32[]) -> f32[] {
  %p = f32[64]{0} parameter(0)
  %at = s32[] parameter(1)
  %x = f32[256]{0} concatenate(%p, %p, %p, %p), dimensions={0}
  %y = f32[256]{0} sine(%x)
  %z = f32[256]{0} dynamic-update-slice(%y, %p, %at)
  ROOT %out = f32[] dot(%z, %z), lhs_contracting_dims={0}, rhs_contracting_dims={0}
}
"""
    assert places(text) == {"z{}": "y{}"}
    alone = text.replace("dynamic-update-slice(%y, %p, %at)", "cosine(%y)")
    assert places(alone) == {"y{}": "x{}", "z{}": "x{}"}


def test_equal_values_of_callers_are_placed_first():
    """The output's allocation has room for one of two values: it goes to the caller's.

    `inner` is live during the call, `outer` in the caller, and both while the output is free.
    """
    text = """\
HloModule order, is_scheduled=true

%called (c: f32[8]) -> f32[4] {
  %c = f32[8]{0} parameter(0)
  %inner = f32[64]{0} pad(%c, %c), padding=0_56
  ROOT %small = f32[4]{0} reduce(%inner, %c), dimensions={0}, to_apply=%plus
}

%plus (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %sum = f32[] add(%a, %b)
}

ENTRY %main (p: f32[8]) -> f32[64] {
  %p = f32[8]{0} parameter(0)
  %outer = f32[64]{0} pad(%p, %p), padding=0_56
  %call = f32[4]{0} call(%p), to_apply=%called
  %less = f32[4]{0} reduce(%outer, %call), dimensions={0}, to_apply=%plus
  ROOT %out = f32[64]{0} pad(%less, %less), padding=0_60
}
"""
    found = estimated(text)
    allocations = {value.instruction: value.allocation_index for value in found.values}
    live_out = {row.allocation_index for row in found.allocations if row.maybe_live_out}
    temps = {row.allocation_index for row in found.allocations if row.is_temp}
    assert allocations["outer"] in live_out
    assert allocations["inner"] in temps
