"""Elements of tuples that newer HLO text leaves out: they are as in the older text."""

import gzip
import shutil
from contextlib import ExitStack

import pytest

from memhouse.ingest.element_names import name_elements
from memhouse.ingest.readers.hlo_proto import read_hlo_proto
from memhouse.ingest.readers.hlo_text import read_hlo_text
from memhouse.ingest.readers.lines import split_lines
from memhouse.ingest.readers.live_range import read_live_ranges
from memhouse.ingest.readers.used_values import read_used_values
from memhouse.ingest.sources.dump_folder import find_dumps, is_wanted
from memhouse.ingest.sources.files import open_source
from memhouse.ingest.sources.program import Key
from memhouse.xla.parts import Parts
from tests.support.compact_text import compacted
from tests.support.dumps import DATA, DUMPS
from tests.support.joined import joined

# A training step dumped by JAX 0.12.0, as text and as a binary.
COMPACT = DATA / "compact"
# Of the instructions left out the text has no metadata.
METADATA = {"op_name", "scope_id", "pass", "stack_frame_id", "source_frame_id"}
METADATA |= {"source_file", "source_line", "library_file", "library_line"}
NOT_SAID = {"scopes", "stack_frames"}
# The dumps of JAX 0.4 have no elements.
OLDER = sorted(
    {path.parent for path in DUMPS.glob("*/*/*after_optimizations.txt*")}
    - set(DUMPS.glob("cpu/jax-0.4.*"))
)
# In how many bytes a peak may differ where nothing tells when an element is taken: the tables of
# tuples live longer.
TABLES_BYTES = 4096


def modules(folder):
    """Each module of a dump folder, by its name."""
    with ExitStack() as cleanup:
        files = open_source(folder, is_wanted, cleanup, pytest.fail)
        return {
            str(dump.key): joined(dump.read(dump.fingerprint()), dump.key)
            for dump in find_dumps(files, lambda file, why: pytest.fail(str(why)))
        }


def told(module):
    """The header and the tables, without what compact text cannot tell."""
    tables = {}
    for name, table in module.tables.items():
        if name not in NOT_SAID:
            kept = [column for column in table.column_names if column not in METADATA]
            tables[name] = table.select(kept).to_pydict()
    return module.header, tables


def owners(module):
    """The owner of each value, with names of instructions instead of their ids."""
    names = [*module.rows["instructions"]["instruction"], None]
    values = module.rows["values"]
    columns = [
        [names[-1 if row is None else row] for row in values[number]]
        for number in ("instruction_id", "origin_instruction_id")
    ]
    columns += [
        values[name] for name in ("shape_index", "origin_rule", "pass", "role", "size_bytes")
    ]
    return sorted(map(str, zip(*columns, strict=True)))


def compact_copy(folder, to, endings):
    """The dump's files with these endings, the program's text as newer XLA prints it."""
    to.mkdir(parents=True)
    elements = 0
    for path in folder.iterdir():
        data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        name = path.name.removesuffix(".gz")
        if name.endswith("after_optimizations.txt"):
            text = compacted(data.decode())
            elements += text.count("#")
            data = text.encode()
        if name.endswith(endings):
            (to / name).write_bytes(data)
    return elements


def test_older_dumps_read_the_same_from_compact_text(tmp_path):
    """Text alone does not tell when the elements are taken, but they take no memory."""
    failures, program = [], "after_optimizations.txt"
    for folder in OLDER:
        short, text, compact = (
            tmp_path / kind / folder.parent.name / folder.name
            for kind in ("short", "text", "compact")
        )
        assert compact_copy(folder, short, (".txt", ".pb"))
        longer, shorter = modules(folder), modules(short)
        if {name: told(module) for name, module in longer.items()} != {
            name: told(module) for name, module in shorter.items()
        }:
            failures.append(folder)
        compact_copy(folder, compact, program)
        text.mkdir(parents=True)
        for path in folder.glob(f"*{program}*"):
            shutil.copy(path, text)
        peaks, others = (
            {
                name: module.tables["module_memory"]["peak_bytes"].to_pylist()
                for name, module in modules(kind).items()
            }
            for kind in (text, compact)
        )
        assert peaks.keys() == others.keys() != set()
        if peaks != {name: pytest.approx(o, rel=0, abs=TABLES_BYTES) for name, o in others.items()}:
            failures.append((folder, peaks, others))
    assert failures == []


