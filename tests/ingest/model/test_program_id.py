"""The same program has one program_id: whatever its names, its lines and the files of its dump."""

import re
from contextlib import ExitStack
from dataclasses import replace

import pytest

from memhouse.ingest.sources.dump_folder import find_dumps, is_wanted
from memhouse.ingest.sources.files import open_source
from memhouse.ingest.sources.program import Key
from memhouse.xla.agreement import match_live_ranges
from memhouse.xla.parts import Parts
from memhouse.xla.program_id import program_id

from ...support.dumps import DUMPS, copy_dump
from ...support.hlo import program_of
from ...support.joined import joined
from ...support.warehouse import fill, rows

CPU = "cpu/jax-0.10.2/module_0018*"
SAMPLES = {"cpu": CPU, "gpu": "gpu/decode-h100/module*", "tpu": "tpu/decode8-v5e/module*"}


def shifted(text):
    """Every number at the end of a name is larger by 1000: `fusion.7` is `fusion.1007`."""
    return re.sub(r"(?<=[a-z_])\.(\d+)\b", lambda found: f".{int(found[1]) + 1000}", text)


def renamed(text):
    """The program's function has another name: in op_names too."""
    return re.sub(r"\b(jit_|jit\()(mixed|generate)\b", r"\1step", text)


def moved(text):
    """Comments stand above the function: its lines and frames are others."""
    text = re.sub(r"source_line=(\d+)", lambda found: f"source_line={int(found[1]) + 3}", text)
    text = re.sub(r"( line=)(\d+)", lambda found: f"{found[1]}{int(found[2]) + 3}", text)
    return re.sub(r"stack_frame_id=\d+", "stack_frame_id=1", text)


def nameless(text):
    return re.sub(r' ?(op_name|source_file|deduplicated_name)="(\\.|[^"\\])*"', "", text)


def other_constants(text):
    return re.sub(r"constant\([0-9.e-]+\)", "constant(7)", text)


def other_channels(text):
    return re.sub(r"channel_id=(\d+)", lambda found: f"channel_id={int(found[1]) + 8}", text)


def other_configs(text):
    return text.replace('backend_config={"', 'backend_config={"unheard_of":"1","')


HARMLESS = (shifted, renamed, moved, nameless, other_constants, other_channels, other_configs)


def id_of(folder):
    """The program_id of the one dump in a folder."""
    (program,) = programs(folder)
    parts = program.read(program.fingerprint())
    return joined(parts, program.key).header["program_id"]


def programs(folder):
    files = open_source(folder, is_wanted, ExitStack(), pytest.fail)
    return find_dumps(files, lambda file, why: pytest.fail(str(why)))


def test_what_does_not_change_memory_keeps_the_id(tmp_path):
    """One change at a time on the CPU, all at once elsewhere."""
    failures, unchanged = [], set(HARMLESS)
    for sample, pattern in SAMPLES.items():
        before = id_of(copy_dump(pattern, tmp_path / sample))
        for changes in [[change] for change in HARMLESS] if sample == "cpu" else [HARMLESS]:
            now = copy_dump(pattern, tmp_path / f"{sample}-{changes[0].__name__}")
            for path in now.glob("*optimizations*.txt"):
                text = path.read_text()
                for change in changes:
                    if change(text) != text:
                        unchanged.discard(change)
                    text = change(text)
                path.write_text(text)
            if before is None or id_of(now) != before:
                failures.append((sample, [change.__name__ for change in changes]))
    assert failures == []
    assert not unchanged


def a_text():
    (path,) = DUMPS.glob(f"{CPU}optimizations.txt")
    return path.read_text()


def of_text(text):
    return program_id(program_of(text))


def test_every_name_may_be_another():
    """Names are any text, and which of two sorts first counts no more than they do."""
    text = a_text()
    names = dict.fromkeys(re.findall(r"%([\w.-]+)", text))
    other = {name: f"n{len(names) - i}" for i, name in enumerate(names)}
    assert len(other) > 100
    assert of_text(re.sub(r"%([\w.-]+)", lambda found: f"%{other[found[1]]}", text)) == of_text(
        text
    )


def test_computations_may_stand_in_any_order():
    text = a_text()
    header, *computations = re.split(r"\n(?=%|ENTRY )", text)
    assert len(computations) > 5
    assert of_text("\n".join([header, *computations[::-1]])) == of_text(text)


DOT = "%dot_general.4 = f32[64,64]{1,0} dot("
CHANGES = {
    "opcode": (DOT, DOT.replace("dot(", "add(")),
    "type": (DOT, DOT.replace("f32", "s32")),
    "layout": (DOT, DOT.replace("{1,0}", "{0,1}")),
    "kernel": ('custom_call_target="lapack', 'custom_call_target="another'),
}


def test_another_instruction_is_another_program():
    text = a_text()
    id_ = of_text(text)
    for what, (old, new) in CHANGES.items():
        assert old in text
        assert of_text(text.replace(old, new, 1)) != id_, what


TINY = """HloModule tiny, is_scheduled=true

%less (p: f32[2]) -> f32[2] {
  %p = f32[2]{0} parameter(0)
  ROOT %n = f32[2]{0} negate(%p)
}

%more (q: f32[2]) -> f32[2] {
  %q = f32[2]{0} parameter(0)
  ROOT %e = f32[2]{0} exponential(%q)
}

ENTRY %main (x: f32[2], y: f32[2]) -> f32[2] {
  %x = f32[2]{0} parameter(0)
  %y = f32[2]{0} parameter(1)
  %f = f32[2]{0} fusion(%x), kind=kLoop, calls=%less
  %g = f32[2]{0} fusion(%y), kind=kLoop, calls=%more
  ROOT %s = f32[2]{0} subtract(%f, %g)
}
"""


