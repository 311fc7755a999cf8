"""Many damaged dumps: named, recorded, bounded, and in nobody's way.

A seed in a message makes its dump again: `damaged_dump(seed, folder)`.
"""

import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from memhouse.ingest.formats import BY_NAME
from memhouse.ingest.outcomes import OK
from memhouse.ingest.read_program import read_program
from memhouse.ingest.sources.dump_folder import parse_key
from memhouse.ingest.sources.dumped_program import DumpedProgram
from memhouse.ingest.sources.files import SourceFile
from memhouse.queries.verify import verify

from ..support.dumps import content, copy_dump
from ..support.mutations import damaged_dump, texts
from ..support.rounds import rounds
from ..support.warehouse import fill, reading, rows
from .night_of_cases import module_rows

INPUTS = 60
GOOD = "cpu/jax-0.10.2/module_0018*"
ANY = "module_0000.jit_f.cpu_after_optimizations"
ENDINGS = {
    "buffer-assignment": "-buffer-assignment.txt",
    "buffer-assignment-values": "-buffer-assignment-values.txt",
    "live-range": "-live-range.txt",
    "memory-usage-report": "-memory-usage-report.txt",
    "hlo": ".txt",
}


@pytest.mark.slow
@pytest.mark.parametrize("number", range(rounds(1)))
def test_damage_is_named_and_stops_nothing(tmp_path, db, number):
    night = tmp_path / "night"
    done = {}
    for seed in range(number * INPUTS, (number + 1) * INPUTS):
        done[str(seed)] = damaged_dump(seed, night / str(seed))
    copy_dump(GOOD, night / "good")
    copy_dump(GOOD, tmp_path / "clean" / "good")
    fill(tmp_path / "clean.duckdb", tmp_path / "clean")
    (summary,) = fill(db, night)
    assert module_rows(db)["good"] == module_rows(tmp_path / "clean.duckdb")["good"], done
    assert_recorded(db, summary, done)
    assert_figures_are_sound(db, done)
    with reading(db) as store:
        for row in verify(store).rows.table.to_pylist():
            assert "night/good" not in row["module"], done


def assert_recorded(db, summary, done):
    """Whatever is not ok has a reason, and the reason is told in one line."""
    bad = rows(db, "SELECT path, status, line, message FROM dump_files WHERE status <> 'ok'")
    assert all("\n" not in problem for problem in summary.problems)
    for path, status, line, message in bad:
        assert status in ("failed", "partial", "contradicts", "missing"), (path, status)
        assert message, (path, status)
        assert line is None or line >= 1
        where = path if line is None else f"{path}:{line}"
        told = any(f"/{where}: {message}" in problem for problem in summary.problems)
        assert told, (where, message, done)
    wrong = rows(
        db,
        """SELECT workload FROM dumps WHERE (status = 'ok') = EXISTS
        (SELECT 1 FROM dump_files f WHERE f.dump_id = dumps.dump_id AND f.status <> 'ok')""",
    )
    assert wrong == [], done


IMPOSSIBLE = """SELECT workload FROM module_memory INNER JOIN dumps USING (module_id)
    WHERE peak_bytes > total_bytes OR peak_bytes < 0 OR fragmentation_bytes < 0
        OR total_bytes < 0
        OR (total_bytes IS NULL AND peak_bytes IS NOT NULL AND module_id NOT IN
            (SELECT module_id FROM modules WHERE origin = 'estimated'))"""
UNSUPPORTED = """SELECT workload, kind FROM module_memory INNER JOIN dumps USING (module_id)
    INNER JOIN dump_files USING (dump_id)
    WHERE peak_bytes IS NOT NULL AND kind IN ('live-range', 'buffer-assignment')
        AND dump_files.status IN ('failed', 'missing', 'contradicts')"""


def assert_figures_are_sound(db, done):
    """A figure is null or within what holds it; there is none that no part supports."""
    assert rows(db, IMPOSSIBLE) == [], done
    assert rows(db, UNSUPPORTED) == [], done


def dump_of(folder, files):
    """A dump of these texts by kind."""
    held = {}
    for kind, text in files.items():
        path = Path(folder) / (ANY + ENDINGS[kind])
        path.write_bytes(text)
        held[BY_NAME[kind]] = SourceFile(path.name, path, 0.0, len(text))
    return DumpedProgram(parse_key("w", "module_0000.jit_f", "cpu"), held)


