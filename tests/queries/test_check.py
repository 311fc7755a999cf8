"""`check`: which programs of a run pass or fail, against what, and what is accepted."""

import csv

import pytest

import memhouse
from memhouse import UsageError

from ..support.command import run_memhouse
from ..support.made_runs import MIB
from ..support.warehouse import rows

GONE_FOR_A_NIGHT = "llama-cpu"
# Judges the growth of a night alone: no drift, and not its lost donation.
NIGHT = {"run": "2026-10-08", "baseline": "2026-10-07"}
GROWTH_ALONE = "lost_donation = []\n"


@pytest.fixture(scope="module")
def nightly(history):
    with memhouse.open(history, read_only=True) as warehouse:
        yield warehouse


@pytest.fixture
def toml(tmp_path):
    """Writes a limits file: the argument that names it."""

    def write(text: str) -> dict:
        (tmp_path / "limits.toml").write_text(text)
        return {"limits": tmp_path / "limits.toml"}

    return write


def by_workload(found):
    return {verdict.workload: verdict for verdict in found.verdicts}


def said(verdict):
    """The rules that it breaks, in words, of which the thresholds are facts."""
    return [breach.text for breach in verdict.breaches]


# --- pass and fail ------------------------------------------------------------------------


def test_a_night_fails_if_something_grew(nightly):
    """Over the last night, or over the lowest: what grew stays above it until it is accepted."""
    expected = {
        "2026-10-01": ([], []),
        "2026-10-02": ([], []),
        "2026-10-03": (["llama-v5e"], []),
        "2026-10-04": ([], ["llama-v5e"]),
        "2026-10-05": (["llama-cpu", "resnet-h100"], []),
        "2026-10-06": (["llama-v5e"], ["llama-cpu", "resnet-h100"]),
        "2026-10-07": (["decode-v5e", "llama-v5e"], ["resnet-h100"]),
        "2026-10-08": (["llama-v5e", "resnet-h100"], ["decode-v5e"]),
        "2026-10-09": ([], ["decode-v5e", "llama-v5e", "resnet-h100"]),
        "2026-10-10": (["llama-v5e"], ["decode-v5e"]),
    }
    for night, (grown, crept) in expected.items():
        found = nightly.check(night)
        # The first night has nothing to be held against.
        outcome = "fail" if grown or crept else "not judged" if night == "2026-10-01" else "pass"
        assert found.outcome == outcome, night
        failing = [verdict for verdict in found.breaches if verdict.status != "gone"]
        since = {v.workload for v in failing if any("3%" in t and "2026-" in t for t in said(v))}
        others = {verdict.workload for verdict in failing} - since
        assert (sorted(others), sorted(since)) == (grown, crept), night


def test_a_series_is_held_against_its_last_night_and_is_gone_once(nightly):
    held = {name: v.baseline_run for name, v in by_workload(nightly.check("2026-10-08")).items()}
    assert (held["llama-cpu"], held["llama-v5e"]) == ("2026-10-06", "2026-10-07")
    gone = by_workload(nightly.check("2026-10-07"))[GONE_FOR_A_NIGHT]
    assert (gone.outcome, gone.status, gone.baseline_run) == ("fail", "gone", "2026-10-06")
    after = nightly.check("2026-10-08").verdicts
    assert "gone" not in {verdict.status for verdict in after}


def test_the_newest_night_is_judged_and_the_command_says_so(history):
    done = run_memhouse("check", "--db", history)
    assert (done.returncode, done.stderr) == (1, "")
    lines = [line for line in done.stdout.splitlines() if "/jit_" in line and line[0] == "|"]
    cells = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]
    assert [row[:5] for row in cells] == [
        ["llama-v5e/jit_train_step", "574.07 MiB", "2.44 GiB", "+1.88 GiB", "2026-10-09"],
        ["decode-v5e/jit_generate", "68.42 MiB", "100.36 MiB", "+31.94 MiB", "2026-10-06"],
        ["resnet-h100/jit_train", "429.29 MiB", "224.81 MiB", "-204.48 MiB", "2026-10-09"],
    ]
    for fact in ("2026-10-10", "zoo.py:40", "jax.checkpoint"):
        assert fact in done.stdout
    for pair in (("2026-10-09", "2026-10-10"), ("2026-10-06", "2026-10-10")):
        assert f"`memhouse diff {' '.join(pair)}`" in done.stdout
    rules = "Rules: max_growth = 1% (default), max_drift = 3% (default), "
    assert rules in done.stdout
    # Where nothing changed, the verdict and the rules are all.
    done = run_memhouse("check", "--db", history, "--run", "2026-10-02")
    assert done.returncode == 0
    assert [line[:4] for line in done.stdout.splitlines()] == ["### ", "", "Rule"]
    assert run_memhouse("check", "--db", history, "--run", "2026-10-01").returncode == 3
    done = run_memhouse("check", "--db", history, "--run", "2026-10-03", "-f", "csv")
    found = list(csv.DictReader(done.stdout.splitlines()))
    assert [row["verdict"] for row in found] == ["fail", "pass", "pass", "pass"]
    table = run_memhouse("check", "--db", history, "--run", "2026-10-03", "-f", "table").stdout
    assert "2026-10-03" in table.splitlines()[0]
    assert "llama-v5e/jit_train_step" in table