def test_operands_calls_and_order_tell_programs_apart():
    parameters = ("  %x = f32[2]{0} parameter(0)\n", "  %y = f32[2]{0} parameter(1)\n")
    ids = [of_text(TINY)]
    for old, new in (
        ("subtract(%f, %g)", "subtract(%g, %f)"),
        ("fusion(%x)", "fusion(%y)"),
        ("calls=%less", "calls=%more"),
        ("negate(", "cosine("),
        ("calls=%less", "to_apply=%less"),
        ("".join(parameters), "".join(parameters[::-1])),
    ):
        assert old in TINY
        ids.append(of_text(TINY.replace(old, new)))
    assert len(set(ids)) == len(ids)


def test_calls_in_a_circle_are_no_program():
    assert of_text(TINY.replace("negate(%p)", "fusion(%p), kind=kLoop, calls=%less")) is None


@pytest.fixture(scope="module")
def sample():
    """The program, the assignment and the live ranges by value_id of a sample."""
    parts = read_whole(CPU)
    values = sorted(parts.assignment.values, key=lambda value: value.value_id)
    ranges, _ = match_live_ranges(parts.live_ranges.ranges, values)
    return program_of(a_text()), parts.assignment, ranges


def read_whole(pattern):
    wanted = {path.name for path in DUMPS.glob(pattern)}
    files = open_source(DUMPS, lambda name: is_wanted(name) and name in wanted, ExitStack(), print)
    (program,) = find_dumps(files, lambda file, why: pytest.fail(str(why)))
    return program.read(program.fingerprint())


def with_last(rows, **changes):
    """The rows, where the last one that has the changed columns has other contents."""
    (column,) = changes
    number = max(n for n, row in enumerate(rows) if getattr(row, column) is not None)
    return [*rows[:number], rows[number]._replace(**changes), *rows[number + 1 :]]


def test_another_figure_is_another_program(sample):
    program, assignment, ranges = sample
    ids = [program_id(program, assignment, ranges)]
    for change in (
        {"size_bytes": 12_345},
        {"memory_space": 5},
        {"parameter_number": 5},
        {"maybe_live_out": True},
    ):
        other = replace(assignment, allocations=with_last(assignment.allocations, **change))
        ids.append(program_id(program, other, ranges))
    for change in (
        {"offset_bytes": 12_345},
        {"size_bytes": 12_345},
        {"memory_space": 5},
        {"shape_index": "{7}"},
    ):
        other = replace(assignment, values=with_last(assignment.values, **change))
        ids.append(program_id(program, other, ranges))
    last = max(ranges)
    for change in ({"start_time": 0}, {"end_time": 1}):
        other = {**ranges, last: ranges[last]._replace(**change)}
        ids.append(program_id(program, assignment, other))
    assert len(set(ids)) == len(ids)


def test_numbers_that_only_count_do_not_matter(sample):
    """XLA numbers allocations and values as it makes them."""
    program, assignment, ranges = sample
    renumbered = replace(
        assignment,
        allocations=[
            row._replace(allocation_index=row.allocation_index + 100)
            for row in reversed(assignment.allocations)
        ],
        values=[
            row._replace(value_id=row.value_id + 100, allocation_index=row.allocation_index + 100)
            for row in reversed(assignment.values)
        ],
    )
    moved = {value_id + 100: row for value_id, row in ranges.items()}
    assert program_id(program, renumbered, moved) == program_id(program, assignment, ranges)


def test_values_of_another_text_are_no_program(sample):
    program, assignment, ranges = sample
    foreign = replace(assignment, values=with_last(assignment.values, instruction="foreign"))
    assert program_id(program, foreign, ranges) is None


def test_what_is_worked_out_makes_the_same_program_unless_it_is_an_estimate():
    """Allocations of text alone are estimates, so that they are not those of the dump."""
    for sample, pattern in SAMPLES.items():
        whole = read_whole(pattern)
        bare = Parts(whole.assignment, program=whole.program)
        dumped, derived, estimated = (
            joined(parts, Key("", "", platform=sample)).header
            for parts in (whole, bare, Parts(program=whole.program))
        )
        origins = [header["origin"] for header in (dumped, derived, estimated)]
        assert origins == ["dumped", "derived", "estimated"]
        assert dumped["program_id"] == derived["program_id"] is not None
        assert estimated["program_id"] not in (None, dumped["program_id"])


def test_damaged_and_contradicting_files_leave_no_id(tmp_path, db):
    damaged, contradicting = (copy_dump(CPU, tmp_path / "night" / name) for name in "ab")
    (path,) = damaged.glob("*buffer-assignment.txt")
    path.write_text(path.read_text()[:2000])
    (path,) = contradicting.glob("*live-range.txt")
    path.write_text(re.sub(r":(\d+)-\d+", r":\1-9999", path.read_text(), count=1))
    (summary,) = fill(db, tmp_path / "night")
    assert len(summary.problems) == 2
    assert rows(db, "SELECT program_id FROM modules") == [(None,), (None,)]
