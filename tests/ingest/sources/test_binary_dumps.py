"""A dump folder may hold binaries (`.hlo.pb`) with or without the texts."""

import shutil

import pytest

from memhouse.schema.errors import UsageError

from ...support.binaries import BINARIES, MIXED, binary, with_reversed_schedule, without_assignment
from ...support.dumps import copy_dump
from ...support.protos import changed
from ...support.warehouse import everything, fill, rows

MIXED_TEXTS = "cpu/jax-0.10.2/module_0018.*"
FIGURES = """SELECT memory_space, peak_bytes, total_bytes, temp_bytes
    FROM peaks_by_space ORDER BY ALL"""
KINDS = "SELECT kind, status FROM dump_files ORDER BY kind"


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    """A warehouse of the same program's texts."""
    folder = tmp_path_factory.mktemp("texts")
    fill(folder / "text.duckdb", copy_dump(MIXED_TEXTS, folder / "text"))
    return folder / "text.duckdb"


@pytest.fixture
def folder(tmp_path):
    """A folder with one binary."""
    night = tmp_path / "night"
    night.mkdir()
    shutil.copy(MIXED, night)
    return night


def test_a_binary_alone_is_a_whole_dump(folder, db, texts):
    (summary,) = fill(db, folder)
    assert (summary.problems, summary.notes) == ([], [])
    assert rows(db, "SELECT module_name, platform, status, oom FROM dumps") == [
        ("jit_mixed", "cpu", "ok", False)
    ]
    assert rows(db, "SELECT origin FROM modules") == [("derived",)]
    assert rows(db, KINDS) == [("hlo-proto", "ok")]
    for query in (FIGURES, "SELECT program_id, skeleton_id FROM modules"):
        assert rows(db, query) == rows(texts, query)
    # Again, in another order of its schedule, and once its texts have come: the same night.
    before = everything(db)
    (summary,) = fill(db, folder)
    assert (summary.unchanged, summary.new_modules) == (1, 0)
    assert everything(db) == before
    (folder / MIXED.name).write_bytes(with_reversed_schedule(MIXED.read_bytes()))
    (summary,) = fill(db, folder)
    assert (summary.run_id, summary.unchanged, summary.notes) == ("night", 1, [])
    copy_dump(MIXED_TEXTS, folder)
    (summary,) = fill(db, folder)
    assert (summary.run_id, summary.notes) == ("night", [])
    told = "SELECT module_id, origin FROM modules INNER JOIN dumps USING (module_id)"
    assert rows(db, told) == rows(texts, told)
    assert rows(db, KINDS) == rows(texts, KINDS)


def test_a_binary_says_what_missing_and_damaged_texts_do_not(tmp_path, db, texts):
    (found,) = rows(texts, FIGURES)
    for lacks in ("-buffer-assignment.txt", "after_optimizations.txt", "-live-range.txt"):
        folder = copy_dump(MIXED_TEXTS, tmp_path / "night" / f"lacks{lacks}")
        shutil.copy(MIXED, folder)
        next(folder.glob(f"*{lacks}")).unlink()
    damaged = []
    for kind in ("-buffer-assignment.txt", "after_optimizations.txt"):
        folder = copy_dump(MIXED_TEXTS, tmp_path / "night" / f"damaged{kind}")
        shutil.copy(MIXED, folder)
        (text,) = folder.glob(f"*{kind}")
        text.write_bytes(text.read_bytes()[:-300])
        damaged.append(text)
    (summary,) = fill(db, tmp_path / "night")
    assert len(summary.problems) == len(damaged)
    for text, problem in zip(damaged, sorted(summary.problems), strict=True):
        assert str(text) in problem
    assert rows(db, FIGURES) == [found] * 5
    assert rows(db, "SELECT workload[:7], status FROM dumps ORDER BY 1") == [
        *[("damaged", "partial")] * 2,
        *[("lacks-b", "ok"), ("lacks-l", "ok"), ("lacksaf", "ok")],
    ]


def test_stack_frames_come_from_the_binary_where_the_text_has_none(tmp_path, db):
    """As up to JAX 0.7, which prints only the innermost line."""
    night = tmp_path / "night"
    night.mkdir()
    for path in (BINARIES / "oom-vmemgrid").iterdir():
        shutil.copy(path, night)
    (summary,) = fill(db, night)
    assert summary.problems == []
    assert rows(db, "SELECT origin FROM modules") == [("dumped",)]
    assert ("hlo-proto", "ok") in rows(db, KINDS)
    assert rows(
        db,
        """SELECT DISTINCT stack_frames.file, stack_frames.line FROM instructions
        INNER JOIN stack_frames USING (module_id, stack_frame_id) ORDER BY ALL""",
    ) == [("/train/a4/oom_variants.py", 44)]