# --- how much may grow ----------------------------------------------------------------------


def test_growth_up_to_a_threshold_passes(nightly, toml):
    """llama-v5e grew by 105.31 MiB, 18.5 %; resnet-h100 by 103.71 MiB, 31.9 %."""
    limits = toml(GROWTH_ALONE)
    for growths, outcome in (
        (["20%"], "fail"),
        (["32%"], "pass"),
        (["104MiB"], "fail"),
        (["106MiB"], "pass"),
        (["32%", "104MiB"], "fail"),
        (["0%"], "fail"),
        (["110428160B"], "pass"),
        (["110428159B"], "fail"),
    ):
        judged = nightly.check(**NIGHT, **limits, max_growth=growths, metric="peak")
        assert judged.outcome == outcome, growths
    growths = ["20%", "100MiB", "1GiB"]
    found = by_workload(nightly.check(**NIGHT, **limits, max_growth=growths, metric="peak"))
    broken = {name: [t.split()[-2] for t in said(v)] for name, v in found.items()}
    assert (broken["resnet-h100"], broken["llama-v5e"]) == (["20%", "100MiB"], ["100MiB"])


def test_another_figure_and_another_space(nightly):
    found = nightly.check(**NIGHT, metric="argument")
    row = by_workload(found)["resnet-h100"]
    assert (found.metric, row.outcome, len(found.breaches)) == ("argument_bytes", "fail", 2)
    assert row.change_bytes == pytest.approx(2.30 * MIB, rel=0.01)
    found = by_workload(nightly.check("2026-10-07", memory_space=1, metric="peak"))
    assert found["decode-v5e"].outcome == "fail"
    # Another program, of the same size in this space.
    assert (found["llama-v5e"].change_bytes, found["llama-v5e"].outcome) == (0, "pass")
    assert len(found) == 2


# --- what it is held against ----------------------------------------------------------------


def test_held_against_another_run_or_the_best(nightly):
    found = by_workload(nightly.check("2026-10-08", baseline="2026-10-06", metric="peak"))
    assert {verdict.baseline_run for verdict in found.values()} == {"2026-10-06"}
    decode = found["decode-v5e"]
    assert (decode.outcome, decode.change_bytes) == ("fail", 32 * MIB)
    # It changed in the night between: its arguments have other shapes.
    assert "s8[8,2048,4,128] → s8[8,4096,4,128]" in decode.cause
    found = by_workload(nightly.check("2026-10-09", best=True, metric="peak"))
    assert (found["decode-v5e"].baseline_run, found["decode-v5e"].change_bytes) == (
        "2026-10-06",
        32 * MIB,
    )
    # The night before, donation was lost, and now it is back: that is not since the best.
    llama = found["llama-v5e"]
    assert (llama.baseline_run, round(llama.change_bytes / MIB, 2)) == ("2026-10-05", 262.66)
    assert "x, y: " in llama.cause
    assert "donat" not in llama.cause
    assert not found["llama-cpu"].matters
    new = nightly.check("2026-10-08", baseline="2026-10-07")
    llama_cpu = by_workload(new)[GONE_FOR_A_NIGHT]
    assert (llama_cpu.status, llama_cpu.outcome, new.outcome) == ("new", "not judged", "fail")


# --- accepting ------------------------------------------------------------------------------


def test_what_was_accepted_passes_from_then_on_and_is_the_new_floor(own, toml):
    night, why = "2026-10-08", "a larger batch"
    accept = ("check", "--db", own, "--run", night, "--accept")
    assert run_memhouse(*accept, " ").returncode == 2
    assert rows(own, "SELECT COUNT(*) FROM accepted_changes") == [(0,)]
    best = {"run": "2026-10-09", "best": True, "max_growth": ["0%"]}
    with memhouse.open(own) as warehouse:
        assert len(warehouse.check(night).breaches) == 3
        assert by_workload(warehouse.check(**best))["resnet-h100"].outcome == "fail"
    assert run_memhouse(*accept, why).returncode == 0
    assert run_memhouse(*accept, "in vain").returncode == 0
    assert rows(
        own,
        "SELECT workload, memory_space, metric, accepted_bytes FROM accepted_changes "
        f"INNER JOIN dumps USING (dump_id) WHERE run_id = '{night}' AND reason = '{why}' "
        "ORDER BY workload, metric",
    ) == [
        ("decode-v5e", 0, "reserved_bytes", 105234432),
        ("llama-v5e", 0, "reserved_bytes", 711940608),
        ("llama-v5e", 0, "alias_bytes", 0),
        ("resnet-h100", 0, "reserved_bytes", 450141328),
    ]
    assert rows(own, "SELECT COUNT(*) FROM accepted_changes") == [(4,)]
    with memhouse.open(own) as warehouse:
        found = warehouse.check(night)
        assert found.outcome == "pass"
        reasons = {v.workload: v.accepted_reason for v in found.verdicts if v.accepted_reason}
        assert reasons == dict.fromkeys(("decode-v5e", "llama-v5e", "resnet-h100"), why)
        # One run and one figure.
        assert warehouse.check("2026-10-07").outcome == "fail"
        assert warehouse.check(night, metric="peak").outcome == "fail"
        # Later runs are held against it, but not against a baseline after it.
        assert warehouse.check("2026-10-10").outcome == "fail"
        assert by_workload(warehouse.check(**best))["resnet-h100"].accepted_reason == why
        held = by_workload(warehouse.check("2026-10-10", baseline="2026-10-09"))["llama-v5e"]
        assert round(held.before_bytes / MIB, 2) == 574.07


