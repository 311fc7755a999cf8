"""The rules of limits.toml, one by one, on figures in MiB; and what the command shows of many."""

import pytest

import memhouse
from memhouse.queries.checking.judge import Accepted, Judged, Value, find_breaches, find_waiver
from memhouse.queries.checking.limits_file import parse_limits
from memhouse.queries.checking.policy import Limits, parse_growth
from memhouse.schema.errors import UsageError

from ..support.command import run_memhouse
from ..support.made_runs import MIB, check, make_run
from ..support.warehouse import rows

DEFAULT = Limits((parse_growth("1%"),), lost_donation=(parse_growth("0.1%"),))
NOW = {"series_id": 1, "status": "ok", "oom": False}
HELD = {"series_id": 1, "place": 5, "least_run_id": "n0"}


def row(start, value, **figures):
    """A row of a query: figures are MiB, and all of a peak is in `value`."""
    given = {"value": value, "peak": value, "argument": 0, "alias": 0} | figures
    names = ("reserved", "padding", "scoped", "device_memory", "least")
    found = dict.fromkeys(f"{name}_bytes" for name in names)
    sizes = {f"{k}_bytes": v if v is None else v * MIB for k, v in given.items()}
    return start | found | sizes | {"value": sizes["value_bytes"]}


def judged(now, held, toml="", *, metric="peak_bytes", accepted=(), drift=True, base=None):
    values = [Value(f"{m}_bytes", s, 7, "n4", p, v * MIB, "agreed") for m, s, p, v in accepted]
    limits = parse_limits(toml, DEFAULT).limits("any")
    return Judged(now, held, metric, limits, Accepted(tuple(values)), drift, base)


def broken(*given, **options):
    """Of each breach the metric, the outcome, and the MiB that would be accepted."""
    found, _ = find_breaches(judged(*given, **options))
    return [(b.metric, b.outcome, b.value and b.value / MIB) for b in found]


def peak(now, held=None, toml="", least=None, **options):
    """The outcomes for a peak that is held against another one."""
    before = None if held is None else row(HELD, held, least=held if least is None else least)
    return [outcome for _, outcome, _ in broken(row(NOW, now), before, toml, **options)]


# --- growth and drift -----------------------------------------------------------------------


def test_a_growth_beyond_each_limit_is_a_breach():
    assert peak(1010, 1000) == []
    assert broken(row(NOW, 1011), row(HELD, 1000)) == [("peak_bytes", "fail", 1011)]
    assert peak(900, 1000) == peak(1011, None) == []
    assert peak(1011, 1000, "max_growth = []") == []
    assert peak(1050, 1000, 'max_growth = ["1%", "49MiB", "51MiB"]') == ["fail", "fail"]
    # What it is held against has no figures.
    assert broken(row(NOW, 1011), row(HELD, None)) == []


def test_a_drift_is_a_growth_over_the_lowest():
    """By default of 3 %, but never less than a night may grow."""
    assert peak(1030, 1025, least=1000) == []
    assert broken(row(NOW, 1031), row(HELD, 1025, least=1000)) == [("peak_bytes", "fail", 1031)]
    assert peak(1031, 1025, least=1000, drift=False) == []
    assert peak(1031, 1025, "max_drift = []", least=1000) == []
    assert peak(1031, 1025, 'max_drift = "4%"', least=1000) == []
    assert peak(1031, 1025, 'max_drift = "3%"', least=1000, drift=False) == ["fail"]
    assert peak(1090, 1050, 'max_growth = "10%"', least=1000) == []
    assert peak(1101, 1050, 'max_growth = "10%"', least=1000) == ["fail"]
    # A limit in bytes that is stricter does not count.
    assert peak(1031, 1025, 'max_growth = ["10%", "100MiB"]', least=1000) == []
    assert peak(1031, 1025, 'max_growth = ["10%", "20MiB"]', least=1000) == ["fail"]
    # A growth of the night is told alone.
    assert peak(1100, 1025, least=1000) == ["fail"]


def test_only_a_drift_is_told_as_one():
    for now, held, is_drift in ((1031, 1025, True), (1100, 1025, False), (1020, 1020, False)):
        _, only_drift = find_breaches(judged(row(NOW, now), row(HELD, held, least=1000)))
        assert only_drift is is_drift


