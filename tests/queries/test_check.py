"""`memhouse check`: the gate says pass, fail or wrong usage, and why."""

import pytest

from ..support.command import run_memhouse
from ..support.history import copy_night, ingest_nights
from ..support.warehouse import fill, rows


def check(db, *args: str) -> tuple[int, str]:
    done = run_memhouse("check", "--db", db, *args)
    return done.returncode, done.stdout


def verdicts(out: str) -> dict[str, list[str]]:
    """The table's rows by workload: before, now, change, held against, cause, verdict."""
    found = [line.strip("| ").split(" | ") for line in out.splitlines() if "/jit_" in line[:40]]
    return {cells[0].split("/")[0]: cells[1:] for cells in found if len(cells) == 7}


# --- pass and fail ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("night", "grown", "crept"),
    [
        ("2026-10-01", [], []),
        ("2026-10-02", [], []),
        ("2026-10-03", ["llama-v5e"], []),
        # What grew stays above the lowest until somebody accepts it.
        ("2026-10-04", [], ["llama-v5e"]),
        ("2026-10-05", ["llama-cpu", "resnet-h100"], []),
        ("2026-10-06", ["llama-v5e"], ["llama-cpu", "resnet-h100"]),
        ("2026-10-07", ["decode-v5e", "llama-v5e"], ["resnet-h100"]),
        ("2026-10-08", ["llama-v5e", "resnet-h100"], ["decode-v5e"]),
        ("2026-10-09", [], ["decode-v5e", "llama-v5e", "resnet-h100"]),
        ("2026-10-10", ["llama-v5e"], ["decode-v5e"]),
    ],
)
def test_a_night_fails_if_something_grew(history, night, grown, crept):
    status, out = check(history, "--run", night)
    # The first night has nothing to be held against.
    assert status == (1 if grown or crept else 3 if night == "2026-10-01" else 0)
    failing = {name: row[-1] for name, row in verdicts(out).items() if row[-1].startswith("fail")}
    failing.pop("llama-cpu", None) if night == "2026-10-07" else None
    since = {name for name, why in failing.items() if "grew by more than 3% since" in why}
    assert (sorted(failing.keys() - since), sorted(since)) == (grown, crept)


def test_the_latest_night_is_judged(history):
    done = run_memhouse("check", "--db", history)
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout == (
        "### memhouse: peak memory of `2026-10-10`: 2 of 4 fail\n"
        "\n"
        "| module | before | now | change | held against | cause | verdict |\n"
        "| --- | ---: | ---: | ---: | --- | --- | --- |\n"
        "| llama-v5e/jit_train_step | 569.65 MiB | 2.44 GiB | +1.88 GiB | 2026-10-09 "
        "| no longer rematerialised (jax.checkpoint); 1.95 GiB more saved for backward (zoo.py:40) "
        "| fail: grew by more than 1% |\n"
        "| decode-v5e/jit_generate | 67.04 MiB | 99.04 MiB | +32.00 MiB | 2026-10-06 "
        "| cache[0][0]: s8[8,2048,4,128] → s8[8,4096,4,128] and 3 more "
        "| fail: grew by more than 3% since 2026-10-06 |\n"
        "| resnet-h100/jit_train | 429.21 MiB | 224.76 MiB | -204.45 MiB | 2026-10-09 "
        "| x: bf16[32,224,224,3] → bf16[16,224,224,3] and 1 more | pass |\n"
        "\n"
        "1 unchanged\n"
        "\n"
        "What changed: `memhouse diff 2026-10-09 2026-10-10`, "
        "`memhouse diff 2026-10-06 2026-10-10`\n"
        "\n"
        "What to change in `llama-v5e/jit_train_step`, and by how much its peak would fall:\n"
        "\n"
        "1. -1.86 GiB (between -1.73 GiB and -1.98 GiB): compute the layers of the scan again "
        "(/train/zoo/zoo.py:46): `jax.lax.scan(jax.checkpoint(body), ...); in Flax nn.remat`\n"
    )


