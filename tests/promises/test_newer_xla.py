"""What a newer XLA may print beside what is known: passed over with a note, and no figure lost."""

import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ..support.dumps import copy_dump
from ..support.rounds import rounds
from ..support.warehouse import fill, rows
from .night_of_cases import ingest_cases, module_rows

NEW, OLD, TPU = "cpu/jax-0.10.2/module_0018*", "cpu/jax-0.9.0/module_0019*", "tpu/flash-v5e/*"
KNOWN = {NEW: "new", OLD: "old", TPU: "tpu"}
ASSIGNMENT, VALUES = "buffer-assignment", "buffer-assignment-values"
LIVES, HLO = "live-range", "hlo"
# As XLA's own error messages of 2023 print them, and as scripts expect them in dumps.
STATS = b"""
BufferAssignment stats:
             parameter allocation:    1.02GiB
              constant allocation:         0B
        maybe_live_out allocation:    4.89GiB
     preallocated temp allocation:    1.97GiB
  preallocated temp fragmentation:         0B (0.00%)
                 total allocation:    7.88GiB
              total fragmentation:       112B (0.00%)
Peak buffers:
\tBuffer 1:
\t\tSize: 4.89GiB
\t\tXLA Label: custom-call
\t\t==========================
"""


# name: the dump, the file, how it is altered, and what the note names.
VARIANTS = {
    "statistics at the end": (NEW, ASSIGNMENT, lambda t: t + STATS, "'BufferAssignment stats:'"),
    "statistics at the end of the values": (
        NEW, VALUES, lambda t: t + STATS, "'BufferAssignment stats:'",
    ),
    "statistics at the end of a document": (
        OLD, ASSIGNMENT, lambda t: t + STATS, "'BufferAssignment stats:'",
    ),
    "statistics within a document": (
        OLD, ASSIGNMENT, lambda t: t.replace(b"\nTotal bytes used", STATS + b"\nTotal bytes used"),
        "'BufferAssignment stats:'",
    ),
    "statistics before the live ranges": (
        OLD, ASSIGNMENT, lambda t: t.replace(b"HloLiveRange (", STATS + b"\nHloLiveRange ("),
        "'BufferAssignment stats:'",
    ),
    "a section after the live ranges": (
        NEW, LIVES, lambda t: t + b"\nHloLivePressure (max 3):\n  add{}: 3\n",
        "'HloLivePressure (max 3):'",
    ),
    "a list after the schedule": (
        NEW, LIVES,
        lambda t: t.replace(b"  BufferLiveRange:", b"  Streams:\n    0 = main\n  BufferLiveRange:"),
        "'Streams:'",
    ),
    "a line before the schedule": (
        NEW, LIVES,
        lambda t: t.replace(b"  InstructionSequence:", b"  Order: dfs\n  InstructionSequence:"),
        "'Order: dfs'",
    ),
    "a line before the values": (
        NEW, VALUES, lambda t: t.replace(b"Used values:", b"Total bytes pinned: 0\nUsed values:"),
        "'Total bytes pinned: 0'",
    ),
    "a list of each value": (
        NEW, VALUES, lambda t: t.replace(b"\n uses:\n", b"\n aliases:\n  x.1\n uses:\n"),
        "'aliases:'",
    ),
    "an attribute of each allocation": (
        NEW, ASSIGNMENT, lambda t: re.sub(rb"(?m)^(allocation .*):$", rb"\1, alignment 64:", t),
        "attribute of an allocation 'alignment'",
    ),
    "an attribute of some allocations, within": (
        TPU, ASSIGNMENT, lambda t: t.replace(b", maybe-live-out", b", pinned, maybe-live-out"),
        "attribute of an allocation 'pinned'",
    ),
    "an attribute with a shape": (
        OLD, ASSIGNMENT, lambda t: re.sub(
            rb"(?m)^(allocation \d+: size \d+), ", rb"\1, stored as |(f32[2], f32[])|, ", t),
        "attribute of an allocation 'stored'",
    ),
    "an attribute of each value": (
        NEW, ASSIGNMENT, lambda t: t.replace(b",offset=0)", b",offset=0,page=1)"),
        "attribute of a value 'page'",
    ),
    "an attribute of the module": (
        NEW, HLO, lambda t: t.replace(b", is_scheduled=true", b", is_scheduled=true, mesh={x=2}"),
        None,
    ),
    "a table before the computations": (
        NEW, HLO, lambda t: t.replace(b"\nFileNames\n", b"\nMeshes\n1 {axes=2}\n\nFileNames\n"),
        "section 'Meshes'",
    ),
    "a table among those of the frames": (
        NEW, HLO, lambda t: t.replace(b"FunctionNames\n", b"FileHashes\n1 \"ab\"\nFunctionNames\n"),
        "section 'FileHashes'",
    ),
    "a section at the end of the text": (
        NEW, HLO, lambda t: t + b"\nSchedule statistics:\n  length 3\n\n  more\n",
        "'Schedule statistics:'",
    ),
    "an attribute of the frames": (
        NEW, HLO, lambda t: re.sub(rb"(?m)^(\d+ \{file_.*)\}$", rb"\1 inlined=true}", t),
        "attribute of a stack frame 'inlined'",
    ),
}  # fmt: skip