def test_a_drift_that_the_base_has_already_only_warns():
    assert peak(1041, 1036, least=1000, base="main") == ["warn"]
    assert peak(1041, 1036, least=1000, base="") == ["warn"]
    assert peak(1031, 1030, least=1000, base="main") == ["fail"]
    held = row(HELD, 1036, least=1000)
    (breach,), _ = find_breaches(judged(row(NOW, 1041), held, base="trunk"))
    assert [fact for fact in ("trunk", "3%", "n0") if fact not in breach.text] == []


def test_the_value_that_was_accepted_since_is_what_counts():
    of_held, of_later = ("peak", 1, 5, 1100), ("peak", 1, 6, 1100)
    assert peak(1100, 1000, accepted=[of_later]) == []
    assert peak(1112, 1000, accepted=[of_later]) == ["fail"]
    assert peak(1100, 1000, accepted=[of_held]) == ["fail"]
    assert peak(1100, 1000, accepted=[("temp", 1, 6, 1100), ("peak", 2, 6, 1100)]) == ["fail"]
    # A smaller one makes nothing stricter, but for the drift.
    assert peak(1009, 1000, accepted=[("peak", 1, 6, 900)]) == ["fail"]
    assert peak(1009, 1000, 'max_drift = "20%"', accepted=[("peak", 1, 6, 900)]) == []
    # The drift begins anew there.
    assert peak(1130, 1120, least=1000, accepted=[of_later]) == []
    assert peak(1134, 1130, least=1000, accepted=[of_later]) == ["fail"]


# --- donated memory -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "now", "lost"),
    [
        # Argument, and what of it is donated.
        ((600, 500), (600, 400), True),
        ((600, 500), (600, 499), False),
        ((600, 500), (600, 498), True),
        # A KV cache of int8 in place of bf16: half the bytes, and all of them still donated.
        ((600, 500), (350, 250), False),
        # A larger batch.
        ((600, 500), (640, 500), False),
    ],
)
def test_a_donation_is_lost_if_more_of_the_arguments_is_kept(before, now, lost):
    rows = [
        row(start, 1000, argument=argument, alias=alias, least=1000)
        for start, (argument, alias) in ((NOW, now), (HELD, before))
    ]
    assert broken(*rows) == [("alias_bytes", "fail", now[1])] * lost
    assert broken(*rows, "lost_donation = []") == []
    assert broken(*rows, metric="argument_bytes")[:1] == [("alias_bytes", "fail", now[1])] * lost
    # What was accepted since is what was donated.
    assert broken(*rows, accepted=[("alias", 1, 6, now[1])]) == []
    assert broken(*rows, accepted=[("alias", 1, 6, 1000)]) == broken(*rows)


def test_donations_that_are_not_known_are_not_lost():
    held = row(HELD, 1000, argument=600, alias=500, least=1000)
    assert broken(row(NOW, 1000, argument=600, alias=None), held) == []
    assert broken(row(NOW, 1000, argument=600), row(HELD, 1000, alias=None, least=1000)) == []
    assert broken(row(NOW, 1000, peak=None, argument=600), held) == []


def test_of_donated_memory_a_fall_is_the_breach():
    def alias(now, held, least, **options):
        held = row(HELD, held, least=least, peak=1000, argument=1000, alias=held)
        now = row(NOW, now, peak=1000, argument=1000, alias=now)
        return broken(now, held, metric="alias_bytes", **options)

    assert alias(600, 500, 500) == []
    assert alias(499, 500, 500) == []
    assert alias(498, 500, 500) == [("alias_bytes", "fail", 498)]
    assert alias(485, 485, 500) == []
    assert alias(484, 484, 500) == [("alias_bytes", "fail", 484)]
    assert alias(484, 484, 500, base="main") == [("alias_bytes", "warn", 484)]
    assert alias(484, 484, 500, accepted=[("alias", 1, 6, 484)]) == []
    assert alias(480, 500, 500, accepted=[("alias", 1, 6, 480)]) == []
    # An accepted rise is no new floor for the growth of a night.
    assert alias(500, 500, 500, accepted=[("alias", 1, 6, 510)]) == []


# --- what needs nothing to hold it against --------------------------------------------------


