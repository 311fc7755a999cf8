"""What a source lacks is worked out from its HLO text: exactly, or as an estimate."""

import functools
import re
from contextlib import ExitStack

import pytest

import memhouse
from memhouse.ingest.derive import Derivation, Notes, derive
from memhouse.ingest.module_rows import build_module
from memhouse.ingest.sources.dump_folder import find_dumps, is_wanted
from memhouse.ingest.sources.files import open_source
from memhouse.schema.errors import UsageError
from memhouse.xla.parts import Parts

from ...support.command import run_memhouse
from ...support.dumps import DUMPS, content, copy_dump
from ...support.warehouse import fill, rows

MIXED = "cpu/jax-0.10.2/module_0018*"
EXACT = ("live_ranges", "positions", "uses", "occupancy", "module_memory", "allocations")
# Not told by the text: XLA's order of positions and uses, and our numbers of instructions.
# Parts alone do not say the platform, by which a memory space without a name gets one.
UNTOLD = {"position_index", "use_index", "instruction_id", "peak_instruction_id", "space"}


@functools.cache
def scheduled():
    """The samples with all parts whose text is scheduled, with what their names tell."""
    return list(_scheduled())


def _scheduled():
    files = open_source(DUMPS, is_wanted, ExitStack(), pytest.fail)
    for program in find_dumps(files, lambda file, why: pytest.fail(str(why))):
        parts = program.read(program.fingerprint())
        is_complete = None not in (parts.program, parts.assignment, parts.live_ranges)
        if is_complete and parts.program.header.is_scheduled:
            changelist = int(program.key.compiler) if program.key.compiler else None
            yield program.key, parts, {"platform": program.key.platform, "changelist": changelist}


def as_set(table):
    columns = sorted(set(table.column_names) - UNTOLD)
    return sorted(map(repr, table.select(columns).to_pylist()))


def test_without_live_ranges_all_figures_are_the_same():
    compared = 0
    for key, parts, names in scheduled():
        expected = build_module(Derivation(parts, Notes())).tables
        bare = Parts(parts.assignment, program=parts.program, space_names=parts.space_names)
        derivation = derive(bare, **names)
        assert derivation.notes.why_no_figures is None
        module = build_module(derivation)
        assert module.header["origin"] == "derived"
        for name in EXACT:
            assert as_set(module.tables[name]) == as_set(expected[name]), (key, name)
            compared += len(expected[name])
    assert compared > 20_000


def test_from_text_alone_the_peaks_are_those_of_the_dump():
    compared = 0
    for key, parts, names in scheduled():
        expected = build_module(Derivation(parts, Notes())).tables["module_memory"].to_pylist()
        module = build_module(derive(Parts(program=parts.program), **names))
        assert module.header["origin"] == "estimated"
        here = {row["memory_space"]: row for row in module.tables["module_memory"].to_pylist()}
        for row in expected:
            estimate = here[row["memory_space"]]
            for figure in ("peak_bytes", "argument_bytes", "output_bytes", "alias_bytes"):
                assert estimate[figure] == row[figure], (key, row["memory_space"], figure)
            # Packing decides these.
            assert estimate["total_bytes"] is estimate["temp_bytes"] is None
            compared += 1
    assert compared > 25


def test_a_difference_names_the_value(tmp_path, db):
    for workload, part, old, new in (
        ("lives", "live-range", ":0-", ":1-"),
        ("uses", "buffer-assignment-values", ", operand 0", ", operand 1"),
    ):
        folder = copy_dump(MIXED, tmp_path / "night" / workload)
        (path,) = folder.glob(f"*-{part}.txt")
        path.write_text(path.read_text().replace(old, new, 1))
    fill(db, tmp_path / "night")
    found = dict(
        rows(db, "SELECT workload, liveness_difference FROM modules JOIN dumps USING (module_id)")
    )
    # The value, and what the dump says of it.
    assert re.match(r"x\.5\{\} .* 1 to 47 ", found["lives"])
    assert re.match(r"value 0\b.* ne\.2 ", found["uses"])
    done = run_memhouse("verify", "--db", db, "-f", "csv")
    for workload, said in found.items():
        told = f"liveness_follows_from_text,night/{workload}/jit_mixed,{said}"
        assert told in done.stdout.replace('"', "")


