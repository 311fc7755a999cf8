"""Small programs for the tests, as HLO text."""

from typing import Any

from memhouse.ingest.join import WorkedOut, join_parts
from memhouse.ingest.readers.lines import split_lines
from memhouse.xla.columns.bridge_e import completed
from memhouse.xla.columns.bridge_h import read_hlo_text
from memhouse.xla.columns.liveness import Derived, derive
from memhouse.xla.columns.parts import Parts

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


def derived(text: str) -> Derived:
    """What a program's text says of its memory."""
    return derive(read_hlo_text(split_lines(text.encode())))


def schedule(found: Derived) -> list[str]:
    """The instructions in the order in which they run."""
    return [str(found.program.names[row]) for row in found.schedule.order.tolist()]


def names(found: Derived) -> list[str]:
    """The values, by number, as XLA's live ranges print them: `loop{1}`."""
    table = found.dataflow.values_table()
    pairs = zip(table["instruction_id"].to_pylist(), table["shape_index"].to_pylist(), strict=True)
    return [f"{found.program.names[row]}{index}" for row, index in pairs]


def positions(found: Derived, value: str) -> set[str]:
    """All places that hold a value."""
    table = found.dataflow.positions_table().to_pylist()
    number = names(found).index(value)
    return {
        f"{found.program.names[row['instruction_id']]}{row['shape_index']}"
        for row in table
        if row["value_id"] == number
    }


def uses(found: Derived, value: str) -> set[tuple[str, int, str]]:
    """The operands that read a value: instruction, operand's number, index in the operand."""
    table = found.dataflow.uses_table().to_pylist()
    number = names(found).index(value)
    return {
        (
            str(found.program.names[row["instruction_id"]]),
            row["operand_number"],
            row["operand_shape_index"],
        )
        for row in table
        if row["value_id"] == number
    }


def ranges(found: Derived) -> dict[str, tuple[int, int]]:
    """The live range of each value that has one."""
    table = found.liveness.ranges_table().to_pylist()
    of = names(found)
    return {of[row["value_id"]]: (row["start_time"], row["end_time"]) for row in table}


def alias_sets(found: Derived) -> set[frozenset[str]]:
    """The sets of two values and more that must share memory."""
    sets: dict[int, set[str]] = {}
    for name, number in zip(names(found), found.liveness.alias_set.tolist(), strict=True):
        sets.setdefault(number, set()).add(name)
    return {frozenset(members) for members in sets.values() if len(members) > 1}


def figures(text: str, platform: str | None = None) -> list[dict[str, Any]]:
    """The rows of `module_memory` that a text alone gives; none if it gives no figures."""
    hlo = read_hlo_text(split_lines(text.encode()))
    parts, *_ = completed(Parts(hlo=hlo), derive(hlo), platform=platform)
    tables = join_parts(WorkedOut.of(parts)).tables
    return list(tables["module_memory"].to_pylist()) if "module_memory" in tables else []
