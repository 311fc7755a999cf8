"""HLO text without a schedule: two orders give both ends of an estimate."""

import gzip

import pytest

import memhouse
from memhouse.ingest.derive import derive
from memhouse.ingest.module_rows import build_module
from memhouse.ingest.readers.hlo_text import read_hlo_text
from memhouse.ingest.readers.lines import split_lines
from memhouse.xla.parts import Parts

from ...support.command import run_memhouse
from ...support.dumps import DATA, content
from ...support.warehouse import fill, rows

SCHEDULED = ", is_scheduled=true"
# Two products are alive at once in the order of the text; one at a time is enough.
WIDE = """\
HloModule wide

%twice (t: f32[1024]) -> f32[1024] {
  %t = f32[1024]{0} parameter(0)
  ROOT %sum = f32[1024]{0} add(%t, %t)
}

ENTRY %main (p: f32[1024]) -> f32[4] {
  %p = f32[1024]{0} parameter(0)
  %a = f32[1024,1024]{1,0} broadcast(%p), dimensions={0}
  %b = f32[1024,1024]{1,0} broadcast(%p), dimensions={1}
  %a4 = f32[4]{0} custom-call(%a), custom_call_target="f"
  %b4 = f32[4]{0} custom-call(%b), custom_call_target="f"
  %one = f32[1024]{0} call(%p), to_apply=%twice
  %two = f32[1024]{0} call(%one), to_apply=%twice
  %two4 = f32[4]{0} custom-call(%two), custom_call_target="f"
  ROOT %out = f32[4]{0} custom-call(%a4, %b4, %two4), custom_call_target="f"
}
"""


def memory(text):
    """The rows of `module_memory`, by space; and the module's times by instruction."""
    program = read_hlo_text(split_lines(text.encode()))
    module = build_module(derive(Parts(program=program)))
    instructions = module.tables["instructions"]
    names, times = (instructions[name].to_pylist() for name in ("instruction", "schedule_time"))
    of_space = {row["memory_space"]: row for row in module.tables["module_memory"].to_pylist()}
    return of_space, dict(zip(names, times, strict=True)), module.header


def test_an_order_that_keeps_little_alive_is_the_lower_end():
    (of_space, times, header), array = memory(WIDE), 4 * 1024 * 1024
    assert 2 * array > of_space[0]["peak_bytes"] >= array
    assert 3 * array > of_space[0]["peak_upper_bytes"] >= 2 * array
    # The rows are in the better order, and of two calls of a computation one runs it.
    assert (times["a"] < times["a4"] < times["b"]) or (times["b"] < times["b4"] < times["a"])
    assert (header["origin"], header["grade"], header["is_scheduled"]) == ("estimated", 2, False)


@pytest.mark.parametrize(
    "sample",
    ["cpu/jax-0.10.2/*mixed.cpu_", "gpu/decode-h100/", "tpu/decode8-v5e/", "tpu/resnet-v5e/",
     "tpu/llama-v5e/", "tpu/llama7b-oom-v5e/"],
)  # fmt: skip
def test_the_ends_hold_the_peak_of_xla_s_schedule(sample):
    text = content(f"{sample}*after_optimizations.txt*").decode()
    scheduled, _, header = memory(text)
    of_space, _, _ = memory(text.replace(SCHEDULED, "", 1))
    peak = scheduled[0]["peak_bytes"]
    assert of_space[0]["peak_bytes"] <= peak <= of_space[0]["peak_upper_bytes"]
    assert scheduled[0]["peak_upper_bytes"] is None
    assert header["grade"] == 1


def test_text_before_optimizations_has_an_estimate(tmp_path, db):
    dump = DATA / "unscheduled/jit__lambda.before_optimizations.txt.gz"
    (tmp_path / "step.txt").write_bytes(gzip.decompress(dump.read_bytes()))
    fill(db, tmp_path / "step.txt")
    done = run_memhouse("peaks", "--db", db)
    assert "≈" in done.stdout
    assert "peak_upper_bytes" in done.stdout
    assert "without a schedule" in done.stderr
    assert run_memhouse("verify", "--db", db).returncode == 0
    with memhouse.open(db) as warehouse:
        assert len(warehouse.owners("step").table) > 3


def test_an_estimate_without_a_schedule_is_not_judged_beside_one_with(tmp_path, db):
    """Nights: text with a schedule, without, with, without; nothing else has changed."""
    text = content("tpu/llama-v5e/*optimizations.txt.gz").decode()
    for day in range(1, 5):
        folder = tmp_path / f"2026-11-0{day}"
        folder.mkdir()
        (folder / "step.txt").write_text(text if day % 2 else text.replace(SCHEDULED, "", 1))
        fill(db, folder)
    found = rows(
        db,
        """SELECT run_id[-2:], previous_run_id[-2:], grade FROM trends_by_space AS trends
        WHERE memory_space = 0 AND metric = 'peak_bytes' ORDER BY run_at""",
    )
    assert found == [("01", None, 1), ("02", None, 2), ("03", "01", 1), ("04", "02", 2)]
    done = run_memhouse("check", "--db", db, "--baseline", "2026-11-03")
    # Nothing was held against anything.
    assert done.returncode == 3
    assert "not judged" in done.stdout + done.stderr
