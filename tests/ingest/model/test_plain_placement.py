"""The plain placement against XLA's own, on the sample dumps and on fusions made for it."""

import pytest

from ...support.dumps import copy_dump
from . import placement_against_dumps, plain_placement, plain_text
from .test_plain_rules import FOLDERS

CPU = [folder for folder in FOLDERS if folder.parts[0] == "cpu"]


@pytest.mark.parametrize("folder", CPU, ids=str)
def test_peaks_of_dumps(folder, tmp_path):
    copy_dump(f"{folder}/*", tmp_path / "dump")
    found = [
        placement_against_dumps.compare(path)
        for path in (tmp_path / "dump").rglob("*cpu_after_optimizations.txt")
    ]
    for mine, theirs in filter(None, found):
        assert mine == theirs


def shares(kind, *body, number):
    """Whether a fusion's result may take the place of one of its three operands."""
    text = "\n".join(
        [
            "HloModule m, is_scheduled=true",
            "%fused (p0: f32[8,8], p1: f32[8,8], p2: f32[8,8]) -> f32[8,8] {",
            *(f"  %p{i} = f32[8,8]{{1,0}} parameter({i})" for i in range(3)),
            *(f"  {line}" for line in body),
            "}",
            "ENTRY %main (a: f32[8,8]) -> f32[8,8] {",
            "  %a = f32[8,8]{1,0} parameter(0)",
            *(f"  %t{i} = f32[8,8]{{1,0}} negate(%a)" for i in range(3)),
            f"  ROOT %f = f32[8,8]{{1,0}} fusion(%t0, %t1, %t2), kind={kind}, calls=%fused",
            "}",
        ]
    )
    module = plain_text.read_module(text)
    return plain_placement.can_share(module, ("f", ()), (f"t{number}", ()))


PRODUCT = "%d = f32[8,8]{1,0} dot(%p0, %p1), lhs_contracting_dims={1}, rhs_contracting_dims={0}"
SUM = "ROOT %r = f32[8,8]{1,0} add(%d, %p2)"
SCALED = "ROOT %r = f32[8,8]{1,0} multiply(%d, %p2)"
TWICE = ("%s = f32[8,8]{1,0} add(%d, %p2)", "ROOT %r = f32[8,8]{1,0} add(%s, %p2)")


@pytest.mark.parametrize("kind", ["kLoop", "kInput", "kOutput", "kCustom"])
def test_only_what_is_read_element_by_element_gives_its_place(kind):
    """What XLA answered to the same fusions."""
    for body in ([PRODUCT, SUM], [PRODUCT, SCALED]):
        assert [shares(kind, *body, number=n) for n in range(3)] == [False, False, True]


@pytest.mark.parametrize(
    ("kind", "answer"), [("kLoop", True), ("kCustom", True), ("kOutput", False)]
)
def test_an_output_fusion_shares_with_a_summand_of_its_last_sum_alone(kind, answer):
    assert shares(kind, PRODUCT, *TWICE, number=2) is answer