def unknown_opcode(text):
    return text.replace(b" fft(", b" fft-quantum(")


GUESSES = {
    "an opcode": (NEW, HLO, unknown_opcode, "opcode 'fft-quantum'"),
    "an element type": (
        *(TPU, None, lambda t: t.replace(b"bf16[", b"bf17[")),
        "element type 'bf17'",
    ),
}
# What a newer XLA would not print, or what may decide a figure: refused as before.
REFUSED = {
    "refused: a total that disagrees": (
        VALUES, lambda t: t.replace(b"used: 148383", b"used: 148384") + STATS,
    ),
    "refused: cut short before the section": (
        VALUES, lambda t: t[: t.index(b"<90 ")] + STATS,
    ),
    "refused: allocations after the section": (
        ASSIGNMENT, lambda t: t.replace(b"\nallocation 5:", STATS + b"\nallocation 5:"),
    ),
    "refused: live ranges after the section": (
        LIVES, lambda t: t.replace(b"    x.5{}:", b"  Streams:\n    x.5{}:"),
    ),
    "refused: an allocation of no known kind": (
        ASSIGNMENT, lambda t: t.replace(b", preallocated-temp:", b", collective-scratch:"),
    ),
    "refused: an attribute that is damaged": (
        ASSIGNMENT, lambda t: t.replace(b", maybe-live-out", b", maybe-live-ouX".lower()),
    ),
    "refused: an attribute twice": (
        ASSIGNMENT,
        lambda t: t.replace(b", preallocated-temp:", b", preallocated-temp, preallocated-temp:"),
    ),
    "refused: a file cut within the section": (ASSIGNMENT, lambda t: (t + STATS)[:-20]),
    "refused: a section within a computation": (
        HLO, lambda t: t.replace(b"\nENTRY ", b"\nMeshes\n}\nENTRY ", 1),
    ),
}  # fmt: skip


def altered(kind, alter):
    """Alters one of a dump's files, or all of them."""
    ending = "" if kind is None else {HLO: "after_optimizations.txt"}.get(kind, f"-{kind}.txt")

    def change(folder):
        before = {path: path.read_bytes() for path in folder.glob(f"module*{ending}")}
        for path, text in before.items():
            path.write_bytes(alter(text))
        assert any(path.read_bytes() != text for path, text in before.items())

    return change


def text_alone(folder):
    altered(HLO, unknown_opcode)(folder)
    for path in folder.iterdir():
        if not path.name.endswith("after_optimizations.txt"):
            path.unlink()


def notes(db):
    """What is noted of each workload: kind of file, its status, line, message."""
    query = """SELECT workload, kind, dump_files.status, line, message
        FROM dump_files INNER JOIN dumps USING (dump_id) WHERE message IS NOT NULL"""
    return {workload: note for workload, *note in rows(db, query)}


@pytest.fixture(scope="module")
def night(tmp_path_factory):
    """All of these as workloads of a night, with the dumps as they are."""
    cases = {
        **{name: (dump, Path.exists) for dump, name in KNOWN.items()},
        **{
            name: (dump, altered(kind, alter))
            for name, (dump, kind, alter, _) in (VARIANTS | GUESSES).items()
        },
        **{name: (NEW, altered(kind, alter)) for name, (kind, alter) in REFUSED.items()},
        "text alone": (NEW, text_alone),
    }
    return ingest_cases(tmp_path_factory.mktemp("newer"), cases)