def test_nothing_to_say_is_said_in_a_line(history):
    assert check(history, "--run", "2026-10-02") == (
        0,
        "### memhouse: peak memory of `2026-10-02`: all 4 pass, nothing changed\n",
    )


def test_a_series_is_held_against_its_last_night(history):
    _, out = check(history, "--run", "2026-10-08")
    assert verdicts(out)["llama-cpu"][3] == "2026-10-06"
    assert verdicts(out)["llama-v5e"][3] == "2026-10-07"


def test_a_missing_workload_fails_once(history):
    status, out = check(history, "--run", "2026-10-07")
    assert (status, verdicts(out)["llama-cpu"][3:]) == (1, ["2026-10-06", "", "fail: gone"])
    _, out = check(history, "--run", "2026-10-08")
    assert "gone" not in out


# --- how much may grow ----------------------------------------------------------------------


@pytest.fixture
def since_the_night_before(tmp_path):
    """Options that judge the growth of a night alone: no creep, and not its lost donation."""
    limits = tmp_path / "growth.toml"
    limits.write_text("lost_donation = []\n")
    return ("--run", "2026-10-08", "--baseline", "2026-10-07", "--limits", str(limits))


@pytest.mark.parametrize(
    ("growths", "status"),
    [
        # llama-v5e grew by 105.31 MiB, 18.5 %; resnet-h100 by 103.71 MiB, 31.9 %.
        (["20%"], 1),
        (["32%"], 0),
        (["104MiB"], 1),
        (["106MiB"], 0),
        (["32%", "104MiB"], 1),
        (["32%", "106MiB"], 0),
        (["0%"], 1),
    ],
)
def test_growth_up_to_a_threshold_passes(history, since_the_night_before, growths, status):
    args = [arg for growth in growths for arg in ("--max-growth", growth)]
    assert check(history, *since_the_night_before, *args)[0] == status


def test_a_breach_names_each_threshold(history, since_the_night_before):
    args = ("--max-growth", "20%", "--max-growth", "100MiB", "--max-growth", "1GiB")
    _, out = check(history, *since_the_night_before, *args)
    found = verdicts(out)
    assert found["resnet-h100"][-1] == "fail: grew by more than 20%; grew by more than 100MiB"
    assert found["llama-v5e"][-1] == "fail: grew by more than 100MiB"


def test_the_threshold_itself_is_within(history, since_the_night_before):
    assert check(history, *since_the_night_before, "--max-growth", "110428160B")[0] == 0
    assert check(history, *since_the_night_before, "--max-growth", "110428159B")[0] == 1


def test_another_figure(history):
    options = ("--run", "2026-10-08", "--baseline", "2026-10-07", "--figure", "argument")
    status, out = check(history, *options)
    assert status == 1
    assert out.startswith("### memhouse: argument memory of `2026-10-08`: 2 of 4 fail")
    assert verdicts(out)["resnet-h100"][:3] == ["21.12 MiB", "23.42 MiB", "+2.30 MiB"]


def test_another_memory_space(history):
    status, out = check(history, "--run", "2026-10-07", "--space", "1")
    assert status == 1
    found = verdicts(out)
    assert found["decode-v5e"][-1] == "fail: grew by more than 1%"
    # Another program, of the same size in this space.
    assert (found["llama-v5e"][2], found["llama-v5e"][-1]) == ("0 B", "pass")
    assert "1 of 2 fail" in out


# --- what it is held against ----------------------------------------------------------------


def test_held_against_another_run(history):
    status, out = check(history, "--run", "2026-10-08", "--baseline", "2026-10-06")
    assert status == 1
    found = verdicts(out)
    assert found["decode-v5e"][:4] == ["67.04 MiB", "99.04 MiB", "+32.00 MiB", "2026-10-06"]
    assert {row[3] for row in found.values()} == {"2026-10-06"}
    assert "`memhouse diff 2026-10-06 2026-10-08`" in out