def test_a_dump_of_new_jax_is_as_its_binary(tmp_path):
    for path in COMPACT.iterdir():
        (tmp_path / path.stem).write_bytes(gzip.decompress(path.read_bytes()))
    with ExitStack() as cleanup:
        files = open_source(tmp_path, is_wanted, cleanup, pytest.fail)
        (dump,) = find_dumps(files, lambda file, why: pytest.fail(str(why)))
        text = joined(dump.read(dump.fingerprint()), dump.key)
    (file,) = tmp_path.glob("*.pb")
    program, assignment = read_hlo_proto(file.read_bytes())
    binary = joined(Parts(assignment, program=program), dump.key)
    assert "#" in next(tmp_path.glob("*after_optimizations.txt")).read_text()
    assert not any("#" in name for name in text.rows["instructions"]["instruction"])
    assert text.header["liveness_difference"] is None
    assert text.header["program_id"] == binary.header["program_id"]
    for name in ("instruction", "opcode", "shape"):
        ours, theirs = (module.tables["instructions"][name] for module in (text, binary))
        assert sorted(ours.to_pylist()) == sorted(theirs.to_pylist())
    assert owners(text) == owners(binary)


def test_of_two_names_of_one_element_the_first_in_the_schedule_is_meant():
    """As dumped by JAX 0.12 for mjx: so each instruction that uses the element comes after it."""
    hlo = """HloModule f, is_scheduled=true

ENTRY %main (p: (f32[], f32[])) -> f32[] {
  %p = (f32[], f32[]) parameter(0)
  %a = f32[] negate(%p#1)
  ROOT %b = f32[] add(%a, %p#1)
}
"""
    used = """Total bytes used: 4 (4B)

Used values:
<0 p{} @0>
 positions:
  p
 uses:
  late, operand 0
  early, operand 0
 from instruction: %p = (f32[], f32[]) parameter(0)
<1 p{1} @0>
 positions:
  p {1}
  late
  early
 uses:
  a, operand 0
 from instruction: %p = (f32[], f32[]) parameter(0)
"""
    lives = """HloLiveRange (max 5):
  InstructionSequence:
    0:p
    1:early
    2:a
    3:late
    4:b
  BufferLiveRange:
    p{}:0-5
  Live ranges at 0 (peak):
    p: 4 bytes
"""
    parts = Parts(
        used_values=read_used_values(split_lines(used.encode())),
        live_ranges=read_live_ranges(split_lines(lives.encode())),
        program=read_hlo_text(split_lines(hlo.encode())),
    )
    name_elements(parts)
    assert parts.program.names == ["p", "early", "a", "b"]
    assert parts.program.unread == []


def test_a_renamed_element_keeps_its_row():
    """Where the schedule is the text's order, nothing else brings the names into order."""
    hlo = """HloModule f, is_scheduled=true

ENTRY %main (p: (f32[], f32[])) -> f32[] {
  %p = (f32[], f32[]) parameter(0)
  %a = f32[] negate(%p#1)
  ROOT %b = f32[] add(%a, %a)
}
"""
    used = """Total bytes used: 4 (4B)

Used values:
<0 p{} @0>
 positions:
  p
 uses:
  second, operand 0
 from instruction: %p = (f32[], f32[]) parameter(0)
<1 p{1} @0>
 positions:
  p {1}
  second
 uses:
  a, operand 0
 from instruction: %p = (f32[], f32[]) parameter(0)
"""
    parts = Parts(
        used_values=read_used_values(split_lines(used.encode())),
        program=read_hlo_text(split_lines(hlo.encode())),
    )
    instructions = joined(parts, Key("", "")).rows["instructions"]
    assert instructions["instruction"] == ["p", "second", "a", "b"]
    assert instructions["opcode"] == ["parameter", "get-tuple-element", "negate", "add"]
    assert instructions["instruction_id"] == [0, 1, 2, 3]