@pytest.mark.parametrize("kind", ENDINGS)
@settings(
    max_examples=rounds(50),
    deadline=10_000,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(text=st.one_of(texts, st.binary(max_size=200)))
@example(text=b"{" * 1_000_000)
@example(text=b"HloModule m, entry_computation_layout={" + b"(" * 100_000 + b"}\n\nENTRY e {\n}\n")
@example(text=b"BufferAssignment:\nallocation 0: size 0:\n value: <0 a @0> (size=0,offset=0): "
         + b"(" * 100_000 + b"\n")  # fmt: skip
def test_any_text_is_read_or_refused(tmp_path, kind, text):
    outcome = read_program(dump_of(tmp_path, {kind: text}), set())
    (found,) = (file for file in outcome.files if file.status != "missing")
    assert found.status == OK or found.message
    assert found.line is None or 1 <= found.line <= text.count(b"\n") + 1


def parts():
    """The good dump's texts by kind."""
    names = {kind: f"{GOOD}after_optimizations{ending}" for kind, ending in ENDINGS.items()}
    return {kind: content(pattern) for kind, pattern in names.items()}


def without(*gone):
    return {kind: text for kind, text in parts().items() if kind not in gone}


def changed(kind, old, new, *gone):
    files = without(*gone)
    assert old in files[kind]
    files[kind] = files[kind].replace(old, new, 1)
    return files


A, V, H = "buffer-assignment", "buffer-assignment-values", "hlo"
HUGE = b"9" * 30
CRASHES = {
    "live ranges alone": lambda: without(A, V, H),
    "live ranges and HLO text": lambda: without(A, V),
    "a damaged definition without HLO text": lambda: changed(
        V, b" from instruction: %", b" from instruction: !? %", H
    ),
    "an entry shape over 64 bits": lambda: changed(
        H, b"layout={(", b"layout={(f32[999999999999999999,999]{1,0}, "
    ),
    "a reserved size over 64 bits": lambda: changed(
        H,
        b", metadata={",
        b', backend_config={"scoped_memory_configs":[{"size":"' + HUGE + b'"}]}, metadata={',
    ),
    "an attribute across two definitions": lambda: changed(
        V,
        b" from instruction: %",
        b" from instruction: a0 = f32[] add(b), metadata\n\n<9 b @0>\n positions:\n  b\n uses:\n"
        b' from instruction:={x} = f32[] add(c), metadata={op_name="mine"}\n\n'
        b"<8 c @0>\n positions:\n  c\n uses:\n from instruction: %",
        H,
    ),
    "operands that do not close": lambda: changed(H, b" add(", b" add(((("),
    "an escape that is none": lambda: changed(H, b'op_name="', b'op_name="\\n\\xzz'),
}


def test_a_crash_that_was_found_is_an_outcome(tmp_path):
    statuses = {
        name: read_program(dump_of(tmp_path, files()), set()).status
        for name, files in CRASHES.items()
    }
    assert statuses == dict.fromkeys(CRASHES, "partial")


DAMAGES = {
    "a shape": (rb" = (\w+)\[", rb" = \1(["),
    "a name": (rb"^  %", b"  ? %"),
    "an operand": (rb"\(%([\w.]+)", rb"(%\1.gone"),
    "an operand that is left out": (rb"\(%([\w.]+)", rb"(%%\1"),
    "an attribute": (rb"metadata=\{.*", b"metadata={"),
    "the line": (rb"^  %.*", b"  "),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_instruction_costs_itself(tmp_path, damage):
    """Whichever it is: figures of the dump stay, most owners too, and the loss is told."""
    whole = read_program(dump_of(tmp_path, parts()), set()).module
    lines = parts()[H].splitlines(keepends=True)
    old, new = DAMAGES[damage]
    rows = [
        row for row, line in enumerate(lines) if line.startswith(b"  %") and re.search(old, line)
    ]
    kept = 0
    for row in rows[:: len(rows) // 10]:
        text = b"".join([*lines[:row], re.sub(old, new, lines[row]), *lines[row + 1 :]])
        outcome = read_program(dump_of(tmp_path, parts() | {H: text}), set())
        (file,) = (file for file in outcome.files if file.kind == H)
        assert (outcome.status, file.status, file.line) == ("partial", "partial", row + 1)
        assert re.match(r"1 of \d+ instructions ", file.message)
        assert figures_of(outcome.module) == figures_of(whole)
        kept += owners_of(outcome.module).items() & owners_of(whole).items() > set()
        (alone,) = read_program(dump_of(tmp_path, {H: text}), set()).files
        assert alone.status == "partial"
        assert "figures" in alone.message
    # A parameter of a fused computation costs all owners.
    assert kept >= 8


def figures_of(module):
    """The figures of each memory space; instructions have other numbers where one is left out."""
    return module.tables["module_memory"].drop_columns(["peak_instruction_id"]).to_pylist()


def owners_of(module):
    """The origin of each value by its name, as far as it is known."""
    names = module.tables["instructions"]["instruction"]
    values = module.tables["values"]
    if "origin_instruction_id" not in values.column_names:
        return {}
    origins = values["origin_instruction_id"]
    owners = zip(values["value_id"].to_pylist(), names.take(origins).to_pylist(), strict=True)
    return {value: name for value, name in owners if name is not None}


def test_a_device_of_any_memory_is_read(tmp_path, db):
    sizes = ("9" * 40, "9" * 5000, "²")
    name = "module_0001.jit_generate.gpu_target_config.pbtxt"
    for number, size in enumerate(sizes):
        folder = copy_dump("gpu/decode-h100/*", tmp_path / "night" / str(number))
        (folder / name).write_text(f"gpu_device_info {{\n  device_memory_size: {size}\n}}\n")
    (summary,) = fill(db, tmp_path / "night")
    assert [problem.count(f"/{name}") for problem in summary.problems] == [1] * len(sizes)


def test_partitions_over_32_bits_are_not_one(tmp_path):
    files = changed(
        H, b"HloModule jit_mixed, ", b"HloModule jit_mixed, num_partitions=9999999999, "
    )
    assert read_program(dump_of(tmp_path, files), set()).status == "partial"


def test_a_part_in_two_files_is_not_silently_one(tmp_path):
    files = parts() | {A: content("seeds/000*")}
    (file,) = [f for f in read_program(dump_of(tmp_path, files), set()).files if f.kind == V]
    assert file.status == "contradicts"


def test_a_whole_document_under_the_name_of_a_part_is_another_dumps(tmp_path):
    files = parts() | {V: content("seeds/000*")}
    outcome = read_program(dump_of(tmp_path, files), set())
    (file,) = [f for f in outcome.files if f.kind == V]
    assert (outcome.status, file.status) == ("partial", "failed")
    assert "BufferAssignment" in file.message
