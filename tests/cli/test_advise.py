"""`memhouse advise`: what to change first, for a person and for a program."""

import gzip
import json

import pytest

import memhouse
from memhouse.advice.finding import Finding, Grade, Options
from memhouse.cli import proving
from memhouse.compile.prove import Memory

from ..support.command import run_memhouse
from ..support.dumps import copy_dump
from ..support.warehouse import rows

LLAMA = "llama-v5e"
FORGOTTEN, REMEMBERED = "2026-10-08", "2026-10-07"
UNCHECKPOINTED, CHECKPOINTED = "2026-10-10", "2026-10-09"
MIB = 1 << 20
VMEM = 128 * MIB


def advise(db, *arguments):
    return run_memhouse("advise", LLAMA, "--db", db, *arguments)


def peak(db, run, figure="peak_bytes"):
    ((found,),) = rows(
        db,
        f"SELECT {figure} FROM peaks_by_space WHERE workload = '{LLAMA}' AND run_id = '{run}' "
        "AND memory_space = 0",
    )
    return found


def test_the_first_line_is_what_was_forgotten(history):
    """The night before donated p, m and v, and its peak was 569.65 MiB."""
    done = advise(history, "--run", FORGOTTEN)
    assert (done.returncode, done.stderr) == (
        0,
        "llama-v5e/jit_train_step of run 2026-10-08\n",
    )
    assert done.stdout == (
        "The peak is 674.96 MiB at time 402: 411.00 MiB of temps, 132.03 MiB of\n"
        "  arguments, 131.92 MiB of outputs, 14.00 KiB of constants. XLA reserves\n"
        "  678.96 MiB. Most of it: outputs: 131.92 MiB, 20% of the peak. It is a needle\n"
        "  of 86 of 862 steps, 123.00 MiB above what the others need.\n"
        "\n"
        " 1. -105.31 MiB (expected, ± 1% of the new peak): donate p, m and v: outputs\n"
        "    could take their 131.90 MiB\n"
        "    reserved: -46.08 MiB to -115.00 MiB\n"
        "    /train/zoo/zoo.py:52\n"
        "    write: donate_argnames=('p', 'm', 'v') in jax.jit, or their places in\n"
        "           donate_argnums\n"
        "    why: 27 outputs of the same type and dimensions and 5 outputs of the same\n"
        "           bytes could lie in the memory of arrays of p, m and v; alone: p\n"
        "           11.67 MiB, m 49.10 MiB, v 44.54 MiB\n"
        "\n"
        "After the first the peak is 569.65 MiB, most of it optimizer state: 105.57 MiB.\n"
    )


def test_what_is_told_became_true(history):
    """The night before donated, and the night before checkpointed: to the same other program."""
    (donated,) = json.loads(advise(history, "--run", FORGOTTEN, "-f", "json").stdout)
    told = peak(history, FORGOTTEN) - donated["saving_bytes"]
    assert told == pytest.approx(peak(history, REMEMBERED), rel=donated["tolerance"])
    reserved = [peak(history, run, "reserved_bytes") for run in (FORGOTTEN, REMEMBERED)]
    saved = reserved[0] - reserved[1]
    assert donated["reserved_low_bytes"] <= saved <= donated["reserved_high_bytes"]
    assert donated["ranked_by"] == "reserved_bytes"
    first, *_ = json.loads(advise(history, "--run", UNCHECKPOINTED, "-f", "json").stdout)
    assert first["write"].startswith("jax.lax.scan(jax.checkpoint(body), ...)")
    saved = peak(history, UNCHECKPOINTED) - peak(history, CHECKPOINTED)
    assert first["grade"] == "between"
    assert first["low_bytes"] <= saved <= first["high_bytes"]
    assert first["high_bytes"] - first["low_bytes"] == 2 * VMEM
    assert first["saving_bytes"] == pytest.approx(saved, rel=0.02)


def test_a_wanted_saving_keeps_what_is_dear(history):
    """1 GiB takes only what is elementwise: the products stay saved. 1.5 GiB takes some."""
    for wanted, least in (("1GiB", 1 << 30), ("1.5GiB", 3 << 29)):
        run = advise(history, "--target-saving", wanted, "-f", "json")
        first, *others = json.loads(run.stdout)
        assert (first["finding"], first["grade"]) == ("saving wanted", "between")
        assert first["saving_bytes"] >= least
        assert "residuals in a scan" not in {other["finding"] for other in others}
    (cheap, *_) = json.loads(advise(history, "--target-saving", "1GiB", "-f", "json").stdout)
    assert "dots_saveable" in cheap["write"]
    assert cheap["saving_bytes"] < first["saving_bytes"]


def test_what_cannot_be_saved_says_why(history):
    done = advise(history, "--target-saving", "1GiB", "--run", "2026-10-01")
    assert " 1. nothing is known to save memory by being computed again" in done.stdout
    assert "less than 128.00 MiB would be saved" in done.stdout


def test_without_a_saving_it_says_who_makes_the_peak(history):
    said = " ".join(advise(history, "--run", "2026-10-01").stdout.split())
    assert "No change is known that would surely lower it. The lines that make most" in said
    assert " at /train/zoo/zoo.py:" in said


def test_what_cannot_be_advised_is_a_usage_error(history):
    for arguments in (
        ("--target-saving", "6XB"),
        ("--target-saving", "0"),
        ("--space", "7"),
        ("--run", "nosuch"),
    ):
        done = advise(history, *arguments)
        assert (done.returncode, done.stdout) == (2, ""), arguments
        assert arguments[1] in done.stderr


