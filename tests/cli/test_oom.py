"""`memhouse oom`: an answer to read at night, from a log, a dump, or both."""

import io
import json
import random
import re
import shutil
import tarfile

import pytest
import zstandard

import memhouse
from memhouse.ingest.pipeline import ingest
from memhouse.ingest.workers import Workers

from ..promises.test_busy import held
from ..support.command import run_memhouse
from ..support.dumps import DATA, DUMPS
from ..support.oom_messages import OWN, PUBLIC
from ..support.rounds import rounds
from ..support.warehouse import fill, writing

PASTED = [path for path in (DATA / "oom/pasted").iterdir() if not path.name.startswith("no-")]
MESSAGES = [*OWN, *sorted(PUBLIC.glob("*.txt")), *sorted(PASTED)]


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """A warehouse of four modules that did not fit."""
    folder = tmp_path_factory.mktemp("oom")
    with (DATA / "oom-dumps.tar.zst").open("rb") as packed:
        reader = zstandard.ZstdDecompressor().stream_reader(packed)
        with tarfile.open(fileobj=reader, mode="r|") as tar:
            tar.extractall(folder / "night", filter="data")
    db = folder / "oom.duckdb"
    fill(db, folder / "night")
    return db


def oom(*args, **options):
    return run_memhouse("oom", *args, **options)


def test_every_message_has_a_short_answer():
    for path in MESSAGES:
        with path.open("rb") as log:
            (answer,) = memhouse.read_oom(log).answers
        assert answer.title.startswith("out of "), path
        assert "None" not in " ".join([answer.title, *answer.facts, *answer.first]), path
        assert answer.first, path


def test_damaged_messages_have_an_answer_or_none():
    """Parts of one message in another, numbers of any size, signs of every kind."""
    chance = random.Random(1)
    texts = [path.read_bytes() for path in MESSAGES]
    odd = (
        b"9" * 12,
        b"999E",
        b"\0",
        b"\n",
        b'"',
        b"[",
        b"(",
        b"1. Size: 3G",
        b"Limit: 1.2\n",
        b"\xff",
    )
    for _ in range(rounds(300)):
        text = chance.choice(texts)
        for _ in range(4):
            at = chance.randrange(len(text) + 1)
            other = chance.choice(texts)[chance.randrange(200) :][: chance.choice((20, 300))]
            text = (
                text[:at]
                + chance.choice((b"", other, *odd))
                + text[at + chance.choice((0, 3, 40)) :]
            )
        assert "None" not in str(memhouse.read_oom(io.BytesIO(text))), text


def test_a_log_needs_no_warehouse(tmp_path):
    run = oom(DATA / "oom/jax0.5.3-args.txt", cwd=tmp_path)
    assert (run.returncode, run.stderr) == (0, "")
    lines = run.stdout.splitlines()
    for fact in ("HBM", "~18.00 GiB", "~15.75 GiB", "~2.25 GiB"):
        assert fact in lines[0]
    assert any(line.startswith("  1. ") and "~18.00 GiB" in line for line in lines)
    assert "  memhouse record" in run.stdout
    assert len(lines) <= 25
    assert list(tmp_path.iterdir()) == []


def test_a_kernel_is_told_what_to_change(tmp_path):
    told = {
        "jax0.5.3-vmemgrid": ("kernel main", "~48.00 MiB", "~16.00 MiB", "vmem_limit_kib=50176"),
        "jax0.10.2-vmem": ("input 0: its block f32[8192,8192]", "no flag"),
        "jax0.9.2-vmemscratch": ("scratch buffer f32[8192,8192]",),
    }
    for name, facts in told.items():
        said = " ".join(oom(DATA / f"oom/{name}.txt", cwd=tmp_path).stdout.split())
        assert [fact for fact in facts if fact not in said] == []