def test_what_changed_is_since_the_run_it_is_held_against(history):
    _, out = check(history, "--run", "2026-10-08", "--baseline", "2026-10-06")
    # decode-v5e changed in the night between: its arguments have other shapes.
    cause = "cache[0][0]: s8[8,2048,4,128] → s8[8,4096,4,128] and 3 more"
    assert verdicts(out)["decode-v5e"][4] == cause


def test_held_against_the_best(history):
    status, out = check(history, "--run", "2026-10-09", "--best")
    assert status == 1
    found = verdicts(out)
    assert found["decode-v5e"][:4] == ["67.04 MiB", "99.04 MiB", "+32.00 MiB", "2026-10-06"]
    # The night before, donation was lost, and now it is back: that is not since the best.
    assert found["llama-v5e"][3] == "2026-10-05"
    assert "x, y: s32[4,1024] → s32[6,1024]" in found["llama-v5e"][4]
    assert "donat" not in found["llama-v5e"][4]
    assert found["llama-v5e"][:3] == ["306.98 MiB", "569.65 MiB", "+262.66 MiB"]
    assert found["resnet-h100"][:3] == ["224.76 MiB", "429.21 MiB", "+204.45 MiB"]
    assert "llama-cpu" not in found


def test_a_series_that_the_baseline_lacks_is_new(history):
    status, out = check(history, "--run", "2026-10-08", "--baseline", "2026-10-07")
    assert verdicts(out)["llama-cpu"][-1] == "not judged: new"
    assert (status, "2 of 4 fail, 1 new" in out) == (1, True)


# --- accepting ------------------------------------------------------------------------------


def test_what_was_accepted_passes_from_then_on(own):
    status, out = check(own, "--run", "2026-10-08")
    assert (status, "3 of 4 fail" in out) == (1, True)
    done = run_memhouse("check", "--db", own, "--run", "2026-10-08", "--accept", "a larger batch")
    assert done.returncode == 0
    assert done.stderr == "accepted 3 of 3: a larger batch\n"
    status, out = check(own, "--run", "2026-10-08")
    assert (status, "all 4 pass" in out) == (0, True)
    accepted = ["llama-v5e", "resnet-h100"]
    assert {verdicts(out)[name][-1] for name in accepted} == {"pass: accepted: a larger batch"}


def test_what_was_accepted_is_recorded(own):
    check(own, "--run", "2026-10-08", "--accept", "a larger batch")
    found = rows(
        own,
        "SELECT DISTINCT run_id, workload, module_name, platform, memory_space, "
        "metric, accepted_bytes, reason FROM accepted_changes "
        "INNER JOIN dumps USING (dump_id) ORDER BY workload, metric",
    )
    night, why = "2026-10-08", "a larger batch"
    assert found == [
        (night, "decode-v5e", "jit_generate", "tpu", 0, "peak_bytes", 103855104, why),
        (night, "llama-v5e", "jit_train_step", "tpu", 0, "alias_bytes", 0, why),
        (night, "llama-v5e", "jit_train_step", "tpu", 0, "peak_bytes", 707748352, why),
        (night, "resnet-h100", "jit_train", "gpu", 0, "peak_bytes", 450058160, why),
    ]


def test_accepting_covers_one_run_and_one_figure(own):
    check(own, "--run", "2026-10-08", "--accept", "a larger batch")
    assert check(own, "--run", "2026-10-07")[0] == 1
    assert check(own, "--run", "2026-10-10")[0] == 1
    assert check(own, "--run", "2026-10-08", "--figure", "total")[0] == 1


