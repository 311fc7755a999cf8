"""Which module a name means: today's, on the default branch, whatever host compiled it."""

import pytest

from memhouse.queries.branches import default_branch
from memhouse.queries.find_module import find_module
from memhouse.schema.errors import UsageError

from ..support.command import run_memhouse
from ..support.history import copy_night, ingest_nights
from ..support.warehouse import reading, rows


def meant(db, module, run=None):
    with reading(db) as store:
        found = find_module(store, module, run)
    return found.run_id, found.workload


def refused(db, module, run=None):
    with reading(db) as store, pytest.raises(UsageError) as error:
        find_module(store, module, run)
    return str(error.value), error.value.argument


def test_a_name_means_the_newest_of_the_default_branch(hosts):
    assert meant(hosts, "llama-v5e") == ("main-3", "llama-v5e")
    assert meant(hosts, "llama-v5e", "pr-7") == ("pr-7", "llama-v5e")
    assert meant(hosts, "pr-7/llama-v5e") == ("pr-7", "llama-v5e")


def test_the_ranks_of_branches_are_those_of_the_default_branch(own):
    """SQL and Python rank main, master, no branch and others alike."""
    for run, branch in (("2026-10-08", "main"), ("2026-10-09", "master"), ("2026-10-10", "a")):
        assert run_memhouse("label", run, f"branch={branch}", "--db", own).returncode == 0
    ranked = [
        branch
        for (branch,) in rows(
            own, "SELECT DISTINCT ON (branch_rank) branch FROM _branch_ranks ORDER BY branch_rank"
        )
    ]
    assert ranked == ["main", "master", "", "a"]
    for place, branch in enumerate(ranked):
        assert default_branch(ranked[place:], "a") == branch


def test_one_program_on_several_hosts_is_no_doubt(hosts):
    assert meant(hosts, "jit_generate", "main-1") == ("main-1", "host0")
    # Since then host3 has another one.
    told, _ = refused(hosts, "jit_generate")
    assert told.startswith("several modules fit 'jit_generate', name one or its id:")
    assert meant(hosts, "host3") == ("main-3", "host3")


def test_an_unknown_run_is_told_as_such(history):
    assert refused(history, "llama-v5e", "nope") == (
        "there is no run 'nope': see `memhouse runs`",
        "run",
    )
    done = run_memhouse("owners", "llama-v5e", "--run", "nope", "--db", history)
    assert done.returncode == 2
    assert "Invalid value for --run: there is no run 'nope'" in " ".join(done.stderr.split())
    # An unknown module of a known run is still an unknown module.
    told, argument = refused(history, "nope", "2026-10-01")
    assert (told, argument) == ("no module fits 'nope': see `memhouse modules`", "module")


def test_a_misspelt_module_is_told_with_the_name_it_is_like(history):
    told = "no module fits 'lamma-v5e': did you mean 'llama-v5e'?"
    assert refused(history, "lamma-v5e") == (told, "module")
    assert refused(history, "trainstep")[0].endswith("did you mean 'jit_train_step'?")
    assert refused(history, "llama-v5e", "2026-1O-10")[0].endswith("did you mean '2026-10-10'?")


def test_a_run_and_a_part_of_a_name(history):
    assert meant(history, "2026-10-03/v5e/jit_train") == ("2026-10-03", "llama-v5e")
    assert refused(history, "2026-10-03/nothing")[1] == "module"


def test_of_several_that_fit_the_largest_is_first(history):
    told, _ = refused(history, "jit_train_step")
    _, first, *_ = told.splitlines()
    assert first.startswith("  llama-v5e/jit_train_step (number 1, peak 2.44 GiB, id ")


def test_an_estimate_is_marked_among_those_that_fit(filled):
    told, _ = refused(filled, "jit")
    assert any(", peak ≈" in line for line in told.splitlines())
    assert "peak 0 B" not in told


def test_run_and_workload_are_a_whole_name(tmp_path, nights):
    """`tpu/llama-v5e` fits `tpu/llama-v5e-wide` too, but only as a part."""
    copy_night(nights / "2026-10-01" / "llama-v5e", tmp_path / "tpu" / "llama-v5e")
    copy_night(nights / "2026-10-03" / "llama-v5e", tmp_path / "tpu" / "llama-v5e-wide")
    db = ingest_nights(tmp_path / "tpu.duckdb", tmp_path, ["tpu"])
    assert meant(db, "tpu/llama-v5e") == ("tpu", "llama-v5e")
    assert meant(db, "tpu/llama-v5e-w") == ("tpu", "llama-v5e-wide")
    assert refused(db, "tpu/llama")[1] == "module"


def test_runs_of_one_date_follow_each_other_as_ingested(tmp_path, nights):
    for name, night in (("rerun", "2026-10-03"), ("a", "2026-10-04")):
        copy_night(nights / night, tmp_path / f"2026-11-03-{name}")
    names = ["2026-11-03-rerun", "2026-11-03-a"]
    db = ingest_nights(tmp_path / "day.duckdb", tmp_path, names)
    assert meant(db, "decode-v5e") == ("2026-11-03-a", "decode-v5e")
    peaks = run_memhouse("peaks", "--db", db, "--format", "csv").stdout
    assert "2026-11-03-a" in peaks
    assert "2026-11-03-rerun" not in peaks


def test_a_night_that_failed_is_not_what_a_name_means(tmp_path, nights):
    broken = copy_night(nights / "2026-10-04", tmp_path / "2026-10-04")
    for file in (broken / "decode-v5e").glob("*after_optimizations*"):
        file.write_text("Segmentation fault\n")
    db = ingest_nights(tmp_path / "failed.duckdb", nights, ["2026-10-03"])
    assert run_memhouse("ingest", broken, "--db", db).returncode == 1
    assert meant(db, "decode-v5e") == ("2026-10-03", "decode-v5e")
    assert meant(db, "llama-v5e") == ("2026-10-04", "llama-v5e")
