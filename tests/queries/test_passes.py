"""`passes`: which pass of the compiler changed a program's memory, and made its large buffers."""

import doctest
import re
import shutil
from pathlib import Path

import pytest

import memhouse
from memhouse.ingest.dry_run import examine
from memhouse.queries.catalogue import examples
from memhouse.schema.causes import differing_pass

from ..support.advised import unpack
from ..support.warehouse import fill, rows


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A step of training on CPU (JAX 0.12): base, and unfused, without the pass fusion."""
    folder = tmp_path_factory.mktemp("passes")
    unpack(folder / "passes")
    return folder


@pytest.fixture(scope="module")
def both(folder, tmp_path_factory):
    """A warehouse with a run of each."""
    db = tmp_path_factory.mktemp("db") / "passes.duckdb"
    fill(db, folder / "base")
    fill(db, folder / "unfused")
    return db


def test_the_steps_and_buffers_of_a_program(both):
    with memhouse.open(both, read_only=True) as warehouse:
        steps = warehouse.passes("step", run="base").table.to_pylist()
        every = warehouse.passes("step", run="base", every=True)
        buffers = warehouse.passes("step", run="base", buffers=True).table.to_pylist()
        unfused = warehouse.passes("step", run="unfused").table.to_pylist()
        (peak,) = (row["peak_bytes"] for row in warehouse.peaks(run="base").table.to_pylist())
    by_pass = {row["compiler_pass"]: row for row in steps}
    # The products in f32 and their conversion are no buffers of their own any more.
    assert by_pass["fusion"]["change_bytes"] == -256 * 2**10
    assert "fusion" not in {row["compiler_pass"] for row in unfused}
    assert len(every) > len(steps)
    assert 0 <= steps[-1]["estimated_peak_bytes"] - peak < 0.15 * peak
    assert [(row["size_bytes"], row["made_by"]) for row in buffers] == [
        (size * 2**10, "the program itself") for size in (128, 128, 64, 64)
    ]
    assert {row["instruction"]: row["compiler_passes"] for row in buffers}["ynn_fusion"] == (
        "fused: dot-library-rewriter (16)"
    )
    assert all(row["is_certain"] and row["source"].startswith("train.py:") for row in buffers)


def test_a_cause_names_the_first_pass_that_differs(both):
    ((term,),) = rows(both, "SELECT term FROM causes WHERE kind = 'pass'")
    assert term == "pass fusion changes nothing now (HLO_passes_after_layout_assignment, 19)"
    ((cause,),) = rows(both, "SELECT cause FROM history WHERE cause IS NOT NULL")
    assert "pass fusion changes nothing now" in cause


def test_the_examples_answer(both):
    for name in ("compiler_passes", "compiler_pass_events", "compiler_pass_steps"):
        for example in examples()[name]:
            assert rows(both, example.sql), example.title


def test_texts_are_read_once_and_a_damaged_one_is_passed_over(folder, db, tmp_path):
    base = Path(shutil.copytree(folder / "base", tmp_path / "base"))
    (first,) = fill(db, base)
    (again,) = fill(db, base)
    assert (first.new_modules, again.new_modules, again.unchanged) == (1, 0, 1)
    ((texts,),) = rows(db, "SELECT COUNT(*) FROM compiler_passes")
    for file in sorted((base / "step").glob("*.00[01]?.*.txt"))[1:]:
        file.write_text("HloModule cut\n\nENTRY %main {\n  %a = f32[")
    (damaged,) = fill(db, base, run_id="damaged")
    assert (damaged.new_modules, damaged.problems) == (1, [])
    ((told,),) = rows(db, "SELECT message FROM dump_files WHERE message IS NOT NULL")
    assert re.fullmatch(r"(\d+) of \d+ texts between .* passed over: .+ and \d+ more", told)
    assert rows(db, "SELECT COUNT(*) FROM causes") == [(0,)]
    ((less,),) = rows(
        db,
        """SELECT COUNT(*) FROM compiler_passes
        JOIN dumps USING (module_id) WHERE run_id = 'damaged'""",
    )
    assert 1 < less < texts


def test_doctor_says_what_passes_would_answer(folder):
    found = examine(folder)
    answers = {row["question"]: row["answer"] for row in found.questions.to_pylist()}
    assert answers["which compiler pass defined a buffer"] == "yes"
    assert any("memhouse passes MODULE" in hint for hint in found.hints)


def test_the_example_of_the_rule_holds():
    failed, examples = doctest.testmod(differing_pass)
    assert (failed, bool(examples)) == (0, True)