def test_later_runs_are_held_against_what_was_accepted(own):
    args = ("--run", "2026-10-09", "--best", "--max-growth", "0%")
    assert verdicts(check(own, *args)[1])["resnet-h100"][-1] == "fail: grew by more than 0%"
    check(own, "--run", "2026-10-08", "--accept", "a larger batch")
    _, out = check(own, *args)
    assert verdicts(out)["resnet-h100"][-1] == "pass: accepted: a larger batch"


def test_a_baseline_after_the_accepted_run_is_what_it_is(own):
    check(own, "--run", "2026-10-08", "--accept", "only this night")
    _, out = check(own, "--run", "2026-10-10", "--baseline", "2026-10-09")
    assert verdicts(out)["llama-v5e"][0] == "569.65 MiB"


def test_a_growth_is_not_accepted_without_a_word(own):
    done = run_memhouse("check", "--db", own, "--run", "2026-10-08", "--accept", " ")
    assert (done.returncode, done.stdout) == (2, "")
    assert "say why it is accepted" in done.stderr
    assert rows(own, "SELECT COUNT(*) FROM accepted_changes") == [(0,)]


def test_nothing_to_accept_is_nothing_accepted(own):
    done = run_memhouse("check", "--db", own, "--run", "2026-10-02", "--accept", "in vain")
    assert (done.returncode, done.stderr) == (0, "nothing fails: nothing is accepted\n")
    assert rows(own, "SELECT COUNT(*) FROM accepted_changes") == [(0,)]


def test_accepting_a_breach_of_a_limit_holds_or_is_refused(own, tmp_path):
    """It must not pass once, and fail in the next job."""
    limits = tmp_path / "limits.toml"
    limits.write_text('max_growth = []\nmax_bytes = "2GiB"\n')
    first, _ = check(own, "--limits", str(limits), "--accept", "we know")
    again, _ = check(own, "--limits", str(limits))
    assert first == again


def test_an_accepted_breach_of_a_limit_passes_from_then_on(own, tmp_path):
    """`accepted_changes` is the new normal: nothing changed from the 3rd to the 4th."""
    limits = tmp_path / "limits.toml"
    limits.write_text('max_growth = []\n[workload.llama-v5e]\nmax_bytes = "400MiB"\n')
    args = ("--limits", str(limits), "--run")
    assert check(own, *args, "2026-10-03", "--accept", "we know")[0] == 0
    assert check(own, *args, "2026-10-04")[0] == 0
    assert check(own, *args, "2026-10-10")[0] == 1


# --- limits in a file -----------------------------------------------------------------------


LLAMA_MAY_GROW = '[workload.llama-v5e]\nmax_growth = "20%"\nlost_donation = []\n'


def test_limits_for_one_workload(history, tmp_path):
    limits = tmp_path / "limits.toml"
    limits.write_text(LLAMA_MAY_GROW)
    args = ("--run", "2026-10-08", "--baseline", "2026-10-07", "--limits", str(limits))
    status, out = check(history, *args)
    assert status == 1
    found = {name: row[-1] for name, row in verdicts(out).items()}
    assert (found["llama-v5e"], found["resnet-h100"]) == ("pass", "fail: grew by more than 1%")


def test_the_file_goes_before_the_option(history, tmp_path):
    limits = tmp_path / "limits.toml"
    limits.write_text(LLAMA_MAY_GROW)
    args = ("--run", "2026-10-08", "--baseline", "2026-10-07", "--limits", str(limits))
    assert check(history, *args, "--max-growth", "50%")[0] == 0


@pytest.mark.parametrize(
    ("part", "status"),
    # 450,058,160 of 84,942,979,072 bytes are 0.53 %.
    [("95%", 0), ("0.6%", 0), ("0.5%", 1)],
)
def test_a_part_of_the_device(history, tmp_path, part, status):
    limits = tmp_path / "limits.toml"
    text = f'[workload.resnet-h100]\nmax_bytes = "{part} of device"\n'
    limits.write_text(f"max_growth = []\nlost_donation = []\n{text}")
    found, out = check(history, "--run", "2026-10-08", "--limits", str(limits))
    assert found == status
    if status:
        assert verdicts(out)["resnet-h100"][-1] == f"fail: reserves more than {part} of device"