# Of messages as people paste them: what a person would say of each, and what not.
DIAGNOSES = {
    "alpa759.txt": (["lm_head", "copy in another type", "arguments take ~7.78 GiB"], []),
    "gemma.log": (
        [
            "f32[2048,257152], 1.96 GiB",
            "f16[2048,257152]",
            "gemma.py:175 makes 6.85 GiB of the ~7.88",
        ],
        [],
    ),
    "colabfold.md": (
        [
            "alone needs ~192.84 GiB",
            "triangle_multiplication_outgoing makes 76.21 GiB",
            "~154.06 GiB",
        ],
        ["nvidia-smi"],
    ),
    "skyrl624.log": (["1.11 TiB", "may use 79.25 GiB", "more GPUs"], ["nvidia-smi"]),
    "reactant2632.log": (["~81.00 GiB were in use"], ["nvidia-smi"]),
    "alphafold392.log": (["modules.py:1376 makes 1.32 GiB of the ~23.11 GiB"], []),
    "tf-blog.txt": (["accumulator", "temporaries are one allocation of ~20.74 GiB"], []),
    "executable.txt": (["~1.50 GiB is little", "nvidia-smi"], []),
    "alphafold3-209.md": (["if the GPU has more than 47.20 GiB"], []),
    "jax20008.txt": (["tiles smaller to at most 99.00 KiB"], ["vmem_limit", "nvidia-smi"]),
    "smem-context.txt": (["xla_gpu_enable_triton_gemm=false"], []),
    "pallas-tpu7x.txt": (["vmem_limit_bytes=69206016"], ["cut"]),
    "tpu-inference2803.log": (["largest block is bf16[8,2048,128], 4.00 MiB"], ["cut"]),
    "vllm8318.txt": (["prefetch fewer"], ["vmem"]),
    "levanter.txt": (["kernel ragged_paged_attention_kernel", "vmem_limit_bytes=35651584"], []),
    "torchxla1965.txt": (["128.0 times its elements"], []),
    "torchxla3041.txt": (["arguments take ~7.04 GiB", "2.0 times its elements"], []),
}


def test_what_a_person_would_say_of_pasted_messages():
    for name, (facts, others) in DIAGNOSES.items():
        (answer,) = memhouse.read_oom(DATA / "oom/pasted" / name).answers
        told = " ".join([answer.title, *answer.first])
        assert [fact for fact in facts if fact not in told] == [], (name, told)
        assert [fact for fact in others if fact in told] == [], (name, told)


def test_with_a_warehouse_the_dump_answers(stored):
    run = oom(DATA / "oom/jax0.10.2-pad.txt", "--db", stored)
    said = " ".join(run.stdout.split())
    assert "module: jax0.10.2-pad/jit__lambda of run night" in said
    assert "1. padding: buffer 1 bf16[134217728,2] takes 64.0 times its elements, 31.50 GiB" in said
    for fact in ("reorder or merge", "oom_variants.py:29 makes 32.50 GiB"):
        assert fact in said
    assert "memhouse buffers" in said
    assert len(run.stdout.splitlines()) <= 25


def test_a_message_that_counts_too_little_is_corrected(stored):
    said = " ".join(oom(DATA / "oom/jax0.9.2-temps.txt", "--db", stored).stdout.split())
    for fact in ("~22.00 GiB", "dump: 28.00 GiB: arguments 4.00 GiB", "6.00 GiB less"):
        assert fact in said


def test_a_run_tells_all_its_messages(stored):
    run = oom("night", "--db", stored)
    assert run.stdout.count("out of ") == 4
    # The newest run, if none is named.
    rows = json.loads(oom("--db", stored, "--format", "json").stdout)
    assert len(rows) == 4
    assert {row["kind"] for row in rows} == {"program", "allocation", "scoped"}
    assert all(row["dump_id"] for row in rows)


def test_a_dump_answers_without_a_message(db):
    fill(db, DUMPS / "tpu/llama7b-oom-v5e", run_id="tpu")
    with memhouse.open(db, read_only=True) as warehouse:
        (answer,) = warehouse.oom("tpu").answers
    assert answer.title.startswith("out of HBM")


def test_standard_input(tmp_path):
    text = (DATA / "oom/jax0.9.2-temps.txt").read_text()
    run = oom("-", stdin=f"step 1\n{text}", cwd=tmp_path)
    assert "message: standard input:2" in run.stdout
    assert "22.00 GiB       11  jit(f)/dot_general  bf16[32768,32768]" in run.stdout


def test_a_message_that_fits_two_modules_names_them(stored, tmp_path):
    """One module twice under two names, and a message that gives but its size."""
    night = stored.parent / "night"
    for name in ("a", "b"):
        shutil.copytree(night / "jax0.10.2-pad", tmp_path / "two" / name)
        (tmp_path / "two" / name / "error.txt").unlink()
    log = tmp_path / "train.log"
    shutil.copy(DATA / "oom/jax0.10.2-pad.txt", log)
    db = tmp_path / "two.duckdb"
    with writing(db) as store, Workers(1) as workers:
        ingest(store, tmp_path / "two", log, run_id="two", tool_version="test", workers=workers)
    said = " ".join(oom("two", "--db", db).stdout.split())
    assert "two/a/jit__lambda and two/b/jit__lambda" in said


