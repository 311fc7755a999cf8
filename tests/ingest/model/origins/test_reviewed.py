"""Programs that once went wrong: what a review found."""

import pytest

from memhouse.xla.attribution import Attribution
from memhouse.xla.complete import match_values
from memhouse.xla.errors import DumpError
from memhouse.xla.parts import AssignedValue
from memhouse.xla.program import NONE

from .attributed import attribution_of


def attributed(*lines: str, before: str = "") -> Attribution:
    """A program of these instructions, after a parameter `p: f32[8]`."""
    body = "".join(f"  {line}\n" for line in ("%p = f32[8]{0} parameter(0)", *lines))
    entry = f"ENTRY %main (p: f32[8]) -> f32[8] {{\n{body}}}\n"
    return attribution_of(f"HloModule m, is_scheduled=true\n\n{before}{entry}")


def test_a_fusion_with_more_results_than_its_root_is_a_damaged_dump():
    fused = (
        "%fused (a: f32[8]) -> (f32[8]) {\n  %a = f32[8]{0} parameter(0)\n"
        "  ROOT %t = (f32[8]{0}) tuple(%a)\n}\n\n"
    )
    with pytest.raises(DumpError):
        attributed(
            "%f = (f32[8]{0}, f32[8]{0}) fusion(%p), kind=kLoop, calls=%fused",
            "ROOT %r = f32[8]{0} get-tuple-element(%f), index=1",
            before=fused,
        )


def test_values_in_nested_tuples_are_found():
    found = attributed(
        "%ab = (f32[8]{0}, f32[8]{0}) tuple(%p, %p)",
        '%f = ((f32[8]{0}, f32[8]{0}), f32[8]{0}) custom-call(%p), custom_call_target="f"',
        "%g = (f32[8]{0}, f32[8]{0}) get-tuple-element(%f), index=0",
        "ROOT %r = f32[8]{0} get-tuple-element(%g), index=1",
    )
    names = [
        ("p", "{}"), ("ab", "{}"), ("f", "{}"), ("f", "{0}"), ("f", "{0,0}"), ("f", "{0,1}"),
        ("f", "{1}"), ("gone", "{}"), ("p", "{7}"),
    ]  # fmt: skip
    values = [
        AssignedValue(number, *name, False, 0, None, None, None, None, None, None)
        for number, name in enumerate(names)
    ]
    assert match_values(found.analysis, values) == [*range(7), NONE, NONE]