def test_programs_of_the_compilation_cache_are_named_and_left_out(folder, db):
    cached = without_assignment(MIXED.read_bytes())
    for number in range(5):
        name = f"module_000{number}.jit_f{number}.after_optimizations.hlo.pb"
        (folder / name).write_bytes(cached)
    (summary,) = fill(db, folder)
    assert (summary.problems, summary.dumps) == ([], 1)
    (note,) = summary.notes
    assert note.startswith("jit_f0, jit_f1, jit_f2 and 2 more: ")
    assert "JAX_ENABLE_COMPILATION_CACHE=false" in note
    assert rows(db, "SELECT module_name FROM dumps") == [("jit_mixed",)]
    # Alone they are no run, and replace none.
    for path in folder.iterdir():
        path.write_bytes(cached)
    before = everything(db)
    (summary,) = fill(db, folder, run_id="cached")
    (problem,) = summary.problems
    assert problem.startswith("jit_f0, ")
    with pytest.raises(UsageError, match=r"'night'.*JAX_ENABLE_COMPILATION_CACHE=false"):
        fill(db, folder, run_id="night", replaces=True)
    assert everything(db) == before


def test_a_damaged_binary_is_one_line(folder, db):
    path = folder / MIXED.name
    path.write_bytes(path.read_bytes()[:-1000])
    (summary,) = fill(db, folder)
    (problem,) = summary.problems
    assert problem.startswith(str(path))
    assert "damaged" in problem
    assert rows(db, "SELECT status, module_id FROM dumps") == [("failed", None)]


def test_a_binary_of_a_program_that_ran_out_of_memory(tmp_path, db):
    whole = binary("tpu-flash/*.hlo.pb")
    shutil.copy(whole, tmp_path)
    oom = whole.name.replace("after_optimizations", "oom_intermediate_module")
    (tmp_path / oom).write_bytes(without_assignment(whole.read_bytes()))
    fill(db, tmp_path)
    assert rows(db, "SELECT oom FROM dumps") == [(True,)]
    assert rows(db, KINDS) == [("hlo-proto", "ok"), ("oom-hlo-proto", "ok")]


def test_a_renamed_binary_is_read_if_the_user_names_it(folder, db):
    (folder / MIXED.name).rename(folder / "step.pb")
    (summary,) = fill(db, folder / "step.pb")
    assert (summary.problems, summary.dumps) == ([], 1)
    assert rows(db, "SELECT module_name FROM dumps") == [("jit_mixed",)]


def test_a_cached_program_beside_files_that_vanish_makes_no_other_night(folder, db):
    copy_dump("cpu/jax-0.10.2/module_0002*", folder)
    cached = without_assignment(MIXED.read_bytes())
    (folder / "module_0007.jit_f.after_optimizations.hlo.pb").write_bytes(cached)
    fill(db, folder)
    for path in folder.glob("module_0002*"):
        path.unlink()
    (summary,) = fill(db, folder)
    assert summary.run_id == "night"
    assert len(rows(db, "SELECT run_id FROM runs")) == 1


def test_times_in_the_names_of_files_are_passed_over(tmp_path, db):
    """As `--xla_dump_include_timestamp` writes them."""
    for path in copy_dump(MIXED_TEXTS, tmp_path / "plain").iterdir():
        shutil.copy(path, tmp_path / f"1795264618145543.{path.name}")
    (tmp_path / "1795264618145543.module_0018.jit_mixed.before_optimizations.txt").write_text(
        "HloModule jit_mixed\n"
    )
    shutil.rmtree(tmp_path / "plain")
    fill(db, tmp_path)
    assert rows(db, "SELECT module_name, module_number, platform, status FROM dumps") == [
        ("jit_mixed", 18, "cpu", "ok")
    ]


def test_numbers_of_a_binary_beside_texts_are_not_the_modules(tmp_path, db):
    """They change with what the process compiled before; of old JAX the frames are the binary's."""
    nights = []
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        for path in (BINARIES / "oom-vmemgrid").iterdir():
            shutil.copy(path, tmp_path / name)
        nights.append(tmp_path / name)
    (path,) = nights[1].glob("*after_optimizations.hlo.pb")
    data = changed(path.read_bytes(), [(1, 0), (3, 0), (1, 0)], lambda name: name + b".other")
    path.write_bytes(data)
    fill(db, *nights)
    assert len(rows(db, "SELECT module_id FROM modules")) == 1