def test_an_accepted_breach_of_a_limit_passes_from_then_on(own, toml):
    """It must not pass once, and fail in the next job, where nothing changed."""
    with memhouse.open(own) as warehouse:
        limits = toml('max_growth = []\n[workload.llama-v5e]\nmax_bytes = "400MiB"\n')
        night = warehouse.check("2026-10-03", **limits)
        assert night.outcome == "fail"
        assert warehouse.accept(night, "we know").outcome == "pass"
        outcomes = [warehouse.check(f"2026-10-{day}", **limits).outcome for day in ("04", "10")]
        assert outcomes == ["pass", "fail"]


# --- limits in a file -----------------------------------------------------------------------


def test_limits_for_one_workload_and_the_file_before_the_option(nightly, toml):
    limits = toml('[workload.llama-v5e]\nmax_growth = "20%"\nlost_donation = []\n')
    found = by_workload(nightly.check(**NIGHT, **limits))
    assert (found["llama-v5e"].outcome, found["resnet-h100"].outcome) == ("pass", "fail")
    assert nightly.check(**NIGHT, **limits, max_growth=["50%"]).outcome == "pass"


def test_a_part_of_the_device(nightly, toml):
    """`test_check_rules.py` has the parts; the size of a CPU's memory is not known."""
    others = "max_growth = []\nlost_donation = []\n"
    found = nightly.check("2026-10-08", **toml(f'{others}max_bytes = "95% of device"\n'))
    assert [verdict.workload for verdict in found.breaches] == ["llama-cpu"]
    assert "--device-memory" in found.breaches[0].breaches[0].text


# --- what fails whatever it needs -----------------------------------------------------------


def test_out_of_memory_fails_and_cannot_be_accepted(copied):
    with memhouse.open(copied) as warehouse:
        found = warehouse.check("tpu")
        oom = by_workload(found)["llama7b-oom-v5e"]
        assert (oom.outcome, oom.acceptable()) == ("fail", {})
        assert warehouse.accept(found, "we know").outcome == "fail"
        assert warehouse.check("tpu").outcome == "fail"


def test_hlo_text_alone_has_nothing_to_judge(filled):
    with memhouse.open(filled, read_only=True) as warehouse:
        found = warehouse.check("seeds").verdicts
    assert {v.outcome for v in found if v.status != "gone"} == {"not judged"}


# --- wrong usage ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wrong", "argument", "facts"),
    [
        ({"run": "2026-13-01"}, "run", ["'2026-13-01'", "'2026-10-01'"]),
        ({"baseline": "2026-13-01"}, "baseline", ["'2026-13-01'", "'2026-10-01'"]),
        ({"best": True, "baseline": "2026-10-01"}, "baseline", []),
        ({"metric": "size"}, "metric", ["'size'", "peak, total"]),
        ({"max_growth": ["lots"]}, "max_growth", ["'lots'"]),
        ({"limits": "/no/such.toml"}, "limits", ["/no/such.toml"]),
        ({"limits": "/"}, "limits", ["/: "]),
    ],
)
def test_wrong_usage(nightly, wrong, argument, facts):
    with pytest.raises(UsageError) as error:
        nightly.check(**wrong)
    assert error.value.argument == argument
    assert [fact for fact in facts if fact not in str(error.value)] == []


def test_a_wrong_limits_file_is_named_with_the_line_and_the_key(history, limits):
    for text, fact in (
        ("max_growth = ", "limits.toml"),
        ('grwoth = "1%"', "line1:grwoth"),
        ('max_bytes = "a lot"', "'alot'"),
    ):
        done = run_memhouse("check", "--db", history, *limits(text))
        assert (done.returncode, done.stdout) == (2, "")
        # Long lines are broken anywhere.
        assert fact in "".join(done.stderr.replace("│", " ").split())
