"""Which module a name means: today's, on the default branch, whatever host compiled it."""

import pytest

import memhouse
from memhouse.queries.modules import find_module
from memhouse.queries.runs import default_branch
from memhouse.schema.errors import UsageError

from ..support.history import copy_night
from ..support.warehouse import fill, reading, rows


def meant(db, module, run=None):
    with reading(db) as store:
        found = find_module(store, module, run)
    return found.run_id, found.workload


def refused(db, module, run=None):
    """What is said, and of which argument."""
    with reading(db) as store, pytest.raises(UsageError) as error:
        find_module(store, module, run)
    return str(error.value), error.value.argument


def test_a_name_means_the_newest_of_the_default_branch(hosts):
    assert meant(hosts, "llama-v5e") == ("main-3", "llama-v5e")
    assert meant(hosts, "llama-v5e", "pr-7") == ("pr-7", "llama-v5e")
    assert meant(hosts, "pr-7/llama-v5e") == ("pr-7", "llama-v5e")


def test_sql_and_python_rank_main_master_no_branch_and_others_alike(own):
    with memhouse.open(own) as warehouse:
        for day, branch in ((8, "main"), (9, "master"), (10, "a")):
            warehouse.label(f"2026-10-{day:02}", labels={"branch": branch})
    query = "SELECT DISTINCT ON (branch_rank) branch FROM internal.lineages ORDER BY branch_rank"
    ranked = [branch for (branch,) in rows(own, query)]
    assert ranked == ["main", "master", "", "a"]
    for place, branch in enumerate(ranked):
        assert default_branch(ranked[place:], "a") == branch


def test_one_program_on_several_hosts_is_no_doubt(hosts):
    assert meant(hosts, "jit_generate", "main-1") == ("main-1", "host0")
    # Since then host3 has another one.
    told, argument = refused(hosts, "jit_generate")
    assert argument == "module"
    assert [name for name in ("host0", "host3") if f"{name}/jit_generate" not in told] == []
    assert meant(hosts, "host3") == ("main-3", "host3")


def test_what_is_not_there_is_told_with_the_name_it_is_like(history):
    for module, run, argument, fact in (
        ("llama-v5e", "nope", "run", "'nope'"),
        ("nope", "2026-10-01", "module", "'nope'"),
        ("2026-10-03/nothing", None, "module", "nothing"),
        ("lamma-v5e", None, "module", "'llama-v5e'"),
        ("trainstep", None, "module", "'jit_train_step'"),
        ("llama-v5e", "2026-1O-10", "run", "'2026-10-10'"),
    ):
        told, of = refused(history, module, run)
        assert (of, fact in told) == (argument, True)
    assert meant(history, "2026-10-03/v5e/jit_train") == ("2026-10-03", "llama-v5e")


def test_of_several_that_fit_the_largest_is_first_and_estimates_are_marked(history, filled):
    told, _ = refused(history, "jit_train_step")
    assert told.splitlines()[1].split()[0] == "llama-v5e/jit_train_step"
    assert "2.44 GiB" in told.splitlines()[1]
    told, _ = refused(filled, "jit")
    assert any("≈" in line for line in told.splitlines())
    assert " 0 B" not in told


def test_run_and_workload_are_a_whole_name(tmp_path, db, nights):
    """`tpu/llama` fits `tpu/llama-wide` too, but only as a part."""
    copy_night(nights / "2026-10-01" / "llama-cpu", tmp_path / "tpu" / "llama")
    copy_night(nights / "2026-10-05" / "llama-cpu", tmp_path / "tpu" / "llama-wide")
    fill(db, tmp_path / "tpu")
    assert meant(db, "tpu/llama") == ("tpu", "llama")
    assert meant(db, "tpu/llama-w") == ("tpu", "llama-wide")
    assert refused(db, "tpu/llam")[1] == "module"


def test_runs_of_one_date_follow_each_other_and_one_that_failed_is_not_meant(tmp_path, db, nights):
    names = ["2026-11-03-c", "2026-11-03-b", "2026-11-03-a"]
    for name, night in zip(names, ("2026-10-03", "2026-10-04", "2026-10-04"), strict=True):
        for workload in ("decode-v5e", "llama-cpu"):
            copy_night(nights / night / workload, tmp_path / name / workload)
    for file in (tmp_path / names[2] / "decode-v5e").glob("*after_optimizations*"):
        file.write_text("Segmentation fault\n")
    fill(db, *(tmp_path / name for name in names))
    assert meant(db, "llama-cpu") == (names[2], "llama-cpu")
    assert meant(db, "decode-v5e") == (names[1], "decode-v5e")
    with memhouse.open(db, read_only=True) as warehouse:
        peaks = warehouse.peaks().table
    assert names[0] not in peaks["run"].to_pylist()
