"""`memhouse check`: the rules of limits.toml, one by one, and what cannot be judged."""

import pytest

from ..support.command import run_memhouse
from ..support.made_runs import check, make_run
from ..support.warehouse import rows

# --- donation -------------------------------------------------------------------------------


def donated(peak, argument, alias):
    return {"peak_bytes": peak, "argument_bytes": argument, "alias_bytes": alias}


def test_a_lost_donation_fails_though_the_peak_does_not_grow(db):
    make_run(db, "n1", {"train/jit_step": donated(1000, 600, 500)}, day=1)
    make_run(db, "n2", {"train/jit_step": donated(1000, 600, 400)}, day=2)
    status, found = check(db, "n2")
    assert (status, found["train/jit_step"]["why"]) == (1, "lost the donation of 100.00 MiB")
    assert check(db, "n2", "--accept", "XLA copies them")[0] == 0
    status, found = check(db, "n2")
    assert (status, found["train/jit_step"]["accepted"]) == (0, "XLA copies them")


def test_donating_less_of_smaller_arguments_is_no_lost_donation(db):
    """A KV cache of int8 in place of bf16: half the bytes, and all of them still donated."""
    make_run(db, "n1", {"decode/jit_step": donated(1000, 600, 500)}, day=1)
    make_run(db, "n2", {"decode/jit_step": donated(750, 350, 250)}, day=2)
    assert check(db, "n2")[0] == 0


def test_a_larger_batch_is_no_lost_donation(db):
    make_run(db, "n1", {"train/jit_step": donated(1000, 600, 500)}, day=1)
    make_run(db, "n2", {"train/jit_step": donated(1000, 640, 500)}, day=2)
    assert check(db, "n2")[0] == 0


def test_less_than_a_thousandth_of_the_peak_is_no_lost_donation(db, limits):
    make_run(db, "n1", {"train/jit_step": donated(1000, 600, 500)}, day=1)
    make_run(db, "n2", {"train/jit_step": donated(1000, 600, 499.5)}, day=2)
    assert check(db, "n2")[0] == 0
    assert check(db, "n2", *limits('lost_donation = "256KiB"'))[0] == 1
    assert check(db, "n2", *limits("lost_donation = []"))[0] == 0


def test_the_night_that_lost_its_donation_says_so(history):
    _, found = check(history, "2026-10-08")
    assert "lost the donation of 131.90 MiB" in found["llama-v5e/jit_train_step"]["why"]


def test_a_fall_of_alias_is_the_breach_and_a_growth_is_none(history):
    """More donated memory is better: with `--figure alias` the signs turn."""
    status, found = check(history, "2026-10-08", "--figure", "alias")
    row = found["llama-v5e/jit_train_step"]
    assert (status, row["verdict"], row["change_bytes"] < 0) == (1, "fail", True)
    assert row["why"] == "fell by more than 0.1% of the peak"
    status, found = check(history, "2026-10-09", "--figure", "alias")
    row = found["llama-v5e/jit_train_step"]
    assert (row["verdict"], row["change_bytes"] > 0) == ("pass", True)


def test_an_accepted_fall_of_alias_says_so(db):
    make_run(db, "n1", {"train/jit_step": donated(1000, 600, 500)}, day=1)
    make_run(db, "n2", {"train/jit_step": donated(1000, 600, 400)}, day=2)
    check(db, "n2", "--figure", "alias", "--accept", "XLA copies them")
    status, found = check(db, "n2", "--figure", "alias")
    assert (status, found["train/jit_step"]["accepted"]) == (0, "XLA copies them")


def test_a_limit_that_an_accepted_growth_waives_is_said_every_night(db, limits):
    """The growth was accepted, and not the limit: nobody must believe that the limit holds."""
    for day, peak in enumerate((1000, 1100, 1100)):
        make_run(db, f"n{day}", {"train/jit_step": peak}, day=day)
    check(db, "n1", "--accept", "a larger batch")
    limit = limits('max_bytes = "1050MiB"')
    status, found = check(db, "n2", *limit)
    assert (status, found["train/jit_step"]["accepted"]) == (0, "a larger batch")
    out = run_memhouse("check", "--db", db, "--run", "n2", *limit).stdout
    assert "pass: accepted: a larger batch" in out
    assert check(db, "n2")[1]["train/jit_step"]["accepted"] is None


def test_alias_that_creeps_down_is_caught(db):
    alias = 500.0
    for night in range(5):
        make_run(db, f"n{night}", {"train/jit_step": donated(1e6, 600, alias)}, day=night)
        alias *= 0.99
    statuses = [check(db, f"n{night}", "--figure", "alias")[0] for night in range(5)]
    assert statuses == [3, 0, 0, 0, 1]
    row = check(db, "n4", "--figure", "alias")[1]["train/jit_step"]
    assert row["why"] == "fell by more than 3% since n0"


