"""What a source lacks is worked out from its HLO text: exactly, or as an estimate."""

from contextlib import ExitStack

import pytest

import memhouse
from memhouse.ingest.model.agreement import difference
from memhouse.ingest.model.join import join_parts
from memhouse.ingest.model.parts import Parts
from memhouse.ingest.model.worked_out import work_out
from memhouse.ingest.sources.dump_folder import find_dumps, is_wanted
from memhouse.ingest.sources.files import open_source

from ...support.command import run_memhouse
from ...support.dumps import DUMPS, content, copy_dump
from ...support.warehouse import fill, rows

EXACT = ("live_ranges", "positions", "uses", "occupancy", "module_memory", "allocations")
# Not told by the text: XLA's order of positions and uses, and our numbers of instructions.
UNTOLD = {"position_index", "use_index", "instruction_id", "peak_instruction_id"}


def scheduled():
    """The samples with all parts whose text is scheduled, with what their names tell."""
    files = open_source(DUMPS, is_wanted, ExitStack(), pytest.fail)
    for program in find_dumps(files, lambda file, why: pytest.fail(str(why))):
        parts = program.read(program.fingerprint())
        whole = None not in (parts.hlo, parts.buffer_assignment, parts.live_range)
        if whole and parts.hlo.header["is_scheduled"]:
            changelist = int(program.key.compiler) if program.key.compiler else None
            yield program.key, parts, {"platform": program.key.platform, "changelist": changelist}


def as_set(table):
    columns = sorted(set(table.column_names) - UNTOLD)
    return sorted(map(repr, table.select(columns).to_pylist()))


def test_without_live_ranges_all_figures_are_the_same():
    compared = 0
    for key, parts, names in scheduled():
        expected = join_parts(parts).tables
        bare = Parts(buffer_assignment=parts.buffer_assignment, hlo=parts.hlo)
        found = work_out(bare, completes=True, **names)
        assert found.why_not is None
        module = join_parts(found.parts, found.attribution)
        assert module.header["origin"] == "derived"
        for name in EXACT:
            assert as_set(module.tables[name]) == as_set(expected[name]), (key, name)
            compared += len(expected[name])
    assert compared > 20_000


def test_from_text_alone_the_peaks_are_those_of_the_dump():
    compared = 0
    for key, parts, names in scheduled():
        expected = join_parts(parts).tables["module_memory"].to_pylist()
        module = join_parts(work_out(Parts(hlo=parts.hlo), completes=True, **names).parts)
        assert module.header["origin"] == "estimated"
        found = {row["memory_space"]: row for row in module.tables["module_memory"].to_pylist()}
        for row in expected:
            estimate = found[row["memory_space"]]
            for figure in ("peak_bytes", "argument_bytes", "output_bytes", "alias_bytes"):
                assert estimate[figure] == row[figure], (key, row["memory_space"], figure)
            # Packing decides these.
            assert estimate["total_bytes"] is estimate["temp_bytes"] is None
            compared += 1
    assert compared > 25


def test_the_samples_agree_with_their_text():
    for key, parts, names in scheduled():
        found = work_out(parts, completes=True, **names)
        module = join_parts(found.parts, found.attribution)
        assert module.header["liveness_difference"] is None, key
        # Both ways to compare say so: by numbers, and by names where numbers differ.
        assert difference(parts, found.attribution.derived) is None, key


@pytest.mark.parametrize(
    ("part", "old", "new", "said"),
    [
        ("live-range", ":0-", ":1-", "lives from 1 to"),
        ("buffer-assignment-values", ", operand 0", ", operand 1", ": use "),
    ],
)
def test_a_difference_names_the_value(tmp_path, db, part, old, new, said):
    folder = copy_dump("cpu/jax-0.10.2/module_0018*", tmp_path / "night")
    (path,) = folder.glob(f"*-{part}.txt")
    path.write_text(path.read_text().replace(old, new, 1))
    fill(db, folder)
    ((breach,),) = rows(db, "SELECT liveness_difference FROM modules")
    assert said in breach
    done = run_memhouse("verify", "--db", db, "-f", "csv")
    assert f"liveness_follows_from_text,night/./jit_mixed,{breach}" in done.stdout.replace('"', "")