def test_a_device_of_unknown_size_cannot_be_judged(history, tmp_path):
    limits = tmp_path / "limits.toml"
    limits.write_text('max_growth = []\nlost_donation = []\nmax_bytes = "95% of device"\n')
    status, out = check(history, "--run", "2026-10-08", "--limits", str(limits))
    assert status == 1
    found = verdicts(out)
    why = "fail: the device's memory is not known: see memhouse ingest --device-memory"
    assert found["llama-cpu"][-1] == why
    assert found["llama-v5e"][-1] == found["resnet-h100"][-1] == "pass"


# --- what fails whatever it needs -----------------------------------------------------------


def test_out_of_memory_fails(filled):
    status, out = check(filled, "--run", "tpu")
    assert status == 1
    assert verdicts(out)["llama7b-oom-v5e"][-1] == "fail: XLA ran out of memory"


def test_accepting_out_of_memory_holds_or_is_refused(copied):
    """It must not pass once, and fail in the next job."""
    first, _ = check(copied, "--run", "tpu", "--accept", "we know")
    again, _ = check(copied, "--run", "tpu")
    assert first == again


def test_a_dump_that_failed_fails(tmp_path, nights):
    db = ingest_nights(tmp_path / "failed.duckdb", nights, ["2026-10-01"])
    broken = copy_night(nights / "2026-10-02", tmp_path / "2026-10-02")
    for file in (broken / "llama-cpu").glob("*after_optimizations*"):
        file.write_text("Segmentation fault\n")
    fill(db, broken)
    for args in ([], ["--accept", "we know"]):
        status, out = check(db, *args)
        assert (status, "1 of 4 fail" in out) == (1, True)
        assert verdicts(out)["llama-cpu"][-1] == "fail: the dump is failed"


def test_hlo_text_alone_has_nothing_to_judge(filled):
    done = run_memhouse("check", "--db", filled, "--run", "seeds", "-f", "csv")
    found = [line.split(",") for line in done.stdout.splitlines()]
    assert {row[2] for row in found if row[1] not in ("gone", "status")} == {"not judged"}


# --- wrong usage ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--run", "2026-13-01"], "there is no run '2026-13-01': did you mean '2026-10-01'?"),
        (["--baseline", "2026-13-01"], "there is no run '2026-13-01': did you mean '2026-10-01'?"),
        (["--best", "--baseline", "2026-10-01"], "give a baseline or the best, not both"),
        (["--figure", "size"], "unknown metric 'size': use one of peak, total"),
        (["--max-growth", "lots"], "'lots' is neither a percentage such as 2% nor a size such as"),
        (["--limits", "/no/such.toml"], "/no/such.toml"),
        (["--limits", "/"], "Is a directory"),
        (["--accept"], "requires an argument"),
    ],
)
def test_wrong_usage(history, args, message):
    done = run_memhouse("check", "--db", history, *args)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in " ".join(done.stderr.replace("│", " ").split())


@pytest.mark.parametrize(
    ("toml", "message"),
    [
        ("max_growth = ", "limits.toml: Invalid value (at"),
        ('grwoth = "1%"', "limits.toml: line 1: grwoth: unknown; did you mean max_growth?"),
        ('max_bytes = "a lot"', "'a lot' is neither"),
    ],
)
def test_a_wrong_limits_file(history, tmp_path, toml, message):
    limits = tmp_path / "limits.toml"
    limits.write_text(toml)
    done = run_memhouse("check", "--db", history, "--limits", limits)
    assert (done.returncode, done.stdout) == (2, "")
    said = " ".join(done.stderr.replace("│", " ").split())
    assert message.replace(" ", "") in said.replace(" ", "")
