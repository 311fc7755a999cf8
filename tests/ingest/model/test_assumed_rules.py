"""Opcodes without a rule: what they do with memory is assumed, and said to be."""

import re

import pytest

from memhouse.ingest.derive import derive
from memhouse.ingest.module_rows import build_module
from memhouse.xla.parts import Parts

from ...support.command import run_memhouse
from ...support.dumps import content
from ...support.warehouse import fill, rows
from .texts import ASYNC, alias_sets, analyse_text, names, positions, ranges, read_program

COMPUTATION = re.compile(r"(?m)^%(?P<name>\S+) \(.*\{\n(?P<body>(?:  .*\n)+)\}\n\n?")
START = re.compile(r"(?m)^.*%(?P<name>\S+) = .* async-start\(.*\), calls=%(?P<called>[^ ,\n]+)")
END = re.compile(r"(?m)^.*%(?P<name>\S+) = .* async-(?:done|update)\([^%]*%(?P<start>[^ ,)\n]+)\)")


def in_short(text):
    """The text as XLA prints it by default, without the computations of one instruction."""
    opcodes = {}
    for found in COMPUTATION.finditer(text):
        *parameters, root = found["body"].splitlines()
        if all(" parameter(" in line for line in parameters):
            opcodes[found["name"]] = re.search(r"= .*? ([a-z-]+)\(", root)[1]
    started = {}

    def start(found):
        if (opcode := opcodes.get(found["called"])) is None:
            return found[0]
        started[found["name"]] = opcode
        line = found[0].replace(" async-start(", f" {opcode}-start(")
        return line.removesuffix(f", calls=%{found['called']}")

    def end(found):
        if (opcode := started.get(found["start"])) is None:
            return found[0]
        started[found["name"]] = opcode
        return re.sub(r" async-(done|update)\(", rf" {opcode}-\1(", found[0])

    text = END.sub(end, START.sub(start, text))
    left = {found["called"] for found in START.finditer(text)}
    gone = {name for name in opcodes if f"%{name}," not in text and f"%{name}\n" not in text} - left
    return COMPUTATION.sub(lambda found: "" if found["name"] in gone else found[0], text), started


def figures(text):
    """The peaks by memory space, the header, and what is assumed."""
    derivation = derive(Parts(program=read_program(text)))
    module = build_module(derivation)
    memory = module.tables["module_memory"].select(["memory_space", "peak_bytes"])
    return memory.to_pylist(), module.header, derivation.notes.assumed


@pytest.mark.parametrize(
    "sample", ["decode8-v5e", "llama-v5e-jax0.7.0", "llama7b-oom-v5e", "resnet-v5e", "llama-v5e"]
)
def test_the_start_of_an_opcode_takes_the_memory_of_the_async_start_that_it_stands_for(sample):
    text = content(f"tpu/{sample}/*after_optimizations.txt.gz").decode()
    short, started = in_short(text)
    peaks, header, _ = figures(text)
    assumed_peaks, assumed_header, assumed = figures(short)
    assert assumed_peaks == peaks
    assert sum(assumed.values()) == len(re.findall(r" async-start\(", text)) > 0
    assert {opcode.removesuffix("-start") for opcode in assumed} == set(started.values())
    assert header.get("assumed") is None
    assert all(opcode in assumed_header["assumed"] for opcode in assumed)


def test_an_asynchronous_pair_passes_on_its_operands_and_results():
    text, _ = in_short(ASYNC)
    found = analyse_text(text)
    assert positions(found, "double{}") == {"double{}", "start{0,0}"}
    assert positions(found, "start{1}") == {"start{1}", "done{}", "both{0}"}
    assert ranges(found)["double{}"] == (1, 4)
    assert found.assumed == {"slice-start": 1}


def test_what_a_start_writes_in_place_is_one_array():
    text = """\
HloModule m, is_scheduled=true

ENTRY %main (p: f32[8], u: f32[2], i: s32[]) -> f32[8] {
  %p = f32[8]{0} parameter(0)
  %u = f32[2]{0} parameter(1)
  %i = s32[] parameter(2)
  %own = f32[8]{0} negate(%p)
  %start = ((f32[8]{0}, f32[2]{0}, s32[]), f32[8]{0}, u32[]) \
dynamic-update-slice-start(%own, %u, %i)
  %other = f32[2]{0} negate(%u)
  ROOT %done = f32[8]{0} dynamic-update-slice-done(%start)
}
"""
    found = analyse_text(text)
    assert alias_sets(found) == {frozenset(("own{}", "start{1}"))}


@pytest.mark.parametrize(
    ("shape", "values"),
    [
        # A form that no pair has: all of it is its own.
        ("(f32[8]{0})", {"start{}", "start{0}", "done{}"}),
        ("f32[8]{0}", {"start{}"}),
        ("((f32[8]{0}, f32[8]{0}), f32[8]{0})", {f"start{i}" for i in ("{}", "{0}", "{0,0}",
                                                                     "{0,1}", "{1}")}),
        ("(f32[8]{0}, f32[8]{0}, u32[])", {"start{}", "start{1}", "start{2}"}),
    ],
)  # fmt: skip
def test_an_opcode_of_next_year_never_costs_the_figures(shape, values):
    text = f"""\
HloModule m, is_scheduled=true

ENTRY %main (p: f32[8]) -> f32[8] {{
  %p = f32[8]{{0}} parameter(0)
  %start = {shape} entangle-start(%p)
  ROOT %done = f32[8]{{0}} entangle-done(%start)
}}
"""
    assert set(names(analyse_text(text))) == {"p{}"} | values
    assert figures(text)[0][0]["peak_bytes"] > 0


def test_ingest_says_which_rules_are_assumed(tmp_path, db):
    text = in_short(ASYNC)[0]
    for number in range(3):
        changed = text.replace("overlap", f"overlap{number}")
        (tmp_path / f"step{number}.txt").write_text(changed)
    (summary,) = fill(db, tmp_path)
    assert (summary.without_figures, summary.failed, summary.partial) == (0, 0, 0)
    (said,) = [note for note in summary.notes if "assumed" in note]
    assert said.startswith("3 programs")
    assert "slice-start (3)" in said
    assert set(rows(db, "SELECT assumed, origin, grade FROM modules")) == {
        ("slice-start (1)", "estimated", 1)
    }
    assert run_memhouse("verify", "--db", db).returncode == 0


def test_ingest_says_how_many_programs_have_no_figures(tmp_path, db):
    (tmp_path / "odd.txt").write_text(
        "HloModule m, is_scheduled=true\n\nENTRY e {\n  ROOT a = f32[?] parameter(0)\n}\n"
    )
    done = run_memhouse("ingest", tmp_path, "--db", db)
    assert "1 without figures" in done.stderr
    assert "unbounded" in done.stderr