def test_a_size_and_a_part_of_the_device():
    now = row(NOW, 1000, device_memory=1200)
    for limit, outcomes in (
        ('"999MiB"', [("peak_bytes", "fail", 1000)]),
        ('"1000MiB"', []),
        ('"80% of device"', [("peak_bytes", "fail", 1000)]),
        ('["2GiB", "90% of device"]', []),
    ):
        assert broken(now, None, f"max_bytes = {limit}") == outcomes
    limit = 'max_bytes = "90% of device"'
    # A program has to fit with all that it reserves.
    reserved = row(NOW, 1000, device_memory=1200, reserved=1100)
    assert broken(reserved, None, limit) == [("reserved_bytes", "fail", 1100)]
    assert broken(reserved, None, limit, metric="temp_bytes") == []
    # Nothing can be accepted where the device's memory is not known.
    assert broken(row(NOW, 1000), None, limit) == [(None, "fail", None)]
    assert broken(now, None, 'max_bytes = "1MiB"', metric="alias_bytes") == []


def test_what_was_ever_accepted_is_within_all_limits():
    limit = 'max_growth = []\nmax_drift = []\nmax_bytes = "900MiB"'
    now, held = row(NOW, 1000), row(HELD, 1000, least=1000)
    assert broken(now, held, limit, accepted=[("peak", 1, 1, 1000), ("peak", 1, 2, 950)]) == []
    assert broken(now, held, limit, accepted=[("peak", 1, 1, 999)]) == [
        ("peak_bytes", "fail", 1000)
    ]
    # Also in the series that a branch is held against.
    other = row(HELD | {"series_id": 2}, 1000, least=1000)
    assert broken(now, other, limit, accepted=[("peak", 2, 1, 1000)]) == []
    assert len(broken(now, None, limit, accepted=[("peak", 2, 1, 1000)])) == 1


def test_padding_and_what_kernels_reserve():
    now = row(NOW, 500, peak=1000, padding=100, scoped=16)
    for limit, outcomes in (
        ('max_padding = "5%"', [("padding_bytes", "fail", 100)]),
        ('max_padding = "10%"', []),
        ('max_padding = "64MiB"', [("padding_bytes", "fail", 100)]),
        ('max_scoped_bytes = "15MiB"', [("scoped_bytes", "fail", 16)]),
        ('max_scoped_bytes = "16MiB"', []),
        ("", []),
    ):
        assert broken(now, None, limit, metric="temp_bytes") == outcomes
    assert broken(now, None, 'max_padding = "5%"', accepted=[("padding", 1, 1, 100)]) == []
    assert broken(row(NOW, 0, peak=None, padding=1), None, 'max_padding = "5%"') == [
        ("padding_bytes", "fail", 1)
    ]


def test_a_program_that_failed_found_no_room_or_is_new():
    assert broken(row(NOW | {"oom": True}, 1000), None) == [(None, "fail", None)]
    assert broken(row(NOW | {"status": "failed"}, None), None) == [(None, "fail", None)]
    assert (
        broken(row(NOW | {"oom": True, "status": "failed"}, None), None)
        == [(None, "fail", None)] * 2
    )
    # HLO text alone is a whole dump without figures.
    assert broken(row(NOW, None), row(HELD, 1000), 'max_bytes = "1MiB"') == []
    assert broken(row(NOW | {"status": "partial"}, 1000), row(HELD, 1000, least=1000)) == []
    for outcome in ("warn", "fail"):
        new = f'new = "{outcome}"'
        assert broken(row(NOW, 1000), None, new) == [("peak_bytes", outcome, 1000)]
        assert broken(row(NOW, 1000), row(HELD, None), new) == [("peak_bytes", outcome, 1000)]
        assert broken(row(NOW, 1000), row(HELD, 1000, least=1000), new) == []
        assert broken(row(NOW, 1000), None, new, accepted=[("peak", 1, 1, 1)]) == []


# --- why it passes all the same -------------------------------------------------------------


def test_the_reason_that_waives_a_rule_is_told():
    """The growth was accepted, and not the limit: nobody must believe that the limit holds."""

    def waiver(now, held, toml="", **options):
        asked = judged(row(NOW, now), row(HELD, held, least=held), toml, **options)
        return find_waiver(asked, find_breaches(asked)[0])

    later = [("peak", 1, 6, 1100)]
    assert waiver(1100, 1000, accepted=later) == "agreed"
    assert waiver(1200, 1000, accepted=later) is None
    assert waiver(1000, 1000, accepted=later) is None
    assert waiver(1000, 1000) is None
    # Nothing is over the run before, but over the limit.
    limit = 'max_bytes = "1050MiB"'
    assert waiver(1100, 1100, limit, accepted=[("peak", 1, 5, 1100)]) == "agreed"
    assert waiver(1100, 1100, 'max_bytes = "2GiB"', accepted=[("peak", 1, 5, 1100)]) is None