@pytest.fixture(scope="module")
def figures(night):
    return module_rows(night.db)


def test_what_is_newer_costs_no_figure(night, figures):
    noted = notes(night.db)
    failures = [
        name
        for name, (dump, *_) in VARIANTS.items()
        if figures[name] != figures[KNOWN[dump]] or night.statuses(name) != ["ok"]
    ]
    for name, (_, kind, _, said) in VARIANTS.items():
        if said is None:
            failures += [name] * (name in noted)
            continue
        of, status, line, message = noted[name]
        if (of, status) != (kind, "ok") or said not in message or line < 1:
            failures.append((name, noted[name]))
    assert failures == []


def test_an_element_type_that_is_not_known_has_no_padding(night, figures):
    """Its size in the dump stands; what of it is padding nobody can say."""
    query = """SELECT COUNT(*) > 0, COUNT(logical_bytes) FROM "values"
        INNER JOIN dumps USING (module_id) WHERE element_type = 'bf17'"""
    assert rows(night.db, query) == [(True, 0)]
    memory = """SELECT memory_space, total_bytes, peak_bytes, peak_time FROM module_memory
        INNER JOIN dumps USING (module_id) WHERE workload = '{}' ORDER BY 1"""
    found, known = (rows(night.db, memory.format(name)) for name in ("an element type", "tpu"))
    assert found == known
    assert figures["an element type"]["live_ranges"] == figures["tpu"]["live_ranges"]
    assert night.statuses("an element type") == ["ok"]
    assert "'bf17'" in notes(night.db)["an element type"][-1]


def test_an_opcode_that_is_not_known_costs_no_figure_of_the_dump(night, figures):
    """Only what is worked out from the text is a guess: owners, and which program it is."""
    found, known = dict(figures["an opcode"]), dict(figures["new"])
    for table in ("instructions", "modules", "traits"):
        found.pop(table)
        known.pop(table)
    assert found == known
    assert "'fft-quantum'" in notes(night.db)["an opcode"][-1]
    query = """SELECT liveness_difference FROM modules INNER JOIN dumps USING (module_id)
        WHERE workload = 'an opcode'"""
    assert rows(night.db, query) == [(None,)]


def test_text_alone_with_an_opcode_that_is_not_known_has_estimates(night, figures):
    assert "'fft-quantum'" in notes(night.db)["text alone"][-1]
    query = """SELECT assumed, origin, peak_bytes > 0 FROM modules
        INNER JOIN dumps USING (module_id) INNER JOIN module_memory USING (module_id)
        WHERE workload = 'text alone' AND memory_space = 0"""
    assert rows(night.db, query) == [("fft-quantum (1)", "estimated", True)]


def test_what_makes_figures_doubtful_is_refused(night):
    failures = [
        name for name in REFUSED if night.statuses(name) != ["partial"] or not night.named(name)
    ]
    assert failures == []


HEADINGS = st.from_regex(r"[A-Z][A-Za-z]{3,12}( [a-z]{2,8}){0,2}:", fullmatch=True)
LINES = st.lists(
    st.one_of(
        st.from_regex(r"[ \t]{1,8}[a-z0-9 :=.{}()%]{0,40}", fullmatch=True),
        st.just(""),
        HEADINGS,
    ),
    max_size=6,
)
SECTIONS = st.tuples(st.sampled_from([ASSIGNMENT, VALUES, LIVES, HLO]), HEADINGS, LINES)


@settings(
    max_examples=rounds(3), deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)  # fmt: skip
@given(sections=st.lists(SECTIONS, min_size=5, max_size=5))
def test_any_section_at_the_end_of_a_file_is_passed_over(tmp_path_factory, figures, sections):
    folder = tmp_path_factory.mktemp("any")
    for number, (kind, heading, lines) in enumerate(sections):
        section = "\n".join(["", heading, *lines, ""]).encode()
        altered(kind, lambda text, section=section: text + section)(
            copy_dump(NEW, folder / "night" / str(number))
        )
    fill(folder / "db", folder / "night")
    found, noted = module_rows(folder / "db"), notes(folder / "db")
    for number, (kind, heading, _) in enumerate(sections):
        assert found[str(number)] == figures["new"]
        assert noted[str(number)][0] == kind
        assert heading.strip() in noted[str(number)][-1]
