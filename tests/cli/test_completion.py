"""What a shell is answered that completes a command line: Typer's own, with names of ours."""

import pytest

from ..promises.test_busy import held
from ..support.command import run_memhouse
from ..support.made_runs import make_run

HOSTILE = ["$(touch pwned)", "`touch pwned`", "a; touch pwned", "it's", "-rf", "a\nb", "*", "a|b"]


def completed(*words, shell="bash", cwd=None, **environment):
    """What a shell is answered for these words, the last of which is not finished."""
    asked = {
        "_MEMHOUSE_COMPLETE": f"complete_{shell}",
        "COMP_WORDS": "\n".join(["memhouse", *words]),
        "COMP_CWORD": str(len(words)),
        "_TYPER_COMPLETE_ARGS": " ".join(["memhouse", *words]),
        "_TYPER_COMPLETE_FISH_ACTION": "get-args",
    }
    done = run_memhouse(cwd=cwd, env=asked | environment)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


FITS = {
    ("owners", "de"): ["decode-v5e/jit_generate"],
    ("peaks", "--run", "2026-10-1"): ["2026-10-10"],
    ("peaks", "--workload", "llama-c"): ["llama-cpu"],
    ("prune", "2026-10-01", "2026-10-02", "2026-10-1"): ["2026-10-10"],
    ("views", "saved"): ["saved_for_backward"],
    ("tables", "run_l"): ["run_labels"],
    ("export", "metr"): ["metrics"],
    ("owners", "--by", "s"): ["source", "scope"],
    ("owners", "--wi"): ["--wide"],
    ("ow",): ["owners"],
    ("owners", "nothing"): [""],
}


def test_what_fits(own, tmp_path):
    """The warehouse is the variable's, or the one that the line names."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    found = {words: completed(*words, cwd=elsewhere, MEMHOUSE_DB=str(own)) for words in FITS}
    assert found == FITS
    line = ["--db", str(own), "--callers", "1", "res"]
    (name,) = completed("owners", *line, cwd=elsewhere)
    assert name.startswith("resnet-h100/")


def test_names_that_a_shell_could_run_are_left_out(tmp_path):
    db = tmp_path / "named.duckdb"
    for day, name in enumerate(["host:1", "tonight@2026-10-08", *HOSTILE]):
        make_run(db, name, {"a/jit_f": 1}, day=day, branch="topic/one")
    found = completed("peaks", "--run", "", MEMHOUSE_DB=str(db))
    assert found == ["tonight@2026-10-08", "host:1"]
    assert completed("trends", "--branch", "", MEMHOUSE_DB=str(db)) == ["topic/one"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_without_a_warehouse_nothing_fits_and_nothing_is_made(tmp_path, shell):
    (tmp_path / "damaged.duckdb").write_bytes(b"\0" * 50_000)
    (tmp_path / "text.duckdb").write_text("not a database")
    before = {file: file.read_bytes() for file in tmp_path.iterdir()}
    for db in (*before, tmp_path / "none.duckdb", tmp_path):
        found = completed("owners", "", shell=shell, cwd=tmp_path, MEMHOUSE_DB=str(db))
        assert found in ([], [""], ["_files"]), db
    assert {file: file.read_bytes() for file in tmp_path.iterdir()} == before


def test_what_is_read_stays_as_it_is_and_is_not_waited_for(own, tmp_path):
    before = own.read_bytes()
    assert completed("owners", "", MEMHOUSE_DB=str(own))
    assert own.read_bytes() == before
    with held(own):
        assert completed("owners", "", MEMHOUSE_DB=str(own)) == [""]