# --- all together ---------------------------------------------------------------------------


def test_the_night_that_lost_its_donation_is_told_until_it_is_accepted(own):
    night, name = "2026-10-08", "llama-v5e/jit_train_step"
    _, found = check(own, night)
    assert {breach.metric for breach in found[name].breaches} == {"reserved_bytes", "alias_bytes"}
    assert any("131.90 MiB" in breach.text for breach in found[name].breaches)
    outcome, found = check(own, night, metric="alias")
    assert (outcome, found[name].outcome, found[name].change_bytes) == ("fail", "fail", -138307584)
    _, found = check(own, "2026-10-09", metric="alias")
    assert (found[name].outcome, found[name].change_bytes) == ("pass", 138307584)
    check(own, night, metric="alias", accept="XLA copies them")
    _, found = check(own, night, metric="alias")
    assert (found[name].outcome, found[name].accepted_reason) == ("pass", "XLA copies them")


def test_memory_that_a_kernel_takes_for_itself(filled, tmp_path):
    most = dict(
        rows(
            filled,
            "SELECT workload || '/' || module_name, MAX(scoped_bytes) FROM kernels "
            "WHERE run_id = 'tpu' AND scoped_bytes > 0 GROUP BY 1",
        )
    )
    with memhouse.open(filled, read_only=True) as warehouse:
        for limit in (max(most.values()), min(most.values()) - 1):
            (tmp_path / "limits.toml").write_text(f'max_scoped_bytes = "{limit}B"')
            found = warehouse.check("tpu", limits=tmp_path / "limits.toml").verdicts
            over = {v.name for v in found for b in v.breaches if b.metric == "scoped_bytes"}
            assert over == {name for name, size in most.items() if size > limit}


def test_what_is_reserved_is_judged_else_the_peak(db):
    """A figure of one kind is never held against one of the other."""
    unknown = {"origin": "estimated"}
    for night, (peak, total) in enumerate(((1000, 2000), (1300, 2000), (1300, 2400))):
        programs = {
            "a/jit_step": {"peak_bytes": peak, "reserved_bytes": total},
            "b/jit_step": {"peak_bytes": peak, **unknown},
            "c/jit_step": {"peak_bytes": peak + 1, **(unknown if night else {})},
        }
        make_run(db, f"n{night}", programs, day=night)
    _, first = check(db, "n1")
    assert {name: v.outcome for name, v in first.items()} == {
        "a/jit_step": "pass",
        "b/jit_step (estimated)": "fail",
        "c/jit_step (estimated)": "not judged",
    }
    by_peak = first["b/jit_step (estimated)"]
    assert ("peak" in by_peak.said, by_peak.metric) == (True, "peak_bytes")
    assert first["c/jit_step (estimated)"].is_lost
    assert "peak" not in first["a/jit_step"].said
    assert check(db, "n1", toml='figure = "peak"')[1]["a/jit_step"].outcome == "fail"
    _, then = check(db, "n2", metric="reserved", toml='figure = "peak"')
    assert then["a/jit_step"].acceptable() == {"reserved_bytes": 2400 * MIB}
    assert then["b/jit_step (estimated)"].outcome == "not judged"
    with pytest.raises(UsageError, match="figure"):
        check(db, "n1", toml='figure = "paek"')


def test_equal_programs_of_many_hosts_are_one_row(db):
    for night, (peak, odd) in enumerate(((1000, 1000), (1300, 1400))):
        peaks = {f"host{n}/jit_step": odd if n == 5 else peak for n in range(8)}
        make_run(db, f"n{night}", peaks, day=night)
    out = run_memhouse("check", "--db", db, "--run", "n1").stdout
    host5, others = [line.split(" | ")[0] for line in out.splitlines() if "jit_step" in line]
    assert "host5/jit_step" in host5
    assert "host0 … host4, host6 and host7" in others
    whole = run_memhouse("check", "--db", db, "--run", "n1", "--all").stdout
    assert whole.count("/jit_step |") == 8
    assert len(check(db, "n1")[1]) == 8
