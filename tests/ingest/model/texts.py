"""Small programs for the tests, as HLO text."""

from typing import Any

from memhouse.ingest.derive import Derivation, Notes
from memhouse.ingest.module_rows import build_module
from memhouse.ingest.readers.hlo_text import read_hlo_text
from memhouse.ingest.readers.lines import split_lines
from memhouse.xla.analysis import Analysis
from memhouse.xla.complete import fill_missing_parts
from memhouse.xla.liveness import analyse
from memhouse.xla.parts import Parts
from memhouse.xla.program import NONE, Program

LOOP = """\
HloModule loop, is_scheduled=true

%body (b: (s32[], f32[8])) -> (s32[], f32[8]) {
  %b = (s32[], f32[8]{0}) parameter(0)
  %i = s32[] get-tuple-element(%b), index=0
  %same = f32[8]{0} get-tuple-element(%b), index=1
  %one = s32[] constant(1)
  %next = s32[] add(%i, %one)
  ROOT %again = (s32[], f32[8]{0}) tuple(%next, %same)
}

%condition (c: (s32[], f32[8])) -> pred[] {
  %c = (s32[], f32[8]{0}) parameter(0)
  %j = s32[] get-tuple-element(%c), index=0
  %ten = s32[] constant(10)
  ROOT %less = pred[] compare(%j, %ten), direction=LT
}

ENTRY %main (p: f32[8]) -> f32[8] {
  %p = f32[8]{0} parameter(0)
  %zero = s32[] constant(0)
  %first = (s32[], f32[8]{0}) tuple(%zero, %p)
  %loop = (s32[], f32[8]{0}) while(%first), condition=%condition, body=%body
  ROOT %result = f32[8]{0} get-tuple-element(%loop), index=1
}
"""

ASYNC = """\
HloModule overlap, is_scheduled=true

%sliced (q: f32[8]) -> f32[4] {
  %q = f32[8]{0} parameter(0)
  ROOT %slice = f32[4]{0} slice(%q), slice={[0:4]}
}

ENTRY %main (p: f32[8]) -> (f32[4], f32[8]) {
  %p = f32[8]{0} parameter(0)
  %double = f32[8]{0} add(%p, %p)
  %start = ((f32[8]{0}), f32[4]{0}, u32[]) async-start(%double), calls=%sliced
  %other = f32[8]{0} multiply(%p, %p)
  %done = f32[4]{0} async-done(%start)
  ROOT %both = (f32[4]{0}, f32[8]{0}) tuple(%done, %other)
}
"""

BRANCHES = """\
HloModule branches, is_scheduled=true

%yes (y: f32[8]) -> f32[8] {
  %y = f32[8]{0} parameter(0)
  ROOT %minus = f32[8]{0} negate(%y)
}

%no (n: f32[8]) -> f32[8] {
  ROOT %n = f32[8]{0} parameter(0)
}

ENTRY %main (which: pred[], p: f32[8], q: f32[8]) -> f32[8] {
  %which = pred[] parameter(0)
  %p = f32[8]{0} parameter(1)
  %q = f32[8]{0} parameter(2)
  ROOT %chosen = f32[8]{0} conditional(%which, %p, %q), true_computation=%yes, \
false_computation=%no
}
"""

IN_PLACE = """\
HloModule in_place, is_scheduled=true, input_output_alias={ {}: (0, {}, may-alias) }

%fused (a: f32[8], b: f32[1], c: s32[]) -> f32[8] {
  %a = f32[8]{0} parameter(0)
  %b = f32[1]{0} parameter(1)
  %c = s32[] parameter(2)
  ROOT %updated = f32[8]{0} dynamic-update-slice(%a, %b, %c)
}

ENTRY %main (p: f32[8], q: f32[1], at: s32[]) -> f32[8] {
  %p = f32[8]{0} parameter(0)
  %q = f32[1]{0} parameter(1)
  %at = s32[] parameter(2)
  %once = f32[8]{0} fusion(%p, %q, %at), kind=kLoop, calls=%fused
  ROOT %twice = f32[8]{0} dynamic-update-slice(%once, %q, %at)
}
"""


def read_program(text: str) -> Program:
    """The program in a text."""
    return read_hlo_text(split_lines(text.encode()))


def analyse_text(text: str) -> Analysis:
    """The schedule, the values and their live ranges of a program."""
    return analyse(read_program(text))


def schedule(analysis: Analysis) -> list[str]:
    """The instructions in the order in which they run."""
    return [analysis.program.names[row] for row in analysis.schedule.order]


def slot_name(analysis: Analysis, slot: int) -> str:
    """A part of a result as XLA's live ranges print it: `loop{1}`."""
    slots = analysis.flow.slots
    return f"{analysis.program.names[slots.row[slot]]}{slots.index_text(slot)}"


def names(analysis: Analysis) -> list[str]:
    """The values, by number, as XLA's live ranges print them."""
    return [slot_name(analysis, slot) for slot in analysis.flow.defined_at]


def positions(analysis: Analysis, name: str) -> set[str]:
    """The positions of a value."""
    value = names(analysis).index(name)
    slots = [slot for slot, number in enumerate(analysis.flow.value) if number == value]
    return {slot_name(analysis, slot) for slot in slots}


def uses(analysis: Analysis, name: str) -> set[tuple[str, int, str]]:
    """The uses of a value: reader, number of the operand, index in the operand."""
    flow, value = analysis.flow, names(analysis).index(name)
    return {
        (analysis.program.names[row], number, flow.slots.index_text(slot))
        for used, row, number, slot in zip(
            flow.use_value, flow.use_row, flow.use_operand, flow.use_slot, strict=True
        )
        if used == value
    }


def ranges(analysis: Analysis) -> dict[str, tuple[int, int]]:
    """The live range of each value that has one."""
    lives = analysis.liveness
    rows = zip(names(analysis), lives.start, lives.end, strict=True)
    return {name: (start, end) for name, start, end in rows if start != NONE}


def phis(analysis: Analysis) -> set[str]:
    """The values that merge several values."""
    flags = analysis.flow.is_phi
    return {name for name, is_phi in zip(names(analysis), flags, strict=True) if is_phi}


def alias_sets(analysis: Analysis) -> set[frozenset[str]]:
    """The sets of two values and more that must share memory."""
    sets: dict[int, set[str]] = {}
    for name, number in zip(names(analysis), analysis.liveness.alias_set, strict=True):
        sets.setdefault(number, set()).add(name)
    return {frozenset(members) for members in sets.values() if len(members) > 1}


def figures(text: str, platform: str | None = None) -> list[dict[str, Any]]:
    """The rows of `module_memory` that a text alone gives; none if it gives no figures."""
    program = read_program(text)
    parts, *_ = fill_missing_parts(Parts(program=program), analyse(program), platform)
    tables = build_module(Derivation(parts, Notes())).tables
    return list(tables["module_memory"].to_pylist()) if "module_memory" in tables else []