def test_what_is_worked_out_of_an_assignment(tmp_path, db, filled):
    """Whole without live ranges; cut; with a value that the text lacks."""
    folders = {
        name: copy_dump(MIXED, tmp_path / "night" / name) for name in ("whole", "cut", "ghost")
    }
    for folder in folders.values():
        for ending in ("live-range", "buffer-assignment-values"):
            next(folder.glob(f"*-{ending}.txt")).unlink()
    (cut,), (ghost,) = (folders[name].glob("*-buffer-assignment.txt") for name in ("cut", "ghost"))
    lines = cut.read_text().splitlines(keepends=True)
    cut.write_text("".join(lines[: len(lines) // 2]))
    temp = "preallocated-temp:\n"
    value = " value: <999 ghost @0> (size=8,offset=0): f32[2]{0}\n"
    ghost.write_text(ghost.read_text().replace(temp, temp + value, 1))
    (summary,) = fill(db, tmp_path / "night")
    assert not [problem for problem in summary.problems if str(folders["whole"]) in problem]
    assert len([problem for problem in summary.problems if str(folders["cut"]) in problem]) == 2
    (told,) = [problem for problem in summary.problems if problem.startswith(f"{ghost}: ")]
    assert "ghost{}" in told
    figures = "origin, peak_bytes, peak_time, fragmentation_bytes"
    query = "SELECT workload, status, {} FROM peaks WHERE module_name = 'jit_mixed' AND {}"
    found = {row[0]: row[1:] for row in rows(db, query.format(figures, "TRUE"))}
    ((*_, origin, peak, at, packing),) = rows(
        filled, query.format(figures, "workload = 'jax-0.10.2'")
    )
    assert origin == "dumped"
    assert found["whole"] == ("ok", "derived", peak, at, packing)
    assert found["cut"][0] == found["ghost"][0] == "partial"
    assert found["ghost"][2] is None


def test_an_estimate_says_so_everywhere(tmp_path, db):
    (tmp_path / "step.txt").write_bytes(content("tpu/llama-v5e/*optimizations.txt.gz"))
    fill(db, tmp_path / "step.txt")
    for command in (["peaks"], ["owners", "step"], ["buffers", "step"], ["timeline", "step"],
                    ["trends"], ["modules"]):  # fmt: skip
        done = run_memhouse(*command, "--db", db, "-f", "json")
        assert "estimated" in done.stdout, command
        done = run_memhouse(*command, "--db", db)
        assert "≈" in done.stdout, command
        assert "≈" in done.stderr, command
    assert run_memhouse("verify", "--db", db).returncode == 0
    assert rows(db, "SELECT peak_bytes FROM peaks_by_space AS peaks WHERE memory_space = 0") == [
        (321896448,)
    ]


def test_an_estimate_is_compared_with_estimates_only(tmp_path, db):
    """Nights: dumped, text alone, dumped, text alone; nothing has changed."""
    for day in range(1, 5):
        folder = copy_dump("tpu/llama-v5e/module*", tmp_path / f"2026-11-0{day}")
        if day % 2 == 0:
            for path in folder.glob("*-*.txt"):
                path.unlink()
        fill(db, folder)
    found = rows(
        db,
        """SELECT run_id[-2:], previous_run_id[-2:], origin FROM trends_by_space AS trends
        WHERE memory_space = 0 AND metric = 'peak_bytes' ORDER BY run_at""",
    )
    assert found == [
        ("01", None, "dumped"),
        ("02", None, "estimated"),
        ("03", "01", "dumped"),
        ("04", "02", "estimated"),
    ]
    done = run_memhouse("check", "--db", db, "--baseline", "2026-11-03")
    # Nothing was held against anything.
    assert done.returncode == 3


def test_text_in_memory_has_figures():
    module = memhouse.read(content("tpu/llama-v5e/*optimizations.txt.gz").decode())
    assert (module.name, module.origin) == ("jit_train_step", "estimated")
    peaks = module.peaks().arrow().to_pylist()
    assert {row["memory_space"]: row["peak_bytes"] for row in peaks}[0] == 321896448
    counted = module.buffers().arrow()["counted_bytes"].to_pylist()
    assert sum(counted) == 321896448
    assert max(module.timeline().arrow()["occupied_bytes"].to_pylist()) == 321896448
    assert "≈306.98 MiB" in module._repr_html_()


def test_what_has_no_figures_is_told_in_a_line():
    head = "HloModule m, is_scheduled=true\n\nENTRY e {\n"
    for text, said in (
        ("Segmentation fault", "not HLO text"),
        (f"{head}  ROOT a = f32[?] parameter(0)\n}}\n", "unbounded"),
    ):
        with pytest.raises(memhouse.UsageError, match=said) as error:
            memhouse.read(text)
        assert "\n" not in str(error.value)


def test_text_in_memory_says_what_is_not_read_of_it():
    text = content(f"{MIXED}after_optimizations.txt").decode()
    broken = re.sub(r"( add\()%[\w.]+", r"\1%lost", text, count=1)
    assert broken != text
    with pytest.raises(UsageError, match="operand that is not defined before"):
        memhouse.read(broken)
