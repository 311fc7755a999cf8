"""limits.toml: what it sets, and what is said of a wrong one; thresholds."""

from dataclasses import replace

import pytest

from memhouse.queries.checking.limits_file import parse_limits
from memhouse.queries.checking.policy import Limits, Threshold, parse_growth

ONE_PERCENT = Limits((parse_growth("1%"),))
GIB = 2**30


def of_any(toml):
    return parse_limits(toml, ONE_PERCENT).limits("any")


def test_growth_is_a_percentage_or_a_size():
    for text, base, allowed in (
        ("1%", 1000, 10),
        ("0.5%", 1000, 5),
        ("2 %", 1000, 20),
        ("0%", 1000, 0),
        ("100B", 1000, 100),
        ("64KiB", 1000, 64 * 1024),
        ("1.5 MiB", 1000, 1.5 * 2**20),
        ("2GiB", 0, 2 * GIB),
        ("1TiB", 0, 2**40),
    ):
        threshold = parse_growth(text)
        assert (threshold.of(base), threshold.text) == (allowed, text)
    wrong = ["", "%", "lots", "-1%", "1,5%", "64MB", "64mib", "1e3MiB", "1 2MiB", "1%%"]
    for text in (*wrong, "95% of x"):
        with pytest.raises(ValueError) as error:  # noqa: PT011 - the message is compared below.
            parse_growth(text)
        assert repr(text) in str(error.value)


def test_what_a_file_does_not_set_stays_the_default():
    policy = parse_limits("", ONE_PERCENT)
    assert (policy.limits("any"), policy.baseline) == (ONE_PERCENT, None)
    assert of_any('max_growth = "2%"').max_growth == (Threshold(2, True, "2%"),)
    # Several growths must each hold, and none is no limit.
    several = of_any('max_growth = ["2%", "64MiB"]').max_growth
    assert [threshold.of(GIB) for threshold in several] == [0.02 * GIB, 64 * 2**20]
    assert of_any("max_growth = []").max_growth == ()
    (limit,) = of_any('max_bytes = "95% of device"').max_bytes
    assert (limit.is_percent, limit.of(80 * GIB)) == (True, 76 * GIB)


def test_a_workload_has_its_own_limits():
    policy = parse_limits(
        'max_growth = "2%"\nmax_bytes = "15.75GiB"\n'
        '[workload.llama-v5e]\nmax_growth = "10%"\n'
        '[workload."big/one"]\nmax_bytes = "31GiB"\n',
        ONE_PERCENT,
    )
    told = {
        name: (policy.limits(name).max_growth[0].text, policy.limits(name).max_bytes[0].of(0) / GIB)
        for name in ("llama-v5e", "big/one", "any")
    }
    assert told == {"llama-v5e": ("10%", 15.75), "big/one": ("2%", 31), "any": ("2%", 15.75)}


def test_each_rule_says_where_it_is_set():
    policy = parse_limits(
        'max_growth = ["1%", "64MiB"]\nnew = "fail"\n[workload.llama]\nmax_padding = "5%"',
        replace(ONE_PERCENT, lost_donation=(parse_growth("0.1%"),)),
        "our.toml",
    )
    assert list(policy.rules(has_drift=True, gone="warn", better_higher=False)) == [
        "max_growth = 1% and 64MiB (our.toml)",
        "max_drift = 3% or max_growth, if that is more (default)",
        "lost_donation = 0.1% (default)",
        "new = fail (our.toml)",
        "gone = warn (default)",
        "max_padding = 5% for workload llama",
    ]


def test_all_settings():
    policy = parse_limits(
        'baseline = "develop"\nmax_drift = "5%"\nmax_padding = "10%"\n'
        'max_scoped_bytes = "16MiB"\nlost_donation = "1MiB"\nnew = "warn"\ngone = "pass"\n',
        ONE_PERCENT,
    )
    limits = policy.limits("any")
    assert policy.baseline == "develop"
    assert limits.max_drift == (parse_growth("5%"),)
    assert limits.max_padding == (parse_growth("10%"),)
    assert limits.max_scoped_bytes == (parse_growth("16MiB"),)
    assert limits.lost_donation == (parse_growth("1MiB"),)
    assert (limits.new, limits.gone) == ("warn", "pass")


@pytest.mark.parametrize(
    ("toml", "facts"),
    [
        ("max_growth = ", []),
        ("max_growth = 2%", ["line 1"]),
        ('max_grwoth = "2%"', ["line 1", "max_grwoth", "max_growth?"]),
        ("\n# all\nsize = 1", ["line 3", "size", "max_growth, max_drift, max_bytes,"]),
        ('max_growth = "fast"', ["line 1", "max_growth", "'fast'"]),
        ('max_bytes = "huge"', ["max_bytes", "'huge'", "'95% of device'"]),
        ('max_scoped_bytes = "5%"', ["max_scoped_bytes", "'5%'", "64MiB"]),
        ("max_growth = true", ["'True'"]),
        ('gone = "no"', ["line 1", "gone", "'no'", "'pass', 'warn', 'fail'"]),
        ("baseline = 3", ["line 1", "baseline"]),
        ('workload = "llama"', ["[workload.NAME]"]),
        ('max_growth = "1%"\n[workload.llama]\nmax_byte = "2GiB"', ["line 3", "max_byte:"]),
        ('[workload.llama.v5e]\nmax_growth = "2%"', ["line 1", "v5e"]),
        ('[workload.llama]\nbaseline = "main"', ["line 2", "baseline"]),
    ],
)
def test_a_wrong_file_is_refused_with_line_and_key(toml, facts):
    with pytest.raises(ValueError) as raised:  # noqa: PT011 - the message is compared below.
        parse_limits(toml, ONE_PERCENT)
    told = str(raised.value)
    assert [fact for fact in facts if fact not in told] == []
    assert "\n" not in told
    assert "pydantic" not in told