def test_the_same_advice_is_given_once(tmp_path):
    one = (DATA / "oom/public/tpurt.txt").read_text()
    run = oom("-", stdin=f"{one}\n{one.replace('6.43M', '5.43M')}\n", cwd=tmp_path)
    assert run.stdout.count("out of HBM while running") == 2
    assert run.stdout.count("the chip also holds arrays") == 1
    assert run.stdout.count("the same as above") == 1
    assert run.stdout.count("more:") == 1
    assert "dump the module" not in run.stdout
    assert max(map(len, run.stdout.splitlines())) <= 80


def test_a_cut_message_is_told_to_be_cut(tmp_path):
    text = (DATA / "oom/jax0.9.2-temps.txt").read_text()
    assert "cut: " not in oom("-", stdin=text, cwd=tmp_path).stdout
    assert "cut: " not in oom("-", stdin=text.replace("\n", " "), cwd=tmp_path).stdout
    assert "cut: " in oom("-", stdin=text[: len(text) // 2], cwd=tmp_path).stdout


def test_a_message_of_a_record_each_line_is_whole(tmp_path):
    plain = (DATA / "oom/jax0.9.2-temps.txt").read_text()
    records = [
        json.dumps({"log": f"{line}\n", "stream": "stderr", "time": f"2026-09-12T12:00:00.{n}Z"})
        for n, line in enumerate(["step 1", *plain.splitlines(), "step 2"])
    ]
    run = oom("-", stdin="\n".join(records), cwd=tmp_path)
    assert run.stdout == oom("-", stdin=f"step 1\n{plain}\nstep 2\n", cwd=tmp_path).stdout


def test_half_a_character_in_a_record_is_harmless(tmp_path):
    text = (DATA / "oom/public/tpurt.txt").read_text().strip()
    run = oom("-", "-f", "csv", stdin=json.dumps({"log": f"{text} \ud800"}), cwd=tmp_path)
    assert (run.returncode, run.stderr) == (0, "")
    assert "That was not possible. There are 6.43M free" in run.stdout


def test_nothing_ran_out(tmp_path, db):
    run = oom("-", stdin="step 1\n", cwd=tmp_path)
    assert (run.returncode, run.stdout) == (1, "")
    assert run.stderr.startswith("standard input: ")
    run = oom("-", "--format", "json", stdin="step 1\n", cwd=tmp_path)
    assert (run.returncode, run.stdout.strip()) == (1, "[]")
    fill(db, DUMPS / "seeds")
    run = oom("--db", db)
    assert run.returncode == 1
    assert run.stderr.count("\n") == 1
    # No dump says that a kernel's memory did not do, or what happened when the program ran.
    run = oom("seeds", "--db", db)
    assert (run.returncode, run.stdout) == (1, "")
    assert "seeds" in run.stderr
    assert "memhouse oom LOG" in run.stderr


def usage_error(run):
    """What is said of wrong usage, on one line and without the frame around it."""
    assert (run.returncode, run.stdout) == (2, "")
    return " ".join(re.sub("[│╭╮╰╯─]", " ", run.stderr).split())


def test_a_wrong_name_says_what_there_is_not(tmp_path, stored):
    assert "'nosuch'" in usage_error(oom("nosuch", "--db", stored))
    said = usage_error(oom("no.log", cwd=tmp_path))
    assert "'no.log'" in said
    assert "memhouse.duckdb" in said
    assert "empty" in usage_error(oom("", "--db", stored))
    with pytest.raises(memhouse.UsageError):
        memhouse.read_oom("")


def test_a_folder_is_told_from_the_run_of_its_name(tmp_path, stored):
    assert "folder" in usage_error(oom(tmp_path, "--db", stored))
    (tmp_path / "night").mkdir()
    assert "folder" in usage_error(oom("night", cwd=tmp_path))
    run = oom("night", "--db", stored, cwd=tmp_path)
    assert (run.returncode, run.stdout.count("out of ")) == (0, 4)


def test_a_log_is_answered_whatever_the_warehouse(tmp_path, stored):
    path = DATA / "oom/jax0.10.2-pad.txt"
    alone = oom(path, cwd=tmp_path).stdout
    junk = tmp_path / "junk.duckdb"
    junk.write_text("no warehouse\n" * 1000)
    for db in (junk, tmp_path / "nosuch.duckdb"):
        run = oom(path, "--db", db)
        assert (run.returncode, run.stdout) == (0, alone)
        assert str(db) in run.stderr
        assert run.stderr.count("\n") == 1
    with held(stored):
        run = oom(path, "--db", stored)
        assert (run.returncode, run.stdout) == (0, alone)
        assert str(stored) in run.stderr
        assert run.stderr.count("\n") == 1
        run = oom(path, "--db", stored, "--wait", "0.5")
        assert (run.returncode, run.stdout) == (0, alone)
        assert " 0.5 s" in run.stderr