def test_a_dump_without_live_ranges_is_whole(tmp_path, db, filled):
    folder = copy_dump("cpu/jax-0.10.2/module_0018*", tmp_path / "night")
    for ending in ("live-range", "buffer-assignment-values"):
        next(folder.glob(f"*-{ending}.txt")).unlink()
    (summary,) = fill(db, folder)
    assert (summary.problems, summary.partial) == ([], 0)
    query = """SELECT origin, peak_bytes, peak_time, packing_bytes FROM peaks
        WHERE module_name = 'jit_mixed' AND {}"""
    ((origin, *figures),) = rows(db, query.format("TRUE"))
    ((_, *expected),) = rows(filled, query.format("workload = 'jax-0.10.2'"))
    assert (origin, figures) == ("derived", expected)


def test_a_cut_assignment_is_not_completed(tmp_path, db):
    folder = copy_dump("cpu/jax-0.10.2/module_0018*", tmp_path / "night")
    for ending in ("live-range", "buffer-assignment-values"):
        next(folder.glob(f"*-{ending}.txt")).unlink()
    (path,) = folder.glob("*-buffer-assignment.txt")
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[: len(lines) // 2]))
    (summary,) = fill(db, folder)
    assert ["is missing" in problem for problem in summary.problems] == [True, True]


def test_a_value_that_the_text_lacks_is_told_at_the_assignment(tmp_path, db):
    folder = copy_dump("cpu/jax-0.10.2/module_0018*", tmp_path / "night")
    for ending in ("live-range", "buffer-assignment-values"):
        next(folder.glob(f"*-{ending}.txt")).unlink()
    (path,) = folder.glob("*-buffer-assignment.txt")
    temp = "preallocated-temp:\n"
    ghost = " value: <999 ghost @0> (size=8,offset=0): f32[2]{0}\n"
    path.write_text(path.read_text().replace(temp, temp + ghost, 1))
    (summary,) = fill(db, folder)
    (problem,) = summary.problems
    assert problem.startswith(f"{path}: ")
    assert "1 values have no live range, the first is ghost{}" in problem
    assert rows(db, "SELECT status, peak_bytes FROM peaks") == [("partial", None)]


def test_an_estimate_says_so_everywhere(tmp_path, db):
    (tmp_path / "step.txt").write_bytes(content("tpu/llama-v5e/*optimizations.txt.gz"))
    fill(db, tmp_path / "step.txt")
    for command in (["peaks"], ["owners", "step"], ["buffers", "step"], ["timeline", "step"],
                    ["trends"], ["modules"]):  # fmt: skip
        for output in ("csv", "json"):
            done = run_memhouse(*command, "--db", db, "-f", output)
            assert "estimated" in done.stdout, (command, output)
        done = run_memhouse(*command, "--db", db)
        assert "≈" in done.stdout, command
        assert "≈ is estimated from HLO text alone" in done.stderr
    assert run_memhouse("verify", "--db", db).returncode == 0
    assert rows(db, "SELECT peak_bytes FROM peaks WHERE memory_space = 0") == [(321896448,)]


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
        """SELECT run_id[-2:], previous_run_id[-2:], origin FROM trends
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
    assert "no figures before" in done.stdout


def test_text_in_memory_has_figures():
    module = memhouse.read(content("tpu/llama-v5e/*optimizations.txt.gz").decode())
    assert (module.name, module.origin) == ("jit_train_step", "estimated")
    peaks = module.peaks().arrow().to_pylist()
    assert {row["memory_space"]: row["peak_bytes"] for row in peaks}[0] == 321896448
    counted = module.buffers().arrow()["counted_bytes"].to_pylist()
    assert sum(counted) == 321896448
    assert max(module.timeline().arrow()["occupied_bytes"].to_pylist()) == 321896448
    assert "≈306.98 MiB" in module._repr_html_()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Segmentation fault", "not HLO text"),
        ("HloModule m\n\nENTRY e {\n  ROOT a = f32[] parameter(0)\n}\n", "is not scheduled"),
        (
            "HloModule m, is_scheduled=true\n\nENTRY e {\n  a = f32[] parameter(0)\n"
            "  ROOT b = f32[] conjure(a)\n}\n",
            "conjure",
        ),
        (
            "HloModule m, is_scheduled=true\n\nENTRY e {\n  ROOT a = f32[?] parameter(0)\n}\n",
            "unbounded",
        ),
    ],
)
def test_what_has_no_figures_is_told_in_a_line(text, said):
    with pytest.raises(memhouse.UsageError, match=said) as error:
        memhouse.read(text)
    assert "\n" not in str(error.value)