def test_in_python_advice_is_values(history):
    with memhouse.open(history, read_only=True) as warehouse:
        found = warehouse.advise(LLAMA, run=UNCHECKPOINTED)
    assert [finding.grade for finding in found.findings][:2] == [Grade.between] * 2
    assert found.self_check_bytes == 0
    assert found.peak.peak_bytes == peak(history, UNCHECKPOINTED)
    # All are policies for one scan, of which one can be followed.
    assert found.followed == found.first == found.findings[:1]
    assert found.together.peak_bytes == found.peak.peak_bytes - found.findings[0].saving_bytes
    assert found.arrow().num_rows == len(found) == len(found.findings)
    assert str(found).startswith("The peak is 2.44 GiB at time 631: 2.31 GiB of temps")


def test_of_text_alone_advice_is_estimated(nights):
    """The text has no places, so that the replay is of estimated ones."""
    (text,) = (nights / FORGOTTEN / LLAMA).glob("*after_optimizations.txt*")
    content = gzip.decompress(text.read_bytes()) if text.suffix == ".gz" else text.read_bytes()
    found = memhouse.read(content.decode()).advise()
    assert found.is_estimated
    first = found.findings[0]
    assert first.title.startswith("donate p, m and v")
    assert (first.grade, first.tolerance) == (Grade.estimated, None)
    assert str(found).startswith("The peak is ≈674.9")
    assert " 1. ≈-105.3" in str(found)


def test_without_owners_little_is_advised(tmp_path, db):
    """The program itself is not there: values cannot be followed."""
    folder = copy_dump("cpu/jax-0.10.2/*jit_mixed*", tmp_path / "night")
    for program in [*folder.glob("*after_optimizations.txt"), *folder.glob("*.hlo.pb")]:
        program.unlink()
    assert run_memhouse("ingest", folder, "--db", db).returncode == 0
    done = run_memhouse("advise", "jit_mixed", "--db", db)
    assert done.returncode == 0
    assert "owners of its values" in " ".join(done.stdout.split())
    wanted = run_memhouse("advise", "jit_mixed", "--target-saving", "1KiB", "--db", db)
    assert (wanted.returncode, wanted.stdout) == (2, "")
    done = run_memhouse("report", "jit_mixed", "--db", db, "-o", tmp_path / "x.html")
    assert done.returncode == 0


@pytest.mark.parametrize("grade", [Grade.between, Grade.at_most])
@pytest.mark.parametrize("saved", [-2, -1, 39, 40, 60, 61])
def test_a_value_is_held_against_the_finding_that_names_it(monkeypatch, saved, grade):
    """The first that names it, and the range of that one alone; others stand without a finding."""

    def compiled(asked, topology, *, tool_version, keywords=None, **flags):
        return Memory(1000 - (saved if keywords else 0), 1000)

    def named(*values):
        return Finding(
            *("kind", "title", grade, "write", "why", ()),
            saving_bytes=50,
            low_bytes=None if grade is Grade.at_most else 40,
            high_bytes=60,
            options=Options(values=values),
        )

    monkeypatch.setattr(proving, "compiled_memory", compiled)
    eight, four = named("8"), named("4", "8")
    grid = {"chunks": [1, 4, 8, 16], "policy": ["none", "full"]}
    proofs = list(proving.prove([eight, four], None, "", grid))
    edits = ["chunks=4", "chunks=8", "chunks=16", "policy=full"]
    assert [each.edit for each in proofs] == edits
    assert [each.finding for each in proofs] == [four, eight, None, None]
    # A thousandth of the new peak is no breach.
    holds = (-1 if grade is Grade.at_most else 40) <= saved <= 60
    assert [each.is_confirmed for each in proofs] == [holds, holds, None, None]


PROGRAM = """
import jax, jax.numpy as jnp

def build(mapped=False):
    def attend(q, k, v):
        def one(q, k, v):
            return jax.nn.softmax(q @ k.T / 8) @ v

        if mapped:
            return jax.lax.map(lambda each: one(*each), (q, k, v)) + q, k + v
        return jnp.stack([one(q[h], k[h], v[h]) for h in range(8)]) + q, k + v

    one = jax.ShapeDtypeStruct((8, 512, 64), jnp.float32)
    return jax.jit(attend, donate_argnums=2), (one, one, one)

def other():
    return jax.jit(lambda x: x + 1), (jax.ShapeDtypeStruct((8,), jnp.float32),)
"""


@pytest.mark.slow
def test_what_options_can_follow_is_proved(tmp_path, db, monkeypatch):
    """The flag of XLA, and an argument that is donated beside those that the user donates."""
    pytest.importorskip("jax", reason="jax is not installed: it is in the dev extra")
    # The compiler is of this environment, whichever is active.
    monkeypatch.delenv("VIRTUAL_ENV", raising=False)
    file = tmp_path / "train.py"
    file.write_text(PROGRAM)
    space: dict[str, object] = {}
    exec(PROGRAM, space)
    with memhouse.open(db) as warehouse:
        jitted, arguments = space["build"]()
        warehouse.record(jitted, *arguments)
    asked = ("advise", "attend", "--db", db, "-f", "json")
    done = run_memhouse(*asked, "--recompile", f"{file}:build", "--grid", "mapped=false,true")
    found = {row["finding"]: row for row in json.loads(done.stdout)}
    assert "another program" not in done.stderr
    mapped = found.pop(None)
    assert (mapped["edit"], mapped["told"], mapped["holds"]) == ("mapped=True", None, None)
    assert mapped["proved_saving_bytes"] > MIB
    assert all(row["holds"] for row in found.values()), found
    donated = found["not donated"]
    assert donated["proved_saving_bytes"] == donated["saving_bytes"] > 0
    assert found["another order"]["proved_saving_bytes"] > MIB
    assert "another program is built" in run_memhouse(*asked, "--recompile", f"{file}:other").stderr
