"""What a newer XLA may print beside what is known: passed over with a note, and no figure lost."""

import re

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ..support.dumps import copy_dump
from ..support.rounds import rounds
from ..support.warehouse import fill, rows
from .newer_dumps import ASSIGNMENT, HLO, LIVES, NEW, OLD, STATS, TPU, VALUES, change, figures

# name: the dump, the file, how it is altered, what the note says, and the tables that may differ.
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


@pytest.fixture(scope="module")
def known(tmp_path_factory):
    """The figures of the dumps as they are."""
    return {dump: figures(copy_dump(dump, tmp_path_factory.mktemp("d") / "night"))
            for dump in (NEW, OLD, TPU)}  # fmt: skip


@pytest.mark.parametrize("name", VARIANTS)
def test_what_is_newer_costs_no_figure(tmp_path, known, name):
    dump, kind, alter, said = VARIANTS[name]
    night = change(tmp_path, dump, kind, alter)
    db = tmp_path / "db"
    found = figures(night, db)
    assert found == known[dump]
    notes = rows(db, "SELECT kind, status, line, message FROM dump_files WHERE message IS NOT NULL")
    if said is None:
        assert notes == []
        return
    ((of, status, line, message),) = notes
    assert (of, status) == (kind, "ok")
    assert said in message
    assert message.startswith("not understood and passed over: ")
    assert line >= 1


def test_an_element_type_that_is_not_known_has_no_padding(tmp_path, known):
    """Its size in the dump stands; what of it is padding nobody can say."""
    night = change(tmp_path, TPU, None, lambda t: t.replace(b"bf16[", b"bf17["))
    db = tmp_path / "db"
    found = figures(night, db)
    query = "SELECT COUNT(*), COUNT(logical_bytes) FROM \"values\" WHERE element_type = 'bf17'"
    ((values, with_size),) = rows(db, query)
    assert values > 0
    assert with_size == 0
    memory = "SELECT memory_space, total_bytes, peak_bytes, peak_time FROM module_memory ORDER BY 1"
    other = tmp_path / "other"
    fill(other, copy_dump(TPU, tmp_path / "known" / "night"))
    assert rows(db, memory) == rows(other, memory)
    assert found["live_ranges"] == known[TPU]["live_ranges"]
    assert rows(db, "SELECT status FROM dumps") == [("ok",)]
    (message,) = {m for (m,) in rows(db, "SELECT message FROM dump_files WHERE message NOTNULL")}
    assert message == "not understood and passed over: element type 'bf17'"


def test_an_opcode_that_is_not_known_costs_no_figure_of_the_dump(tmp_path, known):
    """Only what is worked out from the text is a guess: owners, and which program it is."""
    night = change(tmp_path, NEW, HLO, lambda t: t.replace(b" fft(", b" fft-quantum("))
    db = tmp_path / "db"
    found = figures(night, db)
    guessed = {"instructions", "modules", "traits"}
    assert {t: found[t] for t in found if t not in guessed} == {
        t: known[NEW][t] for t in known[NEW] if t not in guessed
    }
    (of_known,), (of_newer,) = known[NEW]["modules"], found["modules"]
    assert len(of_newer) == len(of_known)
    (message,) = rows(db, "SELECT message FROM dump_files WHERE message IS NOT NULL")
    assert message == ("not understood and passed over: opcode 'fft-quantum'",)
    query = (
        'SELECT liveness_difference, (SELECT COUNT(origin_rule) = 35 FROM "values") FROM modules'
    )
    assert rows(db, query) == [(None, True)]


def test_text_alone_with_an_opcode_that_is_not_known_has_no_figures(tmp_path):
    night = change(tmp_path, NEW, HLO, lambda t: t.replace(b" fft(", b" fft-quantum("))
    for path in night.iterdir():
        if not path.name.endswith("after_optimizations.txt"):
            path.unlink()
    (summary,) = fill(tmp_path / "db", night)
    (note,) = summary.notes
    assert "opcode 'fft-quantum'; no figures without a buffer assignment: there is no" in note
    assert rows(tmp_path / "db", "SELECT COUNT(*) FROM module_memory") == [(0,)]


# What a newer XLA would not print, or what may decide a figure: refused as before.
REFUSED = {
    "a total that disagrees": (
        VALUES, lambda t: t.replace(b"used: 148383", b"used: 148384") + STATS,
    ),
    "cut short before the section": (
        VALUES, lambda t: t[: t.index(b"<90 ")] + STATS,
    ),
    "allocations after the section": (
        ASSIGNMENT, lambda t: t.replace(b"\nallocation 5:", STATS + b"\nallocation 5:"),
    ),
    "live ranges after the section": (
        LIVES, lambda t: t.replace(b"    x.5{}:", b"  Streams:\n    x.5{}:"),
    ),
    "an allocation of no known kind": (
        ASSIGNMENT, lambda t: t.replace(b", preallocated-temp:", b", collective-scratch:"),
    ),
    "an attribute that is damaged": (
        ASSIGNMENT, lambda t: t.replace(b", maybe-live-out", b", maybe-live-ouX".lower()),
    ),
    "an attribute twice": (
        ASSIGNMENT,
        lambda t: t.replace(b", preallocated-temp:", b", preallocated-temp, preallocated-temp:"),
    ),
    "a file cut within the section": (ASSIGNMENT, lambda t: (t + STATS)[:-20]),
    "a section within a computation": (
        HLO, lambda t: t.replace(b"\nENTRY ", b"\nMeshes\n}\nENTRY ", 1),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_makes_figures_doubtful_is_refused(tmp_path, name):
    kind, alter = REFUSED[name]
    (summary,) = fill(tmp_path / "db", change(tmp_path, NEW, kind, alter))
    assert summary.problems
    assert rows(tmp_path / "db", "SELECT status FROM dumps") == [("partial",)]


HEADINGS = st.from_regex(r"[A-Z][A-Za-z]{3,12}( [a-z]{2,8}){0,2}:", fullmatch=True)
LINES = st.lists(
    st.one_of(
        st.from_regex(r"[ \t]{1,8}[a-z0-9 :=.{}()%]{0,40}", fullmatch=True),
        st.just(""),
        HEADINGS,
    ),
    max_size=6,
)


@settings(
    max_examples=rounds(12), deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)  # fmt: skip
@given(kind=st.sampled_from([ASSIGNMENT, VALUES, LIVES, HLO]), heading=HEADINGS, lines=LINES)
def test_any_section_at_the_end_of_a_file_is_passed_over(
    tmp_path_factory, known, kind, heading, lines
):
    section = "\n".join(["", heading, *lines, ""]).encode()
    folder = tmp_path_factory.mktemp("any")
    night = change(folder, NEW, kind, lambda text: text + section)
    assert figures(night, folder / "db") == known[NEW]
    ((message,),) = rows(folder / "db", "SELECT message FROM dump_files WHERE message IS NOT NULL")
    assert heading.strip() in message