# --- what needs nothing to hold it against --------------------------------------------------


@pytest.mark.parametrize(
    ("limit", "why"),
    [
        ('"900MiB"', "is over 900MiB"),
        ('["900MiB", "80% of device"]', "is over 900MiB; reserves more than 80% of device"),
        ('["2GiB", "90% of device"]', None),
    ],
)
def test_a_size_and_a_part_of_the_device(db, limits, limit, why):
    peak = {"peak_bytes": 1000, "device_memory_bytes": 1200}
    make_run(db, "n1", {"train/jit_step": peak}, day=1)
    status, found = check(db, "n1", *limits(f"max_growth = []\nmax_bytes = {limit}"))
    assert (status, found["train/jit_step"]["why"]) == (1 if why else 0, why)


@pytest.mark.parametrize(
    ("limit", "why"),
    [
        ("5%", "padding is over 5% of the peak"),
        ("64MiB", "padding is over 64MiB"),
        ("10%", None),
    ],
)
def test_padding(db, limits, limit, why):
    make_run(db, "n1", {"train/jit_step": {"peak_bytes": 1000, "padding_bytes": 100}}, day=1)
    option = limits(f'max_growth = []\nmax_padding = "{limit}"')
    status, found = check(db, "n1", *option)
    assert (status, found["train/jit_step"]["why"]) == (1 if why else 0, why)
    if why:
        assert check(db, "n1", *option, "--accept", "small heads")[0] == 0
        assert check(db, "n1", *option)[0] == 0


def test_padding_is_off_unless_the_limits_set_it(db):
    make_run(db, "n1", {"train/jit_step": {"peak_bytes": 1000, "padding_bytes": 900}}, day=1)
    assert check(db, "n1")[0] == 3


def test_memory_that_a_kernel_reserves_for_itself(copied, limits):
    (name, most), *_ = rows(
        copied,
        "SELECT workload || '/' || module_name, MAX(scoped_bytes) FROM instructions "
        "INNER JOIN dumps ON dumps.module_id = instructions.module_id "
        "WHERE run_id = 'tpu' AND scoped_bytes > 0 GROUP BY 1 ORDER BY 2 DESC",
    )
    status, found = check(copied, "tpu", *limits(f'max_scoped_bytes = "{most - 1}B"'))
    assert status == 1
    assert f"a kernel reserves more than {most - 1}B" in found[name]["why"]
    _, found = check(copied, "tpu", *limits(f'max_scoped_bytes = "{most}B"'))
    assert not [row for row in found.values() if "kernel" in (row["why"] or "")]


def test_a_workload_has_rules_of_its_own(db, limits):
    for night, peak in enumerate((1000, 1050), 1):
        make_run(db, f"n{night}", {"a/jit_step": peak, "b/jit_step": peak + 1}, day=night)
    text = '[workload.a]\nmax_growth = "10%"\nnew = "fail"\n[workload.b]\nmax_growth = []\n'
    status, found = check(db, "n2", *limits(text))
    assert (status, {row["verdict"] for row in found.values()}) == (0, {"pass"})


# --- what is shown --------------------------------------------------------------------------


def test_equal_programs_of_many_hosts_are_one_row(db):
    def hosts(peak, odd):
        return {f"host{n}/jit_step": odd if n == 5 else peak for n in range(8)}

    make_run(db, "n1", hosts(1000, 1000), day=1)
    make_run(db, "n2", hosts(1300, 1400), day=2)
    out = run_memhouse("check", "--db", db, "--run", "n2").stdout
    assert out.startswith("### memhouse: peak memory of `n2`: 8 of 8 fail\n")
    shown = [line.split(" | ")[0] for line in out.splitlines() if "jit_step" in line]
    assert shown == [
        "| host5/jit_step",
        "| jit_step of host0 … host4, host6 and host7 (7 the same)",
    ]
    whole = run_memhouse("check", "--db", db, "--run", "n2", "--all").stdout
    assert whole.count("/jit_step |") == 8
    assert len(check(db, "n2")[1]) == 8


def test_csv_has_a_row_for_every_program(history):
    done = run_memhouse("check", "--db", history, "--run", "2026-10-02", "-f", "csv")
    heading, *lines = done.stdout.splitlines()
    assert len(lines) == 4
    assert heading.startswith("module,status,verdict,before_bytes,now_bytes,change_bytes")


def test_a_table_for_the_terminal(history):
    out = run_memhouse("check", "--db", history, "--run", "2026-10-03", "-f", "table").stdout
    assert out.startswith("peak memory of 2026-10-03: 1 of 4 fail\n")
    assert "3 unchanged" in out
